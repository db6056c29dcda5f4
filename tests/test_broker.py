"""The embedded brokers, and the facts about a real Apache Kafka that the scopes rest on."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
)
from confluent_kafka.admin import AdminClient, NewTopic

from stream.broker import (
    ApacheKafka,
    Noida,
    apache_kafka_unavailable,
    embedded_broker,
    jars,
    noida_binary,
    resolve_jars,
)
from stream.broker.base import free_ports
from stream.errors import BrokerError

YEAR_2099 = 4_070_908_800_000

needs_noida = pytest.mark.skipif(
    noida_binary() is None, reason="noida-db is not installed (extra `embedded`)"
)


def create(bootstrap: str, topic: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: a dropped client forgets what it was asked
    settings = {name.replace("_", "."): value for name, value in config.items()}
    for done in admin.create_topics([NewTopic(topic, 1, 1, config=settings)]).values():
        done.result()


async def transactional(bootstrap: str, name: str) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name, max_batch_size=262144)
    await producer.start()
    return producer


async def commit(producer: AIOKafkaProducer, topic: str, *values: bytes) -> None:
    async with producer.transaction():
        for value in values:
            await (await producer.send(topic, value, partition=0))


async def committed(bootstrap: str, topic: str) -> list[bytes | None]:
    """The values that a read_committed reader sees up to the end that the broker names."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        end = (await consumer.end_offsets([partition]))[partition]
        values: list[bytes | None] = []
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                values.extend(record.value for record in records)
        return values
    finally:
        await consumer.stop()


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# The brokers


async def test_what_was_committed_survives_a_stop_and_a_kill_at_the_same_address(broker, topic_prefix):
    address = broker.bootstrap
    create(address, topic_prefix)
    for number, end in enumerate([broker.stop, broker.kill]):
        producer = await transactional(address, topic_prefix)
        await commit(producer, topic_prefix, b"%d" % number)
        await producer.stop()
        end()
        broker.start()
    successor = await transactional(address, topic_prefix)  # waits for the last commit to be carried out
    await successor.stop()
    assert broker.bootstrap == address
    assert await committed(address, topic_prefix) == [b"0", b"1"]


def test_starting_a_running_broker_again_leaves_it_alone(broker):
    pid = broker.pid
    broker.start()
    assert broker.pid == pid


@needs_noida
def test_a_broker_dies_with_its_parent_even_if_that_is_killed(tmp_path):
    program = (
        "import sys; from pathlib import Path; from stream.broker import Noida\n"
        "broker = Noida(Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    ) as parent:
        pid = int(parent.stdout.readline())
        assert not ended(pid)
        parent.kill()
    deadline = time.monotonic() + 30
    while not ended(pid):
        assert time.monotonic() < deadline, f"the broker (process {pid}) outlives its parent"


@needs_noida
def test_a_broker_hears_nothing_of_a_ctrl_c_in_the_terminal(tmp_path):
    with Noida(tmp_path) as broker:
        assert os.getpgid(broker.pid) == broker.pid != os.getpgid(0)


@needs_noida
async def test_noida_takes_a_transaction_and_shows_it(tmp_path, topic_prefix):
    with Noida(tmp_path) as broker:
        create(broker.bootstrap, topic_prefix)
        producer = await transactional(broker.bootstrap, topic_prefix)
        await commit(producer, topic_prefix, b"a", b"b")
        await producer.stop()
        assert await committed(broker.bootstrap, topic_prefix) == [b"a", b"b"]


def test_a_broker_that_cannot_start_says_so_with_the_end_of_its_log(java_and_maven, tmp_path):
    broker = ApacheKafka(tmp_path, overrides={"num.partitions": "none"})
    with pytest.raises(BrokerError, match=r"(?s)num\.partitions"):
        broker.start()
    assert broker.pid is None


def test_a_taken_port_is_an_error_and_not_a_broker_of_somebody_else(java_and_maven, tmp_path):
    with socket.socket() as other:
        (port,) = free_ports(1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(BrokerError, match=rf"{port} ended while it started"):
            ApacheKafka(tmp_path, port=port).start()


def test_the_command_prints_the_address_and_leaves_nothing_after_ctrl_c(java_and_maven, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "stream.broker"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])},
    ) as command:
        host, port = command.stdout.readline().decode().strip().split(":")
        socket.create_connection((host, int(port))).close()
        command.send_signal(signal.SIGINT)
    assert command.returncode == 0
    assert list(tmp_path.iterdir()) == []


# The choice of a broker, and the jars


