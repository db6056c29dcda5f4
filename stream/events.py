"""The wire: from the bytes of a raw event to what the judge reads, and from a verdict to the output event.

Nothing is re-serialised: key, value, headers and timestamp leave as they came, with our headers appended.
"""

import json
import re
from itertools import accumulate
from typing import Final, NamedTuple

from stream.rules import MAX_ID_BYTES, Rules
from stream.verdict import UNWRITABLE, Duplicate, Passed, Rejection, Text, Unique, Verdict

Headers = tuple[tuple[str, bytes | None], ...]
"""Names and values in order; a name may come twice, a value may be null."""

FINGERPRINT: Final = "textsieve-fingerprint"
VERDICT: Final = "textsieve-verdict"
CAPPED: Final = "textsieve-capped"
REASON: Final = "textsieve-reason"
ERROR: Final = "textsieve-error"
SOURCE: Final = "textsieve-source"
TIME: Final = "textsieve-time"
SCHEME: Final = "textsieve-scheme"
RULES: Final = "textsieve-rules"

VERDICT_VERSION: Final = 1

MAX_UNWRITABLE_BYTES: Final = 32 * 1024
"""Key and headers of an event that the broker refused go with its rejection only up to this size, half of the
room that output topics have above raw ones; larger ones may be the very thing that was refused."""

_LENGTHS: Final = 10
"""What the two lengths of a header may take beside its name and value."""

MAX_NESTING: Final = 256
"""Arrays and objects in one another, the outermost counted. Above some hundred it would depend on the version of
Python, and on how deep in the program the decoder is called, whether it gives up; a verdict depends on neither."""


class RawEvent(NamedTuple):
    """An event as Kafka delivers it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970; negative where the record has none."""
    key: bytes | None
    value: bytes | None
    headers: Headers


class Output(NamedTuple):
    """An event as it leaves."""

    topic: str
    partition: int
    timestamp: int | None
    """Milliseconds since 1970; None lets the producer stamp it."""
    key: bytes | None
    value: bytes | None
    headers: Headers


class _Number(str):
    """A JSON number as it was written: an id of 20 digits or of 1.10 is echoed to the letter."""

    __slots__ = ()


class _NoJsonError(ValueError):
    pass


def _refuse_constant(name: str) -> object:
    raise _NoJsonError(f"{name} is none of its numbers")


_DECODER: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant)


def decode(event: RawEvent, rules: Rules) -> Text | Passed | Rejection:
    """What the judge is given for a raw event; never raises, whatever the bytes.

    Reasons of a rejection: `tombstone`, `invalid-utf8`, `invalid-json`, `not-an-object`, `no-text`,
    `text-not-a-string`, `invalid-id`. Their sentences never quote the event's content.
    """
    offset = event.offset
    time = event.timestamp if event.timestamp >= 0 else None
    if event.value is None:
        if rules.tombstones == "unique":
            return Passed(offset, time)
        return Rejection(offset, "tombstone", "The event has no value.")
    try:
        text = event.value.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return Rejection(
            offset, "invalid-utf8", f"The value is not UTF-8: {error.reason} at byte {error.start}."
        )
    if rules.input_format == "plain":
        return Text(offset, time, text, "")
    return _decode_json(offset, time, text, rules)


def _decode_json(offset: int, time: int | None, value: str, rules: Rules) -> Text | Rejection:
    if _is_nested_too_deeply(value):
        return Rejection(offset, "invalid-json", f"The value is nested more than {MAX_NESTING} levels deep.")
    try:
        document = _DECODER.decode(value)
    except json.JSONDecodeError as error:
        return Rejection(
            offset, "invalid-json", f"The value is not JSON: {error.msg} (character {error.pos})."
        )
    except _NoJsonError as error:
        return Rejection(offset, "invalid-json", f"The value is not JSON: {error}.")
    if not isinstance(document, dict):
        return Rejection(offset, "not-an-object", "The value is JSON, but not an object.")
    if rules.text_field not in document:
        return Rejection(offset, "no-text", f"The object has no field {rules.text_field!r}.")
    text = document[rules.text_field]
    if not isinstance(text, str) or isinstance(text, _Number):
        return Rejection(offset, "text-not-a-string", f"The field {rules.text_field!r} is not a string.")
    id = document.get(rules.id_field)
    if id is None:
        return Text(offset, time, text, "")
    if not isinstance(id, str):
        return Rejection(
            offset, "invalid-id", f"The field {rules.id_field!r} is neither a string nor a number."
        )
    size = len(id.encode("utf-8", "surrogatepass"))
    if size > MAX_ID_BYTES:
        return Rejection(
            offset,
            "invalid-id",
            f"The field {rules.id_field!r} has {size} bytes; {MAX_ID_BYTES} are allowed.",
        )
    return Text(offset, time, text, str(id) if isinstance(id, _Number) else json.dumps(id))


