"""What is measured of a pair of texts, and how it is shown: the one place for `compare` and `explain`."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
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
    estimated_resemblance,
    exact_resemblance,
    hamming_distance,
    sketch,
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
    resemblance: int
    """The share of character 4-grams that both have, in thousandths, exactly."""
    estimated_resemblance: int
    """The same as their sketches show it."""
    shared_bands: int | None
    """By how many bands the two meet; None where one has none."""
    profile_distance: int | None
    """In how many bits their profiles differ; None where one has none."""
    same_salt: bool
    """Whether the scheme lets the two meet at all: not where numbers matter and theirs differ."""


def measure(a: str, b: str, scheme: Scheme) -> Pair:
    """Measure a pair of texts under a scheme."""
    normalized = scheme.normalize(a), scheme.normalize(b)
    features = scheme.features(normalized[0]), scheme.features(normalized[1])
    found = scheme.fingerprint(normalized)
    first, second = found[0], found[1]
    shared, apart = _meeting(scheme, normalized)
    return Pair(
        normalized=normalized,
        features=features,
        fingerprints=(first, second),
        hamming_distance=None if first is None or second is None else hamming_distance(first, second),
        cosine_words=cosine_thousandths(_weights(features[0]), _weights(features[1])),
        cosine_characters=cosine_thousandths(Counter(normalized[0]), Counter(normalized[1])),
        edit_distance=edit_distance(*normalized),
        edit_similarity=edit_similarity(*normalized),
        resemblance=exact_resemblance(*normalized),
        estimated_resemblance=estimated_resemblance(*map(sketch, normalized)),
        shared_bands=shared,
        profile_distance=apart,
        same_salt=len({*map(scheme.salt, normalized)}) == 1,
    )


def _meeting(scheme: Scheme, normalized: tuple[str, str]) -> tuple[int, int] | tuple[None, None]:
    """How many bands two texts share, and the distance of their profiles."""
    if not all(map(scheme.has_bands, normalized)):
        return None, None
    profiles, bands = scheme.signatures(normalized, [scheme.salt(text) for text in normalized])
    one, other = profiles.tolist()
    return int(np.count_nonzero(bands[0] == bands[1])), hamming_distance(one, other)


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
        "resemblance": pair.resemblance / 1000,
        "estimated_resemblance": pair.estimated_resemblance / 1000,
        "shared_bands": pair.shared_bands,
        "profile_distance": pair.profile_distance,
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
    table.add_row("cosine of words", decimals(pair.cosine_words))
    table.add_row("cosine of characters", decimals(pair.cosine_characters))
    table.add_row("edit distance", str(pair.edit_distance))
    table.add_row("edit similarity", decimals(pair.edit_similarity))
    resemblance = f"{decimals(pair.resemblance)}, by sketches {decimals(pair.estimated_resemblance)}"
    table.add_row("resemblance", resemblance)
    meeting = "none: a text is too short, or no bands are stored"
    if pair.shared_bands is not None:
        meeting = f"{pair.shared_bands}, profiles {pair.profile_distance} bits apart"
    table.add_row("shared bands", meeting)
    return table


def decimals(thousandths: int) -> str:
    """Thousandths as a number with three decimals."""
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def _printable(text: str) -> str:
    """Lone surrogates cannot be written in UTF-8."""
    return text.encode("utf-8", "replace").decode()
