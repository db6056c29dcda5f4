"""Windows over restarts: what has expired is found and dropped, and the disk does not grow with the stream's age."""

import random
from pathlib import Path

from state_model import open_table, record

from state.original import Original
from state.store import DEFAULT_FAMILY

RETENTION = 2_000
BATCH = 50


def bytes_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


def test_the_disk_does_not_grow_over_many_retentions_with_restarts_in_between(tmp_path):
    chance = random.Random(1)
    path, sizes, position = tmp_path / "state", [], 0
    for restart in range(24):  # half a retention each
        with open_table(path, window_span=RETENTION // 4, window_floor=200, merge_at=150) as table:
            assert all(window.last >= position - RETENTION for window in table.windows())
            for begin in range(position, position + RETENTION // 2, BATCH):
                originals = [
                    Original(offset, offset, chance.getrandbits(64), chance.randbytes(16), text="字" * 40)
                    for offset in range(begin, begin + BATCH)
                ]
                end = begin + BATCH
                boundary = max(0, end - RETENTION)
                table.apply([record(originals, begin, end, end, boundary)], end // BATCH)
                table.merge_step()
            position = end
            alive = sum(window.originals for window in table.windows())
            assert alive <= min(position, RETENTION + RETENTION // 4 + 200), (
                "a window is dropped when it has expired"
            )
            needed = table.changelog_needed
            assert needed >= (position - RETENTION - RETENTION // 4 - 200) // BATCH - 1, (
                "the changelog is let go of"
            )
            if restart % 3 == 2:
                # A crash: what was in memory is gone, what was written is there.
                table.checkpoint(tmp_path / f"after-{restart}")
        if restart % 3 == 2:
            path = tmp_path / f"after-{restart}"
        sizes.append(bytes_of(path))
    full = max(sizes[4:8])
    assert max(sizes) <= 2 * full, sizes


def test_a_window_that_expired_just_before_a_crash_is_gone_after_it(tmp_path):
    with open_table(tmp_path / "state", window_span=10) as table:
        table.apply([record([Original(n, n, n, bytes(16)) for n in range(100)], 0, 100, 100)], 1)
        families = table._store.families
        # As where the process died after the write that expires windows, before their families were dropped.
        table._drop = lambda window: None
        table.apply([record([], 100, 101, 200, 95)], 2)
        assert table._store.families == families
    with open_table(tmp_path / "state", window_span=10) as table:
        assert [window.first for window in table.windows()] == [90]
        assert len(table._store.families) == len({DEFAULT_FAMILY, "window 90"})
        assert [item.offset for item in table.contents()] == [95, 96, 97, 98, 99]
