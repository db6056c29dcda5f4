"""Looking up a batch of fingerprints at once, and comparing them with posting lists."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from state import postings
from state.layout import Layout

CHUNK = 1 << 20
"""How many pairs of a query and a stored fingerprint are compared at once, in some 24 MB of working memory.

Fewer would pay numpy's cost per call more often; many more could take gigabytes where a key is very common.
"""


class Found(NamedTuple):
    """Pairs of a query and an original near it."""

    rows: NDArray[np.int64]
    "``(m,) int64``: the query's row."

    ids: NDArray[np.uint32]
    "``(m,) uint32``: the original's local id."

    distances: NDArray[np.uint8]
    "``(m,) uint8``: their Hamming distance."

    def where(self, wanted: NDArray[np.bool_]) -> "Found":
        """The pairs that are wanted, ``(m,) bool``."""
        return Found(self.rows[wanted], self.ids[wanted], self.distances[wanted])


class Queries:
    """Fingerprints to look up, with everything about them that is the same in every window.

    Args:
        layout: How fingerprints are cut.
        fingerprints: ``(n,) uint64``.

    Attributes:
        fingerprints: The same.
        keys: ``(tables, n) uint64``, their keys in each table.
        lists: The keys of the posting lists to be read for them, each once.
        index: ``(tables * n,) int64``, for each pair of a table and a query its place in `lists`.
        rows: ``(tables * n,) int64``, for each such pair the query's row.
    """

    def __init__(self, layout: Layout, fingerprints: NDArray[np.uint64]) -> None:
        self.fingerprints = fingerprints
        self.keys = layout.keys(fingerprints)
        self.lists: list[bytes] = []
        index = []
        for table, values in enumerate(self.keys):
            distinct, places = np.unique(values, return_inverse=True)
            index.append(places + len(self.lists))
            self.lists += postings.keys(layout, table, distinct)
        self.index = np.concatenate(index)
        self.rows = np.tile(np.arange(len(fingerprints)), len(self.keys))


def near(queries: Queries, lists: Sequence[bytes | None], max_distance: int) -> Iterator[Found]:
    """The postings within `max_distance` of each query, in the lists that were read for `queries.lists`.

    Yields:
        What was found, chunk by chunk, in no order; a pair that meets in several tables comes several times.
    """
    all_sizes = np.array([len(posting or b"") // postings.POSTING_BYTES for posting in lists], np.int64)[
        queries.index
    ]
    start = 0
    while start < len(all_sizes):
        end = max(start + 1, start + fitting(all_sizes[start:]))
        sizes = all_sizes[start:end]
        rows = queries.rows[start:end]
        part = [lists[i] or b"" for i in queries.index[start:end].tolist()]
        stored = np.frombuffer(
            b"".join([posting[: 8 * size] for posting, size in zip(part, sizes.tolist(), strict=True)]), "<u8"
        )
        differing = np.repeat(queries.fingerprints[rows], sizes)
        differing ^= stored
        distances = np.bitwise_count(differing)
        hits = np.flatnonzero(distances <= max_distance)
        if len(hits):
            ends = np.cumsum(sizes)
            owner = np.searchsorted(ends, hits, side="right")
            place = hits - (ends - sizes)[owner]
            yield Found(rows[owner], _ids(part, sizes, owner, place), distances[hits])
        start = end


def fitting(counts: NDArray[np.int64]) -> int:
    """How many of the lists, from the first on, are compared in one go."""
    return int(np.searchsorted(np.cumsum(counts), CHUNK, side="right"))


def _ids(
    lists: Sequence[bytes], sizes: NDArray[np.int64], owner: NDArray[np.int64], place: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """The local ids at `place` of the lists `owner` (ascending); only lists with a hit are read."""
    read, index = np.unique(owner, return_inverse=True)
    columns = b"".join([lists[i][8 * sizes[i] :] for i in read.tolist()])
    starts = np.cumsum(sizes[read]) - sizes[read]
    ids: NDArray[np.uint32] = np.frombuffer(columns, "<u4")[starts[index] + place]
    return ids
