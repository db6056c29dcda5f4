"""The contenders: ways to find near-duplicates, each behind the one interface `Contender`.

All of them work as a stream does, without deleting: a text is looked up among those before it, then added. So a
pair is met once, by its later text, and a contender's time is that of both.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Protocol

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray
from simhash import Simhash, SimhashIndex

from bench.quality.corpora import LONG
from bench.quality.truth import shingles
from state.layout import Layout
from state.memory import MemoryIndex
from state.search import Queries
from state.tables import Rows, Tables
from stream.text import Scheme

__all__ = ["Answer", "ClassicTable", "Contender", "Datasketch", "PyPISimhash", "classic_rule"]

_BATCH = 500
"""Texts in one call, as a worker takes them."""

_BLOCK = 1 << 17
"""Pairs compared in one go: they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What a contender made of a corpus.

    Attributes:
        pairs: `(m, 2) int64`, the places of the texts taken for near-duplicates, the lower first, each pair once.
        candidates: `(n,) int64`, how many texts each lookup compared the text with.
        seconds: everything together: features, index, lookups, comparisons.
    """

    pairs: NDArray[np.int64]
    candidates: NDArray[np.int64]
    seconds: float


class Contender(Protocol):
    """A way to find near-duplicates.

    Attributes:
        name: how tables call it.
        description: what it is and with which parameters, a sentence.
    """

    name: str
    description: str

    def find(self, texts: Sequence[str]) -> Answer:
        """Return the near-duplicates among distinct normalised texts."""
        ...


class ClassicTable:
    """The classic design: the simhash of words, four tables of 16 bits, Hamming distance at most 3."""

    name = "classic"
    description = (
        "our simhash of words in the table of 4 × 16 bits, taken for near-duplicates at Hamming distance 3 or "
        "less; the index in memory, without RocksDB"
    )

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme

    def find(self, texts: Sequence[str]) -> Answer:
        """Return the pairs within the layout's distance."""
        layout = Layout()
        tables = Tables.of_segments(layout)
        begin = time.perf_counter()
        index = MemoryIndex(tables)
        found, fingerprinted, owners = [np.empty((0, 2), np.int64)], [], []
        for first in range(0, len(texts), _BATCH):
            fingerprints = self._scheme.fingerprint(texts[first : first + _BATCH])
            places = first + np.flatnonzero(fingerprints.present)
            own = fingerprints.values[fingerprints.present]
            # What is in the batch too is found with it; a pair counts for the later of its texts.
            # Of the two words that are compared the second, a profile, is left out: it is 0 everywhere.
            values, keys = np.array([own, np.zeros_like(own)]), layout.keys(own)
            index.insert(Rows(values, tables.narrow(keys), places.astype(np.uint32)))
            queries = Queries(tables, values, (layout.max_distance, 64), keys)
            for met in index.near(queries):
                pairs = np.stack([met.ids.astype(np.int64), places[met.rows]], axis=1)
                found.append(pairs[pairs[:, 0] < pairs[:, 1]])
            fingerprinted.append(own)
            owners.append(places)
        pairs = np.unique(np.concatenate(found), axis=0)
        seconds = time.perf_counter() - begin
        candidates = np.zeros(len(texts), np.int64)
        for keys in layout.keys(np.concatenate(fingerprinted)):
            candidates[np.concatenate(owners)] += _equal_before(keys)
        return Answer(pairs, candidates, seconds)


