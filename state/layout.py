"""Layouts of the segment table: which blocks of a fingerprint must match, and what that guarantees.

A fingerprint is cut into blocks; two fingerprints meet where they agree in `match` whole blocks. With `b`
blocks, `b - match` differing bits spoil at most `b - match` blocks, so `match` blocks are left untouched:
every pair within that Hamming distance meets in at least one table (the pigeonhole principle). There is one
table for each choice of `match` blocks.

Source: Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007, section 3.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

# A table's number is one byte of its keys.
MAX_TABLES = 256


@dataclass(frozen=True)
class Layout:
    """How fingerprints are cut into blocks, and how many blocks make a table.

    Args:
        blocks: The width of each block in bits, the most significant block first.
        match: How many blocks must be equal for two fingerprints to meet.

    Raises:
        ValueError: The blocks and the match make no table.

    Example:
        >>> layout = Layout((16, 16, 16, 16), match=1)
        >>> layout.max_distance, layout.tables, str(layout)
        (3, ((0,), (1,), (2,), (3,)), '16-16-16-16/1')
    """

    blocks: tuple[int, ...] = (16, 16, 16, 16)
    match: int = 1

    def __post_init__(self) -> None:
        if not self.blocks or min(self.blocks) < 1:
            raise ValueError(f"A layout needs blocks of at least one bit each, not {self.blocks}.")
        if self.bits > 64:
            raise ValueError(
                f"A fingerprint has at most 64 bits, but the blocks {self.blocks} have {self.bits}."
            )
        if not 1 <= self.match <= len(self.blocks):
            raise ValueError(
                f"Between 1 and {len(self.blocks)} of the {len(self.blocks)} blocks can be made to match, "
                f"not {self.match}."
            )
        if len(self.tables) > MAX_TABLES:
            raise ValueError(
                f"The layout {self} would have {len(self.tables)} tables, more than {MAX_TABLES}: "
                "take fewer blocks, or another number of blocks that must match."
            )

    def __str__(self) -> str:
        return f"{'-'.join(map(str, self.blocks))}/{self.match}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The layout that `str` wrote as `text`, such as ``"16-16-16-16/1"``.

        Raises:
            ValueError: `text` is no layout.
        """
        widths, slash, match = text.partition("/")
        parts = widths.split("-")
        if not slash or not all(part.isascii() and part.isdigit() for part in (*parts, match)):
            raise ValueError(
                f"A layout is written as block widths and the number that must match, such as "
                f"'16-16-16-16/1', not {text!r}."
            )
        return cls(tuple(int(part) for part in parts), int(match))

    @property
    def bits(self) -> int:
        """The number of bits of a fingerprint."""
        return sum(self.blocks)

    @property
    def max_distance(self) -> int:
        """The largest Hamming distance at which no pair of fingerprints can be missed."""
        return len(self.blocks) - self.match

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The blocks that make up each table's key."""
        return tuple(combinations(range(len(self.blocks)), self.match))

    @cached_property
    def key_bits(self) -> tuple[int, ...]:
        """The width of each table's key in bits."""
        return tuple(sum(self.blocks[block] for block in table) for table in self.tables)

    def keys(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The key of each fingerprint in each table.

        Args:
            fingerprints: ``(n,) uint64``.

        Returns:
            ``(tables, n) uint64``: the bits of the table's blocks, side by side.
        """
        parts = []
        below = self.bits
        for width in self.blocks:
            below -= width
            parts.append(fingerprints >> np.uint64(below) & np.uint64((1 << width) - 1))
        keys = np.zeros((len(self.tables), len(fingerprints)), np.uint64)
        for table, blocks in enumerate(self.tables):
            for block in blocks:
                # A shift by 64 is undefined, and happens where one block is the whole fingerprint.
                if self.blocks[block] < 64:
                    keys[table] <<= np.uint64(self.blocks[block])
                keys[table] |= parts[block]
        return keys
