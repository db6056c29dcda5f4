"""`textsieve compare`: two texts, all that is measured of the pair, and the judge's verdict on the second."""

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text as Styled

from stream.errors import InputError
from stream.events import format_fingerprint
from stream.settings import Settings
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
from stream.tools.differences import MAX_CHARACTERS, Run, abridged, differences
from stream.tools.offline import judging
from stream.verdict import Duplicate, Text, Verdict

_SHOWN_WORDS: Final = 40
"""Rows of the printed table; `--json` has every word."""


class Comparison(NamedTuple):
    """What is known of a pair of texts, all of it about their normalised forms."""

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
    """In how many bits their profiles differ."""
    verdict: Verdict
    """On the second text, judged right after the first."""
    explanation: str
    """The reason of the verdict as a sentence."""


def read_text(argument: str) -> str:
    """The text that an argument names: the argument itself, or after an `@` the content of a file.

    A text that itself begins with `@` has it doubled. The newline at a file's end is no part of the text.

    Raises:
        InputError: the file cannot be read or is not UTF-8.
    """
    if not argument.startswith("@"):
        return argument
    if argument.startswith("@@"):
        return argument[1:]
    name = argument[1:]
    try:
        return Path(name).read_bytes().decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8: {error.reason} at byte {error.start}.") from None
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"The file {name!r} cannot be read: {cause}. A text that begins with @ is written with two: @@."
        ) from error


def compare(a: str, b: str, *, settings: Settings, scheme: Scheme) -> Comparison:
    """Measure a pair of texts, and have `b` judged right after `a` by the worker's judge.

    Raises:
        StateError: the temporary directory cannot hold the state.
    """
    normalized = scheme.normalize(a), scheme.normalize(b)
    features = scheme.features(normalized[0]), scheme.features(normalized[1])
    found = scheme.fingerprint(normalized)
    fingerprints = found[0], found[1]
    first, second = fingerprints
    distance = None if first is None or second is None else hamming_distance(first, second)
    with (
        tempfile.TemporaryDirectory(prefix="textsieve-", ignore_cleanup_errors=True) as directory,
        judging(Path(directory) / "state", settings, scheme) as judge,
    ):
        verdict = judge([Text(0, None, a, ""), Text(1, None, b, "")])[1]
    shared, apart = _meeting(scheme, normalized)
    comparison = Comparison(
        normalized=normalized,
        features=features,
        fingerprints=fingerprints,
        hamming_distance=distance,
        cosine_words=cosine_thousandths(_weights(features[0]), _weights(features[1])),
        cosine_characters=cosine_thousandths(Counter(normalized[0]), Counter(normalized[1])),
        edit_distance=edit_distance(*normalized),
        edit_similarity=edit_similarity(*normalized),
        resemblance=exact_resemblance(*normalized),
        estimated_resemblance=estimated_resemblance(*map(sketch, normalized)),
        shared_bands=shared,
        profile_distance=apart,
        verdict=verdict,
        explanation="",
    )
    return comparison._replace(explanation=_explain(comparison, settings, scheme, max(len(a), len(b))))


