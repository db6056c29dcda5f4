"""Keys of exact content: 16 bytes under which equal texts, and only they, are found.

Hash: XXH3, 128 bits, of the UTF-8 form, big-endian. It is not a cryptographic hash: who wants two texts to
collide can make them; whoever could profit from that can as well send the text itself.
"""

from typing import Final

import xxhash

__all__ = ["content_key", "raw_key"]

_RAW_SEED: Final = 0x7261775F74657874
"""Keeps the keys of raw texts apart from those of normalised ones, which may be the same characters."""


def content_key(normalized: str) -> bytes:
    """Return the key of a normalised text, 16 bytes. Lone surrogates are allowed."""
    return xxhash.xxh3_128_digest(normalized.encode("utf-8", "surrogatepass"))


def raw_key(text: str) -> bytes:
    """Return the key of a text as it came, 16 bytes; never equal to a `content_key`, but by chance.

    For texts without a feature (only emoji, only punctuation, empty): normalised they could be equal to
    texts that they have nothing in common with.
    """
    return xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"), _RAW_SEED)
