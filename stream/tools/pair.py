"""What is measured of a pair of texts, and how it is shown: the one place for `compare` and `explain`."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text as Styled

from stream.events import format_fingerprint
from stream.text import (
    Feature,
    Scheme,
    cosine_thousandths,
    edit_distance,
    edit_similarity,
    hamming_distance,
)
from stream.tools.differences import MAX_CHARACTERS, Run, abridged, differences, spans

_SHOWN_WORDS: Final = 40
"""Rows of the printed table; `--json` has every word."""


class Pair(NamedTuple):
    """What is known of two texts, A and B, all of it about their normalised forms."""

    normalized: tuple[str, str]
    features: tuple[list[Feature], list[Feature]]
    """The heaviest first."""
    fingerprints: tuple[int | None, int | None]
    """None where a text has no features."""
    hamming_distance: int | None
    """None where one has no fingerprint."""
    cosine_words: int
    """In thousandths, of level × occurrences."""
    cosine_characters: int
    """In thousandths, of occurrences."""
    edit_distance: int
    edit_similarity: int
    """In thousandths."""


def measure(a: str, b: str, scheme: Scheme) -> Pair:
    """Measure a pair of texts under a scheme."""
    normalized = scheme.normalize(a), scheme.normalize(b)
    features = scheme.features(normalized[0]), scheme.features(normalized[1])
    found = scheme.fingerprint(normalized)
    first, second = found[0], found[1]
    return Pair(
        normalized=normalized,
        features=features,
        fingerprints=(first, second),
        hamming_distance=None if first is None or second is None else hamming_distance(first, second),
        cosine_words=cosine_thousandths(_weights(features[0]), _weights(features[1])),
        cosine_characters=cosine_thousandths(Counter(normalized[0]), Counter(normalized[1])),
        edit_distance=edit_distance(*normalized),
        edit_similarity=edit_similarity(*normalized),
    )


def as_json(pair: Pair) -> dict[str, Any]:
    """The pair as JSON can hold it: similarities with three decimals, fingerprints in hexadecimal.

    `differing` has the places where the normalised texts differ; null where they are too long for that.
    """
    a, b = pair.normalized
    return {
        "normalized": [a, b],
        "tokens": [
            [{**feature._asdict(), "weight": feature.weight} for feature in features]
            for features in pair.features
        ],
        "differing": None if _too_long(a, b) else [span._asdict() for span in spans(a, b)],
        "fingerprints": [None if f is None else format_fingerprint(f) for f in pair.fingerprints],
        "hamming_distance": pair.hamming_distance,
        "cosine_words": pair.cosine_words / 1000,
        "cosine_characters": pair.cosine_characters / 1000,
        "edit_distance": pair.edit_distance,
        "edit_similarity": pair.edit_similarity / 1000,
    }


def as_table(pair: Pair) -> RenderableType:
    """The pair for people. What only one of the texts has stands in `[-…-]` (A) or `{+…+}` (B)."""
    return Group(*_marked_texts(*pair.normalized), "", _words(*pair.features), "", _measures(pair))


def plain(text: str, style: str = "") -> Styled:
    """Text as it is, for a terminal: rich would read `[b]` in it as markup."""
    return Styled(_printable(text), style=style)


def _weights(features: list[Feature]) -> Mapping[str, int]:
    return {feature.word: feature.weight for feature in features}


def _too_long(a: str, b: str) -> bool:
    return max(len(a), len(b)) > MAX_CHARACTERS


def _marked_texts(a: str, b: str) -> list[RenderableType]:
    if _too_long(a, b):
        return [plain(f"Texts above {MAX_CHARACTERS} characters are not shown.")]
    runs_a, runs_b = differences(a, b)
    return [
        _line("A  ", abridged(runs_a), "[-", "-]", "red"),
        _line("B  ", abridged(runs_b), "{+", "+}", "green"),
    ]


def _line(label: str, runs: list[Run], opening: str, closing: str, style: str) -> Styled:
    line = Styled(label, style="bold")
    for run in runs:
        if run.shared:
            line.append(_printable(run.text), style="not bold")
        else:
            line.append(f"{opening}{_printable(run.text)}{closing}", style=f"not bold {style}")
    return line


def _words(a: list[Feature], b: list[Feature]) -> Table:
    in_a, in_b = ({f.word: f for f in features} for features in (a, b))
    union = sorted(
        {**in_b, **in_a}.values(), key=lambda f: (-f.level, f.word not in in_a, f.word not in in_b)
    )
    table = Table("word", "level", "in A", "in B", "weight A", "weight B", "shared", box=None, pad_edge=False)
    for feature in union[:_SHOWN_WORDS]:
        of_each = in_a.get(feature.word), in_b.get(feature.word)
        shared = None not in of_each
        table.add_row(
            plain(feature.word),
            str(feature.level),
            *("-" if one is None else str(one.occurrences) for one in of_each),
            *("-" if one is None else str(one.weight) for one in of_each),
            "=" if shared else "",
            style="" if shared else "yellow",
        )
    if len(union) > _SHOWN_WORDS:
        table.caption = f"and {len(union) - _SHOWN_WORDS} more, which --json has"
    return table


def _measures(pair: Pair) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, fingerprint in zip("AB", pair.fingerprints, strict=True):
        shown = "none: it has no features" if fingerprint is None else format_fingerprint(fingerprint)
        table.add_row(f"fingerprint of {name}", shown)
    distance = pair.hamming_distance
    table.add_row("Hamming distance", "not defined" if distance is None else str(distance))
    table.add_row("cosine of words", _decimals(pair.cosine_words))
    table.add_row("cosine of characters", _decimals(pair.cosine_characters))
    table.add_row("edit distance", str(pair.edit_distance))
    table.add_row("edit similarity", _decimals(pair.edit_similarity))
    return table


def _decimals(thousandths: int) -> str:
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def _printable(text: str) -> str:
    """Lone surrogates cannot be written in UTF-8."""
    return text.encode("utf-8", "replace").decode()
