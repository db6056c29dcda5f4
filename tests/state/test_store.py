"""RocksDB underneath the state."""

import random

import pytest

from state.errors import StateCorruptError, StateError
from state.store import Store


def test_a_batch_that_names_a_family_dropped_meanwhile_writes_the_rest_and_later_writes_go_on(tmp_path):
    with Store(tmp_path / "state") as store:
        store.create("a")
        store.create("b")
        batch = store.batch()
        batch.put("a", b"key", b"lost")
        batch.put("b", b"key", b"kept")
        store.drop("a")
        store.write(batch)
        later = store.batch()
        later.put("b", b"later", b"kept")
        store.write(later)
        assert store.get("b", [b"key", b"later"]) == [b"kept", b"kept"]
    with Store(tmp_path / "state") as store:
        assert store.families == ["b", "default"]
        assert store.get("b", [b"key", b"later"]) == [b"kept", b"kept"]


def test_a_family_made_anew_is_empty(tmp_path):
    with Store(tmp_path / "state") as store:
        store.create("a")
        batch = store.batch()
        batch.put("a", b"key", b"value")
        store.write(batch)
        store.drop("a")
        store.create("a")
        assert store.get("a", [b"key"]) == [None]


def test_a_scan_ends_before_its_end_and_at_its_limit(tmp_path):
    with Store(tmp_path / "state") as store:
        store.create("a")
        batch = store.batch()
        for number in range(10):
            batch.put("a", bytes([number]), b"")
        store.write(batch)
        assert [key[0] for key, _ in store.scan("a", b"\x03", b"\x06", 100)] == [3, 4, 5]
        assert [key[0] for key, _ in store.scan("a", b"\x03", b"\x06", 2)] == [3, 4]


def test_reading_a_family_that_was_dropped_is_an_error_not_an_empty_answer(tmp_path):
    with Store(tmp_path / "state") as store:
        store.create("a")
        store.drop("a")
        with pytest.raises(StateError, match="dropped"):
            store.get("a", [b"key"])


def test_damage_is_taken_neither_for_the_end_nor_for_a_value(tmp_path):
    # RocksDB's iterator ends at damage as at the end.
    chance = random.Random(1)
    with Store(tmp_path / "state") as store:
        batch = store.batch()
        for number in range(1000):
            batch.put("default", number.to_bytes(4, "big"), chance.randbytes(100))
        store.write(batch)
    (file,) = (tmp_path / "state").glob("*.sst")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with Store(tmp_path / "state") as store:
        assert len(store.scan("default", b"", b"\xff", 100)) == 100
        with pytest.raises(StateCorruptError, match="the changelog rebuilds it"):
            store.scan("default", b"", b"\xff", 1000)
        with pytest.raises(StateCorruptError, match="the changelog rebuilds it"):
            store.get("default", [number.to_bytes(4, "big") for number in range(1000)])
    # The error is still held, and the directory is not.
    Store(tmp_path / "state").close()


def test_the_list_of_files_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("state.store._MANIFEST_BYTES", 2000)
    with Store(tmp_path / "state") as store:
        for number in range(60):
            store.create(f"family-{number}")
            store.drop(f"family-{number}")
        assert sum(file.stat().st_size for file in (tmp_path / "state").glob("MANIFEST-*")) < 4000
