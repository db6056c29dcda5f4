"""RocksDB underneath the state: opening it, its column families, its options, and its errors in our words."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Self, cast

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    ColumnFamily,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from state.errors import StateCorruptError, StateError, StateInUseError

DEFAULT_FAMILY = "default"
"""The family that RocksDB always has: the state keeps its description and its position there."""

# The hot part of posting lists and entries of a scope; the rest is left to the system's page cache.
_BLOCK_CACHE_BYTES = 256 << 20
# Memory that a family fills before it is written out as a file. There are few families, of which one or two
# are written at a time.
_WRITE_BUFFER_BYTES = 32 << 20
# The log holds a batch of every family until each has been written out: a family that is no longer written to
# would keep it for ever, so RocksDB writes the oldest out when the log has grown to this.
_LOG_BYTES = 256 << 20
# False positives of one in a hundred: most content keys that are asked for are nowhere.
_BLOOM_BITS_PER_KEY = 10
# RocksDB's own log of what it does, a file per opening.
_KEPT_INFO_LOGS = 3


class Family:
    """A column family. Made by `Store` only."""

    def __init__(self, name: str, reads: Rdict, writes: ColumnFamily) -> None:
        self.name = name
        self.reads = reads
        self.writes = writes


class Batch:
    """Changes to several families, which reach the disk together or not at all."""

    def __init__(self) -> None:
        self._batch = WriteBatch(raw_mode=True)

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        """Set `key` to `value`."""
        self._batch.put(key, value, family.writes)

    def delete(self, family: Family, key: bytes) -> None:
        """Remove `key`."""
        self._batch.delete(key, family.writes)

    def delete_range(self, family: Family, begin: bytes, end: bytes) -> None:
        """Remove every key from `begin` to before `end`."""
        self._batch.delete_range(begin, end, family.writes)


class Store:
    """An open RocksDB.

    Args:
        path: Its directory, made where there is none.

    Raises:
        StateInUseError: Another process, or another `Store` of this one, holds the directory.
        StateCorruptError: RocksDB cannot read what is there.
        StateError: The directory cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cache = Cache(_BLOCK_CACHE_BYTES)
        with _in_our_words(path):
            path.mkdir(parents=True, exist_ok=True)
            names = Rdict.list_cf(str(path)) if exists(path) else [DEFAULT_FAMILY]
            self._database = Rdict(
                str(path), self._options(), column_families={name: self._options() for name in names}
            )
            self._families = {name: self._opened(name) for name in names}
        # A write that names a dropped family without this poisons the database: every later write fails.
        self._writing = WriteOptions()
        self._writing.ignore_missing_column_families = True

    @property
    def families(self) -> Sequence[str]:
        """The names of all families."""
        return sorted(self._families)

    def family(self, name: str) -> Family:
        """The family of that name, made where there is none."""
        if name not in self._families:
            with _in_our_words(self.path):
                self._database.create_column_family(name, self._options())
                self._families[name] = self._opened(name)
        return self._families[name]

    def drop(self, name: str) -> None:
        """Remove a family with everything in it, at once."""
        with _in_our_words(self.path):
            self._database.drop_column_family(name)
            del self._families[name]

    def write(self, batch: Batch) -> None:
        """Apply a batch. It is used up."""
        with _in_our_words(self.path):
            self._database.write(batch._batch, self._writing)

    def get(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, None where there is none."""
        with _in_our_words(self.path):
            return cast(list[bytes | None], family.reads.get(list(keys)))

    def scan(self, family: Family, begin: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first `limit` keys and values from `begin` to before `end`, in order."""
        # No iterator outlives the call: one that did would keep the directory's lock after a close.
        with _in_our_words(self.path):
            items = cast(Iterator[tuple[bytes, bytes]], family.reads.items(from_key=begin))
            found = list(islice(items, limit))
            del items
        while found and found[-1][0] >= end:
            found.pop()
        return found

    def size(self, family: Family) -> int:
        """About how many bytes a family takes, on disk and in its write buffers."""
        with _in_our_words(self.path):
            properties = ("rocksdb.total-sst-files-size", "rocksdb.cur-size-all-mem-tables")
            return sum(family.reads.property_int_value(name) or 0 for name in properties)

    def checkpoint(self, directory: Path) -> None:
        """Make `directory`, which must not exist, a copy of the present state, by hard links where it can."""
        if directory.exists():
            raise StateError(f"The checkpoint directory {directory} exists already. Name one that does not.")
        with _in_our_words(self.path):
            Checkpoint(self._database).create_checkpoint(str(directory))

    def close(self) -> None:
        """Release the directory. The store cannot be used any more."""
        with _in_our_words(self.path):
            self._families.clear()
            self._database.close()
            del self._database

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, name: str) -> Family:
        return Family(
            name, self._database.get_column_family(name), self._database.get_column_family_handle(name)
        )

    def _options(self) -> Options:
        tables = BlockBasedOptions()
        tables.set_block_cache(self._cache)
        tables.set_bloom_filter(_BLOOM_BITS_PER_KEY, False)
        tables.set_format_version(5)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(tables)
        options.set_compression_type(DBCompressionType.lz4())
        options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
        options.set_max_total_wal_size(_LOG_BYTES)
        options.set_keep_log_file_num(_KEPT_INFO_LOGS)
        return options


def exists(path: Path) -> bool:
    """Whether there is a RocksDB at `path`."""
    return (path / "CURRENT").exists()


def destroy(path: Path) -> None:
    """Delete the RocksDB at `path`; nothing happens where there is none.

    Raises:
        StateInUseError: It is open.
        StateError: It cannot be deleted.
    """
    if not exists(path):
        return
    with _in_our_words(path):
        Rdict.destroy(str(path), Options(raw_mode=True))


@contextmanager
def _in_our_words(path: Path) -> Iterator[None]:
    """Raise what RocksDB raises, which is a bare `Exception`, as the error that says what to do."""
    try:
        yield
    except StateError:
        raise
    except Exception as error:
        raise _translated(path, error) from error


def _translated(path: Path, error: Exception) -> StateError:
    message = str(error)
    if _has(message, ("lock hold", "LOCK:", "Resource temporarily unavailable")):
        return StateInUseError(
            f"The state in {path} is in use ({message}). Stop the process that holds it, or give this one a "
            "directory of its own."
        )
    if isinstance(error, OSError) or _has(
        message,
        ("os error", "Permission denied", "Read-only file system", "No space left", "Not a directory"),
    ):
        return StateError(
            f"The state in {path} cannot be used ({message}). See that it is a directory, that there is "
            "room, and that this user may write to it."
        )
    return StateCorruptError(
        f"The state in {path} cannot be read ({message}). Delete the directory: the changelog rebuilds it."
    )


def _has(message: str, signs: Iterable[str]) -> bool:
    return any(sign in message for sign in signs)
