"""Looking up a batch of texts at once, and comparing them with what is stored under their keys.

What is stored is visited from the newest to the oldest. Where a key is very common, as with thousands of texts
of one template, only the newest `cap` originals that have it are compared, counted for each query and table
over all that is alive, wherever it lies: so neither where windows are cut, nor what has been merged yet, nor
what has expired but is still there, changes what is found.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from state import postings
from state.tables import Tables

CHUNK = 1 << 20
"""How many pairs of a query and a stored value are compared at once, in some 24 MB of working memory.

Fewer would pay numpy's cost per call more often; many more could take gigabytes where a key is very common.
"""

UNLIMITED = 1 << 62
"""The cap where there is none."""


class Span(NamedTuple):
    """The offsets that a window covers."""

    first: int
    "The offset of its first original."

    last: int
    "The offset of its last original."


class Found(NamedTuple):
    """Pairs of a query and an original near it; one that meets in several tables comes several times."""

    rows: NDArray[np.int64]
    "``(m,) int64``: the query's row."

    ids: NDArray[np.uint32]
    "``(m,) uint32``: the original's local id."

    distances: NDArray[np.uint8]
    "``(m,) uint8``: the Hamming distance of their first words."

    slots: NDArray[np.int64]
    "``(m,) int64``: which pair of a table and a query it is, see `Queries`."

    newer: NDArray[np.int64]
    "``(m,) int64``: how many originals that are newer have the same key in that table."

    def where(self, wanted: NDArray[np.bool_]) -> "Found":
        """The pairs that are wanted, ``(m,) bool``."""
        return Found(
            self.rows[wanted],
            self.ids[wanted],
            self.distances[wanted],
            self.slots[wanted],
            self.newer[wanted],
        )


class Queries:
    """What is looked up, with everything about it that is the same in every window, and how far the looking is.

    A *slot* is a pair of a table and a query: slot ``table * n + row``.

    Args:
        tables: Where it is looked up.
        values: ``(words, n) uint64``.
        limits: For each word the largest Hamming distance that counts.
        keys: ``(tables, n)`` of an unsigned type.
        boundaries: ``(n,) int64``: for each query the offset below which no original counts.
        cap: How many originals with one key of one table are compared with a query at most.
        spare: How many more there may be, newer than all that is stored: up to `cap - spare` the `crowd` need not
            be exact.

    Attributes:
        values: The same.
        limits: The same.
        keys: The keys of each table, in its own type.
        lists: The keys of the posting lists to be read, each once.
        index: ``(tables * n,) int64``, for each slot its place in `lists`.
        rows: ``(tables * n,) int64``, for each slot the query's row.
        crowd: ``(tables * n,) int64``, how many live originals with its key each slot has come by so far; only a
            bound where it is at most `cap - spare`.
    """

    def __init__(
        self,
        tables: Tables,
        values: NDArray[np.uint64],
        limits: Sequence[int],
        keys: NDArray[np.unsignedinteger[Any]],
        boundaries: NDArray[np.int64],
        cap: int = UNLIMITED,
        spare: int = 0,
    ) -> None:
        self.values = values
        self.limits = limits
        self.keys = tables.narrow(keys)
        self.lists: list[bytes] = []
        index = [np.empty(0, np.int64)]
        for table, row in enumerate(self.keys):
            distinct, places = np.unique(row, return_inverse=True)
            index.append(places + len(self.lists))
            self.lists += tables.lists(table, distinct)
        self.index = np.concatenate(index)
        self.rows = np.tile(np.arange(values.shape[1]), len(tables))
        self.crowd = np.zeros(len(self.rows), np.int64)
        self._boundaries = boundaries
        self._highest = int(boundaries.max(initial=0))
        self._cap = cap
        self._spare = spare

    def enter(
        self, first: int, counts: NDArray[np.int64], span: Span, below: Callable[[int, int], int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take on that slots have come to so many more originals with their keys, all older than those before.

        Args:
            first: The first of the slots, one after another.
            counts: ``(m,) int64``: how many originals there are for each.
            span: The window that they are of.
            below: Called with the place of a slot in `counts` and a local id: how many of its originals have a
                lower id.

        Returns:
            How many of them are to be compared, the newest, and how many newer ones there were before: both
            ``(m,) int64``.
        """
        slots = slice(first, first + len(counts))
        before = self.crowd[slots].copy()
        alive = counts
        if span.first < self._highest:
            boundaries = self._boundaries[self.rows[slots]]
            alive = np.where(boundaries > span.last, 0, counts)
            crowded = (before + alive > self._cap - self._spare) & (boundaries > span.first) & (alive > 0)
            for place in np.flatnonzero(crowded).tolist():
                alive[place] -= below(place, int(boundaries[place]) - span.first)
        self.crowd[slots] += alive
        return np.clip(self._cap - before, 0, counts), before


