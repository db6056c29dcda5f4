"""A disk that is full, not ours, shared, cut or damaged: a sentence and a restart, and no text is lost or doubled."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from deployment import Deployment
from traffic import Law, Stream

from state.store import Store

DISK = 48 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root on Linux can mount a small file system")
    directory = tmp_path / "disk"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(directory: Path) -> Path:
    """A file that leaves no room beside it."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                size = size if file.write(bytes(size)) == size else size // 2
            except OSError:
                size //= 2
    return ballast


def test_a_full_disk_stops_the_worker_and_after_room_is_made_it_goes_on(
    deployment: Deployment, small_disk: Path, lawful: Law
) -> None:
    settings = {"data_dir": small_disk / "data", "batch_size": 50}
    stream = Stream(deployment, lawful, **settings)
    stream.produce(200)
    stream.until_committed()
    ballast = fill(small_disk)
    stream.produce(2000)
    assert stream.worker.wait() == 1
    said = stream.worker.said().splitlines()[-1]
    assert "No space left on device" in said
    assert str(small_disk) in said
    assert "see that" in said.lower()
    ballast.unlink()
    stream.worker = deployment.ready(**settings)
    stream.require_lawful()


def test_a_data_directory_that_cannot_be_written_ends_the_start_with_a_sentence(
    deployment: Deployment, small_disk: Path, lawful: Law
) -> None:
    settings = {"data_dir": small_disk / "data", "batch_size": 50}
    stream = Stream(deployment, lawful, **settings)
    stream.produce(100)
    stream.until_committed()
    assert stream.worker.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    worker = deployment.start(**settings)
    assert worker.wait() == 1
    assert f"cannot be kept in {small_disk / 'data'}" in worker.said().splitlines()[-1]
    assert "Read-only file system" in worker.said().splitlines()[-1]
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    stream.worker = deployment.ready(**settings)
    stream.produce(100)
    stream.require_lawful()


def test_a_data_directory_that_is_a_file_ends_the_start_with_a_sentence(deployment: Deployment) -> None:
    (deployment.directory / "file").touch()
    worker = deployment.start(data_dir=deployment.directory / "file")
    assert worker.wait() == 1
    assert f"cannot be kept in {deployment.directory / 'file'}" in worker.said().splitlines()[-1]


def test_a_state_that_another_process_holds_ends_the_start_with_a_sentence(
    deployment: Deployment, lawful: Law
) -> None:
    with Store(deployment.state()):
        worker = deployment.start()
        assert worker.wait() == 1
    assert f"The state in {deployment.state()} is in use" in worker.said().splitlines()[-1]
    stream = Stream(deployment, lawful)
    stream.produce()
    stream.require_lawful()


def cut_the_log(state: Path) -> None:
    log = max(state.glob("*.log"))
    os.truncate(log, log.stat().st_size - 7)


def empty_the_log(state: Path) -> None:
    os.truncate(max(state.glob("*.log")), 0)


def delete_a_table(state: Path) -> None:
    tables(state)[-1].unlink()


def overwrite_a_block_of_each(state: Path) -> None:
    for table in tables(state):
        with table.open("r+b") as file:
            file.seek(200)
            file.write(b"rubbish " * 20)


def tables(state: Path) -> list[Path]:
    """The files that an opening brings what RocksDB had in its log into."""
    Store(state).close()
    return sorted(state.glob("*.sst"))


@pytest.mark.parametrize(
    ("damages", "anew"),
    [((cut_the_log, empty_the_log), False), ((delete_a_table, overwrite_a_block_of_each), True)],
    ids=["the log is cut", "a table is damaged"],
)
def test_what_a_kill_and_a_bad_disk_took_from_the_state_comes_back_from_the_changelog(
    deployment: Deployment, lawful: Law, damages: Sequence[Callable[[Path], None]], anew: bool
) -> None:
    stream = Stream(deployment, lawful, batch_size=50)
    for damage in damages:
        stream.produce(200)
        stream.until_committed()
        stream.worker.kill()
        damage(deployment.state())
        stream.worker = deployment.ready(batch_size=50)
        assert ("cannot be read" in stream.worker.said()) == anew, damage
    stream.produce(200)
    stream.require_lawful()


def test_damage_that_is_met_in_the_middle_of_the_stream_is_repaired_there(
    deployment: Deployment, lawful: Law
) -> None:
    stream = Stream(deployment, lawful, batch_size=50)
    stream.produce(200)
    stream.until_committed()
    assert stream.worker.stop() == 0
    damaged = max(tables(deployment.state()), key=lambda table: table.stat().st_size)
    stream.worker = deployment.ready(batch_size=50)
    damaged.write_bytes(bytes(damaged.stat().st_size))
    stream.produce(200)
    stream.require_lawful()
