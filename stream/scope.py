"""A scope's life in Kafka: opened, given the events of its partition in order, looked after, closed."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from aiokafka import ConsumerRecord

from state.table import Position
from stream.errors import ScopeError
from stream.events import Outbox, RawEvent
from stream.events import decode as decode_event
from stream.judge import Judge
from stream.positions import overtaken
from stream.replica import Replica
from stream.settings import Settings
from stream.text import Scheme
from stream.transactor import Batch, Transactor
from stream.turns import Turns
from stream.verdict import Input

log = logging.getLogger(__name__)

MOST_BATCH_BYTES: Final = 8 * 1024 * 1024
"""The most bytes of values in one transaction: a hundred events of a megabyte must not outlast its timeout."""


class Scope:
    """One (topic, partition): its order, its table, its changelog partition, its transactional id.

    Open it, hand it the events of its partition in order, close it. All its methods may be called from one
    event loop at any time; they wait for each other.

    Parameters:
        settings: the worker's settings.
        scheme: how a text becomes a fingerprint.
        replica: the scope's state on this machine. Whoever made it closes it, after the scope.
        client_id: by which the group knows this worker. None where no group gives scopes away.
    """

    def __init__(
        self, settings: Settings, scheme: Scheme, replica: Replica, client_id: str | None = None
    ) -> None:
        self.name = replica.name
        self._settings = settings
        self._scheme = scheme
        self._rules = settings.rules
        self._replica = replica
        self._raw = replica.raw
        self._outbox = Outbox(settings.topics, scheme.id, self._rules.id)
        self._turns = Turns(self.name)
        self._transactor = Transactor(settings, replica, self._turns, client_id)
        self._judged = 0
        self._continuous = False
        self._closed = False

    @property
    def position(self) -> Position:
        """Up to where the scope has judged and committed."""
        return self._transactor.position

    async def open(self) -> None:
        """Fence and finish a predecessor, read the changelog to its end, compare positions, be ready to judge.

        A broker that is away is waited for.

        Raises:
            ScopeError: the positions disagree so that an event could be lost, doubled or mismatched.
            StateError: the state on disk belongs to something else, is in use, or cannot be written.
            BrokerError: the broker does not allow it.
            ScopeClosedError: it was closed meanwhile.
        """
        await self._turns.take(self._transactor.open)
        self._turns.require()
        log.info("Scope %s is open at offset %d", self.name, self.position.next)

    # Judging

    async def process(self, events: Sequence[RawEvent]) -> int:
        """Judge events in order and commit what comes of it; returns over how many of them the position moved.

        Events below the scope's position are dropped: they were delivered twice. An error of the broker is
        met with a new producer and another attempt at the same batch, for as long as it takes.

        Raises:
            ScopeError: events are missing from the log, or it is another log.
            ScopeClosedError: the scope was closed before all of them were committed, or another worker holds it.
            StateError: the state cannot be read or written.
            BrokerError: the broker does not allow it.
        """
        before = self._judged
        await self._turns.take(partial(self._process, events))
        return self._judged - before

    async def _process(self, events: Sequence[RawEvent]) -> None:
        run: list[RawEvent] = []
        compared = looked = False
        for event in events:
            expected = run[-1].offset + 1 if run else self.position.next
            if event.offset < expected:
                if self._continuous or not compared:
                    # Delivered again; or a topic that was made anew, whose offsets begin again.
                    await self._turns.persist("positions cannot be compared", self._transactor.compare)
                    compared = True
                # Whoever delivers again may also leave out: the next gap is looked into.
                self._continuous = False
                continue
            if event.offset > expected and not self._continuous:
                await self._process_run(run)
                await self._turns.persist("the log cannot be read", partial(self._process_gap, event.offset))
                run = []
            elif event.offset > expected and not looked:
                # Markers, or events that the broker deleted before they came? Where nothing before the first gap
                # is gone, nothing in the others is.
                await self._turns.persist("the log cannot be asked", partial(self._require_kept, expected))
                looked = True
            run.append(event)
            self._continuous = True
        await self._process_run(run)

    async def _process_gap(self, end: int) -> None:
        """Judge what lies between the position and an event, where nobody vouches that nothing does.

        Mostly nothing does: a transactional producer's markers take up offsets. But after a rebalance Faust still
        delivers what it had buffered, and it passes over a committed offset of 0 (0.15.3, faust/streams.py:772,
        faust/transport/consumer.py:576); then real events lie there.
        """
        await self._transactor.compare()
        async for records in self._transactor.reader.read(self._raw, self.position.next, end):
            await self._process_run(list(map(_raw_event, records)))

    async def _require_kept(self, offset: int) -> None:
        begin = await self._transactor.reader.begin(self._raw)
        if begin > offset:
            raise ScopeError(f"Scope {self.name}: {overtaken(self.name, offset, begin)}")

    async def _process_run(self, events: Sequence[RawEvent]) -> None:
        for batch in _batches(events, self._settings.batch_size):
            # Where another worker was here meanwhile, some of the batch may be left to judge.
            while left := [event for event in batch if event.offset >= self.position.next]:
                self._turns.require()
                begin = self.position.next
                await self._transactor.commit(partial(self._prepare, left))
                self._judged += sum(begin <= event.offset < self.position.next for event in left)

    def _prepare(self, events: Sequence[RawEvent], refused: Mapping[int, Input]) -> Batch:
        inputs = [refused.get(event.offset) or decode_event(event, self._rules) for event in events]
        judgement = self._judge().judge(inputs)
        return Batch(
            judgement.records,
            list(map(self._outbox.output, events, judgement.verdicts)),
            [event.offset for event in events],
        )

    def _skip(self, end: int, refused: Mapping[int, Input]) -> Batch:
        return Batch([self._judge().skip(end)])

    def _judge(self) -> Judge:
        # Made anew each time, as a state that was built anew is another table.
        return Judge(self._replica.table, self._scheme, self._rules, self._transactor.topic_id)

    # Care, from time to time

    async def inspect(self) -> None:
        """Make sure that the state still belongs to the log.

        Retention may have overtaken the scope, or somebody has deleted its topic and made it again.

        Raises:
            ScopeError: it does not.
        """
        if self._transactor.is_open:
            await self._turns.take(self._transactor.compare)

    async def settle(self) -> None:
        """Bring an idle scope to the end of its log.

        Events that nobody delivered are judged; markers at the end are passed over, so that no lag seems to remain.
        """
        if self._transactor.is_open:
            await self._turns.take(self._settle)

    async def _settle(self) -> None:
        reader = self._transactor.reader
        _, end = await reader.bounds(self._raw)
        async for records in reader.read(self._raw, self.position.next, end):
            await self._process_run(list(map(_raw_event, records)))
        if end > self.position.next:
            await self._transactor.commit(partial(self._skip, end))

    async def trim(self) -> None:
        """Let the broker delete the part of the changelog that no live window needs any more."""
        if self._transactor.is_open:
            await self._turns.take(self._transactor.trim)

    async def close(self) -> None:
        """Finish the batch in flight, then let go of the producer. May be called twice.

        A batch that does not finish in good time, because the broker does not answer, is left to the next owner,
        who finds out whether it was committed.
        """
        self._replica.hurry()
        async with self._turns.last():
            if not self._closed:
                self._closed = True
                await self._transactor.close()
                log.info("Scope %s is closed", self.name)


def _batches(events: Sequence[RawEvent], most: int) -> Iterator[list[RawEvent]]:
    """Cut events into batches of so many, and of `MOST_BATCH_BYTES`; a larger event is a batch of its own."""
    batch: list[RawEvent] = []
    size = 0
    for event in events:
        bytes_ = len(event.value or b"") + len(event.key or b"")
        if batch and (len(batch) == most or size + bytes_ > MOST_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += bytes_
    if batch:
        yield batch


def _raw_event(record: "ConsumerRecord[bytes, bytes]") -> RawEvent:
    return RawEvent(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
    )
