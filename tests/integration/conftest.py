"""Each test has a deployment of its own on the broker that all share."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from deployment import Deployment
from workbench import Bench

from stream.settings import Settings
from stream.text import Scheme


@pytest.fixture
def deployment(some_kafka: str, topic_prefix: str, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(some_kafka, topic_prefix, tmp_path)
    yield deployment
    deployment.close()


@pytest.fixture(scope="session")
def scheme() -> Scheme:
    """The scheme of the default settings: it takes a while to build."""
    return Scheme.build(Settings().scheme_spec)


@pytest.fixture
async def bench(deployment: Deployment, scheme: Scheme) -> AsyncIterator[Bench]:
    bench = Bench(deployment, scheme)
    yield bench
    await bench.close_all()
