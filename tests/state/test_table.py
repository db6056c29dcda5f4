"""The segment table: what its callers rely on. `test_table_property.py` has everything at once."""

import shutil

import numpy as np
import pytest
from state_model import (
    LAYOUTS,
    ORIGIN,
    Model,
    content,
    finish_merging,
    near,
    open_table,
    original,
    record,
    similar,
)

from state import merge
from state.errors import ChangelogError, StateCorruptError, StateError, StateInUseError, StateMismatchError
from state.original import encode
from state.position import Position
from state.postings import append, ids
from state.store import Store
from state.table import NONE_ALIVE, SegmentTable
from state.tables import NO_BAND, SEGMENTS


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state"


def fill(table, count, *, first=0, wait=1, boundary=0):
    """Apply `count` originals with the same fingerprint, one a millisecond, in records of ten."""
    for begin in range(first, first + count, 10):
        end = min(begin + 10, first + count)
        items = [original(offset, offset * wait) for offset in range(begin, end)]
        table.apply([record(items, begin, end, (end - 1) * wait, boundary)], end)


def offsets(table, boundary=0):
    return [offset for _, offset, _ in near(table, [0], 0, [boundary])]


def posting_lists(path):
    """Every posting list of the state in `path`, by window and key."""
    lists = {}
    with Store(path) as store:
        for name in store.families:
            for key, value in store.scan(name, SEGMENTS, SEGMENTS + b"\xff" * 16, 1 << 20):
                lists[name, key] = value
    return lists


# What is found


def test_a_new_table_is_empty_and_stands_nowhere(path):
    with open_table(path) as table:
        assert table.position is None
        assert list(table.contents()) == []
        assert table.windows() == []
        assert near(table, [0], 3, [0]) == []
        assert table.find_content([content(1)]) == [None]
        assert table.first_alive(np.array([0, 5])).tolist() == [NONE_ALIVE, NONE_ALIVE]
        assert table.originals([]) == []
        assert table.merge_step() is False


def test_no_queries_find_nothing(path):
    with open_table(path) as table:
        fill(table, 3)
        assert near(table, [], 3, []) == []


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_pair_at_the_largest_distance_is_found_wherever_its_bits_differ(path, layout):
    rng = np.random.default_rng(7)
    model = Model()
    for offset in range(300):
        bits = rng.choice(64, size=layout.max_distance, replace=False).tolist()
        model.originals.append(original(offset, offset, sum(1 << bit for bit in bits)))
    with open_table(path, layout, window_span=120, merge_at=50) as table:
        table.apply([record(model.originals, 0, 300, 300)], 1)
        in_memory = near(table, [0, 1], layout.max_distance, [0, 100])
        finish_merging(table)
        assert in_memory == model.near([0, 1], layout.max_distance, [0, 100])
        assert near(table, [0, 1], layout.max_distance, [0, 100]) == in_memory
        assert sum(row == 0 for row, _, _ in in_memory) == 300


def test_an_original_at_the_boundary_counts_and_one_below_it_does_not(path):
    with open_table(path, merge_at=5) as table:
        fill(table, 8)
        for _ in range(2):
            assert offsets(table, boundary=3) == [3, 4, 5, 6, 7]
            finish_merging(table)


def test_a_distance_that_the_layout_does_not_guarantee_is_refused(path):
    with open_table(path) as table:
        with pytest.raises(ValueError, match="up to a Hamming distance of 3, not of 4"):
            near(table, [0], 4, [0])
        with pytest.raises(ValueError, match="not of -1"):
            near(table, [0], -1, [0])


def test_an_original_without_a_fingerprint_is_found_by_its_content_only(path):
    with open_table(path, merge_at=1) as table:
        table.apply([record([original(0, 0, None, key=9), original(1, 0, 5, key=8)], 0, 2, 0)], 1)
        finish_merging(table)
        assert near(table, [0, 5], 0, [0, 0]) == [(1, 1, 0)]
        assert table.find_content([content(9)]) == [0]
        assert table.originals([0])[0].fingerprint is None


