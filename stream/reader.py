"""Reads a partition as it was committed: the changelog at an opening and on a standby, the raw topic over a gap."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from stream.connection import IN_DOUBT, aiokafka_options
from stream.errors import BrokerError
from stream.settings import Settings

log = logging.getLogger(__name__)

_POLL_MS: Final = 200
_FETCH_MS: Final = 50
"""How long the broker may wait for records before it answers. Questions about offsets queue behind that answer, and an
opening asks several; at aiokafka's 500 ms they would be most of a failover."""
_MOST_RECORDS: Final = 2000
_STOP_SECONDS: Final = 5.0


class Reader:
    """A consumer outside the group's assignment: it reads what it is told to, and the group's offsets.

    Every call gives up with `TimeoutError` after the deadline.
    """

    def __init__(self, consumer: AIOKafkaConsumer, deadline: float) -> None:
        self._consumer = consumer
        self._deadline = deadline

    async def committed(self, partition: TopicPartition) -> int | None:
        """The group's committed offset; None where it has none (or no longer)."""
        async with asyncio.timeout(self._deadline):
            offset: int | None = await self._consumer.committed(partition)
            return offset

    async def begin(self, partition: TopicPartition) -> int:
        """The first offset that the broker still has."""
        async with asyncio.timeout(self._deadline):
            begin: int = (await self._consumer.beginning_offsets([partition]))[partition]
            return begin

    async def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset that the broker still has, and the one after the last committed record."""
        begin = await self.begin(partition)
        async with asyncio.timeout(self._deadline):
            end: int = (await self._consumer.end_offsets([partition]))[partition]
            return begin, end

    async def read(
        self, partition: TopicPartition, start: int, end: int
    ) -> AsyncGenerator[list[ConsumerRecord[Any, Any]], None]:
        """The records in [start, end), some at a time; aborted ones and markers are passed over.

        Who leaves it before its end closes it (`contextlib.aclosing`) before anything else is asked.

        Raises:
            BrokerError: the broker sent nothing for as long as the deadline.
        """
        self._seek(partition, start)
        try:
            async for records in self._read(partition, start, end):
                yield records
        finally:
            # A request for more would go on in the background, and hold the next question up.
            self._consumer.pause(partition)

    async def _read(
        self, partition: TopicPartition, start: int, end: int
    ) -> AsyncIterator[list[ConsumerRecord[Any, Any]]]:
        position = start
        loop = asyncio.get_running_loop()
        until = loop.time() + self._deadline
        # The end is reached by position, not by a record: a log may end in a marker that is never delivered.
        while position < end:
            polled, reached = await self._poll(partition)
            records = [record for record in polled if record.offset < end]
            if records:
                yield records
            if reached > position:
                position = reached
                until = loop.time() + self._deadline
            elif loop.time() > until:
                raise BrokerError(
                    f"{partition.topic}:{partition.partition} cannot be read on from offset {position} to {end}: "
                    f"the broker sent nothing for {self._deadline:.0f} s"
                )

    async def tail(
        self, partition: TopicPartition, start: int
    ) -> AsyncIterator[list[ConsumerRecord[Any, Any]]]:
        """The records from `start` on as they are committed, some at a time, without end."""
        self._seek(partition, start)
        while True:
            records, _ = await self._poll(partition)
            if records:
                yield records

    def _seek(self, partition: TopicPartition, start: int) -> None:
        self._consumer.assign([partition])
        self._consumer.seek(partition, start)

    async def _poll(self, partition: TopicPartition) -> tuple[list[ConsumerRecord[Any, Any]], int]:
        async with asyncio.timeout(self._deadline):
            polled = await self._consumer.getmany(partition, timeout_ms=_POLL_MS, max_records=_MOST_RECORDS)
            return polled.get(partition, []), await self._consumer.position(partition)


@asynccontextmanager
async def open_reader(settings: Settings, group: str | None = None) -> AsyncIterator[Reader]:
    """A reader of what is committed, closed at the end; of another group's offsets where one is named."""
    async with _opened(settings, group or settings.group) as reader:
        yield reader


@asynccontextmanager
async def open_log(settings: Settings) -> AsyncIterator[Reader]:
    """A reader of what is committed, closed at the end, that belongs to no group: it has no committed offsets.

    For commands that read a log and end: one that stopped while aiokafka was still looking for the group's
    coordinator would leave that connection open. And it needs no right to a group.
    """
    async with _opened(settings, None) as reader:
        yield reader


@asynccontextmanager
async def _opened(settings: Settings, group: str | None) -> AsyncIterator[Reader]:
    consumer = AIOKafkaConsumer(
        **aiokafka_options(settings),
        group_id=group,
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="none",
        fetch_max_wait_ms=_FETCH_MS,
    )
    deadline = settings.deadline / 1000
    try:
        async with asyncio.timeout(deadline):
            await consumer.start()
        yield Reader(consumer, deadline)
    finally:
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await consumer.stop()
        except IN_DOUBT as error:
            log.warning("A reader did not stop in order: %r", error)
        except asyncio.CancelledError:
            # aiokafka 0.14 raises it out of a fetch that waits to be repeated (consumer/fetcher.py, `close`).
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
