"""Merging a window's originals from memory into its posting lists, a slice at a time.

What is merged has been set apart in memory (new originals go to a fresh index); it is appended to the posting
lists table by table, and with the last slice goes up to which local id the window is now merged. Until then
lookups answer from memory and leave out what the lists hold above the old mark, so a merge that was cut short
is repeated: each list is first cut back to the mark.
"""

import numpy as np

from state import postings
from state.memory import Run
from state.store import DEFAULT_FAMILY, Batch
from state.windows import Window

# A slice ends when it has written this many lists or bytes, whichever comes first: about 50 ms. Smaller ones
# would pay for more batches, larger ones would hold the event loop.
_SLICE_LISTS = 4096
_SLICE_BYTES = 8 << 20
# Lists are read so many at a time, as how long they are is known only then.
_READ_LISTS = 256


class Merge:
    """A merge under way.

    Args:
        window: The window whose posting lists take the originals that its indexes have set apart.
        merged: The local id below which they will hold them all; see `Window.freeze` and `Window.gather`.
    """

    def __init__(self, window: Window, merged: int) -> None:
        self.window = window
        self._merged = merged
        self._tables = [
            (index.tables, index.frozen, table)
            for index in (window.segments, window.bands)
            if index.frozen is not None and len(index.frozen.ids)
            for table in range(len(index.tables))
        ]
        self._sorted: _Sorted | None = None
        self._at = 0

    def step(self) -> bool:
        """Write one slice.

        Returns:
            Whether more remains.
        """
        store = self.window.store
        batch = store.batch()
        lists = size = 0
        while self._tables and lists < _SLICE_LISTS and size < _SLICE_BYTES:
            count, written = self._append(batch)
            lists += count
            size += written
        if self._tables:
            store.write(batch)
            return True
        extent = self.window.extent._replace(merged=self._merged)
        batch.put(DEFAULT_FAMILY, extent.key, extent.encode())
        store.write(batch)
        self.window.thaw(extent)
        return False

    def _append(self, batch: Batch) -> tuple[int, int]:
        """Append to the next few lists. How many they were, and their bytes."""
        window, family = self.window, self.window.extent.family
        tables, run, table = self._tables[0]
        if self._sorted is None:
            self._sorted = _Sorted(run, table)
        part = self._sorted
        chosen = slice(self._at, min(self._at + _READ_LISTS, len(part.keys)))
        keys = tables.lists(table, part.keys[chosen])
        starts = part.starts[chosen.start : chosen.stop + 1].tolist()
        columns = [(8, word[starts[0] : starts[-1]].tobytes()) for word in part.values]
        columns.append((4, part.ids[starts[0] : starts[-1]].tobytes()))
        size = 0
        for i, (key, before) in enumerate(zip(keys, window.store.get(family, keys), strict=True)):
            begin, end = starts[i] - starts[0], starts[i + 1] - starts[0]
            after = postings.append(
                before,
                window.extent.merged,
                [column[width * begin : width * end] for width, column in columns],
            )
            batch.put(family, key, after)
            size += len(after)
        self._at = chosen.stop
        if self._at == len(part.keys):
            del self._tables[0]
            self._sorted = None
            self._at = 0
        return len(keys), size


class _Sorted:
    """A run's originals in the order of one table: distinct keys, where each starts, and the columns."""

    def __init__(self, run: Run, table: int) -> None:
        order = run.order[table]
        self.values = run.values[:, order].astype("<u8")
        self.ids = run.ids[order].astype("<u4")
        self.keys, starts = np.unique(run.keys[table], return_index=True)
        self.starts = np.append(starts, len(order))
