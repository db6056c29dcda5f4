"""The scopes that this worker holds: opened as partitions are assigned, closed as they are revoked."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import mode
from aiokafka import TopicPartition

from stream.errors import BrokerError, ScopeClosedError
from stream.events import RawEvent
from stream.scope import Scope
from stream.writer import IN_DOUBT

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 30.0
"""How long a scope must be idle before its position is moved over the markers at the end of its log."""


class Scopes(mode.Service):
    """Opens a scope for every assigned partition, in a task of its own.

    Never in the rebalance callback, because the group's heartbeats only begin after it.

    Parameters:
        make: builds the scope of a (topic, partition).
        on_error: told of the error that ends the worker.
    """

    def __init__(
        self,
        make: Callable[[str, int], Scope],
        on_error: Callable[[BaseException], None],
    ) -> None:
        super().__init__()
        self._make = make
        self._on_error = on_error
        self._scopes: dict[TopicPartition, Scope] = {}
        self._openings: dict[TopicPartition, asyncio.Task[None]] = {}
        self._active: set[TopicPartition] = set()

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to open the scopes of these partitions, and return at once."""
        for partition in sorted(partitions):
            if partition in self._scopes:
                continue
            scope = self._make(partition.topic, partition.partition)
            self._scopes[partition] = scope
            self._openings[partition] = asyncio.create_task(self._open(scope), name=f"open {scope.name}")

    async def _open(self, scope: Scope) -> None:
        try:
            await scope.open()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # whatever it is, the worker must not go on without this scope
            self._on_error(error)
            raise

    async def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Finish the batches in flight of these partitions, and close their scopes."""
        await asyncio.gather(*(self._close(partition) for partition in set(partitions) & self._scopes.keys()))

    async def _close(self, partition: TopicPartition) -> None:
        scope = self._scopes.pop(partition)
        opening = self._openings.pop(partition)
        opening.cancel()
        await asyncio.wait([opening])
        if not opening.cancelled():
            opening.exception()
        await scope.close()

    async def process(self, events: Mapping[TopicPartition, Sequence[RawEvent]]) -> None:
        """Judge the events of each partition, in order; those of partitions that are not held are dropped.

        Whoever holds such a partition now reads the events again from the committed offset.
        """
        await asyncio.gather(*(self._process(*item) for item in events.items()))

    async def _process(self, partition: TopicPartition, events: Sequence[RawEvent]) -> None:
        if partition not in self._scopes:
            return
        await asyncio.wait([self._openings[partition]])
        scope = self._opened(partition)
        if scope is None:
            return
        self._active.add(partition)
        try:
            await scope.process(events)
        except ScopeClosedError as error:
            log.info("%s", error)

    @mode.Service.timer(SETTLE_SECONDS)
    async def _settle(self) -> None:
        idle = self._scopes.keys() - self._active
        self._active.clear()
        for partition in idle:
            scope = self._opened(partition)
            if scope is not None:
                await self._settle_one(scope)

    def _opened(self, partition: TopicPartition) -> Scope | None:
        opening = self._openings.get(partition)
        if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
            return None
        return self._scopes[partition]

    async def _settle_one(self, scope: Scope) -> None:
        try:
            await scope.settle()
        except ScopeClosedError as error:
            log.info("%s", error)
        except (*IN_DOUBT, BrokerError) as error:
            # It is idle, and asked again before long.
            log.warning("Scope %s: the broker does not say where its log ends: %r", scope.name, error)
        except Exception as error:
            self._on_error(error)

    async def on_stop(self) -> None:
        """Close every scope; the worker stops."""
        await self.revoke(list(self._scopes))