def test_nothing_is_found_by_what_stands_for_no_band_however_it_was_indexed(path):
    keys = (1).to_bytes(2, "little") + NO_BAND.to_bytes(2, "little")
    items = [original(offset, 0)._replace(bands=keys) for offset in range(20)]
    by_one_band = [(0, offset, 0, 0) for offset in range(20)]

    def found(table):
        return similar(table, [(0, (1, NO_BAND))], [0], 64)

    with open_table(path, merge_at=20) as table:
        table.apply([record(items, 0, 20, 0)], 1)
        assert found(table) == by_one_band
        finish_merging(table)
        assert found(table) == by_one_band
    # As many as are merged at once where a state is opened.
    with open_table(path, LAYOUTS[1], merge_at=20) as table:
        assert found(table) == by_one_band


def test_originals_that_are_found_by_their_bands_only_are_merged_as_others_are(path):
    """Those of a crowd of fingerprints: without end in memory they would be the worker's end."""
    with open_table(path, window_span=100, merge_at=6) as table:
        for begin in range(0, 250, 10):
            items = [
                original(offset, offset)._replace(
                    bands=offset.to_bytes(2, "little") * 2, by_fingerprint=False
                )
                for offset in range(begin, begin + 10)
            ]
            table.apply([record(items, begin, begin + 10, begin + 9)], begin + 10)
            assert table.windows()[-1].unmerged >= len(items)
            finish_merging(table)
        assert [window.merged for window in table.windows()] == [100, 200, 250]
        assert similar(table, [(0, (7, 7))], [0], 64) == [(0, 7, 0, 0), (0, 7, 0, 1)]


def test_the_newest_original_of_a_content_is_found_over_all_windows(path):
    with open_table(path, window_span=10) as table:
        items = [original(0, 0, key=1), original(1, 5, key=1), original(2, 5, key=2), original(3, 10, key=1)]
        table.apply([record(items, 0, 4, 10)], 1)
        assert len(table.windows()) == 2
        assert table.find_content([content(2), content(3), content(1)]) == [2, None, 3]


def test_originals_come_in_the_order_asked_for_with_everything_in_them(path):
    full = original(7, 30)._replace(
        id=b'"\xe7\x9f\xa5"', text="重复\ud83d", bands=b"b" * 70, sketch=b"s" * 300
    )
    with open_table(path, window_span=10) as table:
        table.apply([record([original(1, 0), original(3, 20, None), full], 0, 9, 30)], 1)
        assert table.originals([7, 1, 3, 7]) == [full, original(1, 0), original(3, 20, None), full]


@pytest.mark.parametrize("offset", [0, 2, 4, 99])
def test_asking_for_an_original_that_is_not_there_says_that_the_state_is_damaged(path, offset):
    with open_table(path, window_span=10) as table:
        table.apply([record([original(1, 0), original(3, 0), original(5, 20)], 0, 6, 20)], 1)
        with pytest.raises(StateCorruptError, match="the changelog rebuilds it"):
            table.originals([1, offset])


# What is alive


