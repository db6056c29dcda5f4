"""What the state's tests are given."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from state_model import IN_MEMORY


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory in memory where there is one, for tests in which RocksDB would sync more than compute."""
    path = Path(tempfile.mkdtemp(prefix="textsieve-", dir=IN_MEMORY))
    yield path
    shutil.rmtree(path)
