"""A deployment on a real Kafka: topics of its own, workers as processes, and a client that is not ours.

Producing and consuming go through librdkafka, not aiokafka: what a user's client sees is what counts.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

SECONDS = 90
"""How long anything may take before the test fails: a loaded machine is slow, a stalled worker never comes."""


_CHARACTERS = (
    "春天夏日秋风冬雪高山大海河流森林城市乡村老师学生医生司机农民画家歌手记者厨师店员早晨中午黄昏深夜面包牛奶苹果西瓜火车飞机轮船单车"
    "电影音乐小说诗歌足球篮球围棋书法月亮太阳星星云彩猫咪小狗老虎大象桌子椅子窗户门口朋友邻居同事亲戚快乐悲伤愤怒平静红色蓝色绿色黄色"
)
"""Words of two characters each."""


def unlike(number: int) -> str:
    """A text of sixteen characters that is far from that of any other number."""
    places = (2 * (octet % (len(_CHARACTERS) // 2)) for octet in hashlib.sha256(b"%d" % number).digest()[:8])
    return "".join(_CHARACTERS[place : place + 2] for place in places)


class Raw(NamedTuple):
    """An event to produce. `time` is the record's timestamp in ms; None lets the client stamp it."""

    value: bytes | None
    time: int | None = None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    topic: str = ""
    partition: int = 0


def text(content: str, time: int | None = None, **fields: object) -> Raw:
    return Raw(json.dumps({"text": content, **fields}).encode(), time)


class Output(NamedTuple):
    """An event that a consumer sees on one of the three topics."""

    kind: str
    partition: int
    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key == name]
        return None if not values else (values[-1] or b"").decode()

    @property
    def source(self) -> tuple[str, int, int]:
        topic, partition, offset = str(self.header("textsieve-source")).rsplit(":", 2)
        return topic, int(partition), int(offset)

    @property
    def line(self) -> int:
        """The offset of the raw event that this is the output of."""
        return self.source[2]

    @property
    def verdict(self) -> dict[str, object]:
        return dict(json.loads(str(self.header("textsieve-verdict"))))

    @property
    def reason(self) -> str | None:
        return self.header("textsieve-reason")


@dataclass
class Worker:
    """A worker process; its log is in a file."""

    process: "subprocess.Popen[bytes]"
    log: Path
    refused: bool = False
    """Whether the test has seen that it ended by itself."""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(signal_number)
        return self.process.wait(SECONDS)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stopped in its tracks (SIGSTOP) for the length of a block, as a frozen machine is."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def wait(self) -> int:
        """Wait until it ends by itself; its exit code."""
        code = self.process.wait(SECONDS)
        self.refused = True
        return code

    def said(self) -> str:
        return self.log.read_text()

    def until_said(self, words: str, after: int = 0) -> None:
        """Wait for words in its log, after so many characters of it; fails if it ends without them."""
        until = time.monotonic() + SECONDS
        while words not in self.said()[after:]:
            assert self.process.poll() is None, f"the worker ended without {words!r}:\n{self.said()[-3000:]}"
            assert time.monotonic() < until, f"the worker never said {words!r}:\n{self.said()[-3000:]}"
            time.sleep(0.02)  # polling a file, bounded above


