"""A scheme: everything between a text and what is stored of it, in one object with an identity.

Two processes whose schemes have one id give every text the same normal form, words, levels, fingerprint, bands
and sketch; what is stored under one id is never compared with what another made.
"""

import hashlib
import json
import unicodedata
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from stream.errors import SettingsError
from stream.text.dictionary import jieba_file, merge_user_dictionary, read_dictionary
from stream.text.minhash import MINHASH_SIZE, PROFILE_SIZE, Signatures, signatures
from stream.text.normalize import Normalization, normalization_description, normalize
from stream.text.numbers import number_salt
from stream.text.segment import Engine, Segmenter, engine_version, segmenter
from stream.text.simhash import Fingerprints, TieBit, simhash_batch, xxh3_64
from stream.text.sketch import SHINGLE_SIZE, SKETCH_BYTES, sketch
from stream.text.stopwords import STOP_WORDS
from stream.text.weigh import LEVEL_CUTS, UNKNOWN_IDF, WordLevels, read_idf, read_idf_table

__all__ = ["Feature", "Scheme", "SchemeSpec"]

_FORMAT = 1
"""Raised with every change of this package's code that gives any text another fingerprint or normal form."""

_TIE: TieBit = 0
"""A sum of 0 gives the bit 0: the rule of most implementations."""

_LEVEL_OF_STOP_WORDS_ALONE = 1
"""In a text that has no other words stop words are features: `是的` is no text without content, and one
comment in a hundred is like it."""

_VOCABULARY_LIMIT = 250_000
"""Words whose hash and level are remembered, some 60 MB. Below the vocabulary of a day's texts every word is
hashed again and again; without an end, a stream of random strings would fill the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeSpec:
    """What can be chosen about a scheme.

    Attributes:
        engine: the segmenter. The words are the same, yet it is part of the id: that they are the same is
            known of the versions that were tested.
        hmm: guess words that the dictionary lacks. Off, since only then do both engines agree on all texts.
        user_dictionary: a file in jieba's format, `word [frequency] [tag]` a line, UTF-8.
        idf_table: a file that `idf_table` of `stream.text.weigh` made, instead of jieba's table.
        normalization: the policies of normalisation.
        bits: the width of a fingerprint. The state is made for 64.
        bands: how many bands of a MinHash are stored of each text beside its fingerprint; 0 stores none.
        rows: how many values of the MinHash make a band.
        near_from: a text of fewer characters has no bands: so short a text is another one with any other
            character, and never a near-duplicate. At least 2.
        short_chars: a text of fewer characters is short: it is stored whole. Of a longer one a sketch is.
        numbers_matter: texts with other numbers never meet.
    """

    engine: Engine = "rjieba"
    hmm: bool = False
    user_dictionary: Path | None = None
    idf_table: Path | None = None
    normalization: Normalization = field(default_factory=Normalization)
    bits: int = 64
    bands: int = 12
    rows: int = 3
    near_from: int = 10
    short_chars: int = 500
    numbers_matter: bool = False


class Stored(NamedTuple):
    """What is kept of an original's text, so that a later text can be compared with it."""

    text: str
    """The normalised text where it is short, else empty."""
    sketch: bytes
    """Its sketch where it is not short, else empty: a short text's is made from the text when it is needed."""


class Feature(NamedTuple):
    """A word of a text that counts in its fingerprint."""

    word: str
    level: int
    """1 (a word of nearly every text) to 5 (a rare one)."""
    occurrences: int

    @property
    def weight(self) -> int:
        """Level × occurrences: what the word adds to the signed sums."""
        return self.level * self.occurrences


