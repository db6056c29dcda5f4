"""Tables: the sets of keys by which originals meet, whatever the keys are of.

A window has two. Its segments are cut from the fingerprint: two originals meet where the blocks of a table are
equal. Its bands are hashes that the entry carries: two meet where one is equal. Either way what meets is then
compared by words of 64 bits, fingerprint and profile, or profile alone, before anything else is read of it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from state.layout import MAX_TABLES, Layout

SEGMENTS = b"s"
"""The first byte of the key of a segment's posting list."""

BANDS = b"b"
"""The first byte of the key of a band's posting list."""

BAND_BITS = 16
"""The width of a band's key: 65,536 posting lists each, as long as those of a block of 16 bits."""

NO_BAND = (1 << BAND_BITS) - 1
"""Stands for a band that an original is not indexed by; no band has this key."""

BAND_BYTES = BAND_BITS // 8
"""The size of a band's key in an entry."""

Keys = NDArray[np.unsignedinteger[Any]]
"""The keys of one table."""


class Rows(NamedTuple):
    """Originals as an index takes them, ids ascending."""

    values: NDArray[np.uint64]
    "``(words, n) uint64``: what is compared."

    keys: list[Keys]
    "For each table ``(n,)``, of the type that `Tables.types` names."

    ids: NDArray[np.uint32]
    "``(n,) uint32``: their local ids."


@dataclass(frozen=True)
class Tables:
    """A set of tables.

    Args:
        prefix: The first byte of the keys of their posting lists.
        key_bits: The width of each table's key in bits.
        words: How many words of 64 bits are compared of what meets.
        absent: What stands for no key, the largest of its type; None where there always is one.
    """

    prefix: bytes
    key_bits: tuple[int, ...]
    words: int
    absent: int | None = None

    @classmethod
    def of_segments(cls, layout: Layout) -> Self:
        """The tables of a layout: fingerprints are compared, then profiles."""
        return cls(SEGMENTS, layout.key_bits, 2)

    @classmethod
    def of_bands(cls, bands: int) -> Self:
        """As many tables as there are bands: profiles are compared.

        Raises:
            ValueError: There are more bands than tables can be numbered.
        """
        if not 0 <= bands <= MAX_TABLES:
            raise ValueError(f"There can be up to {MAX_TABLES} bands, not {bands}.")
        return cls(BANDS, (BAND_BITS,) * bands, 1, NO_BAND)

    def __len__(self) -> int:
        return len(self.key_bits)

    @property
    def types(self) -> list[type[np.unsignedinteger[Any]]]:
        """For each table the smallest type that holds its keys: 16 bits are sorted by radix, and so fastest."""
        return [np.uint16 if b <= 16 else np.uint32 if b <= 32 else np.uint64 for b in self.key_bits]

    def narrow(self, keys: NDArray[np.unsignedinteger[Any]]) -> list[Keys]:
        """Keys ``(tables, n)`` of any unsigned type, each table's in its own."""
        return [row.astype(kind) for row, kind in zip(keys, self.types, strict=True)]

    def lists(self, table: int, keys: Keys) -> list[bytes]:
        """The keys of the posting lists of `table` for its keys ``(n,)``. They sort as those do."""
        width = (self.key_bits[table] + 7) // 8
        size = 2 + width
        packed = np.empty((len(keys), size), np.uint8)
        packed[:, 0] = self.prefix[0]
        packed[:, 1] = table
        packed[:, 2:] = keys.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]
        joined = packed.tobytes()
        return [joined[start : start + size] for start in range(0, len(joined), size)]

    def nothing(self) -> Rows:
        """No originals."""
        return Rows(
            np.empty((self.words, 0), np.uint64),
            [np.empty(0, kind) for kind in self.types],
            np.empty(0, np.uint32),
        )
