"""Where two texts differ, marked so that a reader sees it without colours too."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rapidfuzz.distance import Levenshtein

MAX_CHARACTERS: Final = 20_000
"""Longer texts are not compared: the time grows with the product of the lengths (0.1 s here, 12 s at 100,000)."""

_KEPT: Final = 20
"""Characters of a long equal run that stay at each of its ends."""


class Run(NamedTuple):
    """A piece of a text."""

    text: str
    shared: bool
    """Whether the other text has it too, at this place."""


class Span(NamedTuple):
    """A place where two texts differ: what the one has there, and the other; one of them may be empty."""

    a_start: int
    """The character of the first text at which it begins, counted from 0."""
    a: str
    b_start: int
    b: str


def spans(a: str, b: str) -> list[Span]:
    """The places where two texts differ, in order, by the fewest edits from a to b.

    Raises:
        ValueError: one is longer than `MAX_CHARACTERS`.
    """
    _require_comparable(a, b)
    found: list[Span] = []
    for edit in Levenshtein.opcodes(a, b):
        if edit.tag == "equal":
            continue
        of_a, of_b = a[edit.src_start : edit.src_end], b[edit.dest_start : edit.dest_end]
        last = found[-1] if found else None
        if last and (last.a_start + len(last.a), last.b_start + len(last.b)) == (
            edit.src_start,
            edit.dest_start,
        ):
            found[-1] = last._replace(a=last.a + of_a, b=last.b + of_b)
        else:
            found.append(Span(edit.src_start, of_a, edit.dest_start, of_b))
    return found


def differences(a: str, b: str) -> tuple[list[Run], list[Run]]:
    """Cut two texts into runs that they share and runs that they do not, by the fewest edits from a to b.

    Raises:
        ValueError: one is longer than `MAX_CHARACTERS`.
    """
    _require_comparable(a, b)
    runs: tuple[list[Run], list[Run]] = [], []
    for edit in Levenshtein.opcodes(a, b):
        _extend(runs[0], a[edit.src_start : edit.src_end], edit.tag == "equal")
        _extend(runs[1], b[edit.dest_start : edit.dest_end], edit.tag == "equal")
    return runs


def abridged(runs: Sequence[Run]) -> list[Run]:
    """The runs with the middle of long shared ones left out, as `…`."""
    return [_abridge(run) if run.shared and len(run.text) > 2 * _KEPT + 1 else run for run in runs]


def marked(runs: Sequence[Run], opening: str, closing: str) -> str:
    """One line of text, with each run that is not shared between two marks, such as `[-` and `-]`."""
    return "".join(run.text if run.shared else f"{opening}{run.text}{closing}" for run in runs)


def _require_comparable(a: str, b: str) -> None:
    if max(len(a), len(b)) > MAX_CHARACTERS:
        raise ValueError(f"texts above {MAX_CHARACTERS} characters take too long to compare")


def _extend(runs: list[Run], text: str, shared: bool) -> None:
    if runs and runs[-1].shared == shared:
        runs[-1] = Run(runs[-1].text + text, shared)
    elif text:
        runs.append(Run(text, shared))


def _abridge(run: Run) -> Run:
    return Run(f"{run.text[:_KEPT]}…{run.text[-_KEPT:]}", run.shared)
