"""Signatures: how near-duplicates of any kind meet, beside those whose simhashes are near.

A text's MinHash is a sample of its character pairs that agrees with another text's in the share in which the
two sets agree. Rows of it are joined to bands; two texts meet where a band is equal. With similarity j of the
sets, b bands of r rows meet with probability 1 - (1 - j^r)^b.

What meets by its bands is looked at through the profile before any text is read: a simhash of characters,
which is the same in most bits where two texts have the same characters in other places or words.

References: Broder, "On the resemblance and containment of documents", SEQUENCES 1997; Indyk and Motwani,
"Approximate nearest neighbors", STOC 1998; Charikar, STOC 2002.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from stream.text.shingles import counted_shingles, mixed
from stream.text.simhash import simhash_batch

__all__ = ["MINHASH_SIZE", "PROFILE_SIZE", "Signatures", "signatures"]

MINHASH_SIZE: Final = 2
"""The MinHash is of character pairs: most Chinese words are of two characters."""

BAND_KEYS: Final = (1 << 16) - 1
"""How many keys a band can have: one of 16 bits is left to stand for none."""

_BEGIN: Final = "\x02"
_END: Final = "\x03"
"""Stand around a text for its MinHash, so that its first and last character are in two pairs as the others are. With
twelve bands one changed character in a text of ten is missed by 1 in 130 so, and by 1 in 36 otherwise. No
normalised text has these characters."""

PROFILE_SIZE: Final = 1
"""The profile is of single characters."""


class Signatures(NamedTuple):
    """The signatures of n texts."""

    profiles: npt.NDArray[np.uint64]
    """`(n,) uint64`: the simhash of the characters, each occurrence a feature, all of one weight."""
    bands: npt.NDArray[np.uint16]
    """`(n, bands) uint16`: the key of each band, below `BAND_KEYS`."""


def signatures(
    texts: Sequence[str], bands: int, rows: int, salts: npt.NDArray[np.uint64] | None = None
) -> Signatures:
    """Return the signatures of texts of at least two characters each.

    Parameters:
        texts: normalised texts. What is in a batch together has no influence.
        bands: how many bands, at least 1.
        rows: how many values of the MinHash make a band.
        salts: `(n,) uint64`; texts with different salts do not meet, except by chance.
    """
    if salts is None:
        salts = np.zeros(len(texts), np.uint64)
    characters = counted_shingles(texts, PROFILE_SIZE)
    weights = np.ones(len(characters.hashes), np.uint8)
    profiles = simhash_batch(characters.hashes, weights, characters.bounds).values ^ salts
    pairs = counted_shingles([f"{_BEGIN}{text}{_END}" for text in texts], MINHASH_SIZE)
    high = (pairs.hashes >> np.uint64(32)).astype(np.uint32)
    keys = np.empty((len(texts), bands), np.uint16)
    for band in range(bands):
        joined = salts + np.uint64(band)
        for row in range(rows):
            joined = mixed(joined ^ _minima(high, pairs.bounds, band * rows + row))
        keys[:, band] = joined % np.uint64(BAND_KEYS)
    return Signatures(profiles, keys)


def _minima(
    hashes: npt.NDArray[np.uint32], bounds: npt.NDArray[np.int64], function: int
) -> npt.NDArray[np.uint32]:
    """The smallest value that a hash function has over the shingles of each text, `(n,) uint32`."""
    # Hashed values times an odd number: another order of them for each number.
    factor = np.uint32(xxhash.xxh32_intdigest(b"minhash", function) | 1)
    minima: npt.NDArray[np.uint32] = np.minimum.reduceat(hashes * factor, bounds[:-1])
    return minima
