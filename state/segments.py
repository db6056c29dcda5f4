"""The segment table in memory: the newest originals of a window, before they are merged into posting lists.

Like a log-structured merge tree: an unsorted tail takes what comes in, a middle run takes full tails, and the
main run takes full middles. So an insert costs about a microsecond over time, a lookup visits three places,
and no single step sorts more than there is.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from state.layout import Layout
from state.search import CHUNK, Found, Queries, fitting

Columns = tuple[NDArray[np.uint64], NDArray[np.uint32]]
"""Fingerprints ``(n,) uint64`` and their local ids ``(n,) uint32``, ascending."""

# A tail is compared with every query by brute force: 4,096 cost about 5 µs a query. A shorter tail would sort
# the middle run more often, a longer one would slow every lookup.
TAIL = 4096

# Where the middle run goes into the main run. The main run is rebuilt once for each, so a million texts cost
# sixteen rebuilds of half a million on average, each below 100 ms.
MIDDLE = 1 << 16


class Run:
    """Originals in the order of their local ids, and for each table their order by key.

    Attributes:
        fingerprints: ``(n,) uint64``.
        ids: ``(n,) uint32``, ascending.
        keys: For each table its sorted keys, ``(n,)`` of the smallest unsigned type that holds them.
        order: For each table the places of the sorted keys, ``(n,) uint32``; ascending where keys are equal.
    """

    def __init__(self, layout: Layout, fingerprints: NDArray[np.uint64], ids: NDArray[np.uint32]) -> None:
        self.fingerprints = fingerprints
        self.ids = ids
        self.keys = []
        self.order = []
        for bits, keys in zip(layout.key_bits, layout.keys(fingerprints), strict=True):
            # Keys of 16 bits are sorted by radix, several times faster than wider ones.
            narrow = keys.astype(_key_type(bits))
            order = np.argsort(narrow, kind="stable").astype(np.uint32)
            self.keys.append(narrow[order])
            self.order.append(order)

    def near(self, queries: Queries, max_distance: int) -> Iterator[Found]:
        """What lies within `max_distance` of each query, as `Segments.near` says."""
        for table, stored in enumerate(self.keys):
            wanted = queries.keys[table].astype(stored.dtype)
            first = np.searchsorted(stored, wanted, side="left")
            counts = np.searchsorted(stored, wanted, side="right") - first
            start = 0
            while start < len(wanted):
                end = max(start + 1, start + fitting(counts[start:]))
                rows = np.repeat(np.arange(start, end), counts[start:end])
                places = self.order[table][_ranges(first[start:end], counts[start:end])]
                distances = np.bitwise_count(queries.fingerprints[rows] ^ self.fingerprints[places])
                hits = np.flatnonzero(distances <= max_distance)
                yield Found(rows[hits], self.ids[places[hits]], distances[hits])
                start = end


class Segments:
    """An index of fingerprints in memory that finds every pair within the layout's distance.

    Args:
        layout: How fingerprints are cut.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        nothing = Run(layout, np.empty(0, np.uint64), np.empty(0, np.uint32))
        self._main = nothing
        self._middle = nothing
        self._tail_fingerprints = np.empty(TAIL, np.uint64)
        self._tail_ids = np.empty(TAIL, np.uint32)
        self._tail_size = 0

    def __len__(self) -> int:
        return len(self._main.ids) + len(self._middle.ids) + self._tail_size

    def insert(self, fingerprints: NDArray[np.uint64], ids: NDArray[np.uint32]) -> None:
        """Add fingerprints ``(n,) uint64`` with their local ids ``(n,) uint32``.

        Ids ascend, and lie above all that were inserted before.
        """
        start = 0
        while start < len(ids):
            taken = min(len(ids) - start, TAIL - self._tail_size)
            into = slice(self._tail_size, self._tail_size + taken)
            self._tail_fingerprints[into] = fingerprints[start : start + taken]
            self._tail_ids[into] = ids[start : start + taken]
            self._tail_size += taken
            start += taken
            if self._tail_size == TAIL:
                self._sort_tail()

    def near(self, queries: Queries, max_distance: int) -> Iterator[Found]:
        """What lies within `max_distance` of each query.

        Yields:
            What was found, part by part, in no order; a pair that meets in several tables comes again.
        """
        for run in (self._main, self._middle):
            if len(run.ids):
                yield from run.near(queries, max_distance)
        if self._tail_size:
            yield from self._near_in_tail(queries, max_distance)

    def run(self) -> Run:
        """Everything held, as one run."""
        return self._joined(self._main, self._middle, self._tail())

    def _tail(self) -> Columns:
        return self._tail_fingerprints[: self._tail_size], self._tail_ids[: self._tail_size]

    def _sort_tail(self) -> None:
        middle = self._joined(self._middle, self._tail())
        self._tail_size = 0
        if len(middle.ids) < MIDDLE:
            self._middle = middle
        else:
            self._main = self._joined(self._main, middle)
            self._middle = self._joined()

    def _near_in_tail(self, queries: Queries, max_distance: int) -> Iterator[Found]:
        tail, ids = self._tail()
        rows = CHUNK // TAIL
        for start in range(0, len(queries.fingerprints), rows):
            distances = np.bitwise_count(queries.fingerprints[start : start + rows, np.newaxis] ^ tail)
            query, place = np.nonzero(distances <= max_distance)
            yield Found(start + query, ids[place], distances[query, place])

    def _joined(self, *parts: Run | Columns) -> Run:
        """One run of the parts, whose ids ascend from each to the next."""
        columns = [(part.fingerprints, part.ids) if isinstance(part, Run) else part for part in parts]
        return Run(
            self.layout,
            np.concatenate([np.empty(0, np.uint64), *(fingerprints for fingerprints, _ in columns)]),
            np.concatenate([np.empty(0, np.uint32), *(ids for _, ids in columns)]),
        )


def _key_type(bits: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that holds a key of so many bits."""
    return np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64


def _ranges(first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """``first[0], first[0] + 1, … (counts[0] of them), first[1], …``."""
    ends = np.cumsum(counts)
    places = np.repeat(first - (ends - counts), counts)
    places += np.arange(len(places))
    return places