def _meeting(scheme: Scheme, normalized: tuple[str, str]) -> tuple[int, int] | tuple[None, None]:
    """How many bands two texts share, and the distance of their profiles."""
    if not all(map(scheme.has_bands, normalized)):
        return None, None
    profiles, bands = scheme.signatures(normalized, [scheme.salt(text) for text in normalized])
    one, other = profiles.tolist()
    return int(np.count_nonzero(bands[0] == bands[1])), hamming_distance(one, other)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON can hold it: similarities with three decimals, fingerprints in hexadecimal."""
    verdict = comparison.verdict
    duplicate = verdict if isinstance(verdict, Duplicate) else None
    return {
        "normalized": list(comparison.normalized),
        "tokens": [[feature._asdict() for feature in features] for features in comparison.features],
        "fingerprints": [None if f is None else format_fingerprint(f) for f in comparison.fingerprints],
        "hamming_distance": comparison.hamming_distance,
        "cosine_words": comparison.cosine_words / 1000,
        "cosine_characters": comparison.cosine_characters / 1000,
        "edit_distance": comparison.edit_distance,
        "edit_similarity": comparison.edit_similarity / 1000,
        "resemblance": comparison.resemblance / 1000,
        "estimated_resemblance": comparison.estimated_resemblance / 1000,
        "shared_bands": comparison.shared_bands,
        "profile_distance": comparison.profile_distance,
        "verdict": {
            "outcome": _outcome(verdict),
            "reason": duplicate and duplicate.reason,
            "measure": duplicate and duplicate.measure,
            "similarity": duplicate and duplicate.similarity / 1000,
            "explanation": comparison.explanation,
        },
    }


def as_table(comparison: Comparison) -> RenderableType:
    """The comparison for people. What only one of the texts has stands in `[-…-]` (A) or `{+…+}` (B)."""
    outcome = _outcome(comparison.verdict)
    return Group(
        *_marked_texts(*comparison.normalized),
        "",
        _words(*comparison.features),
        "",
        _measures(comparison),
        "",
        _plain(
            f"B is {'a duplicate' if outcome == 'duplicate' else outcome}: {comparison.explanation}",
            style="bold",
        ),
    )


def _outcome(verdict: Verdict) -> str:
    return "duplicate" if isinstance(verdict, Duplicate) else "unique"


def _explain(comparison: Comparison, settings: Settings, scheme: Scheme, longest: int) -> str:
    """The reason of the verdict as a sentence; `longest` is the length of the longer text as it came."""
    verdict, distance = comparison.verdict, comparison.hamming_distance
    if isinstance(verdict, Duplicate) and verdict.reason != "near":
        return "the two have the same content."
    if longest > settings.max_text_chars:
        return f"a text above {settings.max_text_chars} characters is a duplicate only of the same content."
    if distance is None:
        return "a text without features is a duplicate only of the very same text."
    lengths = list(map(len, comparison.normalized))
    if settings.confirm == "none":
        allowed = settings.max_distance
        limit = f"up to {allowed} are near" if distance <= allowed else f"only up to {allowed} are near"
        return f"the fingerprints differ in {distance} of 64 bits; {limit}."
    if min(lengths) < settings.near_from:
        return (
            f"a text of fewer than {settings.near_from} characters is a duplicate only of the same content."
        )
    if len({*map(scheme.salt, comparison.normalized)}) > 1:
        return "their numbers differ, and numbers matter."
    if max(lengths) >= settings.short_chars:
        name, found, least = "resemblance", comparison.estimated_resemblance, settings.min_resemblance
    elif settings.confirm == "cosine":
        name, found, least = "cosine of words", comparison.cosine_words, settings.min_cosine
    else:
        name, found, least = "edit similarity", comparison.edit_similarity, settings.min_edit_similarity
    if found < least:
        return f"the {name} is {_decimals(found)}; only from {_decimals(least)} on it is enough."
    if isinstance(verdict, Duplicate):
        return f"the {name} is {_decimals(found)}; from {_decimals(least)} on it is enough."
    return (
        f"the {name} is {_decimals(found)}, which is enough, but the two do not meet: they share "
        f"{comparison.shared_bands or 'no'} bands with profiles {comparison.profile_distance} bits apart, and their "
        f"fingerprints differ in {distance} bits."
    )


def _weights(features: list[Feature]) -> Mapping[str, int]:
    return {feature.word: feature.weight for feature in features}


def _marked_texts(a: str, b: str) -> list[RenderableType]:
    if max(len(a), len(b)) > MAX_CHARACTERS:
        return [_plain(f"Texts above {MAX_CHARACTERS} characters are not shown.")]
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
    table = Table("word", "level", "in A", "in B", "shared", box=None, pad_edge=False)
    for feature in union[:_SHOWN_WORDS]:
        word = feature.word
        shared = word in in_a and word in in_b
        counts = (str(side[word].occurrences) if word in side else "-" for side in (in_a, in_b))
        table.add_row(
            _plain(word),
            str(feature.level),
            *counts,
            "=" if shared else "",
            style="" if shared else "yellow",
        )
    if len(union) > _SHOWN_WORDS:
        table.caption = f"and {len(union) - _SHOWN_WORDS} more, which --json has"
    return table


def _measures(comparison: Comparison) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, fingerprint in zip("AB", comparison.fingerprints, strict=True):
        shown = "none: it has no features" if fingerprint is None else format_fingerprint(fingerprint)
        table.add_row(f"fingerprint of {name}", shown)
    distance = comparison.hamming_distance
    table.add_row("Hamming distance", "not defined" if distance is None else str(distance))
    table.add_row("cosine of words", _decimals(comparison.cosine_words))
    table.add_row("cosine of characters", _decimals(comparison.cosine_characters))
    table.add_row("edit distance", str(comparison.edit_distance))
    table.add_row("edit similarity", _decimals(comparison.edit_similarity))
    resemblance = (
        f"{_decimals(comparison.resemblance)}, by sketches {_decimals(comparison.estimated_resemblance)}"
    )
    table.add_row("resemblance", resemblance)
    meeting = "none: a text is too short, or no bands are stored"
    if comparison.shared_bands is not None:
        meeting = f"{comparison.shared_bands}, profiles {comparison.profile_distance} bits apart"
    table.add_row("shared bands", meeting)
    return table


def _decimals(thousandths: int) -> str:
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def _plain(text: str, style: str = "") -> Styled:
    """Text as it is: rich would read `[b]` in it as markup."""
    return Styled(_printable(text), style=style)


def _printable(text: str) -> str:
    """Lone surrogates cannot be written in UTF-8."""
    return text.encode("utf-8", "replace").decode()
