"""Posting lists: the fingerprints that share a key of a table, packed into one value.

A list of `n` postings is `n` fingerprints (8 bytes each, little-endian), then their `n` local ids (4 bytes
each), ids ascending. Both are columns, so that one XOR and one bit count compare a fingerprint with a whole
list, or with many lists joined.
"""

import numpy as np
from numpy.typing import NDArray

from state.layout import Layout

PREFIX = b"s"
"""The first byte of every posting list's key."""

POSTING_BYTES = 12
"""The size of one posting: a fingerprint and a local id."""


def keys(layout: Layout, table: int, values: NDArray[np.uint64]) -> list[bytes]:
    """The keys of the posting lists of `table` for the key values ``(n,) uint64`` of that table.

    They sort as the values do.
    """
    width = (layout.key_bits[table] + 7) // 8
    size = 2 + width
    packed = np.empty((len(values), size), np.uint8)
    packed[:, 0] = PREFIX[0]
    packed[:, 1] = table
    packed[:, 2:] = values.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]
    joined = packed.tobytes()
    return [joined[start : start + size] for start in range(0, len(joined), size)]


def append(posting: bytes | None, merged: int, fingerprints: bytes, ids: bytes) -> bytes:
    """`posting` with packed postings appended, after dropping what it holds at or above the id `merged`.

    What lies there was left by a merge that did not come to its end: appending without dropping it would
    hold those postings twice.
    """
    if not posting:
        return fingerprints + ids
    count = len(posting) // POSTING_BYTES
    kept = count
    if int.from_bytes(posting[-4:], "little") >= merged:
        kept = int(np.searchsorted(np.frombuffer(posting, "<u4", offset=8 * count), merged))
    return b"".join((posting[: 8 * kept], fingerprints, posting[8 * count : 8 * count + 4 * kept], ids))


def unpack(posting: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The fingerprints ``(n,) uint64`` and local ids ``(n,) uint32`` of a posting list."""
    count = len(posting) // POSTING_BYTES
    return (
        np.frombuffer(posting, "<u8", count).astype(np.uint64),
        np.frombuffer(posting, "<u4", offset=8 * count).astype(np.uint32),
    )
