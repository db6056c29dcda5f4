"""Looking up a batch of texts at once, and comparing them with what is stored under their keys."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from state import postings
from state.tables import Tables

CHUNK = 1 << 20
"""How many pairs of a query and a stored value are compared at once, in some 24 MB of working memory.

Fewer would pay numpy's cost per call more often; many more could take gigabytes where a key is very common.
"""


class Found(NamedTuple):
    """Pairs of a query and an original near it; one that meets in several tables comes several times."""

    rows: NDArray[np.int64]
    "``(m,) int64``: the query's row."

    ids: NDArray[np.uint32]
    "``(m,) uint32``: the original's local id."

    distances: NDArray[np.uint8]
    "``(m,) uint8``: the Hamming distance of their first words."

    tables: NDArray[np.int64]
    "``(m,) int64``: the table in which they meet."

    def where(self, wanted: NDArray[np.bool_]) -> "Found":
        """The pairs that are wanted, ``(m,) bool``."""
        return Found(self.rows[wanted], self.ids[wanted], self.distances[wanted], self.tables[wanted])


class Queries:
    """What is looked up, with everything about it that is the same in every window.

    Args:
        tables: Where it is looked up.
        values: ``(words, n) uint64``.
        limits: For each word the largest Hamming distance that counts.
        keys: ``(tables, n)`` of an unsigned type.

    Attributes:
        values: The same.
        limits: The same.
        keys: The keys of each table, in its own type.
    """

    def __init__(
        self,
        tables: Tables,
        values: NDArray[np.uint64],
        limits: Sequence[int],
        keys: NDArray[np.unsignedinteger[Any]],
    ) -> None:
        self.values = values
        self.limits = limits
        self.keys = tables.narrow(keys)
        self._tables = tables

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """``(tables * n,) int64``, for each pair of a table and a query the query's row."""
        return np.tile(np.arange(self.values.shape[1]), len(self.keys))

    @property
    def lists(self) -> list[bytes]:
        """The keys of the posting lists to be read, each once."""
        return self._lists_and_index[0]

    @property
    def index(self) -> NDArray[np.int64]:
        """``(tables * n,) int64``, for each pair of a table and a query its place in `lists`."""
        return self._lists_and_index[1]

    @cached_property
    def _lists_and_index(self) -> tuple[list[bytes], NDArray[np.int64]]:
        # Only where something has been merged.
        lists: list[bytes] = []
        index = [np.empty(0, np.int64)]
        for table, row in enumerate(self.keys):
            distinct, places = np.unique(row, return_inverse=True)
            index.append(places + len(lists))
            lists += self._tables.lists(table, distinct)
        return lists, np.concatenate(index)


def near(queries: Queries, lists: Sequence[bytes | None], merged: int) -> Iterator[Found]:
    """The postings near each query, in the lists that were read for `queries.lists`.

    What a list holds at or above the local id `merged` is left out: an unfinished merge has written it.

    Yields:
        What was found, chunk by chunk, in no order.
    """
    read = [posting or b"" for posting in lists]
    words = len(queries.limits)
    counts = postings.counts(read, merged, words)[queries.index]
    start = 0
    while start < len(counts):
        end = max(start + 1, start + fitting(counts[start:]))
        sizes = counts[start:end]
        places = queries.index[start:end].tolist()
        stored = np.frombuffer(
            b"".join([read[place][: 8 * size] for place, size in zip(places, sizes.tolist(), strict=True)]),
            "<u8",
        )
        differing = np.repeat(queries.values[0, queries.rows[start:end]], sizes)
        differing ^= stored
        distances = np.bitwise_count(differing)
        hits = np.flatnonzero(distances <= queries.limits[0])
        if len(hits):
            ends = np.cumsum(sizes)
            owner = np.searchsorted(ends, hits, side="right")
            pairs = start + owner
            place = hits - (ends - sizes)[owner]
            yield _completed(queries, read, pairs, place, distances[hits])
        start = end


def fitting(counts: NDArray[np.int64]) -> int:
    """How many of the lists, from the first on, are compared in one go."""
    return int(np.searchsorted(np.cumsum(counts), CHUNK, side="right"))


def _completed(
    queries: Queries,
    lists: Sequence[bytes],
    pairs: NDArray[np.int64],
    place: NDArray[np.int64],
    distances: NDArray[np.uint8],
) -> Found:
    """What is near by its first word, at `place` of the list of a pair of table and query, as far as all words are."""
    words, queried = len(queries.limits), queries.values.shape[1]
    # Only lists with a hit are read.
    used, which = np.unique(queries.index[pairs], return_inverse=True)
    ids = [postings.ids(lists[i], words) for i in used.tolist()]
    sizes = np.array([len(column) for column in ids], np.int64)
    place = (np.cumsum(sizes) - sizes)[which] + place
    found = Found(queries.rows[pairs], np.concatenate(ids)[place], distances, pairs // queried)
    for word in range(1, words):
        column = np.concatenate([postings.column(lists[i], word, words) for i in used.tolist()])[place]
        near = np.bitwise_count(column ^ queries.values[word, found.rows]) <= queries.limits[word]
        place = place[near]
        found = found.where(near)
    return found
