"""What must hold at the end, whatever was done meanwhile. Pure: lists in, sentences out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stream.events import Output as Expected
from stream.events import RawEvent


class Seen(NamedTuple):
    """An event that a consumer of committed events was handed."""

    topic: str
    partition: int
    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def source(self) -> str:
        """Which raw event it is; the last header of the name counts."""
        found = [value for name, value in self.headers if name == "textsieve-source"]
        return (found[-1] or b"").decode() if found else "nothing"

    @property
    def place(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


class Findings(NamedTuple):
    """What was found, each with a sentence for every event that it is true of."""

    lost: list[str]
    doubled: list[str]
    wrong: list[str]

    @property
    def sound(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


def compare(raw: Sequence[RawEvent], expected: Sequence[Expected], seen: Iterable[Seen]) -> Findings:
    """Compare what left with what the offline judge makes of the same log, event for event.

    `expected` has the output of each raw event, in the same order.
    """
    wanted: Mapping[str, Expected] = {
        f"{event.topic}:{event.partition}:{event.offset}": output
        for event, output in zip(raw, expected, strict=True)
    }
    findings = Findings([], [], [])
    first: dict[str, Seen] = {}
    newest: dict[tuple[str, int], int] = {}
    for one in seen:
        if one.source in first:
            findings.doubled.append(f"{one.source} left as {first[one.source].place} and as {one.place}")
            continue
        first[one.source] = one
        if one.source not in wanted:
            findings.doubled.append(f"{one.place} is of {one.source}, which no producer wrote")
            continue
        offset = int(one.source.rsplit(":", 1)[1])
        if newest.get((one.topic, one.partition), -1) > offset:
            findings.wrong.append(f"{one.place} is of {one.source}: it left after a later event")
        newest[one.topic, one.partition] = offset
        findings.wrong.extend(_differences(one, wanted[one.source]))
    findings.lost.extend(f"{source} never left" for source in wanted if source not in first)
    return findings


def _differences(one: Seen, wanted: Expected) -> Iterable[str]:
    pairs = {
        "topic": (one.topic, wanted.topic),
        "partition": (one.partition, wanted.partition),
        "key": (one.key, wanted.key),
        "value": (one.value, wanted.value),
        "headers": (one.headers, tuple(wanted.headers)),
        "time": (one.time, wanted.timestamp),
    }
    for what, (got, want) in pairs.items():
        # An event that says what the broker refused is stamped by the client that sends it.
        if got != want and (what, want) != ("time", None):
            yield f"{one.place} (of {one.source}): {what} is {_short(got)}, not {_short(want)}"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 400 else f"{shown[:200]} … {shown[-200:]}"
