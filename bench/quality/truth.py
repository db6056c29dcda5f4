"""The truth: every pair of similar texts of a corpus, by comparing all texts with all.

The comparison is exhaustive, not the work: a filter that cannot lose a pair (`_survivors`, checked by
`check_filter` in every run) excludes nearly all pairs before their edit distance is computed, and resemblance is
counted from the texts that have a shingle in common.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist, cpdist

from bench.quality.corpora import Corpus
from bench.quality.errors import QualityError

__all__ = ["FLOOR", "Truth", "check_filter", "edit_truth", "pair_keys", "resemblance_truth", "truth_of"]

FLOOR = {"edit": 750, "resemblance": 600, "identity": 1001}
"""Thousandths from which a pair is listed, for each measure; of texts that differ none reaches 1001."""

SHINGLE = 4
"""Characters in a shingle. A text with fewer is one shingle."""

_FORMAT = 1
"""Raised when this module gives another result for the same texts."""

_BLOCK = 1 << 17
"""Pairs compared in one go: their bitmaps stay in the processor's cache."""

_WIDE = 16
"""64-bit words of the second bitmap: a post of 150 characters has about 90 different ones, which must not
share bits."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The similar pairs of a corpus.

    Attributes:
        pairs: `(m, 2) int64`, the places of two texts, the lower first; ordered.
        similarity: `(m,) int64`, thousandths rounded down, each at least the measure's `FLOOR`.
    """

    pairs: NDArray[np.int64]
    similarity: NDArray[np.int64]


def truth_of(corpus: Corpus, cache: Path) -> Truth:
    """Return the truth of a corpus, from the cache if it was computed before.

    Args:
        corpus: the texts and what makes them similar.
        cache: a directory, made if it is missing; it tells git to ignore it.
    """
    if corpus.measure == "identity":
        return Truth(np.empty((0, 2), np.int64), np.empty(0, np.int64))
    cache.mkdir(exist_ok=True)
    (cache / ".gitignore").write_text("*\n")
    path = cache / f"{corpus.name}-{_key(corpus)}.npz"
    if not path.exists():
        compute = edit_truth if corpus.measure == "edit" else resemblance_truth
        truth = compute(corpus.texts, FLOOR[corpus.measure])
        # Under another name first: a run that ends half-way leaves no half a truth.
        unfinished = path.with_suffix(".part.npz")
        np.savez_compressed(unfinished, pairs=truth.pairs, similarity=truth.similarity)
        unfinished.replace(path)
    with np.load(path, allow_pickle=False) as stored:
        return Truth(stored["pairs"], stored["similarity"])


def edit_truth(texts: Sequence[str], floor: int) -> Truth:
    """Return all pairs whose edit similarity, 1 - distance / length of the longer, is at least `floor`."""
    parts = [(np.empty((0, 2), np.int64), np.empty(0, np.int64))]
    for pairs, allowed in _survivors(texts, floor):
        first, second = ([texts[place] for place in column] for column in pairs.T.tolist())
        distance = cpdist(
            first, second, scorer=Levenshtein.distance, score_cutoff=allowed, dtype=np.int32
        ).astype(np.int64)
        longer = np.array([max(len(a), len(b)) for a, b in zip(first, second, strict=True)])
        near = distance <= allowed
        parts.append((pairs[near], 1000 * (longer - distance)[near] // longer[near]))
    return _ordered(np.concatenate([p for p, _ in parts]), np.concatenate([s for _, s in parts]))


def resemblance_truth(texts: Sequence[str], floor: int) -> Truth:
    """Return all pairs whose resemblance, shingles in common / shingles of either, is at least `floor`.

    Source: Broder, "On the resemblance and containment of documents", SEQUENCES 1997; exact here.
    """
    numbers: dict[str, int] = {}
    rows = [
        np.array([numbers.setdefault(shingle, len(numbers)) for shingle in shingles(text)], np.int64)
        for text in texts
    ]
    sizes = np.array([len(row) for row in rows])
    # For each shingle the texts that have it, one after the other in `holders`.
    everything = np.concatenate(rows)
    holders = np.repeat(np.arange(len(rows)), sizes)[np.argsort(everything, kind="stable")]
    ends = np.cumsum(np.bincount(everything, minlength=len(numbers)))
    starts = np.concatenate([[0], ends[:-1]])
    pairs, similarity = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)]
    for place, row in enumerate(rows):
        having = [
            holders[start:end] for start, end in zip(starts[row].tolist(), ends[row].tolist(), strict=True)
        ]
        common = np.bincount(np.concatenate(having), minlength=len(rows))[:place]
        value = 1000 * common // (sizes[:place] + sizes[place] - common)
        (similar,) = np.nonzero(value >= floor)
        pairs.append(np.stack([similar, np.full_like(similar, place)], axis=1))
        similarity.append(value[similar])
    return _ordered(np.concatenate(pairs), np.concatenate(similarity))


def shingles(text: str, size: int = SHINGLE) -> dict[str, None]:
    """Return the different runs of `size` characters of a text, in order; the text itself if it is shorter."""
    return dict.fromkeys(text[start : start + size] for start in range(max(1, len(text) - size + 1)))


