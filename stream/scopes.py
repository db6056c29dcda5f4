"""The scopes of this worker: opened as partitions are assigned, closed as they are revoked, followed in between."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

import mode
from aiokafka import TopicPartition

from stream.connection import IN_DOUBT
from stream.errors import BrokerError, ScopeClosedError
from stream.events import RawEvent
from stream.replica import Replica
from stream.scope import Scope

log = logging.getLogger(__name__)

CARE_SECONDS: Final = 30.0
"""How often a scope is looked after: whether log and state still agree, what its changelog need no longer keep, and,
where nothing came meanwhile, whether its position can be moved over the markers at the end of its log."""


class Scopes(mode.Service):
    """Opens a scope for every assigned partition, in a task of its own.

    Never in the rebalance callback, because the group's heartbeats only begin after it.

    Parameters:
        replica: builds the state of a partition; it is kept for as long as the scope is held or followed.
        scope: builds the scope of a state.
        followed: the partitions whose state is kept up while another worker holds them; asked at the start.
        claim: makes sure that the group has given every partition to somebody.
        on_error: told of the error that ends the worker.
    """

    def __init__(
        self,
        replica: Callable[[TopicPartition], Replica],
        scope: Callable[[Replica], Scope],
        followed: Callable[[], Iterable[TopicPartition]],
        claim: Callable[[], Awaitable[None]],
        on_error: Callable[[BaseException], None],
    ) -> None:
        super().__init__()
        self._make_replica = replica
        self._make_scope = scope
        self._to_follow = followed
        self._claim = claim
        self._on_error = on_error
        self._followed: frozenset[TopicPartition] = frozenset()
        self._replicas: dict[TopicPartition, Replica] = {}
        self._following: dict[TopicPartition, asyncio.Task[None]] = {}
        self._scopes: dict[TopicPartition, Scope] = {}
        self._openings: dict[TopicPartition, asyncio.Task[None]] = {}
        self._active: set[TopicPartition] = set()
        self._said_idle = False

    async def on_start(self) -> None:
        """Begin to follow; what is assigned meanwhile is held instead."""
        self._followed = frozenset(self._to_follow())
        for partition in self._followed - self._scopes.keys():
            self._follow(partition)

    # Holding

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to open the scopes of these partitions, and return at once."""
        for partition in sorted(partitions):
            if partition not in self._scopes:
                scope = self._scopes[partition] = self._make_scope(self._replica(partition))
                self._openings[partition] = self._begin(self._open(partition, scope), f"open {scope.name}")

    async def _open(self, partition: TopicPartition, scope: Scope) -> None:
        await self._unfollow(partition)
        await scope.open()

    async def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Finish the batches in flight of these partitions, and close their scopes."""
        await self._all(self._give_up(partition) for partition in set(partitions) & self._scopes.keys())

    async def _give_up(self, partition: TopicPartition) -> None:
        await self._close(partition)
        if partition in self._followed and not self.should_stop:
            self._follow(partition)
        else:
            await self._replicas.pop(partition).shut_down()

    async def _close(self, partition: TopicPartition) -> None:
        scope = self._scopes.pop(partition)
        await _cancelled(self._openings.pop(partition))
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

    def _opened(self, partition: TopicPartition) -> Scope | None:
        opening = self._openings.get(partition)
        if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
            return None
        return self._scopes[partition]

    # Following

    def _replica(self, partition: TopicPartition) -> Replica:
        if partition not in self._replicas:
            self._replicas[partition] = self._make_replica(partition)
        return self._replicas[partition]

    def _follow(self, partition: TopicPartition) -> None:
        replica = self._replica(partition)
        self._following[partition] = self._begin(replica.follow(), f"follow {replica.name}")

    async def _unfollow(self, partition: TopicPartition) -> None:
        following = self._following.pop(partition, None)
        if following is not None:
            await _cancelled(following)

    # Caring

    @mode.Service.timer(CARE_SECONDS)
    async def _care(self) -> None:
        if not self._scopes and not self._said_idle:
            log.info("No scope is assigned to this worker: others of the group hold them all. It waits")
        self._said_idle = not self._scopes
        idle = self._scopes.keys() - self._active
        self._active.clear()
        for partition in list(self._scopes):
            scope = self._opened(partition)
            if scope is not None:
                await self._care_for(scope, partition in idle)
        try:
            await self._claim()
        except IN_DOUBT as error:
            log.warning("The group cannot be asked who holds what: %r", error)

    async def _care_for(self, scope: Scope, idle: bool) -> None:
        try:
            await scope.inspect()
            await scope.trim()
            if idle:
                await scope.settle()
        except ScopeClosedError as error:
            log.info("%s", error)
        except (*IN_DOUBT, BrokerError) as error:
            # It can wait: it is tried again before long.
            log.warning("Scope %s cannot be looked after: %r", scope.name, error)
        except Exception as error:  # whatever it is, the worker must not go on without this scope
            self._on_error(error)

    # Ending

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """A task whose error, whatever it is, ends the worker."""

        async def report() -> None:
            try:
                await work
            except ScopeClosedError as error:
                log.info("%s", error)
                raise
            except Exception as error:
                self._on_error(error)
                raise

        return asyncio.create_task(report(), name=name)

    async def on_stop(self) -> None:
        """Close every scope; the worker stops."""
        await self._all(map(self._close, list(self._scopes)))
        for partition in list(self._following):
            await self._unfollow(partition)
        await self._all(replica.shut_down() for replica in self._replicas.values())
        self._replicas.clear()

    async def _all(self, works: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Do all of these, even where one fails: what is left open would keep its directory locked."""
        for result in await asyncio.gather(*works, return_exceptions=True):
            if isinstance(result, Exception):
                self._on_error(result)


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
