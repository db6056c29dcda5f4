"""A disk that is full, not ours, shared, cut or damaged: a sentence and a restart, and no text is lost or doubled."""

import os
import subprocess
import sys
from collections.abc import Iterator
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


def test_a_log_of_rocksdb_that_was_cut_is_repaired_from_the_changelog(
    deployment: Deployment, lawful: Law
) -> None:
    stream = Stream(deployment, lawful, batch_size=50)
    for cut in (7, sys.maxsize):
        stream.produce(200)
        stream.until_committed()
        stream.worker.kill()
        log = max(deployment.state().glob("*.log"))
        os.truncate(log, max(0, log.stat().st_size - cut))
        stream.worker = deployment.ready(batch_size=50)
    stream.produce(200)
    stream.require_lawful()


def delete(table: Path) -> None:
    table.unlink()


def cut(table: Path) -> None:
    os.truncate(table, table.stat().st_size // 2)


def overwrite_a_block(table: Path) -> None:
    with table.open("r+b") as file:
        file.seek(200)
        file.write(b"rubbish " * 20)


def test_a_damaged_file_of_the_state_is_noticed_and_the_state_built_anew(
    deployment: Deployment, lawful: Law
) -> None:
    stream = Stream(deployment, lawful, batch_size=50)
    for damage in (delete, cut, overwrite_a_block):
        stream.produce(200)
        stream.until_committed()
        stream.worker.kill()
        # An opening brings what RocksDB had in its log into tables.
        Store(deployment.state()).close()
        for table in deployment.state().glob("*.sst"):
            damage(table)
        stream.worker = deployment.ready(batch_size=50)
        assert "cannot be read" in stream.worker.said(), damage
    stream.produce(200)
    stream.require_lawful()


def test_damage_that_is_met_in_the_middle_of_the_stream_is_repaired_there(
    deployment: Deployment, lawful: Law
) -> None:
    stream = Stream(deployment, lawful, batch_size=50)
    stream.produce(200)
    stream.until_committed()
    assert stream.worker.stop() == 0
    Store(deployment.state()).close()
    stream.worker = deployment.ready(batch_size=50)
    for table in deployment.state().glob("*.sst"):
        overwrite_a_block(table)
    stream.produce(200)
    stream.require_lawful()
