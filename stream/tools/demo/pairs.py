"""Duplicates beside their originals: which ones are worth a look, and how they are shown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rapidfuzz.distance import Levenshtein
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text as Styled

from stream.tools.demo.outcomes import Match
from stream.tools.differences import Run, abridged, differences

MOST_NEAR: Final = 4
"""Near-duplicates that are shown; an exact one follows."""

_MOST_CHARACTERS: Final = 2000
"""Pairs with a longer text are passed over: they are slow to compare and no pleasure to read."""
_FEWEST_CHARACTERS: Final = 12
_MOST_SHOWN: Final = 120
"""Characters of a text that are printed; what lies behind the first differences is left out."""


class Pair(NamedTuple):
    """A duplicate and its original, as texts."""

    match: Match
    original: str
    duplicate: str


def pairs(matches: Iterable[Match], texts: Mapping[int, str]) -> list[Pair]:
    """The matches of which both texts are known, by offset."""
    return [
        Pair(match, texts[match.original], texts[match.duplicate])
        for match in matches
        if match.original in texts and match.duplicate in texts
    ]


def interesting(found: Sequence[Pair]) -> list[Pair]:
    """A few near-duplicates, those with the fewest differing words or signs first, then an exact one.

    No two of one original, and texts that can be read at a glance where there are such. The same pairs for
    the same input.
    """
    near = sorted((pair for pair in found if pair.match.reason == "near" and _readable(pair)), key=_rank)
    chosen: list[Pair] = []
    originals: set[int] = set()
    for pair in near:
        if pair.match.original not in originals and len(chosen) < MOST_NEAR:
            chosen.append(pair)
            originals.add(pair.match.original)
    exact = (pair for pair in found if pair.match.reason != "near" and _readable(pair))
    best = min(exact, key=lambda pair: (pair.original == pair.duplicate, pair.match), default=None)
    return [*chosen, best] if best is not None else chosen


def _readable(pair: Pair) -> bool:
    return (
        len(pair.duplicate) >= _FEWEST_CHARACTERS
        and max(len(pair.original), len(pair.duplicate)) <= _MOST_CHARACTERS
    )


def _rank(pair: Pair) -> tuple[bool, int, Match]:
    # Pairs that differ in punctuation and spaces alone come last: they are easily found, and look like a fault.
    distance = Levenshtein.distance(_letters(pair.original), _letters(pair.duplicate))
    return distance == 0, distance, pair.match


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def as_table(chosen: Sequence[Pair]) -> RenderableType:
    """The pairs side by side. What only one of the texts has stands in `[-…-]` (original) or `{+…+}` (duplicate)."""
    table = Table("original", "duplicate", box=box.SIMPLE_HEAD, show_lines=False, expand=True, pad_edge=False)
    table.columns[0].ratio = table.columns[1].ratio = 1
    for number, pair in enumerate(chosen):
        if number:
            table.add_section()
        a, b = differences(pair.original, pair.duplicate)
        table.add_row(
            Styled(f"offset {pair.match.original}", style="dim"),
            Styled(f"offset {pair.match.duplicate}, {_reason(pair.match)}", style="dim"),
        )
        table.add_row(_marked(a, "[-", "-]", "red"), _marked(b, "{+", "+}", "green"))
    return table


def _reason(match: Match) -> str:
    if match.reason != "near":
        return match.reason
    return f"near: {match.hamming_distance} of 64 bits differ"


def _marked(runs: Sequence[Run], opening: str, closing: str, style: str) -> Styled:
    line = Styled()
    for run in abridged(runs):
        if len(line) > _MOST_SHOWN:
            return line.append("…")
        text = run.text if len(run.text) <= _MOST_SHOWN else f"{run.text[:_MOST_SHOWN]}…"
        line.append(
            text if run.shared else f"{opening}{text}{closing}", style="" if run.shared else f"bold {style}"
        )
    return line
