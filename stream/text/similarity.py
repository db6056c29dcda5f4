"""Similarity of two texts: cosine of weighted words, characters or vectors, and edit similarity.

What a threshold is compared with is an integer, thousandths rounded down, computed without a floating-point
number, so that every processor agrees on it.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from rapidfuzz.distance import Levenshtein

__all__ = [
    "cosine",
    "cosine_of_characters",
    "cosine_of_keywords",
    "cosine_of_vectors",
    "cosine_thousandths",
    "edit_distance",
    "edit_similarity",
    "keywords",
]


Number = TypeVar("Number", int, float)


def cosine(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the cosine of two texts, each given as the weight of its words (level × occurrences, TF·IDF).

    From 0.0, no word in common, to 1.0, the same words in the same proportions; 0.0 if a text has no words.
    """
    squares = _dot(a, a) * _dot(b, b)
    return _dot(a, b) / math.sqrt(squares) if squares else 0.0


def cosine_thousandths(a: Mapping[str, int], b: Mapping[str, int]) -> int:
    """Return `cosine` in thousandths rounded down, exactly, for weights that are whole numbers."""
    squares = _dot(a, a) * _dot(b, b)
    return math.isqrt((1000 * _dot(a, b)) ** 2 // squares) if squares else 0


def cosine_of_keywords(a: Mapping[str, float], b: Mapping[str, float], k: int) -> float:
    """Return the `cosine` of two texts over the k highest-weighted words of each, taken together."""
    chosen = {*keywords(a, k), *keywords(b, k)}
    return cosine(_restricted(a, chosen), _restricted(b, chosen))


def keywords(weights: Mapping[str, float], k: int) -> list[str]:
    """Return the k highest-weighted words of a text, the highest first, equal ones by code points."""
    return sorted(weights, key=lambda word: (-weights[word], word))[:k]


def cosine_of_characters(a: str, b: str) -> float:
    """Return the cosine of the counts of characters of two texts."""
    return cosine(Counter(a), Counter(b))


def cosine_of_vectors(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the cosine of two vectors of one length; 0.0 if one has only zeros.

    Raises:
        ValueError: their lengths differ.
    """
    squares = sum(x * x for x in a) * sum(y * y for y in b)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(squares) if squares else 0.0


def edit_distance(a: str, b: str) -> int:
    """Return the Levenshtein distance: the fewest insertions, deletions and replacements from a to b."""
    return Levenshtein.distance(a, b)


def edit_similarity(a: str, b: str, *, floor: int = 0) -> int:
    """Return 1 - distance / length of the longer text, in thousandths rounded down; 1000 for two empty texts.

    Parameters:
        a: one text, of any characters, lone surrogates too.
        b: the other.
        floor: where the similarity is below it the answer is 0, which is found sooner: most pairs are told
            apart by a fraction of the work.
    """
    longer = max(len(a), len(b))
    if not longer:
        return 1000
    # similarity >= floor  <=>  1000 (longer - distance) >= floor * longer
    allowed = longer * (1000 - floor) // 1000
    if abs(len(a) - len(b)) > allowed:
        return 0
    distance = Levenshtein.distance(a, b, score_cutoff=allowed)
    return 1000 * (longer - distance) // longer if distance <= allowed else 0


def _dot(a: Mapping[str, Number], b: Mapping[str, Number]) -> Number:
    smaller, larger = (a, b) if len(a) <= len(b) else (b, a)
    return sum(weight * larger[word] for word, weight in smaller.items() if word in larger)


def _restricted(weights: Mapping[str, float], words: set[str]) -> dict[str, float]:
    return {word: weight for word, weight in weights.items() if word in words}