class PyPISimhash:
    """The package `simhash` with its defaults, but for the distance: 3 as ours, where its own is 2."""

    name = "simhash"
    description = (
        f"PyPI simhash {version('simhash')}: its own features (runs of 4 characters), `SimhashIndex` with k = 3. "
        "It cannot weigh a feature that occurs more than 255 times under NumPy 2; such texts are given feature "
        "by feature, which comes to the same"
    )

    def find(self, texts: Sequence[str]) -> Answer:
        """Return what `SimhashIndex` finds."""
        # It warns of every large bucket, each time that it meets it.
        quiet = logging.getLogger("bench.quality.simhash")
        quiet.setLevel(logging.ERROR)
        candidates = np.zeros(len(texts), np.int64)
        pairs = []
        begin = time.perf_counter()
        index = SimhashIndex([], k=3, log=quiet)
        for place, text in enumerate(texts):
            value = _simhash(text)
            candidates[place] = sum(len(index.bucket[key]) for key in index.get_keys(value))
            pairs += [(int(found), place) for found in index.get_near_dups(value)]
            index.add(str(place), value)
        seconds = time.perf_counter() - begin
        return Answer(np.array(pairs, np.int64).reshape(-1, 2), candidates, seconds)


class Datasketch:
    """The package `datasketch`: an index of MinHash bands, and the resemblance that the signatures estimate.

    Parameters:
        threshold: from which estimated resemblance on two texts are near-duplicates; the package derives bands
            and rows from it.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self.name = f"datasketch {threshold}"
        self.description = (
            f"datasketch {version('datasketch')}: `MinHashLSH` with threshold {threshold} and 128 permutations, "
            f"character pairs of texts below {LONG} characters, runs of 4 of longer ones; a candidate is taken "
            f"where `MinHash.jaccard` is {threshold} or more"
        )

    def find(self, texts: Sequence[str]) -> Answer:
        """Return the candidates whose estimated resemblance reaches the threshold."""
        candidates = np.zeros(len(texts), np.int64)
        pairs = []
        begin = time.perf_counter()
        index = MinHashLSH(threshold=self._threshold, num_perm=128)
        signatures = MinHash.bulk(map(_features, texts), num_perm=128)
        for place, signature in enumerate(signatures):
            met = index.query(signature)
            candidates[place] = len(met)
            pairs += [
                (other, place) for other in met if signature.jaccard(signatures[other]) >= self._threshold
            ]
            index.insert(place, signature)
        seconds = time.perf_counter() - begin
        return Answer(np.array(pairs, np.int64).reshape(-1, 2), candidates, seconds)


def classic_rule(scheme: Scheme, texts: Sequence[str], most: int) -> list[NDArray[np.int64]]:
    """Return the pairs that the classic rule takes for near-duplicates at each distance from 0 to `most`.

    By comparing all fingerprints with all: no table is asked, so this is what the rule could find at best.

    Returns:
        For each distance the pairs at that distance or less, `(m, 2) int64`, the lower place first.
    """
    fingerprints = scheme.fingerprint(texts)
    places = np.flatnonzero(fingerprints.present)
    values = fingerprints.values[fingerprints.present]
    pairs, distances = [np.empty((0, 2), np.int64)], [np.empty(0, np.uint8)]
    row = 0
    while row < len(values):
        rows = max(1, _BLOCK // (len(values) - row))
        block = np.bitwise_count(values[row : row + rows, np.newaxis] ^ values[row:])
        first, second = np.nonzero(block <= most)
        chosen = first < second
        first, second = first[chosen], second[chosen]
        pairs.append(np.stack([places[row + first], places[row + second]], axis=1))
        distances.append(block[first, second])
        row += rows
    everything, distance = np.concatenate(pairs), np.concatenate(distances)
    return [everything[distance <= limit] for limit in range(most + 1)]


def _simhash(text: str) -> Simhash:
    try:
        return Simhash(text)
    except OverflowError:  # A weight above 255 in an array of bytes.
        return Simhash(Simhash(0)._tokenize(text))


def _features(text: str) -> list[bytes]:
    size = 2 if len(text) < LONG else 4
    return [shingle.encode("utf-8", "surrogatepass") for shingle in shingles(text, size)]


def _equal_before(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each of `(n,)` keys how many before it are equal to it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    counts = np.empty(len(keys), np.int64)
    counts[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return counts
