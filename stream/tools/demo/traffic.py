"""The two ends of a demo: texts are written to the raw topic, and read where they leave."""

import time
from collections.abc import Iterable
from itertools import islice
from typing import Final, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from stream.connection import confluent_options
from stream.errors import BrokerError
from stream.settings import Settings
from stream.tools.demo.outcomes import KINDS, Outcomes

MOST_KEPT: Final = 100_000
"""Values that a writer remembers, so that pairs of them can be shown."""

_AT_ONCE: Final = 1000
_POLL_SECONDS: Final = 0.1
_END_SECONDS: Final = 30.0


class RawWriter:
    """Writes values to partition 0 of the raw topic, with the time of now, a few at a time.

    Attributes:
        done: whether all values have been handed to the client.
        written: how many events the broker has taken.
        kept: the values of the first `MOST_KEPT` events; their offsets are their places.
        left_out: how many values were too large for an event; they are not written.
    """

    def __init__(self, settings: Settings, values: Iterable[bytes]) -> None:
        self.done = False
        self.written = 0
        self.kept: list[bytes] = []
        self.left_out = 0
        self._topic = settings.raw_topics[0]
        self._values = iter(values)
        self._waiting: bytes | None = None
        self._error: KafkaError | None = None
        options = {**confluent_options(settings), "enable.idempotence": True, "linger.ms": 20}
        self._producer = Producer(options, logger=None)

    @property
    def outstanding(self) -> bool:
        """Whether there is something that the broker has not taken yet."""
        return not self.done or len(self._producer) > 0

    def write_some(self) -> None:
        """Hand on some more values, as far as the client has room, and hear what the broker has taken.

        Raises:
            BrokerError: it refuses a text.
            InputError: the values cannot be read.
        """
        if not self.done:
            self._hand_on()
        self._producer.poll(0)
        if self._error is not None:
            raise BrokerError(f"The broker does not take the texts: {self._error.str()}.")

    def _hand_on(self) -> None:
        count = 0
        for value in islice(self._pending(), _AT_ONCE):
            count += 1
            try:
                self._producer.produce(self._topic, value, partition=0, on_delivery=self._delivered)
            except BufferError:
                self._waiting = value
                return
            except KafkaException as error:
                if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                    raise BrokerError(f"The texts cannot be written: {error.args[0].str()}.") from error
                self.left_out += 1
                continue
            if len(self.kept) < MOST_KEPT:
                self.kept.append(value)
        self.done = count < _AT_ONCE

    def _pending(self) -> Iterable[bytes]:
        if self._waiting is not None:
            value, self._waiting = self._waiting, None
            yield value
        yield from self._values

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.written += 1
        elif self._error is None:
            self._error = error


class OutcomeReader:
    """Reads the three output topics from their beginnings, as a consumer of committed events sees them.

    It belongs to no group. Use it as a context manager.

    Attributes:
        outcomes: what it has read.
        seconds: from the first events that came to the last ones.
        first: how many came first, at once.
    """

    def __init__(self, settings: Settings) -> None:
        self.outcomes = Outcomes()
        self.seconds = 0.0
        self.first = 0
        self._begun: float | None = None
        self._kinds = dict(zip(settings.topics, KINDS, strict=True))
        self._next = dict.fromkeys(settings.topics, 0)
        self._options = {
            **confluent_options(settings),
            "group.id": f"{settings.group}-reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        self._consumer = self._connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def _connected(self) -> Consumer:
        consumer = Consumer(self._options, logger=None)
        consumer.assign([TopicPartition(topic, 0, offset) for topic, offset in self._next.items()])
        return consumer

    def reconnect(self) -> None:
        """Read on with a new client: a young broker may have given the former one a wrong answer."""
        self._consumer.close()
        self._consumer = self._connected()

    def read_some(self) -> None:
        """Read what has come, or wait a moment for something to come."""
        self._read()

    def read_to_end(self) -> None:
        """Read until nothing more stands in any of the topics. Their writer must have stopped.

        Raises:
            BrokerError: they cannot be read to their ends.
        """
        self.reconnect()  # the ends are told once to each assignment
        ahead = set(self._kinds)
        until = time.monotonic() + _END_SECONDS
        while ahead:
            ahead -= self._read()
            if time.monotonic() > until:
                raise BrokerError(
                    f"The broker does not show the ends of {', '.join(sorted(ahead))} within {_END_SECONDS:.0f} s."
                )

    def _read(self) -> set[str]:
        """Take what has come; returns the topics whose end was reached."""
        ends = set()
        count = 0
        for message in self._consumer.consume(_AT_ONCE, _POLL_SECONDS):
            topic = str(message.topic())
            error = message.error()
            if error is None:
                count += 1
                self._next[topic] = (message.offset() or 0) + 1
                self.outcomes.add(self._kinds[topic], _headers(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                ends.add(topic)
            elif error.fatal():
                raise BrokerError(f"What leaves cannot be read: {error}.")
        if count:
            now = time.monotonic()
            if self._begun is None:
                self._begun, self.first = now, count
            self.seconds = now - self._begun
        return ends


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    # The client's type allows for what it takes, not only for what it gives.
    return cast("list[tuple[str, bytes | None]]", message.headers() or [])
