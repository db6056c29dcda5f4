"""What became of the events of a topic: counted as they leave, and held against the law at the end."""

import json
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from stream.events import SOURCE, VERDICT
from stream.tools.tally import Tally

Kind = Literal["unique", "duplicates", "rejected"]
KINDS: Final[tuple[Kind, ...]] = ("unique", "duplicates", "rejected")


class Match(NamedTuple):
    """A duplicate and its original, as offsets of one raw partition, and what its verdict says of the pair."""

    duplicate: int
    original: int
    reason: str
    hamming_distance: int | None


class Outcomes:
    """Counts the events that leave a raw topic of one partition.

    Attributes:
        matches: one for each duplicate, in the order in which they left.
    """

    def __init__(self) -> None:
        self.matches: list[Match] = []
        self._counts = dict.fromkeys(KINDS, 0)
        # How often each raw offset left, up to 255.
        self._left = bytearray()

    def add(self, kind: Kind, headers: Sequence[tuple[str, bytes | None]]) -> None:
        """Count an event that left through the topic of that kind, with the headers it has there."""
        ours = {name: value for name, value in headers if value is not None}
        self._counts[kind] += 1
        offset = _offset(ours[SOURCE].decode())
        if offset >= len(self._left):
            self._left.extend(bytes(offset + 1 - len(self._left)))
        self._left[offset] = min(255, self._left[offset] + 1)
        if kind == "duplicates":
            verdict = json.loads(ours[VERDICT])
            original = _offset(verdict["duplicate_of"]["source"])
            self.matches.append(Match(offset, original, verdict["reason"], verdict["hamming_distance"]))

    @property
    def left(self) -> int:
        """How many events have left so far."""
        return sum(self._counts.values())

    def tally(self, raw: int) -> Tally:
        """The counts beside a number of raw events."""
        return Tally(raw, self._counts["unique"], self._counts["duplicates"], self._counts["rejected"])

    def faults(self, raw: int) -> list[str]:
        """A sentence for each way in which the law does not hold over the raw offsets below `raw`; none if it does.

        The counts alone could add up where one event is missing and another has left twice.
        """
        return list(_faults(self.tally(raw), bytes(self._left)))


def _faults(tally: Tally, left: bytes) -> Iterator[str]:
    if not tally.lawful:
        yield f"The counts do not add up: {tally}."
    missing = [offset for offset in range(tally.raw) if offset >= len(left) or not left[offset]]
    if missing:
        yield f"{len(missing)} events have not left; the first has offset {missing[0]}."
    twice = [offset for offset, count in enumerate(left) if count > 1]
    if twice:
        yield f"{len(twice)} events have left more than once; the first has offset {twice[0]}."
    if len(left) > tally.raw:
        yield f"Events have left that were never written: the raw topic ends at {tally.raw}, not {len(left)}."


def _offset(source: str) -> int:
    return int(source.rsplit(":", 1)[1])
