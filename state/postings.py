"""Posting lists: the originals that share a key of a table, packed into one value.

A list of `n` postings is, for each word that is compared, `n` values (8 bytes each, little-endian), then the `n`
local ids (4 bytes each), ids ascending. All are columns, so that one XOR and one bit count compare a text with a
whole list, or with many lists joined.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def posting_bytes(words: int) -> int:
    """The size of one posting of so many words and a local id."""
    return 8 * words + 4


def append(posting: bytes | None, merged: int, columns: Sequence[bytes]) -> bytes:
    """`posting` with packed postings appended, after dropping what it holds at or above the id `merged`.

    What lies there was left by a merge that did not come to its end: appending without dropping it would
    hold those postings twice.

    Args:
        posting: The list, if there is one.
        merged: The local id below which it is kept.
        columns: What is appended: the column of each word, and that of the ids.
    """
    if not posting:
        return b"".join(columns)
    words = len(columns) - 1
    count = len(posting) // posting_bytes(words)
    (kept,) = counts([posting], merged, words).tolist()
    parts = []
    for word, column in enumerate(columns):
        size = 8 if word < words else 4
        parts += [posting[8 * word * count : 8 * word * count + size * kept], column]
    return b"".join(parts)


def counts(lists: Sequence[bytes], merged: int, words: int) -> NDArray[np.int64]:
    """How many postings of each list lie below the local id `merged`, ``(n,) int64``."""
    sizes = np.array([len(posting) for posting in lists], np.int64) // posting_bytes(words)
    last = np.frombuffer(b"".join([posting[-4:] or b"\0\0\0\0" for posting in lists]), "<u4")
    for place in np.flatnonzero(last >= merged).tolist():
        sizes[place] = np.searchsorted(ids(lists[place], words), merged)
    return sizes


def ids(posting: bytes, words: int) -> NDArray[np.uint32]:
    """The local ids of a list, ``(n,) uint32``."""
    return np.frombuffer(posting, "<u4", offset=8 * words * (len(posting) // posting_bytes(words)))


def column(posting: bytes, word: int, words: int) -> NDArray[np.uint64]:
    """The values of one of the words of a list, ``(n,) uint64``."""
    count = len(posting) // posting_bytes(words)
    return np.frombuffer(posting, "<u8", count, offset=8 * word * count)
