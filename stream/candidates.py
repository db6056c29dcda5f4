"""Candidates: what a text of a batch may be a near-duplicate of, among what is stored and within its batch.

Two texts are candidates for each other where their fingerprints are within the rules' distance, or where they
share a band and their profiles are near. The second are limited, for the sake of a stream in which a hundred
thousand texts have one template: what a crowd has in common leads to the first of the crowd only, each other is
found by what it has of its own; and of all that meet so those of the nearest profiles are compared. A crowd can
have its fingerprint in common too: the same words in any order. Whether a text met a crowd is said.
"""

from bisect import bisect_right
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from state.original import Original
from state.table import Meetings, SegmentTable
from state.tables import NO_BAND
from stream.rules import Rules

_BLOCK = 64
"""Texts that are compared with all of their batch in one go, some 5 MB for a batch of 10,000."""

_KEY_BITS = 16
"""The size of a band's key."""


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
    by_fingerprint: bool
    """Whether the text is to be found by its fingerprint."""
    crowded: NDArray[np.bool_] | None
    """`(bands,) bool`: by which of its bands the text is not to be found; None stands for none."""
    capped: bool
    """Whether there may be more."""


NOTHING = Choice([], [], False, None, False)
"""No candidates, for a text that is not looked for: nor is it to be found by any other."""


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
        self._near_here = _Near(texts, rules.max_distance, reach)
        self._texts = texts
        self._rules = rules
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
        self._near_here.add(row, original.by_fingerprint)
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
        if row in self._near:
            (near,) = self._near.of(row)
            stored = near[near >= boundary].tolist()
        here = self._near_here.of(row)
        if len(here):
            fresh = [place for place in self._fresh.of(here, horizon).tolist() if place >= 0]
        # Without a confirmation all that are near are duplicates of one text, and no crowd.
        by_fingerprint = self._rules.confirm == "none" or len(stored) + len(fresh) < self._rules.max_crowd
        crowded, capped = None, not by_fingerprint
        if self._by_bands is not None and self._texts.banded[row]:
            similar, similar_here, crowded, more = self._by_bands.of(
                row, boundary, horizon, {*stored}, {*fresh}
            )
            stored += similar
            fresh += similar_here
            capped = capped or more
        originals = [self._fresh.originals[place] for place in fresh]
        return Choice(stored, originals, by_fingerprint, crowded, capped)


class _Fresh:
    """The originals of the batch so far, in order, each at a place from 0 on.

    Attributes:
        originals: by place.
        rows: `(m,) int64`, by place, with room for more.
    """

    def __init__(self, rows: int) -> None:
        self.originals: list[Original] = []
        self.rows: NDArray[np.int64] = np.zeros(max(rows, 1), np.int64)
        self._times: list[int] = []
        self._latest = np.full(rows, -1, np.int64)

    def add(self, row: int, original: Original) -> None:
        # A text can be an original again, when it has expired within its own batch: only the latest is alive.
        place = self._latest[row] = len(self.originals)
        if place == len(self.rows):
            self.rows = np.concatenate([self.rows, self.rows])
        self.rows[place] = row
        self.originals.append(original)
        self._times.append(original.time)

    def of(self, rows: NDArray[np.int64], horizon: int) -> NDArray[np.int64]:
        """For each text the place of its live original, -1 where it has none."""
        places = self._latest[rows]
        return np.where(places >= self.first_alive(horizon), places, -1)

    def first_alive(self, horizon: int) -> int:
        """The place from which on originals are alive."""
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
        self._here = _Here(texts, int(self._reach.max()), fresh)
        met = table.find_similar(
            texts.profiles[rows], texts.bands[rows], int(self._reach.max()), texts.boundaries[rows]
        )
        order = _order(met)
        query, offset, distance = met.query[order], met.offset[order], met.distance[order]
        self._meetings = _Groups(len(rows), query, offset, met.band[order])
        first = self._near_enough(distance, offset, query)
        self._stored_rows, self._stored_offsets = query[first], offset[first]
        self._bounds = np.searchsorted(self._stored_rows, np.arange(len(rows) + 1)).tolist()
        self._stored = list(zip(distance[first].tolist(), offset[first].tolist(), strict=True))

    def add(self, row: int, original: Original) -> None:
        """Take on by which bands an original of the batch is found."""
        if original.bands:
            self._here.add(row, np.frombuffer(original.bands, "<u2"))

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
        here = self._here.of(row, horizon)
        if here is None and at not in self._meetings:
            return [], [], None, False
        # All that can be chosen, by distance, then offset; those of the batch are the later ones.
        most = self._rules.max_compared + 1
        stored = islice(
            ((d, 0, offset) for d, offset in met if offset >= boundary and offset not in stored_known), most
        )
        fresh: list[tuple[int, int, int]] = []
        if here is not None:
            near = here.distances <= self._allowed(here.shared)
            pairs = zip(here.distances[near].tolist(), here.places[near].tolist(), strict=True)
            fresh = [(d, 1, place) for d, place in pairs if place not in fresh_known]
        chosen = sorted([*stored, *fresh])
        crowded = self._crowded(at, boundary, here)
        capped = len(chosen) > self._rules.max_compared or crowded is not None
        chosen = chosen[: self._rules.max_compared]
        return (
            [offset for _, kind, offset in chosen if not kind],
            [place for _, kind, place in chosen if kind],
            crowded,
            capped,
        )

    def _crowded(self, at: int, boundary: int, here: "_Neighbours | None") -> NDArray[np.bool_] | None:
        """In which bands a text meets a crowd."""
        offsets, bands = self._meetings.of(at)
        if len(offsets) + (0 if here is None else len(here.places)) < self._rules.max_crowd:
            return None
        met = np.bincount(bands[offsets >= boundary], minlength=self._texts.bands.shape[1])
        if here is not None:
            met += here.met
        crowded: NDArray[np.bool_] = met >= self._rules.max_crowd
        return crowded if crowded.any() else None

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


