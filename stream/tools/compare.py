"""`textsieve compare`: two texts, all that is measured of the pair, and the judge's verdict on the second."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group, RenderableType

from stream.errors import InputError
from stream.settings import Settings
from stream.text import Scheme
from stream.tools import pair
from stream.tools.offline import judging
from stream.tools.pair import Pair, decimals, measure, plain
from stream.verdict import Duplicate, Text, Verdict


class Comparison(NamedTuple):
    """A pair of texts, and what the judge says of it."""

    pair: Pair
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
    with (
        tempfile.TemporaryDirectory(prefix="textsieve-", ignore_cleanup_errors=True) as directory,
        judging(Path(directory) / "state", settings, scheme) as judge,
    ):
        verdict = judge([Text(0, None, a, ""), Text(1, None, b, "")])[1]
    measured = measure(a, b, scheme)
    explanation = _explain(verdict, measured, settings, max(len(a), len(b)))
    return Comparison(measured, verdict, explanation)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON can hold it: the pair, and `verdict`."""
    verdict = comparison.verdict
    duplicate = verdict if isinstance(verdict, Duplicate) else None
    return {
        **pair.as_json(comparison.pair),
        "verdict": {
            "outcome": _outcome(verdict),
            "reason": duplicate and duplicate.reason,
            "measure": duplicate and duplicate.measure,
            "similarity": duplicate and duplicate.similarity / 1000,
            "explanation": comparison.explanation,
        },
    }


def as_table(comparison: Comparison) -> RenderableType:
    """The comparison for people: the pair, and the verdict as a sentence."""
    outcome = _outcome(comparison.verdict)
    return Group(
        pair.as_table(comparison.pair),
        "",
        plain(
            f"B is {'a duplicate' if outcome == 'duplicate' else outcome}: {comparison.explanation}",
            style="bold",
        ),
    )


def _outcome(verdict: Verdict) -> str:
    return "duplicate" if isinstance(verdict, Duplicate) else "unique"


def _explain(verdict: Verdict, measured: Pair, settings: Settings, longest: int) -> str:
    """The reason of the verdict as a sentence; `longest` is the length of the longer text as it came."""
    distance = measured.hamming_distance
    if isinstance(verdict, Duplicate) and verdict.reason != "near":
        return "the two have the same content."
    if longest > settings.max_text_chars:
        return f"a text above {settings.max_text_chars} characters is a duplicate only of the same content."
    if distance is None:
        return "a text without features is a duplicate only of the very same text."
    if not measured.same_salt:
        return "their numbers differ, and numbers matter."
    lengths = list(map(len, measured.normalized))
    if settings.confirm == "none":
        allowed = settings.max_distance
        limit = f"up to {allowed} are near" if distance <= allowed else f"only up to {allowed} are near"
        return f"the fingerprints differ in {distance} of 64 bits; {limit}."
    if min(lengths) < settings.near_from:
        return (
            f"a text of fewer than {settings.near_from} characters is a duplicate only of the same content."
        )
    if max(lengths) >= settings.short_chars:
        name, found, least = "resemblance", measured.estimated_resemblance, settings.min_resemblance
    elif settings.confirm == "cosine":
        name, found, least = "cosine of words", measured.cosine_words, settings.min_cosine
    else:
        name, found, least = "edit similarity", measured.edit_similarity, settings.min_edit_similarity
    if found < least:
        return f"the {name} is {decimals(found)}; only from {decimals(least)} on it is enough."
    if isinstance(verdict, Duplicate):
        return f"the {name} is {decimals(found)}; from {decimals(least)} on it is enough."
    return (
        f"the {name} is {decimals(found)}, which is enough, but the two do not meet: they share "
        f"{measured.shared_bands or 'no'} bands with profiles {measured.profile_distance} bits apart, and their "
        f"fingerprints differ in {distance} bits."
    )
