"""`textsieve position`: where each scope stands, and moving one by hand where a worker refuses to go on.

Everything is read from the log: the state's directory may be on another machine, or lost.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeVar

from aiokafka import TopicPartition
from rich.table import Table

from state.changelog import Record, decode, encode
from state.table import Position
from stream.admin import Admin
from stream.connection import IN_DOUBT
from stream.errors import BrokerError, InputError, ScopeError
from stream.events import Output
from stream.group import describe_group
from stream.positions import Place, agree
from stream.reader import Reader, open_reader
from stream.settings import Settings
from stream.writer import Writer, transactional_id

T = TypeVar("T")

_BACK: Final = 64
"""How many offsets before its end a changelog is first searched for its last record: the rest may be markers."""


class Standing(NamedTuple):
    """Where a scope stands."""

    scope: str
    """`topic:partition`."""
    committed: int | None
    """The group's committed offset, None where it has none."""
    state: int | None
    """The next offset by the changelog, None where that holds no record."""
    time: int | None
    """The stream time there, in ms."""
    begin: int
    """The first offset that the broker still has."""
    end: int
    """The offset after the last event."""
    fault: str | None
    """Why a worker would not go on from here, and what resolves it; None where it would."""


class Move(NamedTuple):
    """What was done to a scope."""

    before: int | None
    after: int


def show(settings: Settings) -> list[Standing]:
    """Where the scopes of the group stand, partition by partition. Nothing is changed.

    Raises:
        BrokerError: the broker does not answer.
    """
    return _run(_show(settings))


def restore(settings: Settings, scope: str) -> Move:
    """Commit the offset that the changelog ends at, after somebody moved the group's or it expired.

    Raises:
        InputError: there is no such scope.
        ScopeError: a worker runs, or the changelog is of another topic.
        BrokerError: the broker does not answer.
    """
    return _run(_restore(settings, scope))


def skip(settings: Settings, scope: str) -> Move:
    """Move a scope over the events that the broker deleted before they were judged. They are lost to it.

    Raises:
        InputError: there is no such scope.
        ScopeError: a worker runs, positions differ otherwise, or nothing was deleted.
        BrokerError: the broker does not answer.
    """
    return _run(_skip(settings, scope))


def as_table(standings: Sequence[Standing]) -> Table:
    """Standings for a person."""
    table = Table("scope", "log begins", "committed", "state", "log ends", "lag")
    for standing in standings:
        lag = "" if standing.committed is None else f"{standing.end - standing.committed:,}"
        row = (standing.begin, standing.committed, standing.state, standing.end)
        table.add_row(standing.scope, *("none" if value is None else str(value) for value in row), lag)
    return table


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except IN_DOUBT as error:
        raise BrokerError(f"The broker gave no answer: {error!r}") from error


async def _show(settings: Settings) -> list[Standing]:
    topics = Admin(settings).describe(settings.raw_topics)
    standings = []
    async with open_reader(settings) as reader:
        for name, topic in sorted(topics.items()):
            for partition in range(topic.partitions):
                last = await _last_record(settings, reader, TopicPartition(name, partition))
                place = await _place(settings, reader, TopicPartition(name, partition), last)
                standings.append(_standing(place, last))
    return standings


def _standing(place: Place, last: Record | None) -> Standing:
    try:
        agree(place)
        fault = None
    except ScopeError as error:
        fault = str(error)
    state, time = (None, None) if last is None else (last.next, last.time)
    return Standing(place.scope, place.committed, state, time, place.begin, place.end, fault)


class _Stopped(NamedTuple):
    """A scope that nobody works on, and that nobody else can write to."""

    writer: Writer
    raw: TopicPartition
    last: Record
    """The last record of its changelog."""
    place: Place


async def _restore(settings: Settings, scope: str) -> Move:
    async with _stopped(settings, scope) as (writer, raw, last, place):
        await writer.transact([], [], raw, last.next)
        return Move(place.committed, last.next)


async def _skip(settings: Settings, scope: str) -> Move:
    async with _stopped(settings, scope) as (writer, raw, last, place):
        if place.committed != last.next:
            raise ScopeError(
                f"Scope {scope}: the group's committed offset is {place.committed}, the state ends at {last.next}. "
                f"First run: textsieve position restore {scope}"
            )
        if place.begin <= last.next:
            raise ScopeError(
                f"Scope {scope}: the broker still has offset {last.next}; there is nothing to skip."
            )
        record = last._replace(begin=last.next, next=place.begin, unwritable=(), originals=())
        changelog = Output(settings.changelog_topic(raw.topic), raw.partition, None, None, encode(record), ())
        await writer.transact([], [changelog], raw, place.begin)
        return Move(last.next, place.begin)


@asynccontextmanager
async def _stopped(settings: Settings, scope: str) -> AsyncIterator[_Stopped]:
    raw = _parse(settings, scope)
    members = (await describe_group(settings)).members
    if members:
        raise ScopeError(
            f"Group {settings.group} has {members} {'worker' if members == 1 else 'workers'}. Stop all of them first; "
            f"one that was killed is forgotten after {settings.session_timeout / 1000:.0f} s."
        )
    writer = Writer(settings, transactional_id(settings.group, raw))
    try:
        await writer.replace()
        async with open_reader(settings) as reader:
            last = await _last_record(settings, reader, raw)
            place = await _place(settings, reader, raw, last)
        if last is None:
            raise ScopeError(
                f"Scope {scope}: {place.changelog} holds no record, so it has no position to keep."
            )
        if last.topic_id != place.topic_id:
            raise ScopeError(
                f"Scope {scope}: the state is of a topic with id {last.topic_id}, the broker's has id "
                f"{place.topic_id}: it was deleted and made again. Choose another TEXTSIEVE_GROUP for it."
            )
        yield _Stopped(writer, raw, last, place)
    finally:
        await writer.stop()


async def _place(settings: Settings, reader: Reader, raw: TopicPartition, last: Record | None) -> Place:
    begin, end = await reader.bounds(raw)
    return Place(
        scope=f"{raw.topic}:{raw.partition}",
        group=settings.group,
        changelog=settings.changelog_topic(raw.topic),
        topic_id=Admin(settings).describe([raw.topic])[raw.topic].id,
        position=None
        if last is None
        else Position(last.next, 0, last.time, last.boundary, last.rules, last.topic_id),
        committed=await reader.committed(raw),
        begin=begin,
        end=end,
    )


async def _last_record(settings: Settings, reader: Reader, raw: TopicPartition) -> Record | None:
    changelog = TopicPartition(settings.changelog_topic(raw.topic), raw.partition)
    if not Admin(settings).describe([changelog.topic]):
        return None
    begin, end = await reader.bounds(changelog)
    last, back = None, _BACK
    while last is None and begin < end:
        start = max(begin, end - back)
        async for records in reader.read(changelog, start, end):
            last = decode(records[-1].value or b"")
        if start == begin:
            break
        back *= 2
    return last


def _parse(settings: Settings, scope: str) -> TopicPartition:
    topics = Admin(settings).describe(settings.raw_topics).values()
    scopes = {
        f"{topic.name}:{partition}": TopicPartition(topic.name, partition)
        for topic in topics
        for partition in range(topic.partitions)
    }
    if scope not in scopes:
        raise InputError(
            f"{scope!r} is no scope of group {settings.group}: write topic:partition, of one of the topics "
            f"{', '.join(settings.raw_topics)} (TEXTSIEVE_RAW_TOPICS)."
        )
    return scopes[scope]