def near(queries: Queries, lists: Sequence[bytes | None], merged: int, span: Span) -> Iterator[Found]:
    """The postings near each query, in the lists that were read for `queries.lists`.

    What a list holds at or above the local id `merged` is left out: an unfinished merge has written it.

    Yields:
        What was found, chunk by chunk, in no order.
    """
    read = [posting or b"" for posting in lists]
    words = len(queries.limits)
    counts = postings.counts(read, merged, words)[queries.index]

    def below(slot: int, id_: int) -> int:
        place = int(queries.index[slot])
        return int(np.searchsorted(postings.ids(read[place], words)[: counts[slot]], id_))

    taken, before = queries.enter(0, counts, span, below)
    start = 0
    while start < len(taken):
        end = max(start + 1, start + fitting(taken[start:]))
        sizes = taken[start:end]
        places = queries.index[start:end].tolist()
        ends = counts[start:end].tolist()
        stored = np.frombuffer(
            b"".join(
                [
                    read[place][8 * (end_ - size) : 8 * end_]
                    for place, end_, size in zip(places, ends, sizes.tolist(), strict=True)
                ]
            ),
            "<u8",
        )
        differing = np.repeat(queries.values[0, queries.rows[start:end]], sizes)
        differing ^= stored
        distances = np.bitwise_count(differing)
        hits = np.flatnonzero(distances <= queries.limits[0])
        if len(hits):
            stops = np.cumsum(sizes)
            owner = np.searchsorted(stops, hits, side="right")
            # Counted from the newest.
            back = stops[owner] - 1 - hits
            slots = start + owner
            found = Found(
                queries.rows[slots], np.empty(0, np.uint32), distances[hits], slots, before[slots] + back
            )
            yield _completed(queries, read, found, counts[slots] - 1 - back)
        start = end


def fitting(counts: NDArray[np.int64]) -> int:
    """How many of the lists, from the first on, are compared in one go."""
    return int(np.searchsorted(np.cumsum(counts), CHUNK, side="right"))


def _completed(queries: Queries, lists: Sequence[bytes], found: Found, place: NDArray[np.int64]) -> Found:
    """What was found by its first word, at `place` of its list, with ids, and as far as the other words are near."""
    words = len(queries.limits)
    # Only lists with a hit are read.
    used, which = np.unique(queries.index[found.slots], return_inverse=True)
    ids = [postings.ids(lists[i], words) for i in used.tolist()]
    sizes = np.array([len(column) for column in ids], np.int64)
    place = (np.cumsum(sizes) - sizes)[which] + place
    found = found._replace(ids=np.concatenate(ids)[place])
    for word in range(1, words):
        column = np.concatenate([postings.column(lists[i], word, words) for i in used.tolist()])[place]
        near = np.bitwise_count(column ^ queries.values[word, found.rows]) <= queries.limits[word]
        place = place[near]
        found = found.where(near)
    return found
