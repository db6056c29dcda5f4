"""An original, a text judged unique, and its form as a value in RocksDB.

What indexes are made of comes first in a value, at the same place in each, so that a million of them are
indexed without being unpacked.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from state.layout import Layout
from state.tables import BAND_BYTES, Rows, Tables

# Time, fingerprint, salt, profile, what its fingerprint is for, content, lengths of bands, id and sketch. These follow,
# and the text is the rest.
_HEADER = struct.Struct("<qQQQB16sHHH")
_INDEXED = np.dtype(
    [
        ("time", "<i8"),
        ("fingerprint", "<u8"),
        ("salt", "<u8"),
        ("profile", "<u8"),
        ("fingerprint_use", "u1"),
        ("content", "V16"),
        ("bands", "<u2"),
    ]
)

NO_FINGERPRINT, FINDS, COMPARED = range(3)
"""What a fingerprint is for: there is none, the original is found by it, or it is only compared."""

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

    salt: int = 0
    "64 bits that originals share which may meet; it is mixed into whatever the fingerprint is compared by."

    profile: int = 0
    "What is compared of originals that meet in a band, 64 bits; 0 where there are no bands."

    bands: bytes = b""
    """The keys of its bands, 2 bytes each, little-endian, with `NO_BAND` for one that it is not to be found by; empty
    where it has none."""

    sketch: bytes = b""
    "The sketch from which resemblance is estimated."

    by_fingerprint: bool = True
    "Whether it is to be found by its fingerprint, if it has one; one of a crowd of near fingerprints is not."

    @property
    def fingerprint_use(self) -> int:
        """What its fingerprint is for: `NO_FINGERPRINT`, `FINDS` or `COMPARED`."""
        if self.fingerprint is None:
            return NO_FINGERPRINT
        return FINDS if self.by_fingerprint else COMPARED


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
                original.salt,
                original.profile,
                original.fingerprint_use,
                original.content,
                len(original.bands),
                len(original.id),
                len(original.sketch),
            ),
            original.bands,
            original.id,
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
    time, fingerprint, salt, profile, use, content, bands_size, id_size, sketch_size = _HEADER.unpack_from(
        value
    )
    id_ = _HEADER.size + bands_size
    sketch = id_ + id_size
    text = sketch + sketch_size
    if len(value) < text:
        raise ValueError(f"an entry of {len(value)} bytes is too short")
    return Original(
        offset,
        time,
        None if use == NO_FINGERPRINT else fingerprint,
        content,
        value[id_:sketch],
        value[text:].decode("utf-8", "surrogatepass"),
        salt,
        profile,
        value[_HEADER.size : id_],
        value[sketch:text],
        use != COMPARED,
    )


def times(values: Sequence[bytes]) -> NDArray[np.int64]:
    """The times of encoded originals, ``(n,) int64``, in milliseconds."""
    return _columns(values)["time"].astype(np.int64)


def segment_rows(layout: Layout, ids: Sequence[int], values: Sequence[bytes]) -> Rows:
    """What the segment tables take of encoded originals: of each that is found by its fingerprint, under its salt."""
    columns = _columns(values)
    present = columns["fingerprint_use"] == FINDS
    columns = columns[present]
    salted = columns["fingerprint"] ^ columns["salt"]
    keys = Tables.of_segments(layout).narrow(layout.keys(salted))
    compared = np.array([salted, columns["profile"]], np.uint64)
    return Rows(compared, keys, np.array(ids, np.uint32)[present])


def band_rows(bands: int, ids: Sequence[int], values: Sequence[bytes]) -> Rows:
    """What the tables of `bands` bands take of encoded originals: those that have bands."""
    columns = _columns(values)
    present = columns["bands"] == BAND_BYTES * bands if bands else np.zeros(len(values), np.bool_)
    ends = _HEADER.size + BAND_BYTES * bands
    joined = b"".join([values[row][_HEADER.size : ends] for row in np.flatnonzero(present).tolist()])
    keys = np.frombuffer(joined, "<u2").astype(np.uint16).reshape(-1, bands).T if bands else np.empty((0, 0))
    return Rows(
        columns["profile"][present].astype(np.uint64)[np.newaxis],
        [np.ascontiguousarray(row) for row in keys],
        np.array(ids, np.uint32)[present],
    )


def _columns(values: Sequence[bytes]) -> NDArray[np.void]:
    size = _INDEXED.itemsize
    return np.frombuffer(b"".join([value[:size] for value in values]), _INDEXED)
