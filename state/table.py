"""The segment table of a scope: its originals on disk, what is near a text, and their place in the log.

Nothing uncommitted comes in here: the records of a transaction are applied after it has committed, in one
batch with the position, so that the state is never ahead of the log, and behind by at most what the
changelog's tail repairs.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from state import store as stores
from state.changelog import Record
from state.description import Description
from state.errors import StateCorruptError, StateError
from state.expiry import NONE_ALIVE, Expiry
from state.layout import Layout
from state.merge import Merge
from state.original import Original
from state.position import Position, follow
from state.search import Found, Queries
from state.store import DEFAULT_FAMILY, Store
from state.tables import BANDS, SEGMENTS, Tables
from state.windows import WINDOW_FLOOR, Extent, Window, WindowStatus, divide, extents

__all__ = ["NONE_ALIVE", "Matches", "Position", "SegmentTable", "WindowStatus"]

MERGE_AT = 1_000_000
"""How many originals of a window are indexed in memory before they are merged into posting lists.

A million takes about 40 MB, and 80 MB more with twelve bands, and is loaded again in a few seconds when the
state is opened. A merge rewrites most lists of the window, so a smaller number writes the window more often.
"""

BULK = 4_000_000
"""How many originals are merged at once where a table is opened that holds many which are not.