def test_the_first_original_younger_than_a_horizon_is_exact_across_windows_and_ties(path):
    model = Model()
    model.originals = [original(2 * i, 10 * (i // 3)) for i in range(60)]
    with open_table(path, window_span=50) as table:
        table.apply([record(model.originals, 0, 200, 200)], 1)
        horizons = list(range(-5, 205))
        assert table.first_alive(np.array(horizons)).tolist() == model.first_alive(horizons)
        # A batch may be judged again, so horizons may fall from one call to the next.
        assert table.first_alive(np.array([3, 150])).tolist() == model.first_alive([3, 150])


def test_what_lies_below_the_boundary_is_never_the_first_alive(path):
    with open_table(path, window_span=50) as table:
        fill(table, 100, wait=1)
        assert table.first_alive(np.array([-1, 40])).tolist() == [0, 41]
        fill(table, 10, first=100, wait=1, boundary=60)
        assert table.first_alive(np.array([-1, 40, 59, 60, 109])).tolist() == [60, 60, 60, 61, NONE_ALIVE]


def test_a_longer_retention_does_not_bring_back_what_has_expired(path):
    with open_table(path) as table:
        fill(table, 20)
        fill(table, 10, first=20, boundary=15)
        with pytest.raises(ChangelogError, match="boundary 14"):
            table.apply([record([], 30, 31, 30, boundary=14)], 31)
        assert [item.offset for item in table.contents()] == list(range(15, 30))


# Expiry


def test_a_window_is_dropped_when_its_last_original_is_below_the_boundary(path):
    with open_table(path, window_span=10) as table:
        fill(table, 30)
        table.apply([record([], 30, 31, 30, boundary=9)], 31)
        assert [window.first for window in table.windows()] == [0, 10, 20]
        table.apply([record([], 31, 32, 30, boundary=10)], 32)
        assert [window.first for window in table.windows()] == [10, 20]
        assert table.find_content([content(9), content(10)]) == [None, 10]
    with Store(path) as store:
        assert [name for name in store.families if name != "default"] == [
            "window-00000000000000000010",
            "window-00000000000000000020",
        ]


def test_everything_may_expire_at_once_and_the_table_goes_on(path):
    with open_table(path, window_span=10, merge_at=5) as table:
        fill(table, 30)
        table.merge_step()
        table.apply([record([original(30, 900)], 30, 31, 900, boundary=30)], 31)
        finish_merging(table)
        assert [(window.first, window.originals) for window in table.windows()] == [(30, 1)]
        fill(table, 10, first=31, wait=30, boundary=30)
        assert offsets(table, 30) == list(range(30, 41))


def test_a_window_that_begins_and_expires_within_one_call_leaves_nothing(path):
    with open_table(path, window_span=10) as table:
        records = [record([original(i, 20 * i)], i, i + 1, 20 * i, boundary=i) for i in range(5)]
        table.apply(records, 5)
        assert [window.first for window in table.windows()] == [4]
        assert offsets(table, 4) == [4]


# Merging


def test_a_window_is_merged_when_much_of_it_is_in_memory_or_when_it_is_closed(path):
    with open_table(path, window_span=100, merge_at=30) as table:
        fill(table, 29)
        assert table.merge_step() is False
        fill(table, 1, first=29)
        finish_merging(table)
        assert [(window.merged, window.unmerged) for window in table.windows()] == [(30, 0)]
        fill(table, 80, first=30)
        finish_merging(table)
        assert [(window.merged, window.unmerged) for window in table.windows()] == [(100, 0), (100, 10)]


def test_texts_come_in_during_a_merge_and_everything_is_found(path, monkeypatch):
    monkeypatch.setattr(merge, "_READ_LISTS", 1)
    monkeypatch.setattr(merge, "_SLICE_LISTS", 1)
    with open_table(path, window_span=1000, merge_at=20) as table:
        fill(table, 20)
        count, slices = 20, 0
        while table.merge_step():
            fill(table, 1, first=count)
            count, slices = count + 1, slices + 1
            assert offsets(table) == list(range(count))
        assert slices >= 4
        assert [(window.merged, window.unmerged) for window in table.windows()] == [(20, count - 20)]


def test_a_merge_cut_short_by_a_crash_leaves_nothing_twice(path, tmp_path, monkeypatch):
    monkeypatch.setattr(merge, "_READ_LISTS", 1)
    monkeypatch.setattr(merge, "_SLICE_LISTS", 1)
    with open_table(path, window_span=1000, merge_at=20) as table:
        fill(table, 20)
        finish_merging(table)
        fill(table, 20, first=20)
        for step in range(4):
            table.merge_step()
            table.checkpoint(tmp_path / f"crash-{step}")
        finish_merging(table)
    whole = posting_lists(path)
    for step in range(4):
        crashed = tmp_path / f"crash-{step}"
        with open_table(crashed, window_span=1000, merge_at=20) as table:
            assert offsets(table) == list(range(40))
            finish_merging(table)
            assert offsets(table) == list(range(40))
        assert posting_lists(crashed) == whole
    assert all(ids(value, 2).tolist() == list(range(40)) for value in whole.values())


def test_a_skewed_table_is_merged_in_slices(path, monkeypatch):
    monkeypatch.setattr(merge, "_SLICE_BYTES", 100)
    monkeypatch.setattr(merge, "_READ_LISTS", 1)
    with open_table(path, window_span=1000, merge_at=50) as table:
        fill(table, 50)
        steps = 1
        while table.merge_step():
            steps += 1
        # Sorting, and one slice for the list of each table.
        assert steps == 5


# Applying


def test_the_position_is_what_the_last_record_says(path):
    with open_table(path) as table:
        table.apply([record([], 100, 100, 0)], 1)
        assert table.position == Position(100, 1, 0, 0, "rules", "topic-id")
        table.apply([record([original(100, 4)], 100, 105, 4), record([], 105, 110, 9, boundary=100)], 3)
        assert table.position == Position(110, 3, 9, 100, "rules", "topic-id")
    with open_table(path) as table:
        assert table.position == Position(110, 3, 9, 100, "rules", "topic-id")


def test_a_record_that_was_applied_is_ignored_but_the_changelog_moves_on(path):
    with open_table(path) as table:
        fill(table, 10)
        before = list(table.contents())
        table.apply([record([original(3, 0, 99)], 0, 10, 99, boundary=10), record([], 10, 10, 99)], 12)
        assert list(table.contents()) == before
        assert table.position == Position(10, 12, 9, 0, "rules", "topic-id")
        # Nor does it move back.
        table.apply([record([], 0, 5, 0)], 4)
        assert table.position.changelog == 12


def test_the_tail_of_the_changelog_can_be_applied_again(path):
    records = [record([original(i, i)], i, i + 1, i) for i in range(6)]
    with open_table(path) as table:
        table.apply(records[:4], 4)
        table.apply(records[1:], 6)
        assert offsets(table) == [0, 1, 2, 3, 4, 5]
        assert table.position.next == 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (record([], 12, 20, 50), "from 12 to before 20, but the state in .* stands at offset 10"),
        (record([], 5, 20, 50), "from 5 to before 20, but the state in .* stands at offset 10"),
        (record([], 10, 20, 8), "time 8 .* already at time 9"),
        (record([original(20, 50)], 10, 20, 50), "original at offset 20"),
        (record([original(9, 50)], 10, 20, 50), "original at offset 9"),
        (record([original(12, 50), original(11, 50)], 10, 20, 50), "original at offset 11"),
        (record([original(11, 50), original(12, 49)], 10, 20, 50), "of time 49"),
        (record([original(11, 8)], 10, 20, 50), "of time 8"),
        (record([original(11, 60)], 10, 20, 50), "has time 50, below the time 60"),
    ],
)
def test_a_record_that_does_not_follow_is_refused_and_nothing_is_applied(path, wrong, message):
    with open_table(path) as table:
        fill(table, 10)
        before = table.position
        with pytest.raises(ChangelogError, match=message):
            table.apply([wrong], 11)
        good = record([original(10, 10)], 10, 11, 10)
        with pytest.raises(ChangelogError):
            table.apply([good, record([], 30, 31, 99)], 12)
        assert table.position == before
        assert offsets(table) == list(range(10))
        table.apply([good], 11)
        assert offsets(table) == list(range(11))


def test_the_first_record_may_begin_anywhere_but_not_end_before_it_begins(path):
    with open_table(path) as table:
        with pytest.raises(ChangelogError, match="begins at 9 and ends before, at 8"):
            table.apply([record([], 9, 8, 0)], 1)
        assert table.position is None


def test_only_offsets_that_hold_originals_are_stored(path):
    with open_table(path) as table:
        table.apply([record([original(5, 0), original(900, 1)], 0, 1000, 1)], 1)
        table.apply([record([], 1000, 2000, 2)], 2)
        assert [item.offset for item in table.contents()] == [5, 900]
        assert table.position.next == 2000


# Opening


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"scheme": "other"}, "under scheme scheme, the settings now make scheme other"),
        ({"origin": ORIGIN | {"partition": "1"}}, "partition 0, not to cluster c, .*partition 1"),
    ],
)
def test_the_state_of_another_scheme_or_scope_is_refused_and_left_as_it_is(path, other, message):
    with open_table(path) as table:
        fill(table, 3)
    with pytest.raises(StateMismatchError, match=message):
        open_table(path, **other)
    with open_table(path) as table:
        assert offsets(table) == [0, 1, 2]


