"""Each test has a deployment of its own on the broker that all share."""

import shutil
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from deployment import Deployment, Output
from proxy import Proxy
from traffic import Law
from workbench import Bench

from stream.broker import ApacheKafka
from stream.broker.base import free_ports
from stream.settings import Settings
from stream.text import Scheme
from tests.faults.check import Seen, compare
from tests.faults.judge import as_event, judged


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


class Frail(NamedTuple):
    """A Kafka that tests may stop, kill and start again, and a proxy that leads to it."""

    broker: ApacheKafka
    proxy: Proxy


@pytest.fixture(scope="session")
def _frail(
    java_and_maven: None, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Frail]:
    (port,) = free_ports(1)
    broker = ApacheKafka(
        tmp_path_factory.mktemp("frail"),
        proxy_port=port,
        # A transaction that timed out is only looked for every ten seconds otherwise.
        overrides={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"},
    )
    assert broker.proxied_port is not None
    with broker, Proxy(port, broker.proxied_port) as proxy:
        yield Frail(broker, proxy)
    shutil.rmtree(broker.directory / "data")


@pytest.fixture
def frail(_frail: Frail) -> Frail:
    """As `Frail`, running, shared by the tests that break it."""
    _frail.broker.start()
    return _frail


@pytest.fixture
def lawful(scheme: Scheme, tmp_path: Path) -> Law:
    """Wait until so many events have left, and no more: each once, all as the offline judge has them."""

    asked = count()

    def check(deployment: Deployment, count: int, **settings: object) -> list[Output]:
        outputs = deployment.until_judged(count)
        raw = [as_event(message) for message in deployment.read(deployment.raw)]
        rules = Bench(deployment, scheme).settings(**settings)
        expected = judged(raw, rules, scheme, tmp_path / f"offline-{next(asked)}")
        found = [
            Seen(
                f"{deployment.prefix}.{one.kind}",
                one.partition,
                one.offset,
                one.time,
                one.key,
                one.value,
                tuple(one.headers),
            )
            for one in outputs
        ]
        findings = compare(raw, expected, sorted(found, key=lambda one: (one.topic, one.offset)))
        assert findings.sound, findings
        return outputs

    return check
