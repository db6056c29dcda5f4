"""Why an event left where it did, as a value, and how it is shown."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table

from stream.errors import InputError
from stream.events import source
from stream.tools.pair import Pair, plain
from stream.tools.pair import as_json as pair_json
from stream.tools.pair import as_table as pair_table

Outcome = Literal["unique", "duplicate", "rejected"]


class Source(NamedTuple):
    """The name of a raw event."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return source(*self)


class Event(NamedTuple):
    """A raw event that a verdict is about."""

    source: str
    text: str | None
    """None where it cannot be had."""
    fault: str | None
    """Why it cannot be had, with the offset that was asked for and the one at which the log begins."""


class Explanation(NamedTuple):
    """Why an event left where it did."""

    source: str
    outcome: Outcome
    output: str
    """Where it stands: `topic:partition:offset`."""
    headers: Mapping[str, str]
    """What textsieve added to it, by name without `textsieve-`: `fingerprint`, or `reason` and `error`; `time`,
    `scheme`, `rules`."""
    verdict: Mapping[str, Any] | None
    """The verdict of a duplicate, as it was written."""
    original: Event | None
    """What a duplicate is a duplicate of."""
    event: Event | None
    """A duplicate itself."""
    pair: Pair | None
    """The original (A) and the duplicate (B), measured under the settings of now; None where one cannot be had."""
    notes: Sequence[str]
    """What else is to be known."""


def parse_source(argument: str) -> Source:
    """The event that a `textsieve-source` names.

    Raises:
        InputError: it is not of the form topic:partition:offset.
    """
    match = _SOURCE.fullmatch(argument)
    if match is None:
        raise InputError(
            f"{argument!r} names no event: write topic:partition:offset, as in a textsieve-source header, "
            "such as texts.raw:0:1234."
        )
    return Source(match[1], int(match[2]), int(match[3]))


_SOURCE: Final = re.compile(r"([A-Za-z0-9._-]{1,249}):([0-9]{1,9}):([0-9]{1,18})", re.ASCII)


def as_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as JSON can hold it; the pair as `compare` has it."""
    pair = explanation.pair
    return {
        **explanation._asdict(),
        "headers": dict(explanation.headers),
        "original": explanation.original and explanation.original._asdict(),
        "event": explanation.event and explanation.event._asdict(),
        "pair": pair and pair_json(pair),
        "notes": list(explanation.notes),
    }


def as_table(explanation: Explanation) -> RenderableType:
    """The explanation for people; the pair as `compare` shows it."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, value in _facts(explanation):
        facts.add_row(plain(name), plain(value))
    shown: list[RenderableType] = [plain(_sentence(explanation), style="bold"), "", facts]
    events = (explanation.original, explanation.event)
    remarks = [event.fault for event in events if event is not None and event.fault is not None]
    for remark in (*remarks, *explanation.notes):
        shown += ["", plain(remark)]
    if explanation.pair is not None and explanation.original is not None:
        shown += ["", plain(f"A is {explanation.original.source}, B is {explanation.source}."), ""]
        shown.append(pair_table(explanation.pair))
    return Group(*shown)


def _sentence(explanation: Explanation) -> str:
    name, verdict = explanation.source, explanation.verdict
    if explanation.outcome == "rejected":
        return f"{name} was rejected: {explanation.headers.get('error', 'the output does not say why')}"
    if verdict is None or explanation.original is None:
        return f"{name} is unique: when it was judged, no live original was near enough."
    of = {
        "near": "is a near-duplicate of",
        "exact": "has the same content as",
        "redelivered": "has the same content and the same id as",
    }
    return f"{name} {of.get(verdict.get('reason', ''), 'is a duplicate of')} {explanation.original.source}"


def _facts(explanation: Explanation) -> Iterator[tuple[str, str]]:
    verdict = dict(explanation.verdict or {})
    of = dict(verdict.pop("duplicate_of", {}))
    for name in ("v", "source"):
        verdict.pop(name, None)
    for name, value in verdict.items():
        yield name.replace("_", " "), f"{value:.3f}" if isinstance(value, float) else json.dumps(value)
    if of:
        yield "id of the original", json.dumps(of.get("id"))
        yield "stream time of the original", _time(of.get("time"))
    for name, value in explanation.headers.items():
        yield {"time": "stream time"}.get(name, name), _time(value) if name == "time" else value
    yield "output", explanation.output


def _time(milliseconds: object) -> str:
    """A time in ms, and as a date where it has one."""
    try:
        return f"{milliseconds} ({_EPOCH + timedelta(milliseconds=int(str(milliseconds)))})"
    except (ValueError, OverflowError):
        return str(milliseconds)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
