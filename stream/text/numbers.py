"""Numbers that matter: what keeps texts apart that differ only in their digits, such as episodes and bulletins."""

import re
from typing import Final

from stream.text.simhash import xxh3_64

__all__ = ["number_salt", "numbers"]

_DIGITS: Final = re.compile(r"\d+")


def numbers(normalized: str) -> list[str]:
    """Return the runs of digits of a normalised text, in order. Leading zeros count: `01` is not `1`."""
    return _DIGITS.findall(normalized)


def number_salt(normalized: str) -> int:
    """Return 64 bits that are equal for texts with the same numbers in the same order; 0 for a text without.

    They are mixed into everything by which texts meet, so that texts with other numbers do not.
    """
    found = numbers(normalized)
    return xxh3_64(" ".join(found)) if found else 0