def test_a_state_that_is_open_is_in_use(path):
    with open_table(path):
        with pytest.raises(StateInUseError, match="in use"):
            open_table(path)
        with pytest.raises(StateInUseError, match="in use"):
            SegmentTable.destroy(path)
    open_table(path).close()


def test_a_directory_that_is_a_file_is_refused(path):
    path.write_text("something else")
    with pytest.raises(StateError, match="See that it is a directory"):
        open_table(path)


def test_a_state_whose_files_are_damaged_says_how_to_get_a_new_one(path):
    with open_table(path) as table:
        fill(table, 3)
    next(path.glob("MANIFEST-*")).write_bytes(b"damage")
    with pytest.raises(StateCorruptError, match="the changelog rebuilds it"):
        open_table(path)


def test_a_state_is_deleted_and_deleting_it_again_does_nothing(path):
    open_table(path).close()
    SegmentTable.destroy(path)
    assert not path.exists()
    SegmentTable.destroy(path)


def test_a_family_made_for_a_batch_that_never_came_is_dropped(path):
    with open_table(path) as table:
        fill(table, 3)
    with Store(path) as store:
        store.create("window-00000000000000000003")
    with open_table(path):
        pass
    with Store(path) as store:
        assert store.families == ["default", "window-00000000000000000000"]