@dataclass
class Deployment:
    bootstrap: str
    prefix: str
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    @property
    def raw(self) -> str:
        return f"{self.prefix}.raw"

    def given(self, **settings: object) -> dict[str, str]:
        """The settings of a worker, by name: those of every test, and more or others."""
        given = {
            "broker": self.bootstrap,
            "group": self.prefix,
            "raw_topics": self.raw,
            **{f"{kind}_topic": f"{self.prefix}.{kind}" for kind in KINDS},
            "data_dir": self.directory / "data",
            "topic_retention": "forever",
            "batch_wait": "20ms",
            **settings,
        }
        return {name: str(value) for name, value in given.items()}

    def settings(self, **settings: object) -> dict[str, str]:
        """The environment of a worker with these settings."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TEXTSIEVE_")}
        given = self.given(**settings)
        return {**inherited, **{f"TEXTSIEVE_{name.upper()}": value for name, value in given.items()}}

    def start(
        self, *command: str, environment: Mapping[str, str] | None = None, **settings: object
    ) -> Worker:
        """Start a worker, by default `textsieve worker`; it may not be ready yet."""
        log = self.directory / f"worker-{len(self.workers)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command or (sys.executable, "-m", "stream", "worker"),
                env=environment or self.settings(**settings),
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
            )
        worker = Worker(process, log)
        self.workers.append(worker)
        return worker

    def ready(self, **settings: object) -> Worker:
        """Start a worker and wait until its first scope is open."""
        worker = self.start(**settings)
        worker.until_said("is open at offset")
        return worker

    def state(self, partition: int = 0) -> Path:
        """Where the default worker keeps the state of a scope."""
        return self.directory / "data" / self.prefix / f"{self.raw}-{partition}"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap}, logger=None)

    def create(self, name: str, partitions: int = 1, **config: object) -> None:
        config = {"retention.ms": -1, **config}
        new = NewTopic(name, partitions, 1, config={key: str(value) for key, value in config.items()})
        admin = self.admin()
        admin.create_topics([new])[name].result(SECONDS)

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """What `kafka-configs.sh --alter --add-config` does."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        admin = self.admin()
        admin.incremental_alter_configs([resource])[resource].result(SECONDS)

    def produce(self, events: Iterable[Raw], **options: object) -> None:
        """Produce events to the raw topic (or the one they name), in order, and wait until they are there."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **options})
        failed: list[object] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for event in events:
            arguments = {} if event.time is None else {"timestamp": event.time}
            while True:
                try:
                    producer.produce(
                        event.topic or self.raw,
                        event.value,
                        event.key,
                        event.partition,
                        on_delivery=delivered,
                        headers=list(event.headers),
                        **arguments,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(SECONDS) == 0
        assert not failed, failed

    def read(self, topic: str, isolation: str = "read_committed") -> list[Message]:
        """Everything that stands in a topic just now, partition by partition."""
        with _consumer(self.bootstrap, isolation) as consumer:
            partitions = list(consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions)
            return [message for p in partitions for message in _read_partition(consumer, topic, p)]

    def outputs(self) -> list[Output]:
        """Everything that stands in the three output topics just now, as a consumer of committed events sees it."""
        found = []
        for kind in KINDS:
            for message in self.read(f"{self.prefix}.{kind}"):
                stamp, time_ms = message.timestamp()
                assert stamp in (TIMESTAMP_CREATE_TIME, 0), "an output topic must keep the event's time"
                found.append(
                    Output(
                        kind,
                        message.partition(),
                        message.offset(),
                        time_ms,
                        message.key(),
                        message.value(),
                        message.headers() or [],
                    )
                )
        return found

    def until_judged(self, count: int) -> list[Output]:
        """Wait until that many events have left, then the law: each raw event left exactly once."""
        outputs = self.until_lawful(count)
        sources = sorted(output.source for output in outputs)
        assert len(sources) == len(set(sources)), "an event left twice"
        return sorted(outputs, key=lambda output: output.source)

    def until_lawful(self, count: int) -> list[Output]:
        """Wait until that many events have left, and no more."""
        outputs = self.outputs()
        until = time.monotonic() + SECONDS
        size = len(outputs)
        while size < count:
            ended = [
                worker
                for worker in self.workers
                if worker.process.poll() not in (None, 0, -signal.SIGKILL) and not worker.refused
            ]
            assert not ended, f"a worker ended:\n{ended[0].said()[-3000:]}"
            assert time.monotonic() < until, (
                f"{size} of {count} events left; {self.workers[-1].said()[-3000:]}"
            )
            outputs = self.outputs()
            if len(outputs) > size:
                size, until = len(outputs), time.monotonic() + SECONDS
        assert len(outputs) == count
        return outputs

    def committed(self, topic: str = "", partition: int = 0) -> int:
        """The group's committed offset; -1001 where it has none."""
        with _consumer(self.bootstrap, "read_committed", self.prefix) as consumer:
            return int(
                consumer.committed([TopicPartition(topic or self.raw, partition)], timeout=SECONDS)[0].offset
            )

    def move_offset(self, offset: int) -> None:
        """What `kafka-consumer-groups.sh --reset-offsets --to-offset` does; the group must be empty."""
        request = [ConsumerGroupTopicPartitions(self.prefix, [TopicPartition(self.raw, 0, offset)])]
        admin = self.admin()
        admin.alter_consumer_group_offsets(request)[self.prefix].result(SECONDS)

    def close(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()


KINDS = ("unique", "duplicates", "rejected")


@contextmanager
def _consumer(bootstrap: str, isolation: str, group: str = "reader") -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            # An empty partition is known to be one only when its first fetch is answered.
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _read_partition(consumer: Consumer, topic: str, partition: int) -> list[Message]:
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for message in consumer.consume(1000, timeout=0.1):
            if message.error() is None:
                messages.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return messages
            else:
                raise AssertionError(message.error())
    raise AssertionError(f"{topic}:{partition} was not read to its end in {SECONDS} s")
