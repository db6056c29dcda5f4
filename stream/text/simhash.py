"""Simhash: a fingerprint of weighted features, such that similar texts differ in few bits.

Each feature is hashed; each bit of the fingerprint is the sign of a sum over the features: plus the weight
where the feature's hash has that bit, minus the weight where it has not. Bit 0 is the lowest.

References: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; Manku, Jain and
Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import xxhash

__all__ = [
    "Fingerprints",
    "TieBit",
    "format_bits",
    "format_hex",
    "hamming_distance",
    "hamming_distances",
    "md5_64",
    "parse_bits",
    "parse_hex",
    "signed_sums",
    "simhash",
    "simhash_batch",
    "string_hash",
    "xxh3_64",
]

TieBit = Literal[0, 1]
"""The bit of a sum that is exactly 0: with 0 the rule is "sum > 0", with 1 it is "sum >= 0"."""


def xxh3_64(feature: str) -> int:
    """Return the XXH3 hash of a feature's UTF-8 form, 64 bits: the hash of our schemes."""
    return xxhash.xxh3_64_intdigest(feature.encode("utf-8", "surrogatepass"))


def md5_64(feature: str) -> int:
    """Return the last 8 bytes of a feature's MD5, big-endian: the hash of the package `simhash`."""
    digest = hashlib.md5(feature.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[-8:], "big")


def string_hash(feature: str, bits: int = 128) -> int:
    """Return the multiplicative hash of old Python strings, of any width: that of the classic articles."""
    if not feature:
        return 0
    mask = (1 << bits) - 1
    value = ord(feature[0]) << 7
    for character in feature:
        value = ((value * 1000003) ^ ord(character)) & mask
    return value ^ len(feature)


def signed_sums(hashes: Sequence[int], weights: Sequence[int], *, bits: int = 64) -> list[int]:
    """Return the signed sum of each bit, the highest bit first."""
    return [
        sum(weight if hash_ >> bit & 1 else -weight for hash_, weight in zip(hashes, weights, strict=True))
        for bit in reversed(range(bits))
    ]


def simhash(hashes: Sequence[int], weights: Sequence[int], *, bits: int = 64, tie: TieBit = 0) -> int | None:
    """Return the simhash of one text of any width; None if it has no feature.

    The definition in its plainest form, which `simhash_batch` is tested against.
    """
    if not hashes:
        return None
    sums = signed_sums(hashes, weights, bits=bits)
    return parse_bits("".join("1" if sum_ > 0 or (tie and sum_ == 0) else "0" for sum_ in sums))


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprints:
    """The 64-bit fingerprints of a batch of texts, in the order of the texts.

    Attributes:
        values: `(n,) uint64`; 0 where there is none.
        present: `(n,) bool`, false where a text has no feature and so no fingerprint.
    """

    values: npt.NDArray[np.uint64]
    present: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> int | None:
        """Return one text's fingerprint, or None if it has none."""
        return int(self.values[index]) if self.present[index] else None

    def __iter__(self) -> Iterator[int | None]:
        return (self[index] for index in range(len(self)))


_SLICE = 8192
"""Features summed in one go (more where one text has more). Their bits take half a megabyte, which stays in
the cache: a slice several times larger is half as fast, a smaller one pays numpy's cost per call."""


def simhash_batch(
    hashes: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int64],
    *,
    tie: TieBit = 0,
) -> Fingerprints:
    """Return the 64-bit simhash of each of n texts.

    Parameters:
        hashes: `(m,) uint64`, the hashes of all features of all texts, text after text.
        weights: `(m,) uint8`, the weight of each; one of weight 0 is as good as absent.
        bounds: `(n + 1,) int64`, from 0 to m: the features of text i are at `bounds[i]:bounds[i + 1]`.
        tie: the bit of a sum of 0.
    """
    texts = len(bounds) - 1
    values = np.zeros(texts, np.uint64)
    present = np.zeros(texts, np.bool_)
    # `reduceat` cannot sum an empty text, so only the others take part.
    (filled,) = np.nonzero(np.diff(bounds))
    starts, ends = bounds[filled], bounds[filled + 1]
    first = 0
    while first < len(filled):
        last = max(int(np.searchsorted(ends, starts[first] + _SLICE, side="right")), first + 1)
        begin, end = int(starts[first]), int(ends[last - 1])
        chosen = filled[first:last]
        values[chosen], present[chosen] = _simhash_slice(
            hashes[begin:end], weights[begin:end], starts[first:last] - begin, tie
        )
        first = last
    return Fingerprints(values, present)


def _simhash_slice(
    hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], tie: TieBit
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    total = np.add.reduceat(weights, starts, dtype=np.int64)
    octets = hashes.astype("<u8").view(np.uint8).reshape(-1, 8)
    if total.max() <= _LANE:
        # Eight sums in one integer: none can run over into the next. Short texts are summed twice as fast so.
        lanes = _LANES[octets]
        lanes *= weights.astype(np.uint64)[:, np.newaxis]
        with_bit = np.add.reduceat(lanes, starts, axis=0).astype("<u8").view(np.uint8).astype(np.int64)
    else:
        bits = np.unpackbits(octets, axis=1, bitorder="little")
        bits *= weights[:, np.newaxis]
        with_bit = np.add.reduceat(bits, starts, axis=0, dtype=np.int64)
    # The signed sum of a bit is weights with it - weights without it = 2 * weights with it - all weights.
    sums = 2 * with_bit - total[:, np.newaxis]
    present = total > 0
    signs = (sums >= 0) if tie else (sums > 0)
    values = np.packbits(signs, axis=1, bitorder="little").view("<u8").ravel().astype(np.uint64)
    return np.where(present, values, np.uint64(0)), present


_LANE = 255
"""What one of eight lanes of an integer can count."""

_LANES = np.array([sum((octet >> bit & 1) << 8 * bit for bit in range(8)) for octet in range(256)], np.uint64)
"""Each bit of an octet in a lane of its own."""


def hamming_distance(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints of any width differ."""
    return (a ^ b).bit_count()


def hamming_distances(fingerprints: npt.NDArray[np.uint64], fingerprint: int) -> npt.NDArray[np.uint8]:
    """Return the distance of each of `(n,) uint64` fingerprints from one, `(n,) uint8`."""
    distances: npt.NDArray[np.uint8] = np.bitwise_count(fingerprints ^ np.uint64(fingerprint))
    return distances


def format_bits(fingerprint: int, bits: int = 64) -> str:
    """Return a fingerprint as binary digits, the highest bit first."""
    return f"{fingerprint:0{bits}b}"


def parse_bits(digits: str) -> int:
    """Return the fingerprint that `format_bits` wrote.

    Raises:
        ValueError: these are not binary digits.
    """
    return _parse(digits, base=2, alphabet="01")


def format_hex(fingerprint: int, bits: int = 64) -> str:
    """Return a fingerprint as bits / 4 hexadecimal digits, lower case."""
    return f"{fingerprint:0{bits // 4}x}"


def parse_hex(digits: str) -> int:
    """Return the fingerprint that `format_hex` wrote; upper case is accepted.

    Raises:
        ValueError: these are not hexadecimal digits.
    """
    return _parse(digits, base=16, alphabet="0123456789abcdefABCDEF")


def _parse(digits: str, base: int, alphabet: str) -> int:
    # `int` by itself would take signs, spaces, underscores and the digits of other scripts.
    if not digits or digits.strip(alphabet):
        raise ValueError(f"not a number of base {base}: {digits!r}")
    return int(digits, base)
