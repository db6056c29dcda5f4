"""How the work of a lookup grows with the texts that are compared with."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.quality.ours import BATCH, Table
from stream.rules import Rules
from stream.text import Scheme

__all__ = ["MOST", "Size", "sizes"]

MOST = 50_000_000
"""To how many texts the line is drawn."""

_SIZES = (10_000, 20_000, 40_000, 80_000, 120_000, 160_000)
_ASKED = 2_000
"""Texts that are looked up at each size, and stored by it."""


class Size(NamedTuple):
    """What a lookup costs over so many texts."""

    texts: int
    met: float
    """Postings of bands that a text with bands meets, in the mean."""
    read: float
    """Texts that are compared with it, in the mean."""
    read_most: float
    """The same, 99th percentile."""


def sizes(texts: Sequence[str], scheme: Scheme) -> Iterator[Size]:
    """Yield the cost at each size that there are texts for; the texts are taken in a random, fixed order."""
    shuffled = list(texts)
    random.Random(1).shuffle(shuffled)
    with tempfile.TemporaryDirectory(prefix="textsieve-") as directory:
        table = Table(Path(directory) / "state", scheme, Rules())
        stored = 0
        for size in _SIZES:
            if size > len(shuffled):
                break
            while stored < size - _ASKED:
                part = shuffled[stored : min(stored + BATCH, size - _ASKED)]
                table.add(part)
                stored += len(part)
            asked = shuffled[stored:size]
            met = float(np.mean(table.postings_met(asked)))
            for first in range(0, len(asked), BATCH):
                table.add(asked[first : first + BATCH])
            stored = size
            read = np.array(table.read[-len(asked) :])
            yield Size(size, met, float(read.mean()), float(np.quantile(read, 0.99)))
        table.close()
