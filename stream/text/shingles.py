"""Shingles: the runs of n characters of a text, hashed, each occurrence apart from the others.

Edit distance counts occurrences: `哈哈哈` and `哈哈哈哈哈哈哈哈` are far apart, though their sets of character
pairs are equal. So the second occurrence of a shingle is another shingle than the first, and so on. On real
comments a MinHash of such shingles misses a tenth of the pairs that one of plain sets misses.

Reference: Broder, "On the resemblance and containment of documents", SEQUENCES 1997 (where numbering the
occurrences makes a bag a set).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Shingles", "counted_shingles", "distinct_shingles", "mixed"]

_HASH_BITS: Final = 44
"""Of a shingle's hash, beside 20 bits for the number of its text: both are sorted as one integer."""

MAX_TEXTS: Final = 1 << (64 - _HASH_BITS)
"""So many texts are taken at once."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class Shingles(NamedTuple):
    """The shingles of n texts, text after text; their order within a text means nothing."""

    hashes: npt.NDArray[np.uint64]
    """`(m,) uint64`."""
    bounds: npt.NDArray[np.int64]
    """`(n + 1,) int64`: those of text i are at `bounds[i]:bounds[i + 1]`."""


def counted_shingles(texts: Sequence[str], size: int) -> Shingles:
    """Return the hashed runs of `size` characters of each text, every occurrence another one.

    A text of fewer characters has none.

    Raises:
        ValueError: there are more than `MAX_TEXTS` texts.
    """
    keys = _sorted_keys(texts, size)
    place = np.arange(len(keys), dtype=np.uint64)
    first = np.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    occurrence = place - np.maximum.accumulate(np.where(first, place, np.uint64(0)))
    hashes = mixed((keys & np.uint64((1 << _HASH_BITS) - 1)) + occurrence * _ODD)
    return Shingles(hashes, _bounds(keys, len(texts)))


def distinct_shingles(texts: Sequence[str], size: int) -> Shingles:
    """Return the hashed runs of `size` characters of each text, each once.

    Raises:
        ValueError: there are more than `MAX_TEXTS` texts.
    """
    keys = np.unique(_sorted_keys(texts, size))
    return Shingles(mixed(keys & np.uint64((1 << _HASH_BITS) - 1)), _bounds(keys, len(texts)))


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return each of these integers hashed to 64 bits, none to the same as another.

    The finaliser of MurmurHash3 (Appleby, 2011), behind an addition that keeps 0 from being 0.
    """
    hashes = values + _ODD
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(33)
    return hashes


def _sorted_keys(texts: Sequence[str], size: int) -> npt.NDArray[np.uint64]:
    """The number of its text and the hash of each shingle in one integer, ascending."""
    if len(texts) > MAX_TEXTS:
        raise ValueError(f"{len(texts)} texts are more than {MAX_TEXTS}")
    characters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    owners = np.repeat(np.arange(len(texts), dtype=np.uint64), [len(text) for text in texts])
    count = max(len(characters) - size + 1, 0)
    shingles = np.zeros(count, np.uint64)
    for place in range(size):
        shingles = mixed(shingles ^ characters[place : place + count])
    whole = owners[:count] == owners[len(owners) - count :]
    keys: npt.NDArray[np.uint64] = owners[:count] << np.uint64(_HASH_BITS)
    keys |= shingles >> np.uint64(64 - _HASH_BITS)
    keys = keys[whole]
    keys.sort()
    return keys


def _bounds(keys: npt.NDArray[np.uint64], texts: int) -> npt.NDArray[np.int64]:
    starts = np.arange(texts + 1, dtype=np.uint64) << np.uint64(_HASH_BITS)
    # One more text than 20 bits can number would start at 0.
    bounds = np.searchsorted(keys, starts).astype(np.int64)
    bounds[-1] = len(keys)
    return bounds
