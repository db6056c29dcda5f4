"""Files of a state that are lost, cut or changed: it is behind and the changelog repairs it, or it says so."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from state_model import CENTRES, content, crash, near, open_table, record

from state import store as stores
from state.changelog import Record
from state.errors import StateCorruptError
from state.original import Original
from state.table import SegmentTable

SPAN, MERGE_AT, RETENTION, BATCH = 150, 60, 400, 25
CONTENTS = 97


def batches(count: int, sketch: int) -> list[Record]:
    """A changelog: an original a millisecond, near each other, each content several times."""
    chance = random.Random(5)
    return [
        record(
            [
                Original(
                    offset=offset,
                    time=offset,
                    fingerprint=chance.choice(CENTRES) ^ 1 << chance.randrange(64),
                    content=content(offset % CONTENTS),
                    id=b"%d" % offset,
                    text=f"字{offset}",
                    sketch=chance.randbytes(sketch),
                )
                for offset in range(begin, begin + BATCH)
            ],
            begin,
            begin + BATCH,
            begin + BATCH,
            max(0, begin + BATCH - RETENTION),
        )
        for begin in range(0, count * BATCH, BATCH)
    ]


def opened(path: Path) -> SegmentTable:
    return open_table(path, window_span=SPAN, merge_at=MERGE_AT)


def answers(table: SegmentTable) -> dict[str, object]:
    """All that a state can be asked."""
    alive = list(table.contents())
    boundary = table.position.boundary
    queries = sorted({item.fingerprint for item in alive} | {*CENTRES})
    found = table.find_content([content(key) for key in range(CONTENTS)])
    return {
        "position": table.position,
        "contents": alive,
        "originals": table.originals([item.offset for item in alive]),
        "near": near(table, queries, 3, [boundary] * len(queries)),
        # What lies below the boundary the caller ignores: it is there until its window is dropped.
        "same": [offset for offset in found if offset is not None and offset >= boundary],
        "first alive": table.first_alive(np.arange(boundary - 1, boundary + RETENTION, 7)).tolist(),
    }


class Crashed(NamedTuple):
    """A state as a process that died left it."""

    path: Path
    log: list[Record]
    answers: dict[str, object]

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.path.glob(pattern))

    def after(self, damage: Callable[[Path], None]) -> str:
        """Damage a copy, start again as a worker does, and see that it answers as if nothing had happened.

        Returns:
            "noticed" where a `StateCorruptError` led to a new state, "behind" where the changelog's tail was
            missing, else "unharmed".
        """
        copy = self.path.with_name("damaged")
        shutil.copytree(self.path, copy)
        try:
            damage(copy)
            try:
                with opened(copy) as table:
                    begin = table.position.changelog if table.position else 0
                    table.apply(self.log[begin:], len(self.log))
                    assert answers(table) == self.answers
                    return "unharmed" if begin == len(self.log) else "behind"
            except StateCorruptError as error:
                assert "the changelog rebuilds it" in str(error)
                # An error that is still held must not hold the directory.
                SegmentTable.destroy(copy)
                assert not copy.exists()
                with opened(copy) as table:
                    table.load(self.log, len(self.log))
                with opened(copy) as table:
                    assert answers(table) == self.answers
                return "noticed"
        finally:
            shutil.rmtree(copy, ignore_errors=True)


@pytest.fixture
def crashed(memory) -> Crashed:
    """One that has been closed and opened twice: some of it in files, the end of it in a log."""
    log = batches(24, sketch=20)
    path = memory / "state"
    for begin in range(0, 24, 8):
        table = opened(path)
        for number in range(begin, begin + 8):
            table.apply([log[number]], number + 1)
            table.merge_step()
            table.merge_step()
        if begin < 16:
            table.close()
    expected = answers(table)
    crash(table, memory / "crashed")
    return Crashed(memory / "crashed", log, expected)


@pytest.fixture
def with_many_logs(memory, monkeypatch) -> Iterator[Crashed]:
    """One that has been running for long: some families are written out up to here, others to there."""
    monkeypatch.setattr(stores, "_WRITE_BUFFER_BYTES", 64 << 10)
    log = batches(30, sketch=300)
    table = opened(memory / "state")
    for number, item in enumerate(log):
        table.apply([item], number + 1)
        for _ in range(3):
            table.merge_step()
        if number == 20:
            # So that there is one at least, however slow this machine is.
            table._store._reads[table._store.families[-1]].flush()
    expected = answers(table)
    crash(table, memory / "crashed")
    return Crashed(memory / "crashed", log, expected)


def delete(file: str) -> Callable[[Path], None]:
    return lambda path: (path / file).unlink()


def cut(file: str, size: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with (path / file).open("r+b") as opened:
            opened.truncate(size)

    return damage


def change(file: str, at: int, count: int = 1) -> Callable[[Path], None]:
    """Change every bit of some bytes."""

    def damage(path: Path) -> None:
        data = bytearray((path / file).read_bytes())
        data[at : at + count] = bytes(byte ^ 0xFF for byte in data[at : at + count])
        (path / file).write_bytes(data)

    return damage


def blank(file: str, begin: int) -> Callable[[Path], None]:
    """Replace all from a place on by zeros."""

    def damage(path: Path) -> None:
        data = (path / file).read_bytes()
        (path / file).write_bytes(data[:begin] + bytes(len(data) - begin))

    return damage


def places(size: int, count: int) -> range:
    """About so many places in a file, its first byte among them."""
    return range(0, size, size // count + 1)


def test_a_lost_or_cut_file_of_data_is_noticed_when_the_state_is_opened(crashed):
    files = [file for pattern in ("*.sst", "MANIFEST-*", "CURRENT") for file in crashed.files(pattern)]
    assert len(files) >= 5
    for file in files:
        size = file.stat().st_size
        assert crashed.after(delete(file.name)) == "noticed"
        for less in (size, 1):
            assert crashed.after(cut(file.name, size - less)) == "noticed"
        assert crashed.after(change(file.name, 0, size)) == "noticed"


def test_a_changed_byte_in_a_file_of_data_is_noticed_or_does_no_harm(crashed):
    for pattern in ("*.sst", "MANIFEST-*", "CURRENT"):
        for file in crashed.files(pattern):
            size = file.stat().st_size
            assert "noticed" in {crashed.after(change(file.name, at)) for at in places(size, 6)}


def test_a_state_that_has_lost_its_beginning_is_refused_each_time_it_is_opened(crashed):
    # RocksDB would make a new one in its place, and at the next start replay into it the log that was left.
    (crashed.path / "CURRENT").unlink()
    for _ in range(2):
        with pytest.raises(StateCorruptError, match="Delete the directory"):
            opened(crashed.path)
    SegmentTable.destroy(crashed.path)
    assert not crashed.path.exists()


def test_what_holds_no_data_may_be_lost_or_damaged(crashed):
    for pattern in ("OPTIONS-*", "LOG*", "IDENTITY", "rocksdict-config.json", "LOCK"):
        for file in crashed.files(pattern):
            assert crashed.after(delete(file.name)) == "unharmed"
            assert crashed.after(change(file.name, 0, file.stat().st_size)) == "unharmed"


def test_a_log_that_was_cut_or_damaged_anywhere_leaves_a_state_that_is_behind(crashed):
    (file,) = crashed.files("*.log")
    size = file.stat().st_size
    assert crashed.after(delete(file.name)) == "behind"
    for at in places(size // 2, 8):
        assert crashed.after(cut(file.name, at)) == "behind"
        assert crashed.after(change(file.name, at)) == "behind"
        # As a power failure leaves it on some file systems: as long as it was, but never written.
        assert crashed.after(blank(file.name, at)) == "behind"


def test_a_log_that_ends_before_what_has_been_written_out_is_noticed_or_repaired(with_many_logs):
    *older, newest = with_many_logs.files("*.log")
    assert len(older) > 1
    # RocksDB has written out what came later, or goes on in the next log. (One that is lost whole it does not miss.)
    outcomes = {
        with_many_logs.after(damage(file.name, at))
        for file in older
        for at in places(file.stat().st_size, 4)[1:]
        for damage in (cut, change)
    }
    assert outcomes == {"noticed"}
    for at in places(newest.stat().st_size // 2, 3):
        assert with_many_logs.after(cut(newest.name, at)) != "noticed"
        assert with_many_logs.after(change(newest.name, at)) != "noticed"


def test_a_state_that_lost_all_of_its_logs_is_noticed_or_repaired(with_many_logs):
    def damage(path: Path) -> None:
        for file in path.glob("*.log"):
            file.unlink()

    assert with_many_logs.after(damage) in ("noticed", "behind")