class Scheme:
    """Makes fingerprints in one fixed way. Built by `Scheme.build`, which takes about a second.

    Attributes:
        spec: what it was built from.
    """

    def __init__(
        self,
        *,
        spec: SchemeSpec,
        segmenter: Segmenter,
        levels: WordLevels,
        stop_words: frozenset[str],
        description: dict[str, Any],
    ) -> None:
        self.spec = spec
        self._normalization = spec.normalization
        self._segment = segmenter.segment
        self._vocabulary = _Vocabulary(levels, stop_words)
        self._vocabulary_lock = Lock()
        self._description = description
        canonical = json.dumps(description, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        self._id = _digest(canonical)[:16]

    @classmethod
    def build(cls, spec: SchemeSpec) -> Self:
        """Build a scheme from its specification, jieba's dictionary and IDF table, and our stop words.

        Raises:
            SettingsError: the user dictionary or the IDF table cannot be read or used, a package is missing,
                or the width is not 64.
            ValueError: a number of the specification is out of its range.
        """
        if spec.bands < 0 or spec.rows < 1 or spec.near_from < 2 or spec.short_chars < 1:
            raise ValueError(f"no scheme has these numbers: {spec}")
        if spec.bits != 64:
            raise SettingsError(f"Fingerprints of {spec.bits} bits cannot be stored; the width is 64.")
        dictionary = jieba_file("dict.txt")
        idf_table, idf = _idf(spec.idf_table)
        frequencies = read_dictionary(dictionary)
        user_dictionary = None
        if spec.user_dictionary is not None:
            user_dictionary = _read(spec.user_dictionary, "user dictionary")
            frequencies = merge_user_dictionary(
                frequencies,
                user_dictionary,
                lambda word: normalize(word, spec.normalization),
                str(spec.user_dictionary),
            )
        description = {
            "format": _FORMAT,
            "normalization": normalization_description(spec.normalization),
            "unicode": unicodedata.unidata_version,
            "segmenter": {"engine": spec.engine, "version": engine_version(spec.engine), "hmm": spec.hmm},
            "dictionary": _digest(dictionary),
            "user_dictionary": None if user_dictionary is None else _digest(user_dictionary),
            "stop_words": {
                "words": _digest("\n".join(sorted(STOP_WORDS))),
                "level_alone": _LEVEL_OF_STOP_WORDS_ALONE,
            },
            "weights": {"idf": _digest(idf_table), "cuts": list(LEVEL_CUTS), "unknown": UNKNOWN_IDF},
            "simhash": {"bits": spec.bits, "hash": "xxh3_64", "tie": _TIE},
            "bands": {
                "bands": spec.bands,
                "rows": spec.rows,
                "minhash": MINHASH_SIZE,
                "profile": PROFILE_SIZE,
                "near_from": spec.near_from,
            },
            "stored": {"short_chars": spec.short_chars, "shingles": SHINGLE_SIZE, "sketch": SKETCH_BYTES},
            "numbers_matter": spec.numbers_matter,
        }
        return cls(
            spec=spec,
            segmenter=segmenter(spec.engine, frequencies, hmm=spec.hmm),
            levels=WordLevels(idf),
            stop_words=STOP_WORDS,
            description=description,
        )

    @property
    def id(self) -> str:
        """16 hexadecimal digits, a hash of `description`."""
        return self._id

    @property
    def description(self) -> dict[str, Any]:
        """Everything that the id stands for, as JSON can hold it; files by the hash of their content."""
        return json.loads(json.dumps(self._description))  # type: ignore[no-any-return] # a copy of what is typed

    def normalize(self, text: str) -> str:
        """Return the form in which a text is compared and fingerprinted. Any `str` is accepted."""
        return normalize(text, self._normalization)

    def words(self, normalized: str) -> list[str]:
        """Return all words of a normalised text, in order, stop words too."""
        return self._segment(normalized)

    def fingerprint(self, normalized: Sequence[str]) -> Fingerprints:
        """Return the fingerprints of normalised texts. What is in a batch together has no influence.

        May be called from several threads: a worker has one for each of its scopes.
        """
        words: list[int] = []
        bounds = [0]
        index = self._vocabulary.__getitem__
        # Segmenters hold the interpreter's lock all the while, so that nothing is lost by holding this one too.
        with self._vocabulary_lock:
            for text in normalized:
                words += map(index, self._segment(text))
                bounds.append(len(words))
            hashes, levels = self._vocabulary.columns(np.array(words, np.int64))
            self._vocabulary.shrink()
        sizes = np.diff(bounds)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        only_stop_words = np.bincount(owners, weights=levels, minlength=len(sizes)) == 0
        levels[only_stop_words[owners]] = _LEVEL_OF_STOP_WORDS_ALONE
        return simhash_batch(hashes, levels, np.array(bounds, np.int64), tie=_TIE)

    def salt(self, normalized: str) -> int:
        """Return 64 bits that are equal for all texts that may meet this one: of its numbers, if they matter."""
        return number_salt(normalized) if self.spec.numbers_matter else 0

    def has_bands(self, normalized: str) -> bool:
        """Whether a text with features has bands."""
        return self.spec.bands > 0 and len(normalized) >= self.spec.near_from

    def signatures(self, normalized: Sequence[str], salts: Sequence[int]) -> Signatures:
        """Return the profiles and bands of normalised texts that have bands, under their salts."""
        return signatures(normalized, self.spec.bands, self.spec.rows, np.array(salts, np.uint64))

    def stored(self, normalized: str) -> Stored:
        """Return what is kept of an original's text."""
        if len(normalized) < self.spec.short_chars:
            return Stored(normalized, b"")
        return Stored("", sketch(normalized))

    def features(self, normalized: str) -> list[Feature]:
        """Return the features of a normalised text, the heaviest first, equal ones as the text has them."""
        counts = Counter(self._segment(normalized))
        found = [Feature(word, self._vocabulary.level(word), count) for word, count in counts.items()]
        kept = [feature for feature in found if feature.level] or [
            feature._replace(level=_LEVEL_OF_STOP_WORDS_ALONE) for feature in found
        ]
        return sorted(kept, key=lambda feature: -feature.weight)


class _Vocabulary(dict[str, int]):
    """Remembers the hash and the level of each word; a stop word has level 0, which is: no feature.

    A word is looked up as a dictionary's key; a new one gets the next row of the columns.
    """

    def __init__(self, levels: WordLevels, stop_words: frozenset[str]) -> None:
        super().__init__()
        self._word_levels = levels
        self._stop_words = stop_words
        self._hashes = array("Q")
        self._levels = array("B")

    def __missing__(self, word: str) -> int:
        row = self[word] = len(self._hashes)
        self._hashes.append(xxh3_64(word))
        self._levels.append(self.level(word))
        return row

    def level(self, word: str) -> int:
        """0 for a stop word, otherwise 1 to 5."""
        return 0 if word in self._stop_words else self._word_levels.level(word)

    def columns(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
        """The hash and the level of each of these rows."""
        return np.frombuffer(self._hashes, np.uint64)[rows], np.frombuffer(self._levels, np.uint8)[rows]

    def shrink(self) -> None:
        """Forget everything if there is too much. The rows handed out before are then void."""
        if len(self) > _VOCABULARY_LIMIT:
            self.clear()
            self._hashes, self._levels = array("Q"), array("B")


def _idf(path: Path | None) -> tuple[bytes, dict[str, float]]:
    """The IDF table of a file, or jieba's: its bytes and what they say."""
    if path is None:
        content = jieba_file("analyse/idf.txt")
        return content, read_idf(content)
    content = _read(path, "IDF table")
    return content, read_idf_table(content, str(path))


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"The {what} {path} cannot be read: {error.strerror}.") from error


def _digest(content: bytes | str) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
