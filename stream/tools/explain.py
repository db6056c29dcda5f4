"""`textsieve explain`: why an event left where it did, from its output and from the raw events that it is about.

Everything is read from Kafka, committed events only, and nothing is written.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from stream.admin import Admin
from stream.connection import IN_DOUBT
from stream.errors import BrokerError, InputError
from stream.events import (
    CAPPED,
    ERROR,
    FINGERPRINT,
    REASON,
    RULES,
    SCHEME,
    SOURCE,
    TIME,
    VERDICT,
    RawEvent,
    decode,
    source,
)
from stream.reader import Reader, open_log
from stream.settings import Settings
from stream.text import Scheme
from stream.tools.explanation import Event, Explanation, Outcome, Source, parse_source
from stream.tools.locate import Place, Search, locate
from stream.tools.pair import Pair, measure
from stream.verdict import Rejection, Text

_OUTCOMES: Final[tuple[Outcome, ...]] = ("unique", "duplicate", "rejected")
"""In the order of the settings' output topics."""
_OURS: Final = "textsieve-"
_ADDED: Final[Mapping[Outcome, Sequence[str]]] = {
    "unique": (FINGERPRINT, CAPPED, TIME, SCHEME, RULES),
    "duplicate": (TIME, SCHEME, RULES),
    "rejected": (REASON, ERROR, TIME, SCHEME, RULES),
}
"""What is ours on an output: a producer may have sent other headers that look so."""


def explain(wanted: Source, *, settings: Settings, scheme: Scheme) -> Explanation:
    """Find the output of a raw event and say why it is that one.

    Takes some dozen requests however many events there are, each within the deadline; more only where raw topics
    share output partitions and one of them was silent for long.

    Raises:
        InputError: there is no such scope or event, it is not judged yet, or its output is not there any more.
        BrokerError: the broker does not answer, or has deleted events while they were read.
    """
    outputs = _outputs(settings, wanted)
    try:
        return asyncio.run(_explain(wanted, outputs, settings, scheme))
    except OffsetOutOfRangeError as error:
        raise BrokerError("The broker deleted events while they were read. Ask again.") from error
    except IN_DOUBT as error:
        raise BrokerError(f"The broker gave no answer: {error!r}") from error


def _outputs(settings: Settings, wanted: Source) -> dict[Outcome, TopicPartition]:
    """The partitions that may hold the output of an event; those that exist."""
    if wanted.topic not in settings.raw_topics:
        raise InputError(
            f"{wanted.topic} is none of the raw topics, {', '.join(settings.raw_topics)} (TEXTSIEVE_RAW_TOPICS)."
        )
    topics = Admin(settings).describe([wanted.topic, *settings.topics])
    raw = topics.get(wanted.topic)
    if raw is None:
        raise InputError(f"There is no topic {wanted.topic} on the broker {settings.broker}.")
    if wanted.partition >= raw.partitions:
        raise InputError(
            f"Topic {wanted.topic} has no partition {wanted.partition}: it has {raw.partitions}, counted from 0."
        )
    found = {
        outcome: TopicPartition(name, wanted.partition)
        for outcome, name in zip(_OUTCOMES, settings.topics, strict=True)
        if name in topics and wanted.partition < topics[name].partitions
    }
    if not found:
        raise InputError(
            f"None of the output topics {', '.join(settings.topics)} has a partition {wanted.partition}. Are "
            "TEXTSIEVE_UNIQUE_TOPIC, _DUPLICATES_TOPIC and _REJECTED_TOPIC those of the worker?"
        )
    return found


async def _explain(
    wanted: Source, outputs: Mapping[Outcome, TopicPartition], settings: Settings, scheme: Scheme
) -> Explanation:
    async with open_log(settings) as reader:
        raw = TopicPartition(wanted.topic, wanted.partition)
        begin, end = await reader.bounds(raw)
        if wanted.offset >= end:
            raise InputError(
                f"{wanted}: there is no such event yet; the committed events end before offset {end}."
            )
        looked = {outcome: await _search(reader, output, wanted) for outcome, output in outputs.items()}
        found = {outcome: look.search.place for outcome, look in looked.items() if look.search.place}
        if not found:
            raise await _missing(reader, raw, begin, wanted, list(looked.values()))
        # A second group's verdict may be another one; a duplicate's says most.
        outcome = min(found, key=("duplicate", "rejected", "unique").index)
        record = found[outcome].record
        ours = _ours(record)
        notes = [*_differing(ours, settings, scheme), *_also(found, outcome, outputs)]
        verdict, original, event, pair = None, None, None, None
        if outcome == "duplicate":
            verdict = _verdict(ours, outputs[outcome], record)
            first = parse_source(str(verdict["duplicate_of"]["source"]))
            original = await _event(reader, first, settings)
            event = await _event(reader, wanted, settings, judged=record.value)
            if original.text is not None and event.text is not None:
                pair, fault = _measure(original.text, event.text, settings, scheme)
                notes += fault
    return Explanation(
        source=str(wanted),
        outcome=outcome,
        output=_name(outputs[outcome], record.offset),
        headers={name.removeprefix(_OURS): ours[name] for name in _ADDED[outcome] if name in ours},
        verdict=verdict,
        original=original,
        event=event,
        pair=pair,
        notes=notes,
    )


class _Looked(NamedTuple):
    """An output partition that was searched."""

    output: TopicPartition
    begin: int
    """The first offset that the broker still has."""
    search: Search