class _Neighbours(NamedTuple):
    """The live originals of the batch that share a band with a text and whose profiles are near; m of them."""

    places: NDArray[np.int64]
    """`(m,) int64`, ascending."""
    distances: NDArray[np.int64]
    """`(m,) int64`: how far the profiles are apart."""
    shared: NDArray[np.int64]
    """`(m,) int64`: how many bands each shares with the text."""
    met: NDArray[np.int64]
    """`(bands,) int64`: how many share each band."""


class _Here:
    """The originals of the batch, found by their bands.

    Not every pair of the batch is looked at: 10,000 texts of one template would be fifty million.
    """

    def __init__(self, texts: Texts, max_distance: int, fresh: _Fresh) -> None:
        self._bands = texts.bands.shape[1]
        self._profiles = texts.profiles
        self._max_distance = max_distance
        self._fresh = fresh
        # One number for a band and a key of it; few are those of two texts of a batch, and only they are looked up.
        keys = np.where(texts.banded[:, np.newaxis], texts.bands + (np.arange(self._bands) << _KEY_BITS), -1)
        distinct, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
        rows, bands = np.nonzero(((counts > 1) & (distinct >= 0))[places].reshape(keys.shape))
        self._keys = _Groups(len(keys), rows, keys[rows, bands])
        self._places: dict[int, list[int]] = {}

    def add(self, row: int, indexed: NDArray[np.uint16]) -> None:
        """Take on the latest original of the batch, with the bands that it is found by."""
        place = len(self._fresh.originals) - 1
        for key in self._keys_of(row):
            if indexed[key >> _KEY_BITS] != NO_BAND:
                self._places.setdefault(key, []).append(place)

    def of(self, row: int, horizon: int) -> _Neighbours | None:
        """The neighbours of a text; None where it has none."""
        lists = [(key, found) for key in self._keys_of(row) if (found := self._places.get(key))]
        if not lists:
            return None
        places = np.fromiter(chain.from_iterable(found for _, found in lists), np.int64)
        apart = np.bitwise_count(self._profiles[self._fresh.rows[places]] ^ self._profiles[row])
        near = (apart <= self._max_distance) & (places >= self._fresh.first_alive(horizon))
        if not near.any():
            return None
        bands = np.repeat([key >> _KEY_BITS for key, _ in lists], [len(found) for _, found in lists])
        distinct, first, shared = np.unique(places[near], return_index=True, return_counts=True)
        met = np.bincount(bands[near], minlength=self._bands)
        return _Neighbours(distinct, apart[near][first].astype(np.int64), shared, met)

    def _keys_of(self, row: int) -> list[int]:
        if row not in self._keys:
            return []
        (column,) = self._keys.of(row)
        keys: list[int] = column.tolist()
        return keys


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


class _Near:
    """The texts of the batch that are found by their fingerprints.

    Not all pairs are held at once: 10,000 texts of one fingerprint would be fifty million.

    Parameters:
        texts: the texts.
        max_distance: the largest Hamming distance of fingerprints that counts.
        max_profile_distance: the largest of their profiles.
    """

    def __init__(self, texts: Texts, max_distance: int, max_profile_distance: int) -> None:
        self._texts = texts
        self._max_distance = max_distance
        self._max_profile_distance = max_profile_distance
        values = texts.fingerprints
        alone = np.empty(len(values), np.bool_)
        for start in range(0, len(values), _BLOCK):
            apart = np.bitwise_count(values[start : start + _BLOCK, np.newaxis] ^ values)
            alone[start : start + _BLOCK] = np.count_nonzero(apart <= max_distance, axis=1) == 1
        self._alone = alone.tolist()
        self._found = np.zeros(len(values), np.bool_)

    def add(self, row: int, by_fingerprint: bool) -> None:
        """Take on that a text became an original, and whether it is to be found by its fingerprint."""
        self._found[row] = by_fingerprint

    def of(self, row: int) -> NDArray[np.int64]:
        """The rows of the originals near a text, ascending."""
        if self._alone[row]:
            return _NONE
        fingerprints, profiles = self._texts.fingerprints, self._texts.profiles
        near = np.bitwise_count(fingerprints ^ fingerprints[row]) <= self._max_distance
        others = np.flatnonzero(near & self._found)
        apart = np.bitwise_count(profiles[others] ^ profiles[row])
        found: NDArray[np.int64] = others[(others != row) & (apart <= self._max_profile_distance)]
        return found


def _order(met: Meetings) -> NDArray[np.int64]:
    """The order of meetings by query, distance and offset; a template in a full table makes a million of them."""
    # One number to sort by takes a fifth of the time of three. Offsets may be any, their ranks have 32 bits.
    _, rank = np.unique(met.offset, return_inverse=True)
    order: NDArray[np.int64] = np.argsort((met.query << 7 | met.distance) << 32 | rank)
    return order


def _first_of_equals(*columns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows of sorted columns differ from the row before."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


_NONE: NDArray[np.int64] = np.empty(0, np.int64)
