"""The one writer of a scope: it fences a predecessor, finds where the log stands, and commits batches exactly once.

The outputs of a batch, its changelog record and the input offset commit in one transaction; RocksDB is written
after it. So the state is never ahead of the log, and the changelog's tail repairs it where it is behind.
docs/exactly-once.md shows which step may fail, and what then.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

from state.changelog import Record, encode
from state.errors import StateCorruptError
from state.table import Position
from stream.admin import Admin
from stream.connection import IN_DOUBT
from stream.errors import BrokerError, ScopeClosedError, ScopeError
from stream.events import Output, unwritable
from stream.group import describe_group
from stream.positions import Place, agree
from stream.reader import Reader, open_reader
from stream.replica import Replica
from stream.settings import Settings
from stream.topics import restore
from stream.turns import Turns
from stream.verdict import Input
from stream.writer import RefusedError, Writer, transactional_id

log = logging.getLogger(__name__)

MOST_ATTEMPTS: Final = 10
"""How often a batch is tried while the broker answers: then it is not the broker, and trying on would be a stall
that nobody sees. A broker that is away is waited for without end."""
LOOKS: Final = 3
"""How often positions that disagree are read again before they are believed: a broker that has just come back, or
a worker that is taking over at this moment, can show one before the other."""


class Batch(NamedTuple):
    """A judged batch, ready to be sent. Without outputs it only moves the position."""

    records: Sequence[Record]
    outputs: Sequence[Output] = ()
    offsets: Sequence[int] = ()
    """The raw offset of each output."""


class Transactor:
    """Commits the batches of one scope, one at a time. Its methods run in the scope's turns.

    Parameters:
        settings: the worker's settings.
        replica: the scope's state on this machine.
        turns: the scope's turns: while the broker is away a call persists until they end.
        client_id: by which the group knows this worker. None where no group gives scopes away.
    """

    def __init__(self, settings: Settings, replica: Replica, turns: Turns, client_id: str | None) -> None:
        self._settings = settings
        self._rules = settings.rules
        self._replica = replica
        self._turns = turns
        self._client_id = client_id
        self._raw = replica.raw
        self._writer = Writer(settings, transactional_id(settings.group, replica.raw))
        # Trying an output must not fence the next owner of the scope, nor end its transaction: an id of its own.
        self._trial = Writer(settings, f"{transactional_id(settings.group, replica.raw)}-trial")
        self._reading = AsyncExitStack()
        self._reader: Reader | None = None
        self._topic_id = ""
        self._in_doubt = False

    @property
    def is_open(self) -> bool:
        """Whether it has been opened, and not closed since."""
        return self._reader is not None

    @property
    def reader(self) -> Reader:
        """A reader of the scope's partitions.

        Raises:
            ScopeError: it is not open.
        """
        if self._reader is None:
            raise ScopeError(f"Scope {self._replica.name} is not open")
        return self._reader

    @property
    def position(self) -> Position:
        """Up to where the scope has judged and committed.

        Raises:
            ScopeError: it is not open.
        """
        position = self._replica.position
        if position is None:
            raise ScopeError(f"Scope {self._replica.name} is not open")
        return position

    @property
    def topic_id(self) -> str:
        """The broker's id of the raw topic whose events are judged."""
        return self._topic_id

    # Where the log stands

    async def open(self) -> None:
        """Fence and finish a predecessor, read the changelog to its end, compare positions, begin where none is.

        Raises:
            ScopeError: the positions disagree so that an event could be lost, doubled or mismatched.
            StateError: the state on disk belongs to something else, is in use, or cannot be written.
            BrokerError: the broker does not allow it.
            ScopeClosedError: the turns ended while the broker was away.
        """
        await self._replica.open()
        await self._turns.persist("it cannot be opened", self._synchronise)

    async def compare(self) -> None:
        """Make sure that the state still belongs to the log, and that nothing of it was lost before it was judged.

        The committed offset is left out: only this worker moves it, or one that takes over and fences this one.

        Raises:
            ScopeError: it is another topic, or has lost events.
        """
        agree(await self._look(self.position.next))

    async def _synchronise(self) -> None:
        for _ in range(LOOKS - 1):
            try:
                return await self._synchronise_once()
            except ScopeError as error:
                if isinstance(error, ScopeClosedError):
                    raise
                log.info("%s Looking again.", error)
                await self._turns.pause(LOOKS)
        return await self._synchronise_once()

    async def _synchronise_once(self) -> None:
        """Become the only writer, then bring the state to where the group's committed offset is.

        The order matters: only after the new producer has fenced its predecessor and finished its
        transaction do the committed offset and the end of the changelog stand still.
        """
        await self._writer.replace()
        await self._reading.aclose()
        reader = self._reader = await self._reading.enter_async_context(open_reader(self._settings))
        committed = await reader.committed(self._raw)
        await self._replica.catch_up(reader)
        self._in_doubt = False
        place = await self._look(committed)
        self._topic_id = place.topic_id or ""
        if not agree(place):
            await self._begin(place)
        await self._replica.forget_set_aside()

    async def _look(self, committed: int | None) -> Place:
        topics = await asyncio.to_thread(Admin(self._settings).describe, [self._raw.topic])
        begin, end = await self.reader.bounds(self._raw)
        return Place(
            scope=self._replica.name,
            group=self._settings.group,
            changelog=self._replica.changelog.topic,
            topic_id=topics[self._raw.topic].id if topics else None,
            position=self._replica.position,
            committed=committed,
            begin=begin,
            end=end,
        )

    async def _begin(self, place: Place) -> None:
        # From here on the position is ours: the consumer's auto.offset.reset never decides again.
        offset = await self._first_offset(place)
        record = Record(offset, offset, 0, offset, self._topic_id, self._rules.id)
        await self._replica.apply([record], await self._transact(Batch([record])))

    async def _first_offset(self, place: Place) -> int:
        settings = self._settings
        if settings.predecessor is None:
            return place.begin if settings.start_at == "earliest" else place.end
        async with open_reader(settings, settings.predecessor) as reader:
            committed = await reader.committed(self._raw)
        if committed is None or not place.begin <= committed <= place.end:
            raise ScopeError(
                f"Scope {place.scope} cannot begin where group {settings.predecessor} stands: that has committed "
                f"{'no offset' if committed is None else f'offset {committed}'}, and the topic reaches from "
                f"{place.begin} to {place.end}. Choose another TEXTSIEVE_START_AT."
            )
        return committed

    # Committing

    async def commit(self, prepare: Callable[[Mapping[int, Input]], Batch]) -> None:
        """Prepare a batch, commit it, apply it.

        After an error that is done again with a new producer, until it is known what became of the batch. Where
        another worker has committed at the same place meanwhile, nothing of it is, and the position has moved on:
        the caller looks.

        Parameters:
            prepare: makes the batch at the position, given the events that the broker has refused so far, by
                offset. Called again after an error.

        Raises:
            ScopeError: the broker answers, and still the batch cannot be committed.
            ScopeClosedError: the turns ended first, or another worker holds the scope.
            StateError: the batch is committed, and the state cannot be written.
        """
        if self._in_doubt:
            await self._turns.persist("it is not known what became of its last batch", self._recover)
        begin = self.position.next
        refused: dict[int, Input] = {}
        for attempt in range(1, MOST_ATTEMPTS + 1):
            try:
                batch = await self._replica.run(prepare, refused)
                self._in_doubt = True
                changelog = await self._transact(batch)
            except RefusedError as error:
                refused |= await self._find_refused(batch, error.suspects)
            except StateCorruptError as error:
                await self._rebuild(error)
            except IN_DOUBT as error:
                log.warning("Scope %s: the batch at offset %d failed: %r", self._replica.name, begin, error)
            else:
                return await self._take_in(batch, changelog)
            await self._turns.persist("it is not known what became of its batch", self._recover)
            if self.position.next != begin:
                return None
            await self._turns.pause(attempt)
        raise ScopeError(
            f"Scope {self._replica.name}: the batch at offset {begin} failed {MOST_ATTEMPTS} times, although the "
            "broker answers; the log above says how. Nothing of it was committed."
        )

    async def _transact(self, batch: Batch) -> int:
        """Commit a batch; returns the next changelog offset."""
        changelog = self._replica.changelog
        state = [
            Output(changelog.topic, changelog.partition, None, None, encode(record), ())
            for record in batch.records
        ]
        position = self._replica.position
        if position is None or position.rules != self._rules.id:
            # Recorded by the transaction that first uses them, so that any offset can be judged again.
            rules, id = self._rules.canonical().encode(), self._rules.id.encode()
            state.insert(0, Output(self._settings.rules_topic, 0, None, id, rules, ()))
        offsets = await self._writer.transact(batch.outputs, state, self._raw, batch.records[-1].next)
        return offsets[-1] + 1

    async def _take_in(self, batch: Batch, changelog: int) -> None:
        try:
            await self._replica.apply(batch.records, changelog)
            self._in_doubt = False
        except StateCorruptError as error:
            await self._rebuild(error)

    async def _find_refused(self, batch: Batch, suspects: Sequence[int]) -> dict[int, Input]:
        refused: dict[int, Input] = {}
        for index in suspects:
            self._turns.require()
            offset = batch.offsets[index]
            try:
                cause = await self._trial.refusal(batch.outputs[index])
            except IN_DOUBT as error:
                # No answer about this event: the next attempt at the batch asks again.
                log.warning("%s:%d could not be tried alone: %r", self._replica.name, offset, error)
                continue
            if cause is not None:
                log.warning(
                    "%s:%d is rejected, because the broker refuses it: %s", self._replica.name, offset, cause
                )
                refused[offset] = unwritable(offset, cause)
        await self._trial.stop()
        if not refused:
            # Together they were too large, and none of them is alone.
            self._writer.halve_batches()
        return refused

    async def _rebuild(self, error: StateCorruptError) -> None:
        log.warning("Scope %s: %s", self._replica.name, error)
        await self._turns.persist("its state cannot be built anew", self._build_anew)

    async def _build_anew(self) -> None:
        await self._replica.rebuild(self.reader)
        await self._replica.forget_set_aside()

    async def _recover(self) -> None:
        """Find out where the log stands after a failure, as the only writer again.

        A new producer would fence the next owner of the scope, if there is one: so the group is asked first.
        """
        # An output topic that was deleted is made again, as it would be at a start.
        await asyncio.to_thread(restore, self._settings)
        await self._require_held()
        await self._synchronise()

    async def _require_held(self) -> None:
        if self._client_id is None:
            return
        group = await describe_group(self._settings)
        holder = group.holders.get((self._raw.topic, self._raw.partition)) if group.settled else None
        if holder is None:
            raise BrokerError(f"group {self._settings.group} has not settled yet who holds it")
        if holder != self._client_id:
            # The group will tell Faust, too; until then nothing more is judged here.
            self._turns.end()
            raise ScopeClosedError(
                f"Scope {self._replica.name} is held by {holder} now: this worker writes nothing more"
            )

    # Care and end

    async def trim(self) -> None:
        """Let the broker delete the part of the changelog that no live window needs any more."""
        needed = self._replica.table.changelog_needed
        changelog = self._replica.changelog
        if needed > await self.reader.begin(changelog):
            admin = Admin(self._settings)
            await asyncio.to_thread(admin.delete_records, changelog.topic, changelog.partition, needed)
            log.info("Scope %s: its changelog is cut before offset %d", self._replica.name, needed)

    async def close(self) -> None:
        """Let go of reader and producer; a transaction that is open is left for the next owner to abort."""
        self._reader = None
        try:
            await self._reading.aclose()
        finally:
            await self._trial.stop()
            await self._writer.stop()
