"""Expiry: which original is the first that a given horizon leaves alive."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from state.windows import Window

NONE_ALIVE = (1 << 63) - 1
"""Stands for an offset where no stored original is alive."""

# Offsets and times are read so many at a time: a few milliseconds, once in so many texts.
_CHUNK = 4096


class Expiry:
    """Finds the first original at or after the boundary whose time is above a horizon.

    Horizons move slowly, so a stretch of offsets and times is kept in memory; where a horizon leaves it, as
    after a silence of a day, the place is found by bisection instead of by reading up to it.

    Args:
        windows: The windows now, oldest first.
    """

    def __init__(self, windows: Callable[[], Sequence[Window]]) -> None:
        self._windows = windows
        self._offsets = np.empty(0, np.int64)
        self._times = np.empty(0, np.int64)
        # The stretch answers for horizons from here to below its last time: no time before it is above this.
        # None: nothing at or after the boundary comes before it.
        self._from: int | None = None

    def first_alive(self, horizons: NDArray[np.int64], boundary: int) -> NDArray[np.int64]:
        """The offset of the first original at or after `boundary` that is younger than each horizon.

        Args:
            horizons: ``(n,) int64``, milliseconds, never falling.
            boundary: Below this nothing is alive.

        Returns:
            ``(n,) int64``: offsets, `NONE_ALIVE` where there is none.
        """
        first = np.full(len(horizons), NONE_ALIVE, np.int64)
        start = 0
        while start < len(horizons):
            horizon = int(horizons[start])
            if not self._covers(horizon) and not self._read(horizon, boundary):
                break
            end = int(np.searchsorted(horizons, self._times[-1], side="left"))
            places = np.searchsorted(self._times, horizons[start:end], side="right")
            first[start:end] = self._offsets[places]
            start = end
        return first

    def trim(self, boundary: int) -> None:
        """Forget what lies below the boundary."""
        expired = int(np.searchsorted(self._offsets, boundary))
        if expired:
            self._offsets = self._offsets[expired:]
            self._times = self._times[expired:]
            self._from = None

    def _covers(self, horizon: int) -> bool:
        return (
            len(self._times) > 0
            and horizon < self._times[-1]
            and (self._from is None or horizon >= self._from)
        )

    def _read(self, horizon: int, boundary: int) -> bool:
        """Read the stretch that begins with the answer. False where there is none."""
        for window in self._windows():
            extent = window.extent
            if extent.last >= boundary and extent.last_time > horizon:
                begin = window.first_later(boundary, horizon)
                self._offsets, self._times = window.times(begin, _CHUNK)
                self._from = horizon
                return True
        return False
