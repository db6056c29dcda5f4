"""Weights: how much a word says about its text, as TF·IDF and as levels 1 to 5.

Reference: Spärck Jones, "A statistical interpretation of term specificity and its application in
retrieval", Journal of Documentation 28 (1972).
"""

import hashlib
import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final

from stream.errors import SettingsError

__all__ = [
    "IDF_FORMAT",
    "IDF_NAME",
    "LEVEL_CUTS",
    "UNKNOWN_IDF",
    "WordLevels",
    "idf",
    "idf_table",
    "read_idf",
    "read_idf_table",
    "smoothed_idf",
    "tf",
    "tf_idf",
]

LEVEL_CUTS: Final = (4.0, 6.0, 8.0, 10.0)
"""The smoothed IDF at which level 2, 3, 4 and 5 begin: a word in fewer than 1 of 55, 403, 2,981 and 22,026
documents. Cuts from (3, 5, 7, 9) to (6, 8, 10, 12) differ by less than the choice of the hash does."""

UNKNOWN_IDF: Final = 9.0
"""The smoothed IDF of a word that the table does not have: level 4.

Such words are numbers, names and new coinages, and they are what tells bulletins of one template apart. On
agency news, higher values find fewer of the re-issues with other numbers in them, lower ones take more
bulletins with other numbers for re-issues (12: 16 pairs of texts less than 0.8 similar within distance 3;
9: 27; 7: 42; 1: 111), averaged over twelve hashes."""


IDF_NAME: Final = "textsieve-idf"
"""The first word of an IDF table of one's own."""

IDF_FORMAT: Final = 1
"""The second: raised with every change that a reader of the file must know of."""


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


def idf_table(frequencies: Mapping[str, int], documents: int, facts: Mapping[str, Any]) -> list[str]:
    """Return the lines of an IDF table, without their ends: a header, then `word idf` sorted by word.

    The header is the name, the format, the SHA-256 of all that follows it, and a JSON object: the documents,
    the words, and the facts. The IDF is smoothed and has six decimals, computed without a floating-point
    number, so that every machine writes the same bytes.

    Parameters:
        frequencies: how many documents each word is in, at least one. A word has no space in it.
        documents: how many there are.
        facts: what else is to be known about the table, as JSON can hold it.
    """
    idf_of = {frequency: _decimals(documents, frequency) for frequency in set(frequencies.values())}
    header = {**facts, "documents": documents, "words": len(frequencies)}
    described = json.dumps(header, sort_keys=True, separators=(",", ":"))
    lines = [f"{word} {idf_of[frequencies[word]]}" for word in sorted(frequencies)]
    return [f"{IDF_NAME} {IDF_FORMAT} {_checksum([described, *lines])} {described}", *lines]


def read_idf_table(content: bytes, name: str) -> dict[str, float]:
    """Return the smoothed IDF of each word of a table that `idf_table` made; the file's name is for messages.

    Raises:
        SettingsError: it is a file of another kind or format, damaged, or cut off. The message says in which
            line and what to do.
    """
    try:
        header, *lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise _damaged(name, content.count(b"\n", 0, error.start) + 1, "it is not UTF-8") from error
    checksum, described = _read_header(header, name)
    try:
        words = int(json.loads(described)["words"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(name, 1, "the header cannot be read") from error
    # What follows the last line's end: nothing.
    rest = lines.pop() if lines else ""
    table: dict[str, float] = {}
    for number, line in enumerate(lines, start=2):
        entry = _IDF_LINE.fullmatch(line)
        if entry is None:
            raise _damaged(name, number, "a word and a number with six decimals should stand here")
        table[entry[1]] = float(entry[2])
    if rest or len(lines) != words:
        raise _damaged(
            name,
            content.count(b"\n") + bool(rest),
            f"the file ends here with {len(lines)} words; by its header it has {words}",
        )
    if _checksum([described, *lines]) != checksum:
        raise _damaged(name, 1, "what follows is not what the checksum was made of")
    return table


def _read_header(header: str, name: str) -> tuple[str, str]:
    """The checksum and the JSON of a header of the format that is read here."""
    title, version, checksum, described = (*header.split(" ", 3), "", "", "")[:4]
    if title != IDF_NAME:
        raise SettingsError(
            f"{name}, line 1: this is no IDF table of textsieve, whose first word is {IDF_NAME}. Make one: {_BUILD}"
        )
    if version != str(IDF_FORMAT):
        raise SettingsError(
            f"{name}, line 1: the IDF table is of format {version[:20]!r}, and this version of textsieve reads "
            f"format {IDF_FORMAT}. Build it anew with this version: {_BUILD}"
        )
    return checksum, described


def _damaged(name: str, line: int, what: str) -> SettingsError:
    return SettingsError(
        f"{name}, line {line}: {what}. The IDF table is damaged: copy it again from where it came, or build it anew "
        f"({_BUILD}), which makes another scheme where the texts are others."
    )


def _checksum(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _decimals(documents: int, document_frequency: int) -> str:
    ratio = _EXACT.divide(Decimal(documents), Decimal(document_frequency + 1))
    # Adding 0 takes the sign from a zero: of a million documents all of which have the word.
    return str(_EXACT.ln(ratio).quantize(_LAST_DECIMAL, context=_EXACT) + 0)


_EXACT: Final = Context(prec=28)
_LAST_DECIMAL: Final = Decimal("0.000001")
_IDF_LINE: Final = re.compile(r"([^ ]+) (-?[0-9]{1,3}\.[0-9]{6})")
_BUILD: Final = "textsieve idf build SOURCE --output FILE"


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
