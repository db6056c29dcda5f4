"""Candidates: what a text of a batch may be a near-duplicate of, among what is stored and within its batch.

Two texts are candidates for each other where their fingerprints are within the rules' distance, or where they
share a band and their profiles are near. The second are limited, for the sake of a stream in which a hundred
thousand texts have one template: what a crowd has in common leads to the first of the crowd only, each other is
found by what it has of its own; and of all that meet so those of the nearest profiles are compared. Whether a
text met a crowd is said.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from state.original import Original
from state.table import SegmentTable
from stream.rules import Rules

_BLOCK = 64
"""Texts that are compared with all of their batch in one go, some 5 MB for a batch of 10,000."""


class Texts(NamedTuple):
    """The distinct texts of a batch that may be near-duplicates; n of them."""

    fingerprints: NDArray[np.uint64]
    """`(n,) uint64`, each under its salt."""
    profiles: NDArray[np.uint64]
    """`(n,) uint64`, each under its salt; 0 where a text has no bands."""
    bands: NDArray[np.uint16]
    """`(n, bands) uint16`; 0 where a text has none."""
    banded: NDArray[np.bool_]
    """`(n,) bool`: whether a text has bands."""
    boundaries: NDArray[np.int64]
    """`(n,) int64`: the first offset alive among what is stored, where the text comes first in the batch."""


class Choice(NamedTuple):
    """The candidates of one text."""

    stored: list[int]
    """Offsets of stored originals."""
    fresh: list[Original]
    """Originals of the batch."""
    crowded: NDArray[np.bool_] | None
    """`(bands,) bool`: by which of its bands the text will not be found; None stands for none."""
    capped: bool
    """Whether there may be more, which share a band with it."""


class Candidates:
    """Finds the candidates of the texts of a batch, which are asked for in the order of the batch.

    Parameters:
        table: what is stored.
        texts: the texts, by rows.
        rules: the distances and limits.

    Attributes:
        stored: the offsets of the stored originals that will be chosen, but for rare exceptions; ascending.
    """

    def __init__(self, table: SegmentTable, texts: Texts, rules: Rules) -> None:
        count = len(texts.fingerprints)
        # What is near by its words and far by its characters need not be read: it will not be confirmed.
        reach = 64 if rules.confirm == "none" else max(rules.max_profile_distances)
        matches = table.find_near(
            texts.fingerprints, rules.max_distance, texts.boundaries, texts.profiles, reach
        )
        self._near = _Groups(count, matches.query, matches.offset)
        self._near_here = _Within(
            texts.fingerprints,
            rules.max_distance,
            lambda one, others, _: np.bitwise_count(texts.profiles[others] ^ texts.profiles[one]) <= reach,
        )
        self._texts = texts
        self._fresh = _Fresh(count)
        self._by_bands = None
        stored = matches.offset
        if rules.confirm != "none" and texts.banded.any():
            self._by_bands = _ByBands(table, texts, rules, self._fresh)
            stored = np.concatenate([stored, self._by_bands.first_choice()])
        self.stored: list[int] = np.unique(stored).tolist()

    def add(self, row: int, original: Original) -> None:
        """Take on that a text was judged unique: from now on it is a candidate."""
        self._fresh.add(row, original)
        if self._by_bands is not None:
            self._by_bands.add(row, original)

    def of(self, row: int, boundary: int, horizon: int) -> Choice:
        """Return the candidates of a text.

        Parameters:
            row: its row.
            boundary: the first offset alive among what is stored.
            horizon: an original of the batch is alive if its time is above it.
        """
        stored: list[int] = []
        fresh: list[int] = []
        crowded, capped = None, False
        if row in self._near:
            (near,) = self._near.of(row)
            stored = near[near >= boundary].tolist()
        here, _ = self._near_here.of(row)
        if len(here):
            fresh = [place for place in self._fresh.of(here, horizon).tolist() if place >= 0]
        if self._by_bands is not None and self._texts.banded[row]:
            similar, similar_here, crowded, capped = self._by_bands.of(
                row, boundary, horizon, {*stored}, {*fresh}
            )
            stored += similar
            fresh += similar_here
        return Choice(stored, [self._fresh.originals[place] for place in fresh], crowded, capped)


class _Fresh:
    """The originals of the batch so far, in order, each at a place from 0 on."""

    def __init__(self, rows: int) -> None:
        self.originals: list[Original] = []
        self._times: list[int] = []
        self._latest = np.full(rows, -1, np.int64)

    def add(self, row: int, original: Original) -> None:
        # A text can be an original again, when it has expired within its own batch: only the latest is alive.
        self._latest[row] = len(self.originals)
        self.originals.append(original)
        self._times.append(original.time)

    def of(self, rows: NDArray[np.int64], horizon: int) -> NDArray[np.int64]:
        """For each text the place of its live original, -1 where it has none."""
        places = self._latest[rows]
        return np.where(places >= self._first_alive(horizon), places, -1)

    def _first_alive(self, horizon: int) -> int:
        # Times never fall.
        return bisect_right(self._times, horizon)


class _ByBands:
    """The candidates that share a band with a text."""

    def __init__(self, table: SegmentTable, texts: Texts, rules: Rules, fresh: _Fresh) -> None:
        self._texts = texts
        self._rules = rules
        self._fresh = fresh
        # What may share a band has one in common at least: the distance at none is never asked for.
        self._reach = np.array((-1, *rules.max_profile_distances), np.int64)
        rows = self._rows = np.flatnonzero(texts.banded)
        self._places = (np.cumsum(texts.banded) - 1).tolist()
        self._here = _Within(texts.profiles[rows], int(self._reach.max()), self._share_any)
        self._indexed = texts.bands.copy()
        met = table.find_similar(
            texts.profiles[rows], texts.bands[rows], int(self._reach.max()), texts.boundaries[rows]
        )
        order = np.lexsort((met.offset, met.distance, met.query))
        query, offset, distance = met.query[order], met.offset[order], met.distance[order]
        self._meetings = _Groups(len(rows), query, offset, met.band[order])
        first = self._near_enough(distance, offset, query)
        self._stored_rows, self._stored_offsets = query[first], offset[first]
        self._bounds = np.searchsorted(self._stored_rows, np.arange(len(rows) + 1)).tolist()
        self._stored = list(zip(distance[first].tolist(), offset[first].tolist(), strict=True))

    def add(self, row: int, original: Original) -> None:
        """Take on by which bands an original of the batch is found."""
        if original.bands:
            self._indexed[row] = np.frombuffer(original.bands, "<u2")

    def first_choice(self) -> NDArray[np.int64]:
        """The offsets of the stored originals that come first for each text, as many as are compared."""
        rank = np.arange(len(self._stored_rows)) - np.searchsorted(self._stored_rows, self._stored_rows)
        first: NDArray[np.int64] = self._stored_offsets[rank < self._rules.max_compared]
        return first

    def of(
        self, row: int, boundary: int, horizon: int, stored_known: set[int], fresh_known: set[int]
    ) -> tuple[list[int], list[int], NDArray[np.bool_] | None, bool]:
        """The candidates of a text that are not known otherwise.

        Returns:
            Offsets of stored originals, places of those of the batch, by which bands the text will not be found, and
            whether there may be more.
        """
        at = self._places[row]
        met = self._stored[self._bounds[at] : self._bounds[at + 1]]
        others, distances_here = self._here.of(at)
        if not len(others) and at not in self._meetings:
            return [], [], None, False
        # All that can be chosen, by distance, then offset; those of the batch are the later ones.
        most = self._rules.max_compared + 1
        stored = islice(
            ((d, 0, offset) for d, offset in met if offset >= boundary and offset not in stored_known), most
        )
        fresh: list[tuple[int, int, int]] = []
        same = np.empty((0, self._indexed.shape[1]), np.bool_)
        if len(others):
            others = self._rows[others]
            places = self._fresh.of(others, horizon)
            there = places >= 0
            others, places, distances_here = others[there], places[there], distances_here[there]
            same = self._indexed[others] == self._texts.bands[row]
            near = distances_here <= self._allowed(np.count_nonzero(same, axis=1))
            pairs = zip(distances_here[near].tolist(), places[near].tolist(), strict=True)
            fresh = [(d, 1, place) for d, place in pairs if place not in fresh_known]
        chosen = sorted([*stored, *fresh])
        crowded = self._crowded(at, boundary, same)
        capped = len(chosen) > self._rules.max_compared or crowded is not None
        chosen = chosen[: self._rules.max_compared]
        return (
            [offset for _, kind, offset in chosen if not kind],
            [place for _, kind, place in chosen if kind],
            crowded,
            capped,
        )

    def _crowded(self, at: int, boundary: int, same: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """In which bands a text meets a crowd; `same` says which it shares with originals of the batch."""
        offsets, bands = self._meetings.of(at)
        if len(offsets) + len(same) < self._rules.max_crowd:
            return None
        met = np.bincount(bands[offsets >= boundary], minlength=same.shape[1])
        crowded: NDArray[np.bool_] = met + np.count_nonzero(same, axis=0) >= self._rules.max_crowd
        return crowded if crowded.any() else None

    def _share_any(
        self, one: NDArray[np.int64], others: NDArray[np.int64], _: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """Which pairs of texts with bands share one."""
        bands, rows = self._texts.bands, self._rows
        shared: NDArray[np.bool_] = (bands[rows[others]] == bands[rows[one]]).any(axis=-1)
        return shared

    def _near_enough(self, distances: NDArray[np.int64], *sorted_by: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of meetings sorted by these columns and distances, the first of each pair that is near enough."""
        first = np.flatnonzero(_first_of_equals(distances, *sorted_by))
        shared = np.diff(np.append(first, len(distances)))
        near: NDArray[np.int64] = first[distances[first] <= self._allowed(shared)]
        return near

    def _allowed(self, shared: NDArray[np.int64]) -> NDArray[np.int64]:
        """The largest distance of profiles for so many shared bands."""
        allowed: NDArray[np.int64] = self._reach[np.minimum(shared, len(self._reach) - 1)]
        return allowed


