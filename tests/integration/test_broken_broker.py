"""A broker that stops, dies, is cut off or does not answer: no text is lost or doubled, and nobody lends a hand."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupState
from conftest import Frail
from deployment import SECONDS, Deployment
from proxy import Api, Proxy, Side
from traffic import Law, Stream, events

QUICK = {"session_timeout": "6s", "transaction_timeout": "1s", "deadline": "3s", "batch_size": 50}
"""Nearly the shortest timeouts that the worker takes, so that tests outlast them."""


@pytest.fixture
def proxy(frail: Frail) -> Proxy:
    return frail.proxy


@pytest.fixture(scope="module")
def streams() -> Iterator[list[Stream]]:
    streams: list[Stream] = []
    yield streams
    for stream in streams:
        stream.deployment.close()


@pytest.fixture
def stream(
    frail: Frail,
    streams: list[Stream],
    topic_prefix: str,
    tmp_path_factory: pytest.TempPathFactory,
    lawful: Law,
) -> Stream:
    """The stream of the last test, or a new one where that test left it otherwise than in order."""
    if not streams or not streams[-1].sound:
        for broken in streams:
            broken.deployment.close()
        directory = tmp_path_factory.mktemp("stream")
        deployment = Deployment(frail.broker.bootstrap, topic_prefix, directory)
        # Only the worker goes through the proxy.
        streams.append(Stream(deployment, lawful, broker=frail.proxy.bootstrap, **QUICK))
    return streams[-1]


@contextmanager
def timed(since: str) -> Iterator[None]:
    """Say how long it took. No test asserts such a figure."""
    begun = time.monotonic()
    yield
    print(f"{since}: committed after {time.monotonic() - begun:.1f} s")


# In a transaction

CALLS = (
    Api.ADD_PARTITIONS_TO_TXN,
    Api.PRODUCE,
    Api.ADD_OFFSETS_TO_TXN,
    Api.TXN_OFFSET_COMMIT,
    Api.END_TXN,
)


def test_a_connection_cut_in_a_transaction_neither_loses_nor_doubles_an_event(
    stream: Stream, proxy: Proxy
) -> None:
    for api, side in product(CALLS, Side):
        trap = proxy.cut(api, side, stream.transactional_id)
        with timed(f"cut at {trap}"):
            stream.produce()
            trap.require_sprung()
            stream.until_committed()
    stream.require_lawful()


@pytest.mark.parametrize("side", Side, ids=lambda side: side.value)
def test_a_connection_cut_while_a_commit_looks_for_its_coordinator_neither_loses_nor_doubles_an_event(
    stream: Stream, proxy: Proxy, side: Side
) -> None:
    with proxy.holding(Api.END_TXN, Side.REQUEST, stream.transactional_id) as commit:
        stream.produce()
        commit.require_sprung()
        trap = proxy.cut(Api.FIND_COORDINATOR, side, stream.transactional_id)
        known = len(stream.worker.said())
        with proxy.unreachable():
            stream.worker.until_said("transaction.EndTxnRequest'> to 1: NodeNotReadyError", known)
    with timed("broker reachable again"):
        trap.require_sprung()
        stream.until_committed()
    stream.require_lawful()


def test_a_commit_that_is_never_answered_is_not_repeated(stream: Stream, proxy: Proxy) -> None:
    with proxy.holding(Api.END_TXN, Side.ANSWER, stream.transactional_id) as trap:
        known = len(stream.worker.said())
        stream.produce()
        trap.require_sprung()
        stream.worker.until_said("failed: TimeoutError", known)
        stream.require_lawful()
    stream.produce()
    stream.require_lawful()


def test_a_commit_that_reaches_the_broker_after_it_was_given_up_does_no_harm(
    stream: Stream, proxy: Proxy
) -> None:
    with proxy.holding(Api.END_TXN, Side.REQUEST, stream.transactional_id) as trap:
        known = len(stream.worker.said())
        stream.produce()
        trap.require_sprung()
        stream.worker.until_said("failed: TimeoutError", known)
    with timed("late commit let go"):
        stream.until_committed()
    stream.produce()
    stream.require_lawful()


# A broker that does not answer


def test_while_there_is_no_coordinator_the_worker_waits_and_then_goes_on(
    stream: Stream, proxy: Proxy
) -> None:
    with proxy.without_coordinators():
        known = len(stream.worker.said())
        with proxy.unreachable():
            # Whom they knew, they have to find again.
            stream.worker.until_said("Marking the coordinator dead", known)
        stream.produce()
        stream.worker.until_said("GroupCoordinatorNotAvailableError", known)
    with timed("coordinator found"):
        stream.until_committed()
    stream.require_lawful()


def test_a_broker_that_takes_requests_and_never_answers_is_given_up_and_connected_to_anew(
    stream: Stream, proxy: Proxy
) -> None:
    with proxy.holding(Api.FETCH, Side.ANSWER) as trap:
        known = len(stream.worker.said())
        trap.require_sprung()
        stream.produce()
        stream.worker.until_said("RequestTimedOutError", known)
    with timed("broker answers again"):
        stream.until_committed()
    stream.require_lawful()


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_broker_that_comes_back_finds_a_worker_that_goes_on(
    stream: Stream, frail: Frail, ending: str
) -> None:
    begin = stream.count
    stream.produce(600)
    stream.until_committed(begin + 50)
    known = len(stream.worker.said())
    getattr(frail.broker, ending)()
    stream.worker.until_said("failed", known)
    frail.broker.start()
    with timed("broker answers again"):
        stream.until_committed()
    stream.require_lawful()


def test_a_worker_that_was_cut_off_for_longer_than_its_session_and_its_transaction_goes_on(
    stream: Stream, proxy: Proxy
) -> None:
    until_members(stream.deployment, 1)
    with proxy.holding(Api.END_TXN, Side.REQUEST, stream.transactional_id) as trap:
        stream.produce()
        trap.require_sprung()
        with proxy.unreachable():
            until_members(stream.deployment, 0)
    with timed("broker reachable again"):
        stream.until_committed()
    stream.produce()
    stream.require_lawful()


def until_members(deployment: Deployment, count: int) -> None:
    admin = deployment.admin()
    until = time.monotonic() + SECONDS
    while True:
        group = admin.describe_consumer_groups([deployment.prefix])[deployment.prefix].result(SECONDS)
        settled = group.state in (ConsumerGroupState.EMPTY, ConsumerGroupState.STABLE)
        if settled and len(group.members) == count:
            return
        assert time.monotonic() < until, f"the group still has {len(group.members)} members"
        time.sleep(0.1)  # polling, bounded above


# Topics


def test_an_output_topic_that_is_deleted_is_made_again_and_what_comes_later_leaves_once(
    stream: Stream,
) -> None:
    begin = stream.count
    delete(stream.deployment, f"{stream.deployment.prefix}.unique")
    stream.produce()
    with timed("output topic deleted"):
        stream.until_committed()
    # What had left before is deleted with the topic.
    lines = sorted(output.line for output in stream.deployment.outputs() if output.line >= begin)
    assert lines == list(range(begin, begin + 20))


def test_a_changelog_that_is_deleted_stops_the_worker_and_is_not_begun_anew(stream: Stream) -> None:
    stream.produce()
    stream.until_committed()
    delete(stream.deployment, f"{stream.deployment.prefix}-{stream.deployment.raw}-changelog")
    stream.produce()
    assert stream.worker.wait() == 1
    assert "somebody has deleted the topic" in stream.worker.said().rsplit("Error:", 1)[-1]


def delete(deployment: Deployment, topic: str) -> None:
    admin = deployment.admin()
    admin.delete_topics([topic])[topic].result(SECONDS)


# At the start


@pytest.fixture
def deployment(frail: Frail, topic_prefix: str, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(frail.broker.bootstrap, topic_prefix, tmp_path)
    yield deployment
    deployment.close()


def test_a_worker_that_starts_on_a_broker_in_trouble_waits_until_it_is_over(
    deployment: Deployment, proxy: Proxy, lawful: Law
) -> None:
    transactional_id = f"{deployment.prefix}-{deployment.raw}-0".encode()
    with proxy.without_coordinators():
        worker = deployment.start(broker=proxy.bootstrap, **QUICK)
        worker.until_said("GroupCoordinatorNotAvailableError")
        traps = [
            proxy.cut(api, side, transactional_id)
            for api, side in product((Api.FIND_COORDINATOR, Api.INIT_PRODUCER_ID), Side)
        ]
    for trap in traps:
        trap.require_sprung()
    deployment.produce(events(20))
    lawful(deployment, 20)
    assert worker.stop() == 0


@contextmanager
def listener(answer: bytes) -> Iterator[str]:
    """The address of something that takes connections, and is no Kafka. It answers at once, or never."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            silent = []
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    break
                if answer:
                    connection.sendall(answer)
                    connection.close()
                else:
                    silent.append(connection)
            for connection in silent:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_something_else_than_a_kafka_ends_the_start_with_a_sentence(
    deployment: Deployment, tmp_path: Path
) -> None:
    with listener(b"") as silent, listener(b"HTTP/1.1 400 Bad Request\r\n\r\n") as http:
        workers = {
            address: deployment.start(broker=address, deadline="2s", data_dir=tmp_path / name)
            for name, address in (("silent", silent), ("http", http))
        }
        for address, worker in workers.items():
            assert worker.wait() == 1
            assert f"No broker answers at {address} within 2 s" in worker.said().splitlines()[-1]
