"""Each test has a deployment of its own on the broker that all share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from deployment import Deployment


@pytest.fixture
def deployment(some_kafka: str, topic_prefix: str, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(some_kafka, topic_prefix, tmp_path)
    yield deployment
    deployment.close()
