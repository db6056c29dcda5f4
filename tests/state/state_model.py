"""What the state's tests share: originals that lie near each other, and a plain model that searches them all."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from state.changelog import Record
from state.errors import StateError
from state.layout import Layout
from state.original import Original
from state.table import NONE_ALIVE, Matches, SegmentTable
from state.tables import NO_BAND

# RocksDB syncs much when it opens and writes files out; no crash in these tests needs a disk.
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - mkdtemp makes it private

ORIGIN = {"cluster": "c", "topic": "texts.raw", "partition": "0"}

LAYOUTS = (
    Layout((16, 16, 16, 16), 1),  # distance 3
    Layout((8,) * 8, 2),  # distance 6
    Layout((13, 13, 13, 13, 12), 2),  # distance 3
    Layout((11, 11, 11, 11, 10, 10), 3),  # distance 3, keys wider than 32 bits
)

# Uniform fingerprints would never be near each other: these are a few with some bits changed, mostly one bit
# in each of several blocks, so that a pair at the largest distance meets in one table only.
CENTRES = (0, 2**64 - 1, 0x0123456789ABCDEF)
fingerprints = st.builds(
    lambda centre, spread, count: centre ^ sum(1 << bit for bit in spread[:count]),
    st.sampled_from(CENTRES),
    st.permutations((1, 9, 18, 27, 36, 45, 54, 63)),
    st.sampled_from((3, 3, 0, 1, 2, 4, 6)),
)

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
originals = st.builds(
    Original,
    offset=st.integers(0, 2**62),
    time=st.integers(-(2**62), 2**62),
    fingerprint=st.none() | st.integers(0, 2**64 - 1),
    content=st.binary(min_size=16, max_size=16),
    id=st.binary(max_size=8),
    text=texts,
    salt=st.integers(0, 2**64 - 1),
    profile=st.integers(0, 2**64 - 1),
    bands=st.binary(max_size=8),
    sketch=st.binary(max_size=8),
    by_fingerprint=st.booleans(),
).map(lambda item: item if item.fingerprint is not None else item._replace(by_fingerprint=True))


BANDS = 2
# Profiles and bands of a few kinds, so that many share a band and more than a few have one of them.
profiles = st.sampled_from((0, 1, 3, 7, 2**64 - 1))
bands = st.none() | st.tuples(*[st.sampled_from((1, 1, 2, 256, NO_BAND))] * BANDS)


def content(number: int) -> bytes:
    """A content key."""
    return number.to_bytes(16, "big")


def original(offset: int, time: int, fingerprint: int | None = 0, key: int | None = None) -> Original:
    """An original of which only this matters."""
    return Original(offset, time, fingerprint, content(offset if key is None else key))


def record(originals: Sequence[Original], begin: int, next_: int, time: int, boundary: int = 0) -> Record:
    """A record of which only this matters."""
    return Record(begin, next_, time, boundary, "topic-id", "rules", (), list(originals))


def open_table(
    path: Path, layout: Layout = LAYOUTS[0], *, window_span: int = 100, merge_at: int = 6, **kwargs
) -> SegmentTable:
    """A table with small windows and merges."""
    settings = {"scheme": "scheme", "origin": ORIGIN, "window_floor": 1, "bands": BANDS} | kwargs
    return SegmentTable.open(path, layout=layout, window_span=window_span, merge_at=merge_at, **settings)


def finish_merging(table: SegmentTable) -> None:
    """Do all the merging that is due."""
    while table.merge_step():
        pass


def crash(table: SegmentTable, copy: Path) -> None:
    """Leave in `copy` what a process that dies now leaves: what was written, without a close. The table is gone."""
    # So that no file comes or goes while they are copied.
    table._store._database.cancel_all_background(True)
    shutil.copytree(table.path, copy)
    with suppress(StateError):  # it cannot write out any more what is in memory
        table.close()
    shutil.rmtree(table.path)


def near(
    table: SegmentTable,
    queries: Sequence[int],
    max_distance: int,
    boundaries: Sequence[int],
    max_profile_distance: int = 64,
) -> list:
    """What the table finds with a profile of zeros, as tuples of query, offset and distance."""
    matches = table.find_near(
        np.array(queries, np.uint64),
        max_distance,
        np.array(boundaries, np.int64),
        np.zeros(len(queries), np.uint64),
        max_profile_distance,
    )
    return as_tuples(matches)


def similar(
    table: SegmentTable,
    queries: Sequence[tuple[int, tuple[int, ...]]],
    boundaries: Sequence[int],
    distance: int,
) -> list[tuple[int, ...]]:
    """What the table finds by bands, sorted, as tuples of query, offset, distance and band."""
    found = table.find_similar(
        np.array([profile for profile, _ in queries], np.uint64),
        np.array([keys for _, keys in queries], np.uint16).reshape(-1, BANDS),
        distance,
        np.array(boundaries, np.int64),
    )
    return sorted(zip(*(column.tolist() for column in found), strict=True))


def as_tuples(matches: Matches) -> list[tuple[int, int, int]]:
    """Matches as tuples of query, offset and distance."""
    return list(zip(*(column.tolist() for column in matches), strict=True))


class Model:
    """All originals in a list, and the answers by looking at every one."""

    def __init__(self) -> None:
        self.originals: list[Original] = []
        self.boundary = 0

    def alive(self) -> list[Original]:
        return [item for item in self.originals if item.offset >= self.boundary]

    def near(
        self,
        queries: Sequence[int],
        max_distance: int,
        boundaries: Sequence[int],
        max_profile_distance: int = 64,
    ) -> list:
        return [
            (row, item.offset, distance)
            for row, (query, boundary) in enumerate(zip(queries, boundaries, strict=True))
            for item in self.originals
            if item.offset >= boundary and item.fingerprint is not None and item.by_fingerprint
            if item.profile.bit_count() <= max_profile_distance
            if (distance := (item.fingerprint ^ item.salt ^ query).bit_count()) <= max_distance
        ]

    def similar(
        self, queries: Sequence[tuple[int, tuple[int, ...]]], boundaries: Sequence[int], distance: int
    ) -> list[tuple[int, ...]]:
        """What `SegmentTable.find_similar` finds."""
        return sorted(
            (row, item.offset, apart, band)
            for row, ((profile, keys), boundary) in enumerate(zip(queries, boundaries, strict=True))
            for band, key in enumerate(keys)
            for item in self.originals
            if item.offset >= boundary and item.bands[2 * band : 2 * band + 2] == key.to_bytes(2, "little")
            if (apart := (item.profile ^ profile).bit_count()) <= distance
        )

    def newest(self, key: bytes) -> int | None:
        """The offset of the newest original alive with that content."""
        return max((item.offset for item in self.alive() if item.content == key), default=None)

    def first_alive(self, horizons: Sequence[int]) -> list[int]:
        return [
            min((item.offset for item in self.alive() if item.time > horizon), default=NONE_ALIVE)
            for horizon in horizons
        ]
