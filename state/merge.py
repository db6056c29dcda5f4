"""Merging a window's originals from memory into its posting lists, a slice at a time.

A merge freezes the index in memory (new originals go to a fresh one), appends it to the posting lists table
by table, and with the last slice writes up to which local id the window is now merged. Until then lookups
answer from memory and leave out what the lists hold above the old mark, so a merge that was cut short is
repeated: each list is first cut back to the mark.
"""

import numpy as np

from state import postings
from state.segments import Run
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
        window: The window whose posting lists take the originals.
        run: Those that are merged, the first of which lies at the window's `merged`; see `Window.freeze` and
            `Window.gather`.
    """

    def __init__(self, window: Window, run: Run) -> None:
        self.window = window
        self._run = run
        self._table = 0
        self._sorted = _Sorted(self._run, 0)
        self._at = 0

    def step(self) -> bool:
        """Write one slice.

        Returns:
            Whether more remains.
        """
        store = self.window.store
        batch = store.batch()
        lists = size = 0
        while self._table < len(self._run.keys) and lists < _SLICE_LISTS and size < _SLICE_BYTES:
            count, written = self._append(batch)
            lists += count
            size += written
            if self._at == len(self._sorted.keys):
                self._table += 1
                self._at = 0
                if self._table < len(self._run.keys):
                    self._sorted = _Sorted(self._run, self._table)
        if self._table < len(self._run.keys):
            store.write(batch)
            return True
        extent = self.window.extent._replace(merged=int(self._run.ids[-1]) + 1)
        batch.put(DEFAULT_FAMILY, extent.key, extent.encode())
        store.write(batch)
        self.window.thaw(extent)
        return False

    def _append(self, batch: Batch) -> tuple[int, int]:
        """Append to the next few lists. How many they were, and their bytes."""
        window, family = self.window, self.window.extent.family
        chosen = slice(self._at, min(self._at + _READ_LISTS, len(self._sorted.keys)))
        keys = postings.keys(window.layout, self._table, self._sorted.keys[chosen].astype(np.uint64))
        starts = self._sorted.starts[chosen.start : chosen.stop + 1].tolist()
        fingerprints = self._sorted.fingerprints[starts[0] : starts[-1]].tobytes()
        ids = self._sorted.ids[starts[0] : starts[-1]].tobytes()
        size = 0
        for i, (key, before) in enumerate(zip(keys, window.store.get(family, keys), strict=True)):
            begin, end = starts[i] - starts[0], starts[i + 1] - starts[0]
            after = postings.append(
                before, window.extent.merged, fingerprints[8 * begin : 8 * end], ids[4 * begin : 4 * end]
            )
            batch.put(family, key, after)
            size += len(after)
        self._at = chosen.stop
        return len(keys), size


class _Sorted:
    """A run's originals in the order of one table: distinct keys, where each starts, and the columns."""

    def __init__(self, run: Run, table: int) -> None:
        order = run.order[table]
        self.fingerprints = run.fingerprints[order].astype("<u8")
        self.ids = run.ids[order].astype("<u4")
        self.keys, starts = np.unique(run.keys[table], return_index=True)
        self.starts = np.append(starts, len(order))
