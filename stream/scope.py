"""A scope's life in Kafka: open (fence, read, compare), batch, commit, close. The one place that knows transactions.

The outputs of a batch, its changelog record and the input offset commit in one transaction; RocksDB is written
after it. So the state is never ahead of the log, and the changelog's tail repairs it where it is behind.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from state.changelog import Record, decode, encode
from state.errors import ChangelogError
from state.layout import Layout
from state.table import Position, SegmentTable
from stream.errors import BrokerError, ScopeClosedError, ScopeError
from stream.events import Outbox, Output, RawEvent, unwritable
from stream.events import decode as decode_event
from stream.judge import Judge
from stream.positions import Place, agree
from stream.reader import Reader, open_reader
from stream.settings import Settings
from stream.text import Scheme
from stream.topics import Cluster
from stream.verdict import Input
from stream.writer import IN_DOUBT, RefusedError, Writer

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

MOST_ATTEMPTS: Final = 10
"""How often a batch is tried while the broker answers: then it is not the broker, and trying on would be a stall
that nobody sees. A broker that is away is waited for without end."""
BACKOFF_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
"""The waits between attempts at one batch; the last one repeats for as long as the broker is away."""


class _Batch(NamedTuple):
    """A judged batch, ready to be sent."""

    outputs: Sequence[Output]
    records: Sequence[Record]
    events: Sequence[RawEvent]


class Scope:
    """One (topic, partition): its order, its table, its changelog partition, its transactional id.

    Open it, hand it the events of its partition in order, close it. All its methods may be called from one
    event loop at any time; they wait for each other. The state is only touched in a thread of its own, so
    the loop stays free while a batch is judged.

    Parameters:
        settings: the worker's settings.
        scheme: how a text becomes a fingerprint.
        cluster: what `topics.prepare` found.
        topic, partition: the scope.
    """

    def __init__(
        self, settings: Settings, scheme: Scheme, cluster: Cluster, topic: str, partition: int
    ) -> None:
        self.name = f"{topic}:{partition}"
        self._settings = settings
        self._scheme = scheme
        self._rules = settings.rules
        self._cluster = cluster
        self._topic_id = cluster.topics[topic].id
        self._raw = TopicPartition(topic, partition)
        self._changelog = TopicPartition(settings.changelog_topic(topic), partition)
        self._outbox = Outbox(settings.topics, scheme.id, self._rules.id)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=self.name)
        self._lock = asyncio.Lock()
        self._writer = Writer(settings, f"{settings.group}-{topic}-{partition}")
        self._table: SegmentTable | None = None
        self._judge: Judge | None = None
        self._continuous = False
        self._closing = False
        self._closed = False

    @property
    def directory(self) -> Path:
        """Where the state of this scope lives."""
        return self._settings.data_dir / f"{self._raw.topic}-{self._raw.partition}"

    @property
    def position(self) -> Position:
        """Up to where the scope has judged and committed."""
        if self._table is None or self._table.position is None:
            raise ScopeError(f"Scope {self.name} is not open")
        return self._table.position

    # Opening

    async def open(self) -> None:
        """Fence and finish a predecessor, read the changelog to its end, compare positions, be ready to judge.

        Raises:
            ScopeError: the positions disagree so that an event could be lost, doubled or mismatched.
            StateError: the state on disk belongs to something else, is in use, or cannot be read.
            BrokerError: the broker does not answer.
        """
        async with self._lock:
            try:
                await self._open_table()
                await self._synchronise()
            except (TimeoutError, KafkaError) as error:
                raise BrokerError(
                    f"Scope {self.name} cannot be opened at {self._settings.broker}: {error!r}"
                ) from error
        log.info("Scope %s is open at offset %d", self.name, self.position.next)

    async def _open_table(self) -> None:
        settings = self._settings

        def progress(what: str, done: int, total: int) -> None:
            log.info("Scope %s: %s, %d of %d originals", self.name, what, done, total)

        def opened() -> None:
            self.directory.mkdir(parents=True, exist_ok=True)
            # Kept here and not by the caller: an opening that is cancelled still ends in this thread, and
            # `close` must find the table to let go of its lock.
            self._table = SegmentTable.open(
                self.directory,
                scheme=self._scheme.id,
                layout=Layout.parse(settings.layout),
                window_span=settings.window_span,
                origin={
                    "cluster": self._cluster.id,
                    "topic": self._raw.topic,
                    "partition": str(self._raw.partition),
                },
                progress=progress,
            )
            self._judge = Judge(self._table, self._scheme, self._rules, self._topic_id)

        try:
            await self._run(opened)
        except OSError as error:
            raise ScopeError(
                f"The state of scope {self.name} cannot be kept in {self.directory}: {error}"
            ) from error

    async def _synchronise(self) -> None:
        """Become the only writer, then bring the state to where the group's committed offset is.

        The order matters: only after the new producer has fenced its predecessor and finished its
        transaction do the committed offset and the end of the changelog stand still.
        """
        await self._writer.replace()
        async with open_reader(self._settings) as reader:
            committed = await reader.committed(self._raw)
            begin, end = await reader.bounds(self._raw)
            await self._catch_up(reader)
        self._continuous = False
        place = Place(
            scope=self.name,
            group=self._settings.group,
            broker=self._settings.broker,
            changelog=self._changelog.topic,
            topic_id=self._topic_id,
            position=self._opened().position,
            committed=committed,
            begin=begin,
            end=end,
        )
        if not agree(place):
            await self._commit_start(begin if self._settings.start_at == "earliest" else end)

    async def _catch_up(self, reader: Reader) -> None:
        table = self._opened()
        begin, end = await reader.bounds(self._changelog)
        if table.position is not None and not begin <= table.position.changelog <= end:
            log.warning(
                "Scope %s: its state ends at offset %d of %s, which reaches from %d to %d; it is built anew",
                self.name,
                table.position.changelog,
                self._changelog.topic,
                begin,
                end,
            )
            await self._rebuild()
        try:
            await self._replay(reader, begin, end)
        except ChangelogError as error:
            log.warning("Scope %s: %s; its state is built anew", self.name, error)
            await self._rebuild()
            await self._replay(reader, begin, end)

    async def _rebuild(self) -> None:
        table = self._opened()
        await self._run(table.close)
        await self._run(SegmentTable.destroy, self.directory)
        await self._open_table()

    async def _replay(self, reader: Reader, begin: int, end: int) -> None:
        table = self._opened()
        start = begin if table.position is None else table.position.changelog
        shown = asyncio.get_running_loop().time()
        async for records in reader.read(self._changelog, start, end):
            decoded = [decode(record.value) for record in records]
            await self._run(_apply, table, decoded, records[-1].offset + 1)
            if asyncio.get_running_loop().time() > shown + 2:
                shown = asyncio.get_running_loop().time()
                log.info(
                    "Scope %s: read its changelog to offset %d of %d", self.name, records[-1].offset, end
                )

    async def _commit_start(self, offset: int) -> None:
        # From here on the position is ours: the consumer's auto.offset.reset never decides again.
        record = self._judging().start(offset)
        changelog = await self._transact(_Batch([], [record], ()), offset)
        await self._run(self._opened().apply, [record], changelog)

    # Judging

    async def process(self, events: Sequence[RawEvent]) -> int:
        """Judge events in order and commit what comes of it; returns how many were new.

        Events below the scope's position are dropped: they were delivered twice. An error of the broker is
        met with a new producer and another attempt at the same batch, for as long as it takes.

        Raises:
            ScopeError: another worker has taken the scope over, or events are missing from the log.
        """
        async with self._lock:
            if self._closing:
                return 0
            done = 0
            run: list[RawEvent] = []
            for event in events:
                expected = run[-1].offset + 1 if run else self.position.next
                if event.offset < expected:
                    # Whoever delivers again may also leave out: the next gap is looked into.
                    self._continuous = False
                    continue
                if event.offset > expected and not self._continuous:
                    done += await self._process_run(run) + await self._process_gap(event.offset)
                    run = []
                run.append(event)
                self._continuous = True
            return done + await self._process_run(run)

    async def _process_run(self, events: Sequence[RawEvent]) -> int:
        size = self._settings.batch_size
        return sum(
            [await self._process_batch(events[start : start + size]) for start in range(0, len(events), size)]
        )

    async def _process_gap(self, end: int) -> int:
        """Judge what lies between the position and an event, where nobody vouches that nothing does.

        Mostly nothing does: a transactional producer's markers take up offsets. But after a rebalance Faust still
        delivers what it had buffered, and it passes over a committed offset of 0 (0.15.3, faust/streams.py:772,
        faust/transport/consumer.py:576); then real events lie there.
        """
        done = 0
        async with open_reader(self._settings) as reader:
            start = self.position.next
            begin, _ = await reader.bounds(self._raw)
            if begin > start:
                raise ScopeError(
                    f"Scope {self.name}: the broker has deleted offsets {start} to {begin - 1} before they were judged."
                )
            async for records in reader.read(self._raw, start, end):
                done += await self._process_run(list(map(_raw_event, records)))
        return done

    async def _process_batch(self, events: Sequence[RawEvent]) -> int:
        def prepare(refused: Mapping[int, Input]) -> _Batch:
            inputs = [refused.get(event.offset) or decode_event(event, self._rules) for event in events]
            judgement = self._judging().judge(inputs)
            return _Batch(
                list(map(self._outbox.output, events, judgement.verdicts)), judgement.records, events
            )

        await self._carry_through(prepare)
        return len(events)

    async def _carry_through(self, prepare: Callable[[Mapping[int, Input]], _Batch]) -> None:
        """Prepare, commit, apply; after an error with a new producer, until it is known to be committed.

        `prepare` is given the events that the broker has refused so far, by offset.
        """
        begin = self.position.next
        refused: dict[int, Input] = {}
        attempt = 0
        while True:
            batch = await self._run(prepare, refused)
            end = batch.records[-1].next
            if attempt:
                await asyncio.sleep(_backoff(attempt))
            try:
                changelog = await self._transact(batch, end)
            except RefusedError as error:
                refused |= await self._find_refused(batch, error.suspects)
            except IN_DOUBT as error:
                log.warning("Scope %s: the batch at offset %d failed: %r", self.name, begin, error)
            else:
                await self._run(_apply, self._opened(), batch.records, changelog)
                return
            if await self._was_committed(begin, end):
                return
            attempt += 1
            if attempt == MOST_ATTEMPTS:
                raise ScopeError(
                    f"Scope {self.name}: the batch at offset {begin} failed {attempt} times, although the broker "
                    "answers; the log above says how. Nothing of it was committed."
                )

    async def _find_refused(self, batch: _Batch, suspects: Sequence[int]) -> dict[int, Input]:
        refused: dict[int, Input] = {}
        for index in suspects:
            offset = batch.events[index].offset
            try:
                cause = await self._writer.refusal(batch.outputs[index])
            except IN_DOUBT as error:
                # No answer about this event: the next attempt at the batch asks again.
                log.warning("%s:%d could not be tried alone: %r", self.name, offset, error)
                continue
            if cause is not None:
                log.warning("%s:%d is rejected, because the broker refuses it: %s", self.name, offset, cause)
                refused[offset] = unwritable(offset, cause)
        return refused

    async def _was_committed(self, begin: int, end: int) -> bool:
        """After a failure: whether the batch was committed all the same. Waits for a broker that is away."""
        attempt = 1
        while True:
            if self._closing:
                raise ScopeClosedError(
                    f"Scope {self.name}: closed before the batch at offset {begin} was committed"
                )
            try:
                await self._synchronise()
                break
            except (*IN_DOUBT, BrokerError) as error:
                log.warning(
                    "Scope %s: the broker cannot be asked what became of its batch: %r", self.name, error
                )
            await asyncio.sleep(_backoff(attempt))
            attempt += 1
        self._continuous = True
        if self.position.next == begin:
            return False
        if self.position.next == end:
            return True
        raise ScopeError(
            f"Scope {self.name}: another worker has judged on to offset {self.position.next} while this one was at "
            f"{begin}; nothing of this one's batch was committed. This worker stops; start it again to rejoin."
        )

    async def settle(self) -> None:
        """Move an idle scope's position over markers at the end of its log, so that no lag seems to remain.

        Nothing is passed over that could be an event: the range is read, as committed, first.
        """
        async with self._lock:
            if self._closing or self._table is None:
                return
            start = self.position.next
            async with open_reader(self._settings) as reader:
                _, end = await reader.bounds(self._raw)
                async for _ in reader.read(self._raw, start, end):
                    return
            if end > start:
                await self._carry_through(lambda _: _Batch([], [self._judging().skip(end)], ()))

    async def _transact(self, batch: _Batch, end: int) -> int:
        """Commit a batch, up to the raw offset `end`; returns the next changelog offset."""
        state = [
            Output(self._changelog.topic, self._changelog.partition, None, None, encode(record), ())
            for record in batch.records
        ]
        position = self._opened().position
        if position is None or position.rules != self._rules.id:
            # Recorded by the transaction that first uses them, so that any offset can be judged again.
            rules, id = self._rules.canonical().encode(), self._rules.id.encode()
            state.insert(0, Output(self._settings.rules_topic, 0, None, id, rules, ()))
        offsets = await self._writer.transact(batch.outputs, state, self._raw, end)
        return offsets[-1] + 1

    # Closing

    async def close(self) -> None:
        """Finish the batch in flight, then let go of the producer and the state. May be called twice."""
        self._closing = True
        async with self._lock:
            if not self._closed:
                await self._writer.stop()
                await self._run(self._close_table)
                self._thread.shutdown(wait=False)
                self._closed = True

    def _close_table(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.close()
            log.info("Scope %s is closed", self.name)

    # Parts that are there while the scope is open

    async def _run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        future = self._thread.submit(function, *args, **kwargs)
        return await asyncio.wrap_future(future)

    def _opened(self) -> SegmentTable:
        if self._table is None:
            raise ScopeError(f"Scope {self.name} is not open")
        return self._table

    def _judging(self) -> Judge:
        if self._judge is None:
            raise ScopeError(f"Scope {self.name} is not open")
        return self._judge


def _backoff(attempt: int) -> float:
    return BACKOFF_SECONDS[min(attempt, len(BACKOFF_SECONDS)) - 1]


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


def _apply(table: SegmentTable, records: Sequence[Record], changelog: int) -> None:
    table.apply(records, changelog)
    table.merge_step()
