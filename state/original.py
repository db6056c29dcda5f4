"""An original, a text judged unique, and its form as a value in RocksDB."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Time, fingerprint, is there a fingerprint, content, lengths of id, bands and sketch. The text is the rest.
_HEADER = struct.Struct("<qQB16sHHH")
# What an index needs of a value, without unpacking the rest.
_INDEXED = np.dtype([("time", "<i8"), ("fingerprint", "<u8"), ("has_fingerprint", "u1")])

CONTENT_BYTES = 16
"""The length of a content key."""


class Original(NamedTuple):
    """A text that was judged unique, as later texts are compared with it."""

    offset: int
    "Its place in the scope's log."

    time: int
    "The stream time when it was judged, in milliseconds: it never falls from one original to the next."

    fingerprint: int | None
    "Its simhash, or None: a text without features, or one that is judged by its content only."

    content: bytes
    "The hash of its content, 16 bytes."

    id: bytes = b""
    "The producer's id as JSON, empty where there is none."

    text: str = ""
    "The normalised text where it is short, else empty. It may hold lone surrogates."

    bands: bytes = b""
    "The band hashes of its MinHash signature."

    sketch: bytes = b""
    "The sketch from which resemblance is estimated."


def encode(original: Original) -> bytes:
    """The value that is stored for `original`: everything but its offset, which is the key.

    Raises:
        ValueError: The content key is not 16 bytes long.
    """
    if len(original.content) != CONTENT_BYTES:
        raise ValueError(f"A content key has {CONTENT_BYTES} bytes, not {len(original.content)}.")
    fingerprint = original.fingerprint
    return b"".join(
        (
            _HEADER.pack(
                original.time,
                0 if fingerprint is None else fingerprint,
                fingerprint is not None,
                original.content,
                len(original.id),
                len(original.bands),
                len(original.sketch),
            ),
            original.id,
            original.bands,
            original.sketch,
            original.text.encode("utf-8", "surrogatepass"),
        )
    )


def decode(offset: int, value: bytes) -> Original:
    """The original at `offset`, from the value that `encode` made.

    Raises:
        ValueError: `value` is none that `encode` makes.
    """
    if len(value) < _HEADER.size:
        raise ValueError(f"an entry of {len(value)} bytes is too short")
    time, fingerprint, has_fingerprint, content, id_size, bands_size, sketch_size = _HEADER.unpack_from(value)
    bands = _HEADER.size + id_size
    sketch = bands + bands_size
    text = sketch + sketch_size
    if len(value) < text:
        raise ValueError(f"an entry of {len(value)} bytes is too short")
    return Original(
        offset=offset,
        time=time,
        fingerprint=fingerprint if has_fingerprint else None,
        content=content,
        id=value[_HEADER.size : bands],
        bands=value[bands:sketch],
        sketch=value[sketch:text],
        text=value[text:].decode("utf-8", "surrogatepass"),
    )


def times(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The times of encoded originals, ``(n,) int64``, in milliseconds."""
    return _columns(values)["time"].astype(np.int64)


def fingerprints(values: Sequence[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The fingerprints of encoded originals, ``(n,) uint64``, and which of them there are, ``(n,) bool``."""
    columns = _columns(values)
    return columns["fingerprint"].astype(np.uint64), columns["has_fingerprint"] != 0


def _columns(values: Sequence[bytes]) -> NDArray[np.void]:
    size = _INDEXED.itemsize
    return np.frombuffer(b"".join([value[:size] for value in values]), _INDEXED)
