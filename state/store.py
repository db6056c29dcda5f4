"""RocksDB underneath the state: opening it, its column families, its options, and its errors in our words."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
# RocksDB's account of what it does, a file per opening. Each family written out adds some 10 KB to it; a limit to
# its size would do harm: a new file begins with what was said of every family ever made, and soon consists of it.
_KEPT_INFO_LOGS = 3
# Its list of its files holds every change to them until it is written anew: at this size, not at a gigabyte.
_MANIFEST_BYTES = 16 << 20


class Batch:
    """Changes to several families, which reach the disk together or not at all. Made by `Store.batch`."""

    def __init__(self, families: Mapping[str, ColumnFamily]) -> None:
        self._families = families
        self._batch = WriteBatch(raw_mode=True)

    def put(self, family: str, key: bytes, value: bytes) -> None:
        """Set `key` of a family to `value`."""
        self._batch.put(key, value, self._families[family])

    def delete(self, family: str, key: bytes) -> None:
        """Remove `key` from a family."""
        self._batch.delete(key, self._families[family])

    def delete_range(self, family: str, begin: bytes, end: bytes) -> None:
        """Remove every key of a family from `begin` to before `end`."""
        self._batch.delete_range(begin, end, self._families[family])


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
            # Only these dictionaries hold RocksDB's handles: one that outlived a close, in a forgotten iterator
            # or in the frames of an exception, would keep the directory locked.
            self._reads: dict[str, Rdict] = {}
            self._writes: dict[str, ColumnFamily] = {}
            for name in names:
                self._take_on(name)
        self._writing = WriteOptions()
        # A write that names a dropped family without this poisons the database: every later write fails.
        self._writing.ignore_missing_column_families = True
        # RocksDB notices a log that is cut short, not an older one that a power failure left empty.
        self._writing.sync = True

    @property
    def families(self) -> Sequence[str]:
        """The names of all families."""
        return sorted(self._reads)

    def create(self, family: str) -> None:
        """Make a family; nothing happens where it is there."""
        if family not in self._reads:
            with _in_our_words(self.path):
                self._database.create_column_family(family, self._options())
                self._take_on(family)

    def drop(self, family: str) -> None:
        """Remove a family with everything in it, at once."""
        with _in_our_words(self.path):
            del self._reads[family], self._writes[family]
            self._database.drop_column_family(family)

    def batch(self) -> Batch:
        """An empty batch, for `write`."""
        return Batch(self._writes)

    def write(self, batch: Batch) -> None:
        """Apply a batch, and return when the disk has it. The batch is used up."""
        with _in_our_words(self.path):
            self._database.write(batch._batch, self._writing)

    def get(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key of a family, None where there is none."""
        with _in_our_words(self.path):
            return cast(list[bytes | None], self._reads[family].get(list(keys)))

    def scan(self, family: str, begin: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first `limit` keys and values of a family from `begin` to before `end`, in order."""
        found: list[tuple[bytes, bytes]] = []
        with _in_our_words(self.path):
            iterator = self._reads[family].iter()
            try:
                iterator.seek(begin)
                while len(found) < limit and iterator.valid() and (key := iterator.key()) < end:
                    found.append((key, iterator.value()))
                    iterator.next()
                # Where it meets damage it ends as it does behind the last key: only this tells them apart.
                iterator.status()
            finally:
                # One that lived on, in the frames of the error too, would keep the directory locked after a close.
                del iterator
        return found

    def size(self, family: str) -> int:
        """About how many bytes a family takes, on disk and in its write buffers."""
        with _in_our_words(self.path):
            reads = self._reads[family]
            properties = ("rocksdb.total-sst-files-size", "rocksdb.cur-size-all-mem-tables")
            return sum(reads.property_int_value(name) or 0 for name in properties)

    def checkpoint(self, directory: Path) -> None:
        """Make `directory`, which must not exist, a copy of the present state, by hard links where it can."""
        if directory.exists():
            raise StateError(f"The checkpoint directory {directory} exists already. Name one that does not.")
        with _in_our_words(self.path):
            Checkpoint(self._database).create_checkpoint(str(directory))

    def close(self) -> None:
        """Release the directory. The store cannot be used any more; closing it again does nothing."""
        if self._reads:
            self._reads.clear()
            self._writes.clear()
            with _in_our_words(self.path):
                self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_on(self, family: str) -> None:
        self._reads[family] = self._database.get_column_family(family)
        self._writes[family] = self._database.get_column_family_handle(family)

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
        # By default an idle scope adds statistics to that account for ever, megabytes a day.
        options.set_stats_dump_period_sec(0)
        options.set_max_manifest_file_size(_MANIFEST_BYTES)
        return options


def exists(path: Path) -> bool:
    """Whether there is a RocksDB at `path`, even one that has lost some of its files."""
    # Where only CURRENT is gone RocksDB would begin anew, and then replay the log that is left into nothing.
    return any(file.name == "CURRENT" or file.suffix in (".sst", ".log") for file in path.glob("*"))


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
    except KeyError as error:
        raise StateError(f"The state in {path} is closed, or its family {error} has been dropped.") from error
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