def check_filter(texts: Sequence[str], floor: int, sample: int) -> int:
    """Compare a sample with all of itself without the filter; return how many similar pairs both ways find.

    The sample is texts at even distances and, for each, a version with about as many edits as the floor allows.

    Raises:
        QualityError: the filter lost a pair, or made one up.
    """
    random = Random(0)
    chosen = list(texts[:: max(1, len(texts) // sample)])
    alphabet = "".join(chosen)
    versions = [_edited(text, len(text) * (1001 - floor) // 1000, alphabet, random) for text in chosen]
    mixed = list(dict.fromkeys([*chosen, *versions]))
    distance = cdist(mixed, mixed, scorer=Levenshtein.distance, dtype=np.int32, workers=-1).astype(np.int64)
    length = np.array([len(text) for text in mixed])
    longer = np.maximum(length[:, np.newaxis], length)
    similarity = np.triu(1000 * (longer - distance) // np.maximum(longer, 1), 1)
    plain = np.argwhere(similarity >= floor)
    filtered = edit_truth(mixed, floor)
    if not (
        np.array_equal(plain, filtered.pairs)
        and np.array_equal(similarity[tuple(plain.T)], filtered.similarity)
    ):
        raise QualityError(
            f"The filter finds {len(filtered.pairs)} similar pairs where there are {len(plain)}: "
            "the truth cannot be trusted; repair bench/quality/truth.py."
        )
    return len(plain)


def pair_keys(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each of `(m, 2)` pairs, in the order of the pairs."""
    return pairs[:, 0] << 32 | pairs[:, 1]


def _survivors(texts: Sequence[str], floor: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield the pairs that may be similar, with the edits that the longer text's length allows.

    Let a pair differ by i insertions, d deletions and r replacements, from the shorter to the longer. A map of
    the characters that occur (each hashed to a bit) changes by at most one bit for an insertion or a deletion
    and two for a replacement: i + d + 2r = 2 (i + d + r) - (i + d) <= 2 allowed - (difference of lengths). So
    where more bits differ, more edits than allowed are needed.
    """
    by_length = np.array(sorted(range(len(texts)), key=lambda place: len(texts[place])), np.int64)
    lengths = np.array([len(texts[place]) for place in by_length.tolist()], np.int64)
    narrow, wide = (_bitmaps([texts[place] for place in by_length.tolist()], words) for words in (1, _WIDE))
    for length in np.unique(lengths).tolist():
        allowed = length * (1000 - floor) // 1000
        begin, end = np.searchsorted(lengths, [length, length + 1]).tolist()
        first = int(np.searchsorted(lengths, length - allowed))
        bound = np.minimum(2 * allowed - (length - lengths[first:end]), 64).astype(np.uint8)
        step = max(1, _BLOCK // (end - first))
        kept = [np.empty((2, 0), np.int64)]
        for row in range(begin, end, step):
            rows = narrow[0, row : min(row + step, end), np.newaxis]
            found = np.nonzero(np.bitwise_count(rows ^ narrow[0, first:end]) <= bound)
            kept.append(np.stack([found[0] + row, found[1] + first]))
        longer, shorter = np.concatenate(kept, axis=1)
        chosen = longer > shorter
        longer, shorter = longer[chosen], shorter[chosen]
        differing = np.zeros(len(longer), np.int64)
        for word in wide:
            differing += np.bitwise_count(word[longer] ^ word[shorter])
        chosen = differing <= 2 * allowed - (length - lengths[shorter])
        pairs = np.stack([by_length[longer[chosen]], by_length[shorter[chosen]]], axis=1)
        if len(pairs):
            yield np.sort(pairs, axis=1), allowed


def _bitmaps(texts: Sequence[str], words: int) -> NDArray[np.uint64]:
    """Which characters occur in each text, `(words, n) uint64`; each character is hashed to one bit."""
    bits = 64 * words
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    # The golden ratio spreads neighbouring code points; the upper bits of the product are the good ones.
    places = (points * np.uint32(0x9E3779B1)).astype(np.uint64) * np.uint64(bits) >> np.uint64(32)
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    present = np.zeros((len(texts), bits), np.bool_)
    present[owners, places.astype(np.int64)] = True
    return np.ascontiguousarray(np.packbits(present, axis=1).view(np.uint64).T)


def _edited(text: str, edits: int, alphabet: str, random: Random) -> str:
    """A version of a text, by so many insertions, deletions and replacements at random places."""
    characters = list(text)
    for _ in range(edits):
        place = random.randrange(len(characters) + 1)
        characters[place : place + random.randrange(2)] = random.choice(["", random.choice(alphabet)])
    return "".join(characters)


def _ordered(pairs: NDArray[np.int64], similarity: NDArray[np.int64]) -> Truth:
    order = np.argsort(pair_keys(pairs), kind="stable")
    return Truth(pairs[order], similarity[order])


def _key(corpus: Corpus) -> str:
    """A hash of everything that the truth of a corpus depends on."""
    digest = sha256(f"{_FORMAT} {corpus.measure} {FLOOR[corpus.measure]} {SHINGLE}".encode())
    for text in corpus.texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()[:16]
