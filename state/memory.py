"""An index in memory: the newest originals of a window, before they are merged into posting lists.

Like a log-structured merge tree: a tail takes what comes in, a middle run takes full tails, and the main run
takes full middles. So an insert costs about a microsecond a table over time, a lookup visits three places, and
no single step sorts more than there is.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from state.search import Found, Queries, fitting
from state.tables import Keys, Rows, Tables

# The tail is sorted by every lookup that follows an insert: a shorter one would go into the middle run more often.
TAIL = 4096

# Where the middle run goes into the main run. The main run is rebuilt once for each, so a million texts cost
# sixteen rebuilds of half a million on average.
MIDDLE = 1 << 16


# From so many originals on a table of 16 bits is told by its key where each posting begins: that takes 256 KB and a
# millisecond to make, and is several times faster than a search.
_DIRECT = 1 << 15


class Run:
    """Originals in the order of their local ids, and for each table their order by key.

    Args:
        values: ``(words, n) uint64``.
        ids: ``(n,) uint32``, ascending.
        keys: For each table its keys, sorted, but those that are absent.
        order: For each table the places of the sorted keys, uint32; ascending where keys are equal.
    """

    def __init__(
        self,
        values: NDArray[np.uint64],
        ids: NDArray[np.uint32],
        keys: list[Keys],
        order: list[NDArray[np.uint32]],
    ) -> None:
        self.values = values
        self.ids = ids
        self.keys = keys
        self.order = order
        self._begins = [_begins(row) if len(ids) >= _DIRECT else None for row in keys]

    @classmethod
    def of(cls, rows: Rows, absent: int | None) -> "Run":
        """The run of these originals; what stands for no key is left out."""
        ordered, order = [], []
        for keys in rows.keys:
            places = np.argsort(keys, kind="stable").astype(np.uint32)
            taken = keys[places]
            if absent is not None:
                taken = taken[: np.searchsorted(taken, absent)]
            ordered.append(taken)
            order.append(places[: len(taken)])
        return cls(rows.values, rows.ids, ordered, order)

    @classmethod
    def joined(cls, runs: Sequence["Run"]) -> "Run":
        """One run of several, whose ids ascend from each to the next."""
        runs = [run for run in runs if len(run.ids)] or runs[:1]
        if len(runs) == 1:
            return runs[0]
        starts = np.cumsum([0, *(len(run.ids) for run in runs[:-1])]).tolist()
        keys, order = [], []
        for table in range(len(runs[0].keys)):
            together = np.concatenate([run.keys[table] for run in runs])
            # Stable: of equal keys those of an earlier run, which has lower ids, stay first.
            places = np.argsort(together, kind="stable")
            origin = [run.order[table] + np.uint32(start) for run, start in zip(runs, starts, strict=True)]
            keys.append(together[places])
            order.append(np.concatenate(origin)[places])
        return cls(
            np.concatenate([run.values for run in runs], axis=1),
            np.concatenate([run.ids for run in runs]),
            keys,
            order,
        )

    def near(self, queries: Queries) -> Iterator[Found]:
        """What is near each query; see `search.near`."""
        for table, stored in enumerate(self.keys):
            order, begins, wanted = self.order[table], self._begins[table], queries.keys[table]
            if begins is None:
                first = np.searchsorted(stored, wanted, side="left")
                counts = np.searchsorted(stored, wanted, side="right") - first
            else:
                first = begins[wanted]
                counts = begins[wanted.astype(np.int64) + 1] - first
            start = 0
            while start < len(wanted):
                end = max(start + 1, start + fitting(counts[start:]))
                rows = np.repeat(np.arange(start, end), counts[start:end])
                places = order[_ranges(first[start:end], counts[start:end])]
                distances = np.bitwise_count(queries.values[0, rows] ^ self.values[0, places])
                hits = np.flatnonzero(distances <= queries.limits[0])
                start = end
                if len(hits):
                    yield self._completed(queries, table, rows[hits], places[hits], distances[hits])

    def _completed(
        self,
        queries: Queries,
        table: int,
        rows: NDArray[np.int64],
        places: NDArray[np.uint32],
        distances: NDArray[np.uint8],
    ) -> Found:
        """What is near by its first word, as far as the other words are."""
        found = Found(rows, self.ids[places], distances, np.full(len(rows), table))
        for word in range(1, len(queries.limits)):
            apart = np.bitwise_count(self.values[word, places] ^ queries.values[word, found.rows])
            near = apart <= queries.limits[word]
            places = places[near]
            found = found.where(near)
        return found


class MemoryIndex:
    """An index in memory that finds every pair that shares a key.

    Args:
        tables: What keys there are.
    """

    def __init__(self, tables: Tables) -> None:
        self._absent = tables.absent
        self._nothing = Run.of(tables.nothing(), self._absent)
        self._main = self._nothing
        self._middle = self._nothing
        self._tail = self._nothing
        self._new: list[Rows] = []

    def __len__(self) -> int:
        runs = sum(len(run.ids) for run in (self._main, self._middle, self._tail))
        return runs + sum(len(rows.ids) for rows in self._new)

    def insert(self, rows: Rows) -> None:
        """Add originals whose ids lie above all that were inserted before."""
        if len(rows.ids):
            self._new.append(rows)
            if len(self._tail.ids) + sum(len(new.ids) for new in self._new) >= TAIL:
                self._sort_tail()

    def near(self, queries: Queries) -> Iterator[Found]:
        """What is near each query; see `search.near`."""
        self._sort_new()
        for run in (self._main, self._middle, self._tail):
            if len(run.ids):
                yield from run.near(queries)

    def run(self) -> Run:
        """Everything held, as one run."""
        self._sort_new()
        return Run.joined([self._main, self._middle, self._tail])

    def _sort_new(self) -> None:
        if self._new:
            self._tail = Run.joined([self._tail, *(Run.of(rows, self._absent) for rows in self._new)])
            self._new = []

    def _sort_tail(self) -> None:
        self._sort_new()
        middle = Run.joined([self._middle, self._tail])
        self._tail = self._nothing
        if len(middle.ids) < MIDDLE:
            self._middle = middle
        else:
            self._main = Run.joined([self._main, middle])
            self._middle = self._nothing


def _begins(keys: Keys) -> NDArray[np.int64] | None:
    """Where each key of 16 bits begins among sorted ones, ``(65,537,) int64``; None for wider keys."""
    if keys.dtype != np.uint16:
        return None
    counts = np.bincount(keys, minlength=1 << 16)
    return np.concatenate([[0], np.cumsum(counts)])


def _ranges(first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """``first[0], first[0] + 1, … (counts[0] of them), first[1], …``."""
    ends = np.cumsum(counts)
    places = np.repeat(first - (ends - counts), counts)
    places += np.arange(len(places))
    return places
