"""SIGTERM and SIGINT at any moment: the batch is finished or left, the state closed, and the exit code is 0."""

import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import Frail
from deployment import Deployment, Worker
from proxy import Api, Side
from traffic import Law, Stream, events

STOP_SECONDS = 40
"""What the command's help promises at the default deadline."""


@pytest.fixture
def deployment(frail: Frail, topic_prefix: str, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(frail.broker.bootstrap, topic_prefix, tmp_path)
    yield deployment
    deployment.close()


def stopped(worker: Worker, signals: Sequence[int] = (signal.SIGTERM,)) -> int:
    """Its exit code after these signals, one right after the other."""
    for number in signals:
        worker.process.send_signal(number)
    return worker.process.wait(STOP_SECONDS)


def test_a_busy_worker_finishes_its_batch_and_a_restart_goes_on_from_there(
    deployment: Deployment, lawful: Law
) -> None:
    stream = Stream(deployment, lawful, batch_size=50)
    for signals in ([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM, signal.SIGINT]):
        begin = stream.count
        stream.produce(1500)
        stream.until_committed(begin + 50)
        assert stopped(stream.worker, signals) == 0
        assert "Scope" in stream.worker.said() and "is closed" in stream.worker.said()
        committed = deployment.committed()
        assert begin < committed < stream.count
        assert len(deployment.outputs()) == committed, "what is committed has left, and nothing else"
        stream.worker = deployment.ready(batch_size=50)
    stream.require_lawful()


def test_a_worker_that_is_told_to_stop_before_its_scope_is_open_ends_too(
    frail: Frail, deployment: Deployment
) -> None:
    settings = {"broker": frail.proxy.bootstrap, "deadline": "5s"}
    with frail.proxy.holding(Api.API_VERSIONS, Side.REQUEST) as trap:
        worker = deployment.start(**settings)
        trap.require_sprung()
        assert stopped(worker) == 0
    with frail.proxy.holding(Api.INIT_PRODUCER_ID, Side.REQUEST) as trap:
        worker = deployment.start(**settings)
        trap.require_sprung()
        assert stopped(worker) == 0
    with frail.proxy.without_coordinators():
        worker = deployment.start(**settings)
        worker.until_said("GroupCoordinatorNotAvailableError")
        assert stopped(worker) == 0


def test_a_worker_that_is_told_to_stop_while_the_broker_is_away_leaves_its_batch_to_the_next(
    frail: Frail, deployment: Deployment, lawful: Law
) -> None:
    # A worker like any other, but for its patience.
    code = "import stream.turns; stream.turns.FINISH_SECONDS = 1; from stream.cli import run; run()"
    environment = deployment.settings(broker=frail.proxy.bootstrap)
    worker = deployment.start(sys.executable, "-c", code, "worker", environment=environment)
    worker.until_said("is open at offset")
    with frail.proxy.holding(Api.END_TXN, Side.REQUEST, deployment.prefix.encode()) as trap:
        deployment.produce(events(20))
        trap.require_sprung()
        with frail.proxy.unreachable():
            worker.until_said("Marking the coordinator dead")
            assert stopped(worker) == 0
    assert "the batch in hand is left" in worker.said()
    deployment.ready()
    lawful(deployment, 20)


def test_a_signal_while_the_command_is_loaded_ends_it_with_code_0(deployment: Deployment) -> None:
    command = (sys.executable, "-X", "importtime", "-m", "stream", "worker")
    worker = deployment.start(*command)
    # Deep in its imports, before Faust takes signals on.
    worker.until_said(" aiokafka")
    assert stopped(worker) == 0


def test_a_mistaken_setting_ends_the_start_with_code_2_and_a_sentence(deployment: Deployment) -> None:
    worker = deployment.start(session_timeout="1s")
    assert worker.wait() == 2
    assert "TEXTSIEVE_SESSION_TIMEOUT" in worker.said()
    assert "Traceback" not in worker.said()
