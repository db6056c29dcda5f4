"""The agent over the raw topics: takes a batch from Faust and hands it to the scopes."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import faust
from aiokafka import TopicPartition
from faust.types import EventT

from stream.events import Headers, RawEvent
from stream.scopes import Scopes

log = logging.getLogger(__name__)


async def sieve(
    events: faust.StreamT[bytes],
    scopes: Scopes,
    *,
    batch_size: int,
    batch_wait: float,
    on_error: Callable[[BaseException], None],
) -> None:
    """Take batches for as long as the worker runs.

    Nothing is acknowledged to Faust (`noack_take`), so Faust commits nothing: offsets are committed by the
    scopes, in the transaction of the outputs. And nothing escapes: an agent that raised would be started
    again with the next event, and the batch would be lost to this run.

    Parameters:
        batch_size: the most events in a batch.
        batch_wait: how long a batch is waited for, in seconds.
        on_error: told of the error that ends the worker.
    """
    stream = cast(
        faust.Stream[Any], events
    )  # Faust's interface leaves `noack_take` out, and that it yields events
    async for batch in stream.noack_take(batch_size, within=batch_wait):
        try:
            await scopes.process(_by_partition(batch))
        except Exception as error:  # whatever it is: see above
            on_error(error)
            await asyncio.Event().wait()


def _by_partition(batch: Sequence[EventT[bytes]]) -> dict[TopicPartition, list[RawEvent]]:
    partitions: dict[TopicPartition, list[RawEvent]] = {}
    for event in batch:
        message = event.message
        # Faust has divided by 1000 to seconds; rounding brings the milliseconds back up to the year 70,000.
        timestamp = -1 if message.timestamp is None else round(message.timestamp * 1000)
        raw = RawEvent(
            message.topic,
            message.partition,
            message.offset,
            timestamp,
            message.key,
            message.value,
            _headers(message.headers),
        )
        partitions.setdefault(TopicPartition(message.topic, message.partition), []).append(raw)
    return partitions


def _headers(headers: Mapping[str, bytes] | Sequence[tuple[str, bytes]] | None) -> Headers:
    # Faust's type allows a mapping; aiokafka hands over pairs, and of one name there may be two.
    return tuple(headers.items() if isinstance(headers, Mapping) else headers or ())