def test_another_layout_is_indexed_anew_and_reports_progress(path):
    with open_table(path, LAYOUTS[0], window_span=100, merge_at=10) as table:
        fill(table, 250)
        finish_merging(table)
        expected = list(table.contents())
    steps = []
    with open_table(
        path, LAYOUTS[1], merge_at=10, progress=lambda what, done, total: steps.append((what, done, total))
    ) as table:
        assert list(table.contents()) == expected
        assert offsets(table) == list(range(250))
        # Never much more in memory than a merge takes.
        assert all(window.unmerged <= 20 for window in table.windows())
    assert steps[-1] == ("index", 250, 250)
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)


def test_nothing_of_the_old_layout_is_left_behind(path, tmp_path):
    # Scattered fingerprints, so that the layouts have few keys in common.
    items = [original(i, i, i * 0x9E3779B97F4A7C15 % 2**64) for i in range(100)]
    everything = record(items, 0, 100, 100)
    for directory, layouts in ((path, LAYOUTS[:2]), (tmp_path / "made-so", LAYOUTS[1:2])):
        for layout in layouts:
            with open_table(directory, layout, window_span=30, merge_at=5) as table:
                table.apply([everything], 1)
                finish_merging(table)
    assert posting_lists(path) == posting_lists(tmp_path / "made-so")


def test_a_change_of_layout_cut_short_is_repeated(path):
    with open_table(path, LAYOUTS[0], window_span=100, merge_at=10) as table:
        fill(table, 250)
        finish_merging(table)

    class Crash(Exception):
        pass

    def crash(what, done, total):
        if done > 120:
            raise Crash

    with pytest.raises(Crash):
        open_table(path, LAYOUTS[1], merge_at=10, progress=crash)
    with open_table(path, LAYOUTS[1], merge_at=10) as table:
        assert offsets(table) == list(range(250))
    with open_table(path, LAYOUTS[0], merge_at=10) as table:
        assert offsets(table) == list(range(250))


def test_a_checkpoint_is_a_state_of_its_own(path, tmp_path):
    with open_table(path) as table:
        fill(table, 20)
        table.checkpoint(tmp_path / "backup")
        fill(table, 10, first=20)
        with pytest.raises(StateError, match="exists already"):
            table.checkpoint(tmp_path / "backup")
        with open_table(tmp_path / "backup") as backup:
            assert offsets(backup) == list(range(20))
            fill(backup, 10, first=20)
            assert list(backup.contents()) == list(table.contents())


def test_a_state_whose_log_was_cut_is_behind_and_the_changelogs_tail_repairs_it(path, tmp_path):
    records = [record([original(i, i), original(i + 1, i)], i, i + 2, i) for i in range(0, 40, 2)]
    written = []
    with open_table(path, window_span=16, merge_at=6) as table:
        for number, item in enumerate(records):
            table.apply([item], number + 1)
            table.merge_step()
            log = max(path.glob("*.log"))
            written.append((log.name, log.stat().st_size))
        expected = list(table.contents())
        # As a power failure leaves it: without a close, and without the end of the log.
        shutil.copytree(path, tmp_path / "whole")
    sizes = [size for name, size in written if name == log.name]
    assert len(sizes) > 10
    seen = set()
    # Within the last writes: at the end of each, just before it, and further before it.
    for size in [size - less for size in sizes[-6:] for less in (0, 1, 30, 200)]:
        crashed = tmp_path / "crashed"
        shutil.copytree(tmp_path / "whole", crashed)
        with (crashed / log.name).open("r+b") as file:
            file.truncate(size)
        with open_table(crashed, window_span=16, merge_at=6) as table:
            begin = table.position.changelog if table.position else 0
            seen.add(begin)
            # Behind, but whole: the originals below the position, and no others.
            assert [item.offset for item in table.contents()] == list(range(2 * begin))
            assert offsets(table) == list(range(2 * begin))
            table.apply(records[begin:], 20)
            assert list(table.contents()) == expected
            assert offsets(table) == list(range(40))
            finish_merging(table)
            assert offsets(table) == list(range(40))
            assert sum(window.originals for window in table.windows()) == 40
        shutil.rmtree(crashed)
    assert len(seen) > 3