Each merge rewrites the window's lists, so more at once write less; four million take about 200 MB meanwhile,
and 400 MB more with twelve bands.
"""

Progress = Callable[[str, int, int], None]
"""Called while a state is opened: what is being done, how many originals are done, how many there are."""

_DESCRIPTION = b"description"
_POSITION = b"position"
# How many originals are read at a time: a few megabytes.
_CHUNK = 4096


class Matches(NamedTuple):
    """Pairs of a query and an original whose fingerprint is near, sorted by query, then offset."""

    query: NDArray[np.int64]
    "``(m,) int64``: the row of the query."

    offset: NDArray[np.int64]
    "``(m,) int64``: the original's offset."

    distance: NDArray[np.int64]
    "``(m,) int64``: the Hamming distance of the two."


class Meetings(NamedTuple):
    """Pairs of a query and an original that share a band, once for each band, in no order."""

    query: NDArray[np.int64]
    "``(m,) int64``: the row of the query."

    offset: NDArray[np.int64]
    "``(m,) int64``: the original's offset."

    distance: NDArray[np.int64]
    "``(m,) int64``: the Hamming distance of their profiles."

    band: NDArray[np.int64]
    "``(m,) int64``: the band."


class SegmentTable:
    """The originals of one scope, durable. Opened by `open`; used from one thread at a time.

    After a `StateError` from a call that writes, the table is behind what it was told, not wrong: close it,
    open it again and apply the changelog from its position.

    Attributes:
        path: The directory.
        scheme: The id of everything that shapes what is stored.
        origin: Where the originals come from.
        layout: How fingerprints are cut.
        bands: How many bands an original has that has any.
        position: Up to where the log is in the state, None where nothing has been applied yet.
    """

    def __init__(
        self,
        store: Store,
        description: Description,
        layout: Layout,
        bands: int,
        window_span: int,
        window_floor: int,
        merge_at: int,
    ) -> None:
        self.path = store.path
        self.scheme = description.scheme
        self.origin: Mapping[str, str] = description.origin
        self.layout = layout
        self.bands = bands
        self.position: Position | None = None
        self._store = store
        self._span = window_span
        self._floor = window_floor
        self._merge_at = merge_at
        self._windows: list[Window] = []
        self._merge: Merge | None = None
        self._loading = False
        self._expiry = Expiry(lambda: self._windows)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        scheme: str,
        layout: Layout,
        window_span: int,
        bands: int,
        origin: Mapping[str, str],
        window_floor: int = WINDOW_FLOOR,
        merge_at: int = MERGE_AT,
        progress: Progress | None = None,
    ) -> Self:
        """Open the state in `path`, or make it.

        A state of another layout is indexed anew from its originals, which takes a few seconds a million.

        Args:
            path: The directory.
            scheme: The id of everything that shapes what is stored.
            layout: How fingerprints are cut.
            window_span: How long a new window is, in milliseconds of stream time.
            bands: How many bands an original has that has any; the scheme says so.
            window_floor: How many originals a window takes at least, even if that takes longer.
            origin: Where the originals come from, such as cluster, topic and partition.
            merge_at: How many originals of a window are indexed in memory before they are merged.
            progress: Called while originals are indexed.

        Raises:
            StateMismatchError: The state is of another scheme, origin or format.
            StateInUseError: Another process, or another table of this one, holds it.
            StateCorruptError: It cannot be read.
            StateError: The directory cannot be used.
        """
        if min(window_span, window_floor, merge_at) < 1:
            raise ValueError(
                f"A window's span and floor and a merge size are at least 1, not {window_span}, {window_floor} and "
                f"{merge_at}."
            )
        store = Store(path)
        try:
            description = Description(scheme, dict(origin), str(layout))
            table = cls(store, description, layout, bands, window_span, window_floor, merge_at)
            table._load(progress or (lambda *_: None))
        except BaseException:
            store.close()
            raise
        return table

    @staticmethod
    def destroy(path: Path) -> None:
        """Delete the state in `path`; nothing happens where there is none.

        Raises:
            StateInUseError: It is open.
            StateError: It cannot be deleted.
        """
        stores.destroy(path)

    def find_content(self, keys: Sequence[bytes]) -> list[int | None]:
        """The offset of the newest stored original with each content key, None where there is none.

        It may lie below the boundary: the caller compares.
        """
        found: list[int | None] = [None] * len(keys)
        missing = list(range(len(keys)))
        for window in reversed(self._windows):
            if not missing:
                break
            for i, offset in zip(missing, window.find_content([keys[i] for i in missing]), strict=True):
                found[i] = offset
            missing = [i for i in missing if found[i] is None]
        return found

    def find_near(
        self,
        fingerprints: NDArray[np.uint64],
        max_distance: int,
        boundaries: NDArray[np.int64],
        profiles: NDArray[np.uint64] | None = None,
        max_profile_distance: int = 64,
    ) -> Matches:
        """Every stored original near each fingerprint: exactly those that an exhaustive search would find.

        An original is compared by its fingerprint under its salt (their XOR), and so must the query be given.

        Args:
            fingerprints: ``(n,) uint64``, each under its salt.
            max_distance: The largest Hamming distance that counts.
            boundaries: ``(n,) int64``: for each query the offset below which no original counts.
            profiles: ``(n,) uint64``, each under its salt; zeros where there are none.
            max_profile_distance: Of those that are near only those count whose profile is within this distance too.

        Raises:
            ValueError: The layout does not guarantee `max_distance`.
        """
        if not 0 <= max_distance <= self.layout.max_distance:
            raise ValueError(
                f"The layout {self.layout} finds every pair up to a Hamming distance of "
                f"{self.layout.max_distance}, not of {max_distance}: take a layout with more blocks."
            )
        values = np.array([fingerprints, np.zeros_like(fingerprints) if profiles is None else profiles])
        limits = (max_distance, max_profile_distance)
        keys = self.layout.keys(fingerprints)
        queries = Queries(Tables.of_segments(self.layout), values, limits, keys)
        found = self._found(boundaries, lambda window: window.find_near(queries))
        order = np.lexsort((found.offset, found.query))
        query, offset, distance = found.query[order], found.offset[order], found.distance[order]
        # A pair meets in every table whose blocks it shares.
        new = np.ones(len(order), bool)
        new[1:] = (query[1:] != query[:-1]) | (offset[1:] != offset[:-1])
        return Matches(query[new], offset[new], distance[new])

    def find_similar(
        self,
        profiles: NDArray[np.uint64],
        bands: NDArray[np.uint16],
        max_distance: int,
        boundaries: NDArray[np.int64],
    ) -> Meetings:
        """Every stored original that shares a band with a query and whose profile is near.

        Args:
            profiles: ``(n,) uint64``, each under its salt.
            bands: ``(n, bands) uint16``.
            max_distance: The largest Hamming distance of profiles that counts.
            boundaries: ``(n,) int64``: for each query the offset below which no original counts.
        """
        tables = Tables.of_bands(self.bands)
        queries = Queries(tables, profiles[np.newaxis], (max_distance,), bands.T)
        return self._found(boundaries, lambda window: window.find_similar(queries))

    def postings_met(self, bands: NDArray[np.uint16]) -> NDArray[np.int64]:
        """With how many stored profiles `find_similar` compares each query.

        Args:
            bands: ``(n, bands) uint16``.

        Returns:
            ``(n,) int64``.
        """
        nothing = np.zeros((1, len(bands)), np.uint64)
        queries = Queries(Tables.of_bands(self.bands), nothing, (64,), bands.T)
        everything = np.zeros(len(bands), np.int64)
        met = self._found(everything, lambda window: window.find_similar(queries))
        return np.bincount(met.query, minlength=len(bands))

    def _found(self, boundaries: NDArray[np.int64], look: Callable[[Window], Iterable[Found]]) -> Meetings:
        """All that a look at each window finds and that is alive."""
        self._require_indexed()
        lowest = int(boundaries.min(initial=np.iinfo(np.int64).max))
        columns: tuple[list[NDArray[np.int64]], ...] = tuple(
            [np.empty(0, np.int64)] for _ in Meetings._fields
        )
        for window in self._windows:
            if window.extent.last < lowest:
                continue
            for found in look(window):
                offset = found.ids.astype(np.int64) + window.extent.first
                alive = offset >= boundaries[found.rows]
                pairs = (found.rows, offset, found.distances.astype(np.int64), found.tables)
                for column, part in zip(columns, pairs, strict=True):
                    column.append(part[alive])
        return Meetings(*map(np.concatenate, columns))

    def originals(self, offsets: Sequence[int]) -> list[Original]:
        """The stored originals at `offsets`, in that order.

        Raises:
            StateCorruptError: There is none at one of them.
        """
        firsts = [window.extent.first for window in self._windows]
        of_window: dict[int, list[int]] = {}
        for offset in offsets:
            of_window.setdefault(bisect_right(firsts, offset) - 1, []).append(offset)
        found: dict[int, Original] = {}
        for place, wanted in of_window.items():
            if place < 0 or max(wanted) > self._windows[place].extent.last:
                raise StateCorruptError(
                    f"The state in {self.path} lacks an original at one of the offsets {sorted(wanted)}. "
                    "Delete the directory: the changelog rebuilds it."
                )
            found.update(zip(wanted, self._windows[place].originals(wanted), strict=True))
        return [found[offset] for offset in offsets]

    def first_alive(self, horizons: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first stored original, at or after the position's boundary, that is younger than each horizon.

        Args:
            horizons: ``(n,) int64``: milliseconds of stream time, never falling within a call.

        Returns:
            ``(n,) int64``: the offset of the first original whose time is above the horizon, or `NONE_ALIVE`.
        """
        return self._expiry.first_alive(horizons, self._boundary)

    def apply(self, records: Sequence[Record], changelog: int) -> None:
        """Take in what committed transactions did, in one batch with the position.

        A record that ends at or below the position is ignored: it has been applied. So the changelog's tail
        can be applied again. Windows that lie below the boundary afterwards are dropped.

        Args:
            records: In the changelog's order.
            changelog: The offset of the changelog record after them.

        Raises:
            ChangelogError: A record does not follow from the state. Nothing has been applied.
            StateError: The state cannot be written.
        """
        self._require_indexed()
        for window, ids, values in self._write(records, changelog):
            window.index(ids, values)

    def load(self, records: Sequence[Record], changelog: int) -> None:
        """Take in as `apply` does, where many records follow and nothing is asked meanwhile.

        Nothing is indexed: close the table and open it again, which sorts and merges all of it at once, before
        anything is looked up. Arguments and errors are those of `apply`.
        """
        for _ in self._write(records, changelog):
            self._loading = True

    def _require_indexed(self) -> None:
        if self._loading:
            raise StateError(f"The state in {self.path} was loaded and not indexed: open it again first.")

    def _write(
        self, records: Sequence[Record], changelog: int
    ) -> list[tuple[Window, list[int], list[bytes]]]:
        """Write what records add, with the position; returns what went to which window, as `Window.index` takes it."""
        before = self.position
        position, originals = follow(self.path, before, records, changelog)
        if position is None:
            return []
        begun = before.changelog if before else 0
        # Records that are applied again must not set it back.
        position = position._replace(changelog=max(changelog, begun))
        # What has expired within its own batch is never compared: it need not be written.
        originals = [original for original in originals if original.offset >= position.boundary]
        windows = {window.extent.first: window for window in self._windows}
        newest = self._windows[-1].extent if self._windows else None
        divided = divide(newest, originals, self._span, self._floor, begun)
        batch = self._store.batch()
        written = []
        for extent, added in divided:
            window = windows.get(extent.first)
            if window is None:
                window = windows[extent.first] = Window(self._store, extent, self.layout, self.bands)
            written.append((window, *window.write(batch, added)))
            batch.put(DEFAULT_FAMILY, extent.key, extent.encode())
        after = {
            **{first: window.extent for first, window in windows.items()},
            **{e.first: e for e, _ in divided},
        }
        expired = [extent for extent in after.values() if extent.last < position.boundary]
        for extent in expired:
            batch.delete(DEFAULT_FAMILY, extent.key)
        batch.put(DEFAULT_FAMILY, _POSITION, position.encode())
        self._store.write(batch)
        self.position = position
        for extent, _ in divided:
            windows[extent.first].extent = extent
        for extent in expired:
            self._drop(windows.pop(extent.first))
        self._windows = list(windows.values())
        self._expiry.trim(position.boundary)
        return [part for part in written if part[0] in self._windows]

    def merge_step(self) -> bool:
        """Do a slice of the merging that is due, about 50 ms of it.

        Returns:
            Whether more is due.
        """
        if self._merge is None:
            due = self._due()
            if due is None:
                return False
            # Sorting what is to be merged is a slice of its own.
            self._merge = Merge(due, due.freeze())
            return True
        if self._merge.step():
            return True
        self._merge = None
        return self._due() is not None

    def windows(self) -> list[WindowStatus]:
        """The windows, oldest first."""
        return [window.status() for window in self._windows]

    def contents(self) -> Iterator[Original]:
        """Every stored original at or after the boundary, in the order of the offsets."""
        begin = 0
        while True:
            # Looked up anew each time, as records may be applied while this is read.
            begin = max(begin, self._boundary)
            window = next((window for window in self._windows if window.extent.last >= begin), None)
            if window is None:
                return
            originals = window.stored(begin, _CHUNK)
            yield from originals
            begin = originals[-1].offset + 1

    def checkpoint(self, directory: Path) -> None:
        """Make `directory`, which must not exist, a copy of the state that can be opened in its place.

        Raises:
            StateError: The directory exists, or cannot be written.
        """
        self._store.checkpoint(directory)

    def close(self) -> None:
        """Release the directory. The table cannot be used any more; closing it again does nothing."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def changelog_needed(self) -> int:
        """The first changelog offset that building this state anew would need; the records before it may go.

        The last record is always needed: it holds the position. 0 where nothing has been applied.
        """
        if self.position is None:
            return 0
        return min([self.position.changelog - 1, *(window.extent.changelog for window in self._windows)])

    @property
    def _boundary(self) -> int:
        return self.position.boundary if self.position else 0

    def _load(self, progress: Progress) -> None:
        """Read what the store says, and index what its posting lists do not hold."""
        wanted = Description(self.scheme, dict(self.origin), str(self.layout))
        described, position = self._store.get(DEFAULT_FAMILY, [_DESCRIPTION, _POSITION])
        if described is None:
            self._describe(wanted, [])
        else:
            description = Description.decode(self.path, described)
            description.require(self.path, scheme=self.scheme, origin=self.origin)
            if description.layout != wanted.layout:
                self._describe(wanted, extents(self._store))
        if position is not None:
            self.position = Position.decode(position)
        known = extents(self._store)
        # A family that was made for a batch that never came, or whose window expired just before a crash.
        for name in {*self._store.families} - {DEFAULT_FAMILY} - {extent.family for extent in known}:
            self._store.drop(name)
        done, total = 0, sum(extent.end - extent.merged for extent in known)
        for extent in known:
            window = Window(self._store, extent, self.layout, self.bands)
            self._windows.append(window)
            while window.extent.end - window.extent.merged >= self._merge_at:
                before = window.extent.merged
                merge = Merge(window, window.gather(max(self._merge_at, BULK)))
                while merge.step():
                    pass
                done += window.extent.merged - before
                progress("index", done, total)
            begin = window.extent.merged
            while begin < extent.end:
                after = window.load(begin, _CHUNK)
                done += after - begin
                begin = after
                progress("index", done, total)

    def _describe(self, description: Description, reindexed: Sequence[Extent]) -> None:
        """Write the description, and leave the posting lists of windows empty: they are of another layout."""
        batch = self._store.batch()
        for extent in reindexed:
            for prefix in (SEGMENTS, BANDS):
                batch.delete_range(extent.family, prefix, prefix + b"\xff" * 16)
            batch.put(DEFAULT_FAMILY, extent.key, extent._replace(merged=0).encode())
        batch.put(DEFAULT_FAMILY, _DESCRIPTION, description.encode())
        self._store.write(batch)

    def _due(self) -> Window | None:
        """The oldest window to be merged: a closed one with anything in memory, or one with much."""
        for window in self._windows:
            closed = window is not self._windows[-1]
            if window.unmerged >= (1 if closed else self._merge_at):
                return window
        return None

    def _drop(self, window: Window) -> None:
        if self._merge is not None and self._merge.window is window:
            self._merge = None
        self._store.drop(window.extent.family)
