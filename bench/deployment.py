"""A broker and processes under measurement: their CPU, their memory, and how far a group has come."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import psutil
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 60
POLL = 0.25
"""Seconds between two looks at a group's offset."""


class Event(NamedTuple):
    """An event to produce."""

    value: bytes | None
    key: bytes | None = None


class Run(NamedTuple):
    """What a process did with a backlog."""

    events: int
    seconds: float
    own_cpu: float
    """Seconds of CPU of the process."""
    broker_cpu: float
    """Seconds of CPU of the broker meanwhile."""
    resident: int
    """Bytes, the most seen."""

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds


class Worker:
    """A process whose log goes to a file."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=file, stderr=subprocess.STDOUT
            )
        self._watched = psutil.Process(self.process.pid)

    def until_said(self, words: str, seconds: float) -> None:
        """Wait for words in its log."""
        until = time.monotonic() + seconds
        while words not in self.log.read_text():
            self.require(time.monotonic() < until, f"{words!r} was not said in {seconds} s")
            time.sleep(0.02)  # polling a file, bounded

    def require(self, holds: bool, what: str) -> None:
        """End the benchmark with the log where something does not hold, or the process has ended."""
        if not holds or self.process.poll() is not None:
            raise SystemExit(f"{what}; the log ends with:\n{self.log.read_text()[-3000:]}")

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return _cpu(self._watched)

    def resident(self) -> int:
        """Bytes of memory, with its children's."""
        family = [self._watched, *self._watched.children(recursive=True)]
        with contextlib.suppress(psutil.NoSuchProcess):
            return sum(process.memory_info().rss for process in family)
        return 0

    def stop(self) -> None:
        """Ask it to stop, and wait."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()


class Cluster:
    """A broker that runs, as a client sees it."""

    def __init__(self, bootstrap: str, pid: int) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._broker = psutil.Process(pid)

    def cpu(self) -> float:
        """Seconds of CPU of the broker so far."""
        return _cpu(self._broker)

    def create(self, *topics: str) -> None:
        """Make topics of one partition that keep everything."""
        new = [NewTopic(topic, 1, 1, config={"retention.ms": "-1"}) for topic in topics]
        for future in self._admin.create_topics(new).values():
            future.result(SECONDS)

    def produce(self, topic: str, events: Iterable[Event], **options: object) -> int:
        """Produce events in order, wait until they are there, and return how many they were."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "linger.ms": 50,
                "compression.type": "lz4",
                "enable.idempotence": True,
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 0,
                **options,
            }
        )
        count = 0
        for count, event in enumerate(events, 1):
            while True:
                try:
                    producer.produce(topic, event.value, event.key, partition=0)
                    break
                except BufferError:
                    producer.poll(0.1)
            if count % 1000 == 0:
                producer.poll(0)
        if producer.flush(SECONDS):
            raise SystemExit(f"not everything could be produced to {topic}")
        return count

    def committed(self, group: str, topic: str) -> int:
        """The group's offset; 0 where it has none."""
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
        found = self._admin.list_consumer_group_offsets([asked])[group].result(SECONDS).topic_partitions
        return max(0, found[0].offset) if found else 0

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Set the group's offset; it must be empty."""
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])
        until = time.monotonic() + SECONDS
        while True:
            found = self._admin.alter_consumer_group_offsets([wanted])[group].result(SECONDS)
            if not (faults := [str(place.error) for place in found.topic_partitions if place.error]):
                return
            # The first call of all has the broker make its offsets topic.
            if time.monotonic() > until:
                raise SystemExit(f"the offset of {group} cannot be set: {faults}")
            time.sleep(POLL)

    def watch(self, worker: Worker, group: str, topic: str, begin: int, end: int) -> Run:
        """Wait until the group's offset has come from `begin` to `end`, and measure from its first step on."""
        at = begin
        while at <= begin:
            worker.require(True, "it does not begin")
            time.sleep(POLL / 5)
            at = self.committed(group, topic)
        first, started = at, time.monotonic()
        own, broker, resident = worker.cpu(), self.cpu(), 0
        until = time.monotonic() + SECONDS
        while at < end:
            time.sleep(POLL)
            now = self.committed(group, topic)
            until = time.monotonic() + SECONDS if now > at else until
            worker.require(time.monotonic() < until, f"{group} stands at {now} of {end}")
            at, resident = now, max(resident, worker.resident())
        return Run(at - first, time.monotonic() - started, worker.cpu() - own, self.cpu() - broker, resident)


@contextmanager
def timed() -> Iterator[Callable[[], float]]:
    """Give a clock that tells the seconds since the block began."""
    begin = time.monotonic()
    yield lambda: time.monotonic() - begin


def _cpu(process: psutil.Process) -> float:
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system
    return total
