"""Weights: how much a word says about its text, as TF·IDF and as levels 1 to 5.

Reference: Spärck Jones, "A statistical interpretation of term specificity and its application in
retrieval", Journal of Documentation 28 (1972).
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["LEVEL_CUTS", "UNKNOWN_IDF", "WordLevels", "idf", "read_idf", "smoothed_idf", "tf", "tf_idf"]

LEVEL_CUTS: Final = (4.0, 6.0, 8.0, 10.0)
"""The smoothed IDF at which level 2, 3, 4 and 5 begin: a word in fewer than 1 of 55, 403, 2,981 and 22,026
documents. Cuts from (3, 5, 7, 9) to (6, 8, 10, 12) differ by less than the choice of the hash does."""

UNKNOWN_IDF: Final = 9.0
"""The smoothed IDF of a word that the table does not have: level 4.

Such words are numbers, names and new coinages, and they are what tells bulletins of one template apart. On
agency news, higher values find fewer of the re-issues with other numbers in them, lower ones take more
bulletins with other numbers for re-issues (12: 16 pairs of texts less than 0.8 similar within distance 3;
9: 27; 7: 42; 1: 111), averaged over twelve hashes."""


def tf(occurrences: int, words: int) -> float:
    """Return the term frequency: the occurrences of a word over all the words of its text."""
    return occurrences / words


def idf(documents: int, document_frequency: int, *, base: float = math.e) -> float:
    """Return log(documents / documents that have the word): 0 for a word that all of them have."""
    return math.log(documents / document_frequency, base)


def smoothed_idf(documents: int, document_frequency: int, *, base: float = math.e) -> float:
    """Return log(documents / (documents that have the word + 1)), defined for a word that none has.

    This is what jieba's table holds: natural logarithms over 1,088,899 documents (the documents of the
    corpus it was counted on, each an article).
    """
    return math.log(documents / (document_frequency + 1), base)


def tf_idf(term_frequency: float, inverse_document_frequency: float) -> float:
    """Return the product of a word's `tf` in its text and its `idf`."""
    return term_frequency * inverse_document_frequency


def read_idf(content: bytes) -> dict[str, float]:
    """Return the smoothed IDF of each word of a table in the form of jieba's `idf.txt`."""
    table: dict[str, float] = {}
    for line in content.decode("utf-8").splitlines():
        word, _, value = line.rpartition(" ")
        table[word] = float(value)
    return table


class WordLevels:
    """The level of each word, an integer from 1 (in every text) to 5 (in hardly any).

    Integers, so that sums over a text are exact in any order, on any machine.

    Parameters:
        table: the smoothed IDF of words.
        cuts: the IDF at which each level above 1 begins, ascending.
        unknown: the IDF of a word that the table lacks.
    """

    def __init__(
        self, table: Mapping[str, float], *, cuts: Sequence[float] = LEVEL_CUTS, unknown: float = UNKNOWN_IDF
    ) -> None:
        self._levels = {word: bisect_right(cuts, value) + 1 for word, value in table.items()}
        self._unknown = bisect_right(cuts, unknown) + 1

    def level(self, word: str) -> int:
        """Return the level of a word."""
        return self._levels.get(word, self._unknown)
