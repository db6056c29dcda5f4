"""A scope's state on this machine: opened, brought up from the scope's changelog, kept up, built anew.

It only reads Kafka. The scope that owns it writes the changelog; a worker that stands by follows it.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NoReturn, ParamSpec, TypeVar

from aiokafka import ConsumerRecord, TopicPartition

from state.changelog import Record, decode
from state.errors import ChangelogError, RecordError, StateCorruptError, StateError, StateMismatchError
from state.layout import Layout
from state.table import Position, SegmentTable
from stream.connection import IN_DOUBT
from stream.errors import BrokerError, ScopeClosedError, ScopeError, TopicError
from stream.reader import Reader, open_reader
from stream.settings import Settings
from stream.topics import Cluster

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

SHOW_SECONDS: Final = 2.0
"""How often a long catch-up, or a long opening, says how far it is."""
FOLLOW_AGAIN_SECONDS: Final = 2.0
"""The wait before a standby that lost the broker asks again. Nobody waits for it meanwhile."""


class Replica:
    """The table of one scope, in a thread of its own, so that the event loop stays free.

    Parameters:
        settings: the worker's settings.
        scheme: the id of the scheme.
        cluster: what `topics.prepare` found.
        topic, partition: the scope.

    Attributes:
        name: the scope, `topic:partition`.
        raw: the partition whose events are judged.
        changelog: the partition that the state is built from.
        directory: where the state lives.
    """

    def __init__(self, settings: Settings, scheme: str, cluster: Cluster, topic: str, partition: int) -> None:
        self.name = f"{topic}:{partition}"
        self.raw = TopicPartition(topic, partition)
        self.changelog = TopicPartition(settings.changelog_topic(topic), partition)
        # A directory for each group: a new group for the same topic begins with a state of its own.
        self.directory: Path = settings.data_dir / settings.group / f"{topic}-{partition}"
        self._set_aside_directory = self.directory.with_name(f"{self.directory.name}.set-aside")
        self._settings = settings
        self._scheme = scheme
        self._cluster_id = cluster.id
        self._partitions = cluster.topics[self.changelog.topic].partitions
        self._changelog_id = cluster.topics[self.changelog.topic].id
        self._hurried = False
        self._shown = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=self.name)
        self._table: SegmentTable | None = None

    @property
    def table(self) -> SegmentTable:
        """The open table.

        Raises:
            ScopeError: it is not open.
        """
        if self._table is None:
            raise ScopeError(f"The state of scope {self.name} is not open")
        return self._table

    @property
    def position(self) -> Position | None:
        """Up to where the state goes; None where there is none, or it is not open."""
        return None if self._table is None else self._table.position

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in the thread that owns the table, after everything that was given to it before."""
        future = self._thread.submit(function, *args, **kwargs)
        return await asyncio.wrap_future(future)

    async def open(self) -> None:
        """Open the table; an open one is left alone. One that cannot be read is begun anew.

        Raises:
            StateError: the state belongs to something else, or is in use.
            ScopeError: the directory cannot be used.
            ScopeClosedError: it was told to hurry while it indexed.
            TopicError: the partition is newer than the changelog's.
        """
        if self.raw.partition >= self._partitions:
            raise TopicError(
                f"Topic {self.raw.topic} has got a partition {self.raw.partition}, and its changelog "
                f"{self.changelog.topic} has only {self._partitions}. Start the worker again: it says what to do."
            )
        self._hurried = False
        try:
            await self.run(self._open)
        except StateCorruptError as error:
            log.warning("Scope %s: %s", self.name, error)
            await self._begin_anew()

    async def catch_up(self, reader: Reader) -> None:
        """Apply what the changelog holds beyond the state; where they do not fit, build the state anew from it.

        Raises:
            ScopeError: the changelog does not reach as far as the state, or no longer holds anything.
            ChangelogError: a record of the changelog cannot be read. What there was of the state is set aside.
        """
        begin, end = await reader.bounds(self.changelog)
        position = self.position
        if position is not None:
            self._require_reached(position, begin, end)
        if position is not None and position.changelog < begin:
            log.warning(
                "Scope %s: its state ends at offset %d of %s, which begins at %d; it is built anew",
                self.name,
                position.changelog,
                self.changelog.topic,
                begin,
            )
            await self._begin_anew()
        try:
            await self._replay(reader, begin, end)
        except RecordError:
            # Another state would not make it readable.
            raise
        except (ChangelogError, StateCorruptError) as error:
            log.warning("Scope %s: %s Its state is built anew", self.name, error)
            await self._begin_anew()
            await self._replay(reader, begin, end)

    async def forget_set_aside(self) -> None:
        """Delete what was set aside: what was built in its place has proved right."""
        await self.run(self._forget_set_aside)

    async def rebuild(self, reader: Reader) -> None:
        """Build the state anew, whatever there is of it, from the changelog."""
        await self._begin_anew()
        await self.catch_up(reader)

    async def follow(self) -> NoReturn:
        """Keep up with the changelog while another worker judges. Ends when it is cancelled.

        Raises:
            StateError: the state cannot be kept.
        """
        while True:
            try:
                await self.open()
                async with open_reader(self._settings) as reader:
                    await self._follow(reader)
            except (*IN_DOUBT, BrokerError) as error:
                log.warning("Scope %s: its changelog cannot be followed: %r", self.name, error)
            except RecordError:
                raise
            except (ChangelogError, StateCorruptError) as error:
                log.warning("Scope %s: %s Its state is built anew", self.name, error)
                await self._begin_anew()
            await asyncio.sleep(FOLLOW_AGAIN_SECONDS)

    async def apply(self, records: Sequence[Record], changelog: int) -> None:
        """Take in what a committed transaction did; `changelog` is the offset after its records."""
        await self.run(_apply, self.table, records, changelog)

    def hurry(self) -> None:
        """Let an opening that takes long be given up: nobody waits for it any more."""
        self._hurried = True

    async def shut_down(self) -> None:
        """Close the table for good, after what it is busy with."""
        await self.run(self._close)
        self._thread.shutdown(wait=False)

    # In the thread of the table

    def _open(self) -> None:
        if self._table is not None:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ScopeError(
                f"The state of scope {self.name} cannot be kept in {self.directory}: {error}"
            ) from error
        # Kept here and not by the caller: an opening that is cancelled still ends in this thread, and whoever shuts
        # it down must find the table to let go of its lock.
        try:
            self._table = SegmentTable.open(
                self.directory,
                scheme=self._scheme,
                layout=Layout.parse(self._settings.layout),
                window_span=self._settings.window_span,
                bands=self._settings.bands,
                origin={
                    "cluster": self._cluster_id,
                    "group": self._settings.group,
                    "topic": self.raw.topic,
                    "partition": str(self.raw.partition),
                    "changelog": self._changelog_id,
                },
                progress=self._say_indexed,
            )
        except StateMismatchError as error:
            raise StateMismatchError(
                f"{error} Where only the changelog differs, somebody has deleted that topic and it was made again: "
                f"restore it, or choose another TEXTSIEVE_GROUP with TEXTSIEVE_START_AT=group:{self._settings.group} "
                "to go on from here without the originals."
            ) from error

    def _say_indexed(self, what: str, done: int, total: int) -> None:
        if self._hurried:
            raise ScopeClosedError(f"Scope {self.name} was closed while its state was opened")
        if time.monotonic() > self._shown + SHOW_SECONDS:
            self._shown = time.monotonic()
            log.info("Scope %s: %s, %d of %d offsets", self.name, what, done, total)

    def _close(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.close()
            log.info("The state of scope %s is closed", self.name)

    def _reopen(self) -> None:
        self.table.close()
        self._table = None
        self._open()

    def _set_aside(self) -> None:
        """Put the state out of the way. It is kept until another stands, as it may hold more than the changelog."""
        try:
            self._close()
        except StateError as error:
            log.warning("Scope %s: %s", self.name, error)
        if not self.directory.exists():
            return
        if self._set_aside_directory.exists():
            # What is here now was being built when it failed: what was set aside before is the real one.
            shutil.rmtree(self.directory)
        else:
            self.directory.rename(self._set_aside_directory)

    def _forget_set_aside(self) -> None:
        if self._set_aside_directory.exists():
            shutil.rmtree(self._set_aside_directory)

    # Reading the changelog

    def _require_reached(self, position: Position, begin: int, end: int) -> None:
        if position.changelog > end or (begin == end and position.changelog < begin):
            raise ScopeError(
                f"Scope {self.name}: its state in {self.directory} ends at offset {position.changelog} of the "
                f"changelog {self.changelog.topic}, which reaches from {begin} to {end}: somebody has deleted the "
                "topic or its records, or the broker has lost them. The state cannot be repaired from it. Restore the "
                f"changelog, or choose another TEXTSIEVE_GROUP with TEXTSIEVE_START_AT=group:{self._settings.group} "
                "to go on from here without the originals."
            )

    async def _begin_anew(self) -> None:
        await self.run(self._set_aside)
        await self.run(self._open)

    async def _replay(self, reader: Reader, begin: int, end: int) -> None:
        position = self.position
        if position is not None:
            await self._read(reader, position.changelog, end, _apply_read)
        elif begin < end:
            # From nothing: written without an index, which is then built once for all of it.
            await self._read(reader, begin, end, _load_read)
            await self.run(self._reopen)

    async def _read(
        self,
        reader: Reader,
        begin: int,
        end: int,
        take_in: Callable[[SegmentTable, "Sequence[ConsumerRecord[bytes, bytes]]"], None],
    ) -> None:
        shown = asyncio.get_running_loop().time()
        async for records in reader.read(self.changelog, begin, end):
            await self.run(take_in, self.table, records)
            if asyncio.get_running_loop().time() > shown + SHOW_SECONDS:
                shown = asyncio.get_running_loop().time()
                log.info(
                    "Scope %s: read its changelog to offset %d of %d", self.name, records[-1].offset, end
                )

    async def _follow(self, reader: Reader) -> NoReturn:
        begin, _ = await reader.bounds(self.changelog)
        position = self.position
        if position is not None and position.changelog < begin:
            log.info("Scope %s: its state is older than its changelog; it is built anew", self.name)
            await self._begin_anew()
            position = None
        log.info(
            "Scope %s is followed from changelog offset %d",
            self.name,
            position.changelog if position else begin,
        )
        async for records in reader.tail(self.changelog, begin if position is None else position.changelog):
            await self.run(_apply_read, self.table, records)
        raise AssertionError("a tail has no end")


def _apply_read(table: SegmentTable, records: "Sequence[ConsumerRecord[bytes, bytes]]") -> None:
    _apply(table, *_decoded(records))


def _load_read(table: SegmentTable, records: "Sequence[ConsumerRecord[bytes, bytes]]") -> None:
    table.load(*_decoded(records))


def _decoded(records: "Sequence[ConsumerRecord[bytes, bytes]]") -> tuple[list[Record], int]:
    return [decode(record.value or b"") for record in records], records[-1].offset + 1


def _apply(table: SegmentTable, records: Sequence[Record], changelog: int) -> None:
    table.apply(records, changelog)
    table.merge_step()