class _Groups:
    """Columns of values, in groups by row, which keep their order.

    Attributes:
        rows: `(m,) int64`, ascending.
        columns: each `(m,)`.
    """

    def __init__(self, count: int, rows: NDArray[np.int64], *columns: NDArray[np.int64]) -> None:
        order = np.argsort(rows, kind="stable")
        self.rows = rows[order]
        self.columns = [column[order] for column in columns]
        self._bounds = np.searchsorted(self.rows, np.arange(count + 1)).tolist()

    def __contains__(self, row: int) -> bool:
        return bool(self._bounds[row] < self._bounds[row + 1])

    def of(self, row: int) -> list[NDArray[np.int64]]:
        """The columns of one group."""
        begin, end = self._bounds[row], self._bounds[row + 1]
        return [column[begin:end] for column in self.columns]


class _Within:
    """Which texts of a batch are near each other.

    Not all pairs are held at once: 10,000 texts of one template would be fifty million.

    Parameters:
        values: `(n,) uint64`, what is compared.
        max_distance: the largest Hamming distance that counts.
        also: of pairs within it, given as rows, rows and distances, those that are near in other ways too.
    """

    def __init__(
        self,
        values: NDArray[np.uint64],
        max_distance: int,
        also: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]], NDArray[np.bool_]],
    ) -> None:
        self._values = values
        self._max_distance = max_distance
        self._also = also
        alone = np.ones(len(values), np.bool_)
        for start in range(0, len(values), _BLOCK):
            apart = np.bitwise_count(values[start : start + _BLOCK, np.newaxis] ^ values)
            one, other = np.nonzero(apart <= max_distance)
            different = one + start != other
            one, other = one[different], other[different]
            near = also(one + start, other, apart[one, other])
            alone[start + one[near]] = False
        self._alone = alone.tolist()

    def of(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of the others near a text, ascending, and their distances."""
        if self._alone[row]:
            return _NONE, _NONE
        apart = np.bitwise_count(self._values ^ self._values[row])
        others = np.flatnonzero(apart <= self._max_distance)
        others = others[others != row]
        others = others[self._also(np.array([row]), others, apart[others])]
        return others, apart[others].astype(np.int64)


def _first_of_equals(*columns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows of sorted columns differ from the row before."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


_NONE: NDArray[np.int64] = np.empty(0, np.int64)
