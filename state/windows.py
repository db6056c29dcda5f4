"""Windows: a scope's originals, cut into ranges of offsets and of stream time that expire as a whole.

A window is one column family, written once and in order. In it lie, by the first byte of the key,

- ``e`` and a local id: the original itself;
- ``c`` and a content key: the local id of the newest original with that content;
- ``s`` and a table's key: a posting list (see `postings`) of the originals below the window's `merged`, by the
  segments of their fingerprints;
- ``b`` and a table's key: the same by their bands.

A local id is an offset less the window's first offset, 32 bits. The originals from `merged` on are indexed in
memory.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from state import original as entries
from state.errors import StateCorruptError
from state.index import Index
from state.layout import Layout
from state.memory import Run
from state.original import Original
from state.search import Found, Queries
from state.store import DEFAULT_FAMILY, Batch, Store
from state.tables import Rows, Tables

MAX_LOCAL_IDS = 1 << 32
"""A window covers fewer offsets than this."""

WINDOW_FLOOR = 65_536
"""A window takes at least this many originals before another one follows it, however long that takes.

A column family costs tens of milliseconds to make and to drop and a log file of its own: where years of old
texts are judged in minutes, or few texts come in a day, windows by time alone would be most of the work. So
many originals take about 15 MB, and what has expired among them is left out by the boundary all the same.
"""

# How many originals are read at a time where many are: about ten megabytes.
_GATHERED = 1 << 16

_ENTRY = b"e"
_CONTENT = b"c"
_META = b"window:"


class Extent(NamedTuple):
    """What a window covers: kept beside the position, and changed in the same batch as the window."""

    first: int
    "The offset of its first original."

    first_time: int
    "Its first original's time, in milliseconds."

    last: int
    "The offset of its last original."

    last_time: int
    "Its last original's time, in milliseconds."

    size: int
    "How many originals it holds."

    merged: int
    "The local id below which its originals are in the posting lists; those above are indexed in memory."

    changelog: int = 0
    "An offset of the changelog from which on it holds all of the window; 0 where that is not known."

    @property
    def family(self) -> str:
        """The name of its column family."""
        # Offsets are padded, so that names sort as the windows do.
        return f"window-{self.first:020}"

    @property
    def key(self) -> bytes:
        """The key under which it is kept."""
        return _META + self.family.encode()

    @property
    def end(self) -> int:
        """The local id after its last original's."""
        return self.last - self.first + 1

    def encode(self) -> bytes:
        """The value under which it is kept."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """The extent that `encode` made."""
        return cls(**json.loads(value))


class WindowStatus(NamedTuple):
    """A window, for status and metrics."""

    first: int
    "The offset of its first original."

    first_time: int
    "Its first original's time, in milliseconds."

    last: int
    "The offset of its last original."

    last_time: int
    "Its last original's time, in milliseconds."

    originals: int
    "How many originals it holds."

    merged: int
    "The offset below which its originals are in posting lists."

    unmerged: int
    "How many of them are indexed in memory, not yet in posting lists."

    bytes: int
    "About how much room it takes on disk."


def extents(store: Store) -> list[Extent]:
    """The windows that a store knows of, oldest first."""
    # To a byte above every name's, and far more windows than can be.
    return [Extent.decode(value) for _, value in store.scan(DEFAULT_FAMILY, _META, _META + b"\xff", 1 << 20)]


def divide(
    newest: Extent | None, originals: Iterable[Original], span: int, floor: int, changelog: int
) -> list[tuple[Extent, list[Original]]]:
    """Which windows new originals go to.

    Args:
        newest: The window that was written last.
        originals: In the order of their offsets.
        span: How long a window is, in milliseconds of stream time.
        floor: How many originals a window takes at least, even if that takes longer.
        changelog: An offset of the changelog at or before the one that brings them.

    Returns:
        Each window that takes some: its extent with them, and which they are; oldest first.
    """
    divided: list[tuple[Extent, list[Original]]] = []
    extent = newest
    added: list[Original] = []
    for item in originals:
        if (
            extent is None
            or (item.time >= extent.first_time + span and extent.size + len(added) >= floor)
            or item.offset - extent.first >= MAX_LOCAL_IDS
        ):
            extent = Extent(item.offset, item.time, item.offset, item.time, 0, 0, changelog)
            added = []
        if not added:
            divided.append((extent, added))
        added.append(item)
    return [
        (
            extent._replace(last=added[-1].offset, last_time=added[-1].time, size=extent.size + len(added)),
            added,
        )
        for extent, added in divided
    ]


class Window:
    """An open window.

    Args:
        store: Where its family is.
        extent: What it covers.
        layout: How fingerprints are cut.
        bands: How many bands an original has.

    Attributes:
        extent: What it covers now.
        segments: The index by segments of the fingerprint.
        bands: The index by bands.
    """

    def __init__(self, store: Store, extent: Extent, layout: Layout, bands: int) -> None:
        self.store = store
        self.extent = extent
        self.layout = layout
        store.create(extent.family)
        self.segments = Index(store, extent.family, Tables.of_segments(layout))
        self.bands = Index(store, extent.family, Tables.of_bands(bands))

    @property
    def unmerged(self) -> int:
        """How many originals are indexed in memory."""
        # Some are found by their bands only, some by their fingerprints only.
        return max(self.segments.unmerged, self.bands.unmerged)

    def status(self) -> WindowStatus:
        """What it holds."""
        extent = self.extent
        return WindowStatus(
            first=extent.first,
            first_time=extent.first_time,
            last=extent.last,
            last_time=extent.last_time,
            originals=extent.size,
            merged=extent.first + extent.merged,
            unmerged=self.unmerged,
            bytes=self.store.size(self.extent.family),
        )

    def write(self, batch: Batch, originals: Iterable[Original]) -> tuple[list[int], list[bytes]]:
        """Put originals into `batch`; returns their local ids and values, for `index`."""
        first, family = self.extent.first, self.extent.family
        ids, values = [], []
        for item in originals:
            local = item.offset - first
            key = local.to_bytes(4, "big")
            value = entries.encode(item)
            batch.put(family, _ENTRY + key, value)
            batch.put(family, _CONTENT + item.content, key)
            ids.append(local)
            values.append(value)
        return ids, values

    def index(self, ids: Sequence[int], values: Sequence[bytes]) -> None:
        """Index originals that have been written, by their local ids and values, in memory."""
        self.segments.insert(entries.segment_rows(self.layout, ids, values))
        self.bands.insert(entries.band_rows(len(self.bands.tables), ids, values))

    def load(self, begin: int, limit: int) -> int:
        """Index up to `limit` stored originals from the local id `begin` on.

        Returns:
            The local id to go on from.
        """
        ids, values = self._scan(begin, limit)
        self.index(ids, values)
        return ids[-1] + 1 if len(ids) == limit else self.extent.end

    def gather(self, limit: int) -> int:
        """Set up to `limit` stored originals that are not merged yet apart, to be merged.

        Nothing of the window may be indexed in memory, and nothing be looked up meanwhile.

        Returns:
            The local id below which the window will be merged.
        """
        begin, count = self.extent.merged, 0
        rows: list[tuple[Rows, Rows]] = []
        while count < limit and begin < self.extent.end:
            ids, values = self._scan(begin, min(_GATHERED, limit - count))
            rows.append(
                (
                    entries.segment_rows(self.layout, ids, values),
                    entries.band_rows(len(self.bands.tables), ids, values),
                )
            )
            begin, count = ids[-1] + 1, count + len(ids)
        for index, parts in zip((self.segments, self.bands), zip(*rows, strict=True), strict=True):
            index.frozen = Run.of(_stacked(parts), index.tables.absent)
        return begin

    def freeze(self) -> int:
        """Set what is indexed in memory apart, to be merged; it answers lookups until `thaw`.

        Returns:
            The local id below which the window will be merged.
        """
        self.segments.freeze()
        self.bands.freeze()
        return self.extent.end

    def thaw(self, extent: Extent) -> None:
        """Take on that the frozen part has been merged: from now on the posting lists answer for it."""
        self.extent = extent
        self.segments.thaw()
        self.bands.thaw()

    def find_content(self, keys: Sequence[bytes]) -> list[int | None]:
        """The offset of the newest original with each content key, None where there is none."""
        found = self.store.get(self.extent.family, [_CONTENT + key for key in keys])
        first = self.extent.first
        return [None if value is None else first + int.from_bytes(value, "big") for value in found]

    def find_near(self, queries: Queries) -> Iterator[Found]:
        """The originals near each query by the segments of their fingerprints, in no order."""
        return self.segments.near(queries, self.extent.merged)

    def find_similar(self, queries: Queries) -> Iterator[Found]:
        """The originals that each query shares a band with, in no order."""
        return self.bands.near(queries, self.extent.merged)

    def originals(self, offsets: Sequence[int]) -> list[Original]:
        """The originals at `offsets`.

        Raises:
            StateCorruptError: There is none at one of them.
        """
        first = self.extent.first
        keys = [_ENTRY + (offset - first).to_bytes(4, "big") for offset in offsets]
        values = self.store.get(self.extent.family, keys)
        return [self._decoded(offset, value) for offset, value in zip(offsets, values, strict=True)]

    def stored(self, begin: int, limit: int) -> list[Original]:
        """The first `limit` originals at or after the offset `begin`."""
        ids, values = self._scan(max(begin - self.extent.first, 0), limit)
        first = self.extent.first
        return [self._decoded(first + local, value) for local, value in zip(ids, values, strict=True)]

    def times(self, begin: int, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Offsets and times ``(m,) int64`` of the first `limit` originals at or after the offset `begin`."""
        ids, values = self._scan(max(begin - self.extent.first, 0), limit)
        return np.array(ids, np.int64) + self.extent.first, entries.times(values)

    def first_later(self, begin: int, horizon: int) -> int:
        """From where on the first original is the first that is later than `horizon`; at or after `begin`.

        There must be one: the window's last time is above `horizon`, and its last offset at or after `begin`.
        """
        # Times never fall, so the ids are bisected: a seek finds the original at or after any of them.
        low, high = max(begin - self.extent.first, 0), self.extent.end - 1
        while low < high:
            middle = (low + high) // 2
            ids, values = self._scan(middle, 1)
            if entries.times(values)[0] > horizon:
                high = middle
            else:
                low = ids[0] + 1
        return self.extent.first + low

    def _scan(self, begin: int, limit: int) -> tuple[list[int], list[bytes]]:
        """Local ids and values of the first `limit` originals from the local id `begin` on."""
        # Beyond the last original may lie some that were written in a batch whose position was lost.
        last = _ENTRY + (self.extent.end - 1).to_bytes(4, "big")
        found = self.store.scan(self.extent.family, _ENTRY + begin.to_bytes(4, "big"), last + b"\0", limit)
        # One that should be there and is not is never taken for the end.
        if len(found) < limit and (not found or found[-1][0] != last):
            raise self._lost(self.extent.last)
        return [int.from_bytes(key[1:], "big") for key, _ in found], [value for _, value in found]

    def _decoded(self, offset: int, value: bytes | None) -> Original:
        if value is None:
            raise self._lost(offset)
        try:
            return entries.decode(offset, value)
        except ValueError as error:
            raise self._lost(offset) from error

    def _lost(self, offset: int) -> StateCorruptError:
        return StateCorruptError(
            f"The state in {self.store.path} has lost the original at offset {offset}. Delete the directory: "
            "the changelog rebuilds it."
        )


def _stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of several parts, one after another."""
    return Rows(
        np.concatenate([part.values for part in parts], axis=1),
        [np.concatenate(keys) for keys in zip(*(part.keys for part in parts), strict=True)],
        np.concatenate([part.ids for part in parts]),
    )
