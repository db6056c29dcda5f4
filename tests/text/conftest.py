"""What the tests of the text code share: the schemes of both engines, and the published values."""

import json
from pathlib import Path
from typing import Any

import pytest

from stream.text import Scheme, SchemeSpec


@pytest.fixture(scope="session")
def scheme() -> Scheme:
    return Scheme.build(SchemeSpec())


@pytest.fixture(scope="session")
def reference_scheme() -> Scheme:
    return Scheme.build(SchemeSpec(engine="jieba"))


@pytest.fixture(scope="session")
def vectors(data_dir: Path) -> dict[str, Any]:
    return json.loads((data_dir / "vectors.json").read_text(encoding="utf-8"))