async def _search(reader: Reader, output: TopicPartition, wanted: Source) -> _Looked:
    scope = f"{wanted.topic}:{wanted.partition}:"

    async def probe(start: int, end: int) -> list[Place]:
        async with aclosing(reader.read(output, start, end)) as batches:
            async for records in batches:
                places = [place for record in records if (place := _place(record, scope))]
                if places:
                    return places
        return []

    begin, end = await reader.bounds(output)
    return _Looked(output, begin, await locate(probe, begin, end, wanted.offset))


def _place(record: ConsumerRecord[Any, Any], scope: str) -> Place | None:
    """A record as the output of an event of the scope; None if it is none."""
    named = _ours(record).get(SOURCE, "")
    offset = named.removeprefix(scope)
    if offset == named or not offset.isascii() or not offset.isdecimal():
        return None
    return Place(record.offset, int(offset), record)


def _ours(record: ConsumerRecord[Any, Any]) -> dict[str, str]:
    """Our headers of an output, in order; of two with one name the last one is ours."""
    return {
        name: (value or b"").decode("utf-8", "replace")
        for name, value in record.headers
        if name.startswith(_OURS)
    }


def _verdict(
    ours: Mapping[str, str], output: TopicPartition, record: ConsumerRecord[Any, Any]
) -> dict[str, Any]:
    try:
        verdict = json.loads(ours[VERDICT])
        parse_source(str(verdict["duplicate_of"]["source"]))
    except (ValueError, KeyError, TypeError, RecursionError, InputError) as error:
        raise InputError(
            f"{_name(output, record.offset)}: the header {VERDICT} is missing or is no verdict: {error!r}."
        ) from error
    return dict(verdict)


async def _event(reader: Reader, wanted: Source, settings: Settings, judged: bytes | None = None) -> Event:
    """A raw event, and where its output is known, whether it is still the one that was judged."""
    raw = TopicPartition(wanted.topic, wanted.partition)
    begin, _ = await reader.bounds(raw)
    if wanted.offset < begin:
        return Event(
            str(wanted),
            None,
            f"{wanted}: raw retention has passed: offset {wanted.offset} was asked for, the log begins at {begin}.",
        )
    record = await _record(reader, raw, wanted.offset)
    if record is None:
        return Event(
            str(wanted),
            None,
            f"{wanted}: there is no event at offset {wanted.offset} any more; the log begins at {begin}.",
        )
    if judged is not None and record.value != judged:
        return Event(
            str(wanted),
            None,
            f"{wanted}: another event stands there than the one that was judged. Was the topic deleted and made again?",
        )
    event = decode(RawEvent(*wanted, -1, None, record.value, ()), settings.rules)
    if isinstance(event, Text):
        return Event(str(wanted), event.text, None)
    fault = event.error if isinstance(event, Rejection) else "it has no value."
    return Event(str(wanted), None, f"{wanted}: by the settings of now it is no text: {fault}")


async def _record(reader: Reader, partition: TopicPartition, offset: int) -> ConsumerRecord[Any, Any] | None:
    async with aclosing(reader.read(partition, offset, offset + 1)) as batches:
        async for records in batches:
            return records[0]
    return None


def _measure(a: str, b: str, settings: Settings, scheme: Scheme) -> tuple[Pair | None, list[str]]:
    longest = max(len(a), len(b))
    if longest > settings.max_text_chars:
        return None, [
            f"One of the texts has {longest} characters; above {settings.max_text_chars} "
            "(TEXTSIEVE_MAX_TEXT_CHARS) only the content is compared."
        ]
    return measure(a, b, scheme), []


def _differing(ours: Mapping[str, str], settings: Settings, scheme: Scheme) -> list[str]:
    now = ((SCHEME, "scheme", scheme.id), (RULES, "rules", settings.rules.id))
    return [
        f"It was judged under {what} {ours[name]}; what is measured here is under the settings of now, {what} {id}."
        for name, what, id in now
        if ours.get(name, id) != id
    ]


def _also(
    found: Mapping[Outcome, Place], chosen: Outcome, outputs: Mapping[Outcome, TopicPartition]
) -> list[str]:
    others = [
        f"{_name(outputs[outcome], place.offset)} ({outcome})"
        for outcome, place in found.items()
        if outcome != chosen
    ]
    if not others:
        return []
    return [f"More than one group has judged it: it has also left as {', '.join(others)}."]


async def _missing(
    reader: Reader, raw: TopicPartition, begin: int, wanted: Source, looked: Sequence["_Looked"]
) -> InputError:
    """Why no output names an event that the log has passed."""
    above = [look.search.above for look in looked if look.search.above is not None]
    below = [look.search.below for look in looked if look.search.below is not None]
    if wanted.offset >= begin and await _record(reader, raw, wanted.offset) is None:
        return InputError(
            f"{wanted}: there is no event at this offset. It is a transaction's marker, or was aborted or compacted "
            "away."
        )
    if not above:
        last = f"the last event of the scope that has left is {max(below)}" if below else "none has left"
        return InputError(
            f"{wanted} is not judged yet: {last}, or the output topics have deleted it since. Does a worker run, and "
            "are TEXTSIEVE_UNIQUE_TOPIC, _DUPLICATES_TOPIC and _REJECTED_TOPIC its topics?"
        )
    cut = [look for look in looked if look.begin and look.search.below is None]
    if cut:
        where = ", ".join(_name(look.output, look.begin) for look in cut)
        return InputError(
            f"{wanted}: its output is gone: retention has passed it. What is left begins at {where}; the earliest "
            f"event of the scope that was seen there is {min(above)}."
        )
    return InputError(
        f"{wanted} was passed over: no output topic has it, though they have events before or after it. Either it was "
        "skipped (textsieve position skip), or several groups have written to these topics, so that they are in no "
        "order."
    )


def _name(partition: TopicPartition, offset: int) -> str:
    return source(partition.topic, partition.partition, offset)
