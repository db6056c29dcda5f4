"""Windows over restarts: what has expired is found and dropped, and the disk does not grow with the stream's age."""

import random
from contextlib import suppress
from pathlib import Path

import pytest
from state_model import crash, finish_merging, open_table, record

from state import store as stores
from state.original import Original
from state.store import DEFAULT_FAMILY
from state.table import SegmentTable

RETENTION = 2_000
SPAN = RETENTION // 4
FLOOR = 200
BATCH = 50


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    # In proportion to a retention of 2,000 originals as the real ones are to one of millions.
    monkeypatch.setattr(stores, "_WRITE_BUFFER_BYTES", 128 << 10)
    monkeypatch.setattr(stores, "_LOG_BYTES", 256 << 10)
    monkeypatch.setattr(stores, "_MANIFEST_BYTES", 8 << 10)


def bytes_of(path: Path) -> int:
    total = 0
    for file in path.iterdir():
        if file.name.startswith("LOG"):
            continue  # RocksDB's account of what it does: a little for each file it writes, until it is opened anew
        with suppress(FileNotFoundError):  # RocksDB deletes behind our back
            total += file.stat().st_size
    return total


def run(table: SegmentTable, chance: random.Random, begin: int, end: int) -> list[int]:
    """Judge an original a millisecond; the bytes on disk after each expiry."""
    sizes = []
    for first in range(begin, end, BATCH):
        last = first + BATCH
        originals = [
            Original(
                offset,
                offset,
                chance.getrandbits(64),
                chance.randbytes(16),
                text="字" * 40,
                bands=chance.randbytes(40),
                sketch=chance.randbytes(80),
            )
            for offset in range(first, last)
        ]
        windows = len(table.windows())
        table.apply([record(originals, first, last, last, max(0, last - RETENTION))], last // BATCH)
        if len(table.windows()) < windows:
            sizes.append(bytes_of(table.path))
        table.merge_step()
    return sizes


def require_only_what_is_alive(table: SegmentTable, position: int) -> None:
    """Check what is kept at `position`, in windows, in families and in the changelog."""
    windows = table.windows()
    kept = RETENTION + SPAN + FLOOR
    assert all(window.last >= position - RETENTION for window in windows)
    assert len(table._store.families) == len(windows) + len({DEFAULT_FAMILY})
    assert sum(window.originals for window in windows) <= min(position, kept)
    assert table.changelog_needed >= (position - kept) // BATCH - 1


def test_the_disk_does_not_grow_over_many_retentions_with_restarts_in_between(memory):
    chance = random.Random(1)
    path, sizes = memory / "state", []
    for restart, begin in enumerate(range(0, 12 * RETENTION, RETENTION // 2)):
        with open_table(path, window_span=SPAN, window_floor=FLOOR, merge_at=150) as table:
            if begin:
                require_only_what_is_alive(table, begin)
            end = begin + RETENTION // 2
            sizes += run(table, chance, begin, end)
            require_only_what_is_alive(table, end)
            if restart % 3 == 2:
                crash(table, path := memory / f"after-{restart}")
    assert len(sizes) > 30
    assert max(sizes) <= 2 * max(sizes[:8]), sizes


def test_the_disk_does_not_grow_while_one_process_runs_for_long(memory):
    chance = random.Random(2)
    with open_table(memory / "state", window_span=SPAN, window_floor=FLOOR, merge_at=150) as table:
        sizes = run(table, chance, 0, 12 * RETENTION)
        require_only_what_is_alive(table, 12 * RETENTION)
    assert max(sizes) <= 2 * max(sizes[:8]), sizes


@pytest.mark.parametrize("merged", [False, True])
def test_a_window_that_expired_just_before_a_crash_is_gone_after_it(memory, merged):
    path = memory / "state"
    table = open_table(path, window_span=10)
    table.apply([record([Original(n, n, n, bytes(16)) for n in range(100)], 0, 100, 100)], 1)
    if merged:
        finish_merging(table)
    families = table._store.families
    # As where the process died after the write that expires windows, before their families were dropped.
    table._drop = lambda window: None
    table.apply([record([], 100, 101, 200, 95)], 2)
    assert table._store.families == families
    crash(table, memory / "after")
    for _ in range(2):
        with open_table(memory / "after", window_span=10) as table:
            assert [window.first for window in table.windows()] == [90]
            assert len(table._store.families) == len({DEFAULT_FAMILY, "window 90"})
            assert [item.offset for item in table.contents()] == [95, 96, 97, 98, 99]
