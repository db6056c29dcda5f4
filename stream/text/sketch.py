"""Resemblance of long texts: the share of their character 4-grams that two texts have in common.

It is estimated from sketches of 512 bytes. The hashed 4-grams of a text fall into 512 bins, and the sketch
keeps 8 bits of the smallest hash of each. Of the bins that either text fills, the share that agrees is the
resemblance, but for a chance of 1 in 255. The standard error is at most sqrt(r (1 - r) / filled bins): 0.022
at a resemblance of 0.7 where both texts have a thousand characters, 0.025 at 500, less for shorter ones, whose
4-grams nearly all have a bin of their own.

References: Broder, SEQUENCES 1997 (resemblance); Li, Owen and Zhang, "One permutation hashing", NIPS 2012
(bins); Li and König, "b-bit minwise hashing", WWW 2010 (8 bits of each).
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from stream.text.shingles import distinct_shingles

__all__ = ["SKETCH_BYTES", "estimated_resemblance", "exact_resemblance", "sketch"]

SHINGLE_SIZE: Final = 4

SKETCH_BYTES: Final = 512
"""The size of a sketch: one byte a bin, 0 where no 4-gram falls into it."""

_VALUES: Final = 255
"""What a bin that is not empty can hold."""


def sketch(text: str) -> bytes:
    """Return the sketch of a text; all bins are empty where it has fewer than four characters."""
    hashes = distinct_shingles([text], SHINGLE_SIZE).hashes
    bins = (hashes >> np.uint64(55)).astype(np.int64)
    smallest = np.full(SKETCH_BYTES, np.iinfo(np.uint64).max, np.uint64)
    # The low bits of the smallest: its high ones are small in every bin.
    np.minimum.at(smallest, bins, hashes & np.uint64((1 << 55) - 1))
    filled = np.bincount(bins, minlength=SKETCH_BYTES) > 0
    values = np.where(filled, 1 + smallest % np.uint64(_VALUES), np.uint64(0))
    return values.astype(np.uint8).tobytes()


def estimated_resemblance(a: bytes, b: bytes) -> int:
    """Return the resemblance of two texts, estimated from their sketches, in thousandths rounded down.

    Computed in integers, so that every processor agrees on it; 1000 if neither has a 4-gram.
    """
    one, other = _bins(a), _bins(b)
    filled = int(np.count_nonzero(one | other))
    if not filled:
        return 1000
    agreeing = int(np.count_nonzero((one == other) & (one != 0)))
    # Of those that differ 1 in 255 agrees all the same: agreeing = filled * (r + (1 - r) / 255).
    return max(0, 1000 * (_VALUES * agreeing - filled) // ((_VALUES - 1) * filled))


def exact_resemblance(a: str, b: str) -> int:
    """Return the resemblance of two texts in thousandths rounded down; 1000 if neither has a 4-gram."""
    one, other = _grams(a), _grams(b)
    union = len(one | other)
    return 1000 * len(one & other) // union if union else 1000


def _bins(sketch: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(sketch, np.uint8)


def _grams(text: str) -> set[str]:
    return {text[place : place + SHINGLE_SIZE] for place in range(len(text) - SHINGLE_SIZE + 1)}