@pytest.fixture
def empty_path(tmp_path, monkeypatch):
    """A machine with neither Java nor Maven nor jars; programs can be put into the directory."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("TEXTSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    jars._java_version.cache_clear()
    yield programs
    jars._java_version.cache_clear()


def put(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_without_java_the_reason_says_what_to_install(empty_path):
    assert "openjdk-17" in apache_kafka_unavailable()


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
def test_an_old_java_is_named_as_the_reason(empty_path, version):
    put(empty_path / "java", f"echo 'openjdk version \"{version}\"' >&2")
    assert f"is Java {version.split('.')[0]}" in apache_kafka_unavailable()


def test_maven_is_asked_for_only_while_the_jars_are_missing(empty_path):
    put(empty_path / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    assert "Maven" in apache_kafka_unavailable()
    jars.jar_directory().mkdir(parents=True)
    assert apache_kafka_unavailable() is None


@needs_noida
def test_noida_stands_in_where_apache_kafka_cannot_run(empty_path, tmp_path):
    assert embedded_broker(tmp_path).name == "noida-db"


def test_a_failed_fetch_shows_what_maven_said_and_leaves_no_jars(empty_path, monkeypatch):
    put(empty_path / "mvn", "echo 'no route to the repository'; exit 1")
    with pytest.raises(BrokerError, match="no route to the repository"):
        resolve_jars()
    assert not jars.jar_directory().exists()


def test_an_interrupted_fetch_is_begun_again(empty_path):
    leftover = jars.jar_directory().with_suffix(jars.jar_directory().suffix + ".partial")
    leftover.mkdir(parents=True)
    (leftover / "half.jar").touch()
    put(empty_path / "mvn", "echo 'Downloaded from somewhere: https://x/y/whole.jar (1 kB at 1 kB/s)'")
    told: list[str] = []
    directory = resolve_jars(told.append)
    assert not (directory / "half.jar").exists()
    assert any("whole.jar" in sentence for sentence in told)


def test_ports_are_free_distinct_and_never_given_to_clients():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < 32768
    for port in ports:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port))


# What scopes rely on


async def test_a_successor_fences_its_predecessor_and_aborts_what_it_had_open(kafka, topic_prefix):
    create(kafka, topic_prefix)
    first = await transactional(kafka, topic_prefix)
    await first.begin_transaction()
    await (await first.send(topic_prefix, b"open", partition=0))
    second = await transactional(kafka, topic_prefix)
    with pytest.raises(ProducerFenced):
        await first.commit_transaction()
    await commit(second, topic_prefix, b"after")
    third = await transactional(kafka, topic_prefix)
    assert await committed(kafka, topic_prefix) == [b"after"]
    for producer in (first, second, third):
        await producer.stop()


async def test_after_a_producers_start_the_end_lies_past_all_that_its_predecessor_committed(
    kafka, topic_prefix
):
    # Without the start it may not: a commit returns before its markers are written.
    create(kafka, topic_prefix)
    expected: list[bytes] = []
    for number in range(20):
        producer = await transactional(kafka, topic_prefix)
        assert await committed(kafka, topic_prefix) == expected
        expected.append(b"%d" % number)
        await commit(producer, topic_prefix, expected[-1])
        await producer.stop()


@pytest.mark.parametrize(
    ("value", "timestamp", "error"),
    [(b"x" * 30_000, 1, MessageSizeTooLargeError), (b"x", YEAR_2099, InvalidTimestampError)],
    ids=["too large", "too far ahead"],
)
async def test_one_refused_record_refuses_its_batch_and_spoils_its_producer(
    kafka, topic_prefix, value, timestamp, error
):
    create(kafka, topic_prefix, max_message_bytes="20000")
    producer = await transactional(kafka, topic_prefix)
    await producer.begin_transaction()
    good = await producer.send(topic_prefix, b"good", partition=0, timestamp_ms=1)
    bad = await producer.send(topic_prefix, value, partition=0, timestamp_ms=timestamp)
    outcomes = await asyncio.gather(good, bad, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [error, error]
    await producer.abort_transaction()
    await producer.begin_transaction()
    with pytest.raises(OutOfOrderSequenceNumber):
        await (await producer.send(topic_prefix, b"later", partition=0, timestamp_ms=1))
    await producer.stop()


async def test_offsets_of_a_topic_that_is_gone_never_arrive(kafka, topic_prefix):
    # aiokafka repeats the request for ever, so each such call needs a deadline.
    create(kafka, topic_prefix)
    producer = await transactional(kafka, topic_prefix)
    await producer.begin_transaction()
    await (await producer.send(topic_prefix, b"x", partition=0))
    gone = {TopicPartition(f"{topic_prefix}-gone", 0): 1}
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await producer.send_offsets_to_transaction(gone, topic_prefix)
    await producer.stop()


async def test_a_topic_that_nobody_created_is_an_error(kafka, topic_prefix):
    async with AIOKafkaProducer(bootstrap_servers=kafka, request_timeout_ms=2000) as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait(topic_prefix, b"x")
