"""Lines in, files out: reads plain, .xz and .gz input line by line, and writes results that are whole or absent.

Both in bounded memory, and neither in silence: whatever cannot be read or written ends in an error that names
the file.
"""

import lzma
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from stream.errors import InputError, TextsieveError

STANDARD_INPUT: Final = "-"

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer line is no event but a file of another kind. Kafka itself takes 1 MB by default; a text of a million
characters with its JSON escapes has at most 12 MB."""

_BLOCK: Final = 64 * 1024
_COMPRESSED_BLOCK: Final = 4 * 1024
"""A compressed byte becomes up to 1,032 (gzip) or 7,100 (xz) bytes, which are in memory together."""


class OutputError(TextsieveError):
    """A result cannot be written. The message names the file or directory."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


_FORMATS: Final[Sequence[tuple[str, bytes, Callable[[], _Decoder]]]] = (
    (".xz", b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    (".gz", b"\x1f\x8b", lambda: zlib.decompressobj(16 + zlib.MAX_WBITS)),
)
"""Suffix, first bytes (which no UTF-8 text has), decoder of one compressed stream."""


class LineReader:
    r"""The lines of a file or of standard input, as bytes, without their end.

    Lines end with `\n` and nothing else; the end of the last one may be missing. Files in xz or gzip are
    decompressed, known by their suffix or their first bytes; several streams in one file are read one after
    another, as xz and gzip themselves do.

    Parameters:
        path: a file, or `-` for standard input.

    Attributes:
        path: the parameter.
        name: what to call the input in a sentence.
        size: the bytes of the file, compressed as it is; None where it is not known (a pipe).
        position: the bytes read of it so far.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STANDARD_INPUT else path
        self.size: int | None = None
        self.position = 0
        self.path = path
        self._line = 0

    def __iter__(self) -> Iterator[bytes]:
        """Read from the beginning.

        Raises:
            InputError: the file cannot be opened, read or decompressed, or a line is too long.
        """
        self.position = self._line = 0
        try:
            with self._open() as file:
                yield from self._lines(self._content(file))
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise self._error(error) from error

    def _open(self) -> BinaryIO:
        standard = self.path == STANDARD_INPUT
        file = open(0 if standard else self.path, "rb", closefd=not standard)  # noqa: SIM115 - the caller closes
        status = os.fstat(file.fileno())
        self.size = status.st_size if stat.S_ISREG(status.st_mode) else None
        return file

    def _content(self, file: BinaryIO) -> Iterator[bytes]:
        first = file.read(_COMPRESSED_BLOCK)
        for suffix, magic, decoder in _FORMATS:
            if self.path.endswith(suffix) or first.startswith(magic):
                return _decompressed(self._blocks(first, file, _COMPRESSED_BLOCK), decoder)
        return self._blocks(first, file, _BLOCK)

    def _blocks(self, first: bytes, file: BinaryIO, size: int) -> Iterator[bytes]:
        block = first
        while block:
            self.position += len(block)
            yield block
            block = file.read(size)

    def _lines(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        for block in blocks:
            for index, piece in enumerate(block.split(b"\n")):
                if index:
                    yield b"".join(parts)
                    self._line += 1
                    parts, size = [], 0
                parts.append(piece)
                size += len(piece)
                if size > MAX_LINE_BYTES:
                    raise InputError(
                        f"{self.name}, line {self._line} (counted from 0): longer than "
                        f"{MAX_LINE_BYTES >> 20} MiB. Is it a file of lines?"
                    )
        if size:
            yield b"".join(parts)

    def _error(self, error: Exception) -> InputError:
        if isinstance(error, FileNotFoundError):
            return InputError(f"{self.name}: there is no such file.")
        if isinstance(error, OSError):
            return InputError(f"{self.name} cannot be read: {error.strerror or error}.")
        return InputError(
            f"{self.name} cannot be decompressed past line {self._line} (counted from 0): {error}. "
            "The file is damaged or cut off; test it with `xz -t` or `gzip -t`."
        )


def _decompressed(blocks: Iterator[bytes], new_decoder: Callable[[], _Decoder]) -> Iterator[bytes]:
    # lzma.open would do, but it takes a damaged second stream for the end of the file.
    decoder = new_decoder()
    for block in blocks:
        rest = block
        while rest:
            if decoder.eof:
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                decoder = new_decoder()
            yield decoder.decompress(rest)
            rest = decoder.unused_data
    if not decoder.eof:
        raise EOFError("it ends in the middle of the compressed data")


class Results:
    """Files that are being written; they get their names when all of them are whole.

    Attributes:
        scratch: a directory beside them for whatever else is large; it goes away with the writing.
    """

    def __init__(self, scratch: Path, files: dict[str, BinaryIO]) -> None:
        self.scratch = scratch
        self._files = files

    def write(self, name: str, line: bytes) -> None:
        """Add a line to the file of that name."""
        file = self._files[name]
        file.write(line)
        file.write(b"\n")


@contextmanager
def results(directory: Path, names: Sequence[str], *, replace: bool, source: str) -> Iterator[Results]:
    """Write the files `names` in `directory`, which is made where it is missing.

    They appear when the block ends well, all of them; after an error or an interrupt none does, and what was
    there before stays.

    Parameters:
        directory: where they go.
        names: the files.
        replace: whether files of these names may be replaced.
        source: the input, which is never replaced.

    Raises:
        OutputError: the directory cannot be used, one of the files is there already, or a write fails.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            _check(directory / name, replace, source)
        scratch = Path(tempfile.mkdtemp(prefix=".textsieve-", dir=directory))
    except OSError as error:
        raise OutputError(f"Results cannot be written to {directory}: {error.strerror}.") from error
    try:
        with ExitStack() as files:
            yield Results(scratch, {name: files.enter_context((scratch / name).open("wb")) for name in names})
        for name in names:
            (scratch / name).replace(directory / name)
    except OSError as error:
        raise OutputError(f"Results cannot be written to {directory}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check(path: Path, replace: bool, source: str) -> None:
    if not path.exists():
        return
    if source != STANDARD_INPUT and Path(source).exists() and path.samefile(source):
        raise OutputError(
            f"{path} is the input itself and would be replaced: choose another output directory."
        )
    if not replace:
        raise OutputError(
            f"{path} exists: choose another output directory, or replace the results there with --force."
        )
