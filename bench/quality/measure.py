"""An answer held against the truth: precision, recall and F1, of everything or of a part of the pairs.

Pairs whose similarity is within `MARGIN` of the threshold are left out of every count: whether such a pair is a
near-duplicate is a question of rounding.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.quality.corpora import LONG, SHORT, Corpus
from bench.quality.errors import QualityError
from bench.quality.truth import FLOOR, Truth, pair_keys

__all__ = ["MARGIN", "THRESHOLD", "Judged", "Part", "Score", "judge", "lengths", "numbers", "similarities"]

THRESHOLD = {"edit": 800, "resemblance": 700, "identity": 1001}
"""Thousandths from which a pair is a near-duplicate, for each measure."""

MARGIN = 50
"""Thousandths on both sides of the threshold, both ends included."""

_BANDS = {
    "edit": (FLOOR["edit"], 800, 850, 900, 950, 1001),
    "resemblance": (FLOOR["resemblance"], 650, 700, 750, 800, 900, 1001),
}
_LENGTHS = {"edit": (SHORT, 20, 50, 100, LONG), "resemblance": (LONG, 1000, 2000, 5000, 10**9)}


class Score(NamedTuple):
    """Counts of pairs and what follows from them. A ratio of nothing to nothing is not a number."""

    right: int
    """Taken for near-duplicates, and near-duplicates."""
    wrong: int
    """Taken for near-duplicates, and none."""
    missed: int
    """Near-duplicates that were not found."""

    @property
    def precision(self) -> float:
        """The share of what was found that is right."""
        return _ratio(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float:
        """The share of the near-duplicates that was found."""
        return _ratio(self.right, self.right + self.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _ratio(2 * self.right, 2 * self.right + self.wrong + self.missed)


class Part(NamedTuple):
    """A part of the pairs of a corpus."""

    name: str
    chosen: NDArray[np.bool_]
    """`(m,) bool`, of the pairs of a `Judged`."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Every pair that is similar, or was taken for it.

    Attributes:
        pairs: `(m, 2) int64`, the lower place first.
        similarity: `(m,) int64`, thousandths; 0 below the truth's floor.
        accepted: `(m,) bool`, taken for near-duplicates.
        threshold: thousandths from which a pair is a near-duplicate.
    """

    pairs: NDArray[np.int64]
    similarity: NDArray[np.int64]
    accepted: NDArray[np.bool_]
    threshold: int

    def score(self, part: Part | None = None) -> Score:
        """Return the counts of all pairs, or of a part of them."""
        chosen = np.abs(self.similarity - self.threshold) > MARGIN
        if part is not None:
            chosen &= part.chosen
        similar = self.similarity > self.threshold
        return Score(
            int(np.count_nonzero(chosen & similar & self.accepted)),
            int(np.count_nonzero(chosen & ~similar & self.accepted)),
            int(np.count_nonzero(chosen & similar & ~self.accepted)),
        )


def judge(corpus: Corpus, truth: Truth, accepted: NDArray[np.int64]) -> Judged:
    """Return the pairs that are in the truth or among the accepted, `(k, 2) int64`, each once.

    Raises:
        QualityError: an accepted pair does not name two texts of the corpus, the lower place first.
    """
    first, second = accepted.T
    if not ((first >= 0) & (first < second) & (second < len(corpus.texts))).all():
        raise QualityError(
            f"A contender answers with pairs that are none of {corpus.name}; repair its `find`."
        )
    pairs = np.unique(np.concatenate([truth.pairs, accepted]), axis=0)
    keys = pair_keys(pairs)
    similarity = np.zeros(len(pairs), np.int64)
    similarity[np.searchsorted(keys, pair_keys(truth.pairs))] = truth.similarity
    taken = np.zeros(len(pairs), np.bool_)
    taken[np.searchsorted(keys, pair_keys(accepted))] = True
    return Judged(pairs, similarity, taken, THRESHOLD[corpus.measure])


def similarities(corpus: Corpus, judged: Judged) -> Iterator[Part]:
    """Yield the bands of similarity, from the truth's floor up."""
    for low, high in pairwise(_BANDS[corpus.measure]):
        name = f"{low / 1000:.2f} to {min(high, 1000) / 1000:.2f}"
        yield Part(name, (low <= judged.similarity) & (judged.similarity < high))


def lengths(corpus: Corpus, judged: Judged) -> Iterator[Part]:
    """Yield classes of length; that of a pair is the length of its longer text."""
    sizes = np.array([len(text) for text in corpus.texts])
    longer = sizes[judged.pairs].max(axis=1, initial=0)
    for low, high in pairwise(_LENGTHS[corpus.measure]):
        name = f"{low:,} and more" if high == 10**9 else f"{low:,} to {high - 1:,}"
        yield Part(name, (low <= longer) & (longer < high))


def numbers(corpus: Corpus, judged: Judged) -> Iterator[Part]:
    """Yield the pairs with the same digits in the same order, then those with others."""
    same = np.array([_digits(corpus.texts, pair) for pair in judged.pairs.tolist()], np.bool_)
    yield Part("the same", same)
    yield Part("different", ~same)


def _digits(texts: Sequence[str], pair: Sequence[int]) -> bool:
    first, second = (re.findall(r"\d+", texts[place]) for place in pair)
    return first == second


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