def test_what_a_lost_batch_left_in_a_window_is_not_answered(path):
    # A family may have been written out before a power failure took the end of the log: the window then holds
    # originals that, by its position, it has not been given yet.
    with open_table(path, merge_at=5) as table:
        fill(table, 10)
        finish_merging(table)
    window = "window-00000000000000000000"
    with Store(path) as store:
        batch = store.batch()
        batch.put(window, b"e" + (10).to_bytes(4, "big"), encode(original(10, 10)))
        for key, posting in store.scan(window, SEGMENTS, SEGMENTS + b"\xff" * 16, 100):
            added = [
                np.array([number], kind).tobytes() for number, kind in ((0, "<u8"), (0, "<u8"), (10, "<u4"))
            ]
            batch.put(window, key, append(posting, 10, added))
        store.write(batch)
    with open_table(path, merge_at=5) as table:
        assert offsets(table) == list(range(10))
        assert [item.offset for item in table.contents()] == list(range(10))
        fill(table, 10, first=10)
        finish_merging(table)
        assert offsets(table) == list(range(20))
    assert all(ids(value, 2).tolist() == list(range(20)) for value in posting_lists(path).values())


def test_a_window_that_lost_its_end_is_not_taken_for_whole(path):
    with open_table(path) as table:
        fill(table, 10)
    with Store(path) as store:
        batch = store.batch()
        batch.delete("window-00000000000000000000", b"e" + (9).to_bytes(4, "big"))
        store.write(batch)
    with pytest.raises(StateCorruptError, match="lost the original at offset 9"):
        open_table(path)


def test_a_closed_table_lets_go_of_its_directory_whatever_is_still_being_read(path):
    table = open_table(path)
    fill(table, 20)
    reading = table.contents()
    next(reading)
    table.close()
    table.close()
    open_table(path).close()
    with pytest.raises(StateError, match="is closed"):
        list(table.contents())


def test_records_may_be_applied_while_the_contents_are_read(path, monkeypatch):
    monkeypatch.setattr("state.table._CHUNK", 4)
    with open_table(path, window_span=10) as table:
        fill(table, 20)
        reading = table.contents()
        seen = [next(reading).offset]
        fill(table, 10, first=20, boundary=12)
        assert [*seen, *(item.offset for item in reading)] == [0, 1, 2, 3, *range(12, 30)]


def test_what_was_loaded_is_not_looked_up_before_it_is_indexed(tmp_path):
    with open_table(tmp_path) as table:
        table.load([record([original(0, 0)], 0, 1, 0)], 1)
        with pytest.raises(StateError, match="open it again"):
            near(table, [0], 3, [0])
        with pytest.raises(StateError, match="open it again"):
            table.apply([record([original(1, 0)], 1, 2, 0)], 2)
    with open_table(tmp_path) as table:
        assert near(table, [0], 3, [0]) == [(0, 0, 0)]


def test_a_crash_while_a_state_is_loaded_leaves_what_can_be_gone_on_from(tmp_path):
    log = [record([original(n, n), original(n + 1, n)], n, n + 2, n) for n in range(0, 60, 2)]
    with open_table(tmp_path / "a") as table:
        table.load(log[:10], 10)
        table.load(log[10:20], 20)
        table.checkpoint(tmp_path / "crashed")
    with open_table(tmp_path / "crashed") as table:
        assert table.position.changelog == 20
        table.apply(log[15:], 30)
        assert [item.offset for item in table.contents()] == list(range(60))
        assert len(near(table, [0], 3, [0])) == 60


def test_many_texts_without_features_are_loaded_too(tmp_path):
    with open_table(tmp_path) as table:
        table.load([record([original(n, 0, None) for n in range(20)], 0, 20, 0)], 1)
    with open_table(tmp_path) as table:
        assert [item.offset for item in table.contents()] == list(range(20))
        assert near(table, [0], 3, [0]) == []
