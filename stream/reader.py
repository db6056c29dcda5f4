"""Reads a range of one partition as it was committed: the changelog at an opening, the raw topic over a gap."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from stream.connection import aiokafka_options
from stream.errors import BrokerError
from stream.settings import Settings

_POLL_MS: Final = 200
_MOST_RECORDS: Final = 2000


class Reader:
    """A consumer outside the group's assignment: it reads what it is told to, and the group's offsets."""

    def __init__(self, consumer: AIOKafkaConsumer, deadline: float) -> None:
        self._consumer = consumer
        self._deadline = deadline

    async def committed(self, partition: TopicPartition) -> int | None:
        """The group's committed offset; None where it has none (or no longer)."""
        async with asyncio.timeout(self._deadline):
            offset: int | None = await self._consumer.committed(partition)
            return offset

    async def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset that the broker still has, and the one after the last committed record."""
        async with asyncio.timeout(self._deadline):
            begin = await self._consumer.beginning_offsets([partition])
            end = await self._consumer.end_offsets([partition])
            return begin[partition], end[partition]

    async def read(
        self, partition: TopicPartition, start: int, end: int
    ) -> AsyncIterator[list[ConsumerRecord[Any, Any]]]:
        """The records in [start, end), some at a time; aborted ones and markers are passed over.

        Raises:
            BrokerError: the broker sent nothing for as long as the deadline.
        """
        consumer = self._consumer
        consumer.assign([partition])
        consumer.seek(partition, start)
        position = start
        loop = asyncio.get_running_loop()
        until = loop.time() + self._deadline
        # The end is reached by position, not by a record: a log may end in a marker that is never delivered.
        while position < end:
            async with asyncio.timeout(self._deadline):
                polled = await consumer.getmany(partition, timeout_ms=_POLL_MS, max_records=_MOST_RECORDS)
                reached = await consumer.position(partition)
            records = [record for record in polled.get(partition, ()) if record.offset < end]
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


@asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[Reader]:
    """A reader of what is committed, closed at the end."""
    consumer = AIOKafkaConsumer(
        **aiokafka_options(settings),
        group_id=settings.group,
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="none",
    )
    deadline = settings.deadline / 1000
    try:
        async with asyncio.timeout(deadline):
            await consumer.start()
        yield Reader(consumer, deadline)
    finally:
        await consumer.stop()