_BETWEEN_BRACKETS: Final = re.compile(r'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[^"\[\]{}]++)++', re.DOTALL)
_STEP: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def _is_nested_too_deeply(value: str) -> bool:
    if value.count("[") + value.count("{") <= MAX_NESTING:
        return False
    brackets = _BETWEEN_BRACKETS.sub("", value)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > MAX_NESTING


def source(topic: str, partition: int, offset: int) -> str:
    """The name of an event: `topic:partition:offset`."""
    return f"{topic}:{partition}:{offset}"


def format_fingerprint(fingerprint: int) -> str:
    """64 bits as 16 hex digits."""
    return f"{fingerprint:016x}"


def verdict_json(verdict: Duplicate, topic: str, partition: int) -> bytes:
    """The compact JSON of a duplicate's verdict, always with the same keys in the same order."""
    fingerprint = "null" if verdict.fingerprint is None else f'"{format_fingerprint(verdict.fingerprint)}"'
    original = verdict.original
    thousandths = verdict.similarity
    distance = "null" if verdict.hamming_distance is None else verdict.hamming_distance
    name = json.dumps(f"{topic}:{partition}")[1:-1]
    return (
        f'{{"v":{VERDICT_VERSION},"id":{verdict.id or "null"},"source":"{name}:{verdict.offset}",'
        f'"duplicate_of":{{"id":{original.id or "null"},"source":"{name}:{original.offset}","time":{original.time}}},'
        f'"reason":"{verdict.reason}","measure":"{verdict.measure}",'
        f'"similarity":{thousandths // 1000}.{thousandths % 1000:03d},"hamming_distance":{distance},'
        f'"fingerprint":{fingerprint},"capped":{"true" if verdict.capped else "false"}}}'
    ).encode()


class Outbox:
    """Turns raw events and their verdicts into output events, for one scope under one scheme and set of rules.

    Parameters:
        topics: the unique, duplicates and rejected topics.
        scheme: the id of the scheme.
        rules: the id of the rules.
    """

    def __init__(self, topics: tuple[str, str, str], scheme: str, rules: str) -> None:
        self._unique, self._duplicates, self._rejected = topics
        self._tail: Headers = ((SCHEME, scheme.encode()), (RULES, rules.encode()))

    def output(self, event: RawEvent, verdict: Verdict) -> Output:
        """The one output of an event, on the partition with its raw partition's number."""
        origin = source(event.topic, event.partition, event.offset).encode()
        tail = ((SOURCE, origin), (TIME, b"%d" % verdict.time), *self._tail)
        if isinstance(verdict, Unique):
            topic = self._unique
            ours: Headers = ()
            if verdict.fingerprint is not None:
                ours = ((FINGERPRINT, format_fingerprint(verdict.fingerprint).encode()),)
            if verdict.capped:
                ours = (*ours, (CAPPED, b"true"))
        elif isinstance(verdict, Duplicate):
            topic = self._duplicates
            ours = ((VERDICT, verdict_json(verdict, event.topic, event.partition)),)
        else:
            topic = self._rejected
            ours = ((REASON, verdict.reason.encode()), (ERROR, verdict.error.encode()))
            if verdict.reason == UNWRITABLE:
                return self._unwritable(event, (*ours, *tail))
        return Output(
            topic, event.partition, event.timestamp, event.key, event.value, (*event.headers, *ours, *tail)
        )

    def _unwritable(self, event: RawEvent, ours: Headers) -> Output:
        # Whatever the broker refused (size, timestamp, headers) is left out of the event that says so.
        headers = sum(len(name.encode()) + len(value or b"") + _LENGTHS for name, value in event.headers)
        if len(event.key or b"") + headers > MAX_UNWRITABLE_BYTES:
            return Output(self._rejected, event.partition, None, None, None, ours)
        return Output(self._rejected, event.partition, None, event.key, None, (*event.headers, *ours))


def unwritable(offset: int, cause: str) -> Rejection:
    """What the judge is given for an event whose output the broker refused."""
    return Rejection(offset, UNWRITABLE, f"The broker refused the event's output: {cause}.")
