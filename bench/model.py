"""Texts without end that are made as the real comments and posts are: a model of their words, lengths and templates.

A text is a walk through the words of the real texts: which word comes after which, which begins a text and which ends
it, each as often as in the real ones. So its words and character pairs are as common as theirs, it is as long as they
are, and short comments such as 转发微博 come again as often as they do. A share of the texts are versions of an earlier
one with some words changed, as reposts and the texts of one template are.

The same model with the same seed gives the same texts.
"""

import json
import lzma
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import rjieba
from numpy.typing import NDArray

FILES = ("weibo-comments", "weibo-posts")
VERSIONS = 0.05
"""The share of texts that are versions of an earlier one. Of the real comments and posts from ten characters on, one in
twenty is a near-duplicate of an earlier one."""
_CHANGED = 0.1
"""The share of a version's words that are others."""
_MOST_WORDS = 1000
_END = 0
"""The word before the first and after the last."""


def real_texts(directory: Path, names: Sequence[str] = FILES) -> Iterator[str]:
    """The texts of the named files, in their order."""
    for name in names:
        with lzma.open(directory / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)


class Model:
    """How often each word follows each other in some texts.

    Args:
        texts: what is to be resembled. Empty ones are left out.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        numbers: dict[str, int] = {"": _END}
        pairs: Counter[int] = Counter()
        for text in texts:
            words = [numbers.setdefault(word, len(numbers)) for word in rjieba.cut(text, False)]
            if words:
                for one, next_ in zip([_END, *words], [*words, _END], strict=True):
                    pairs[one << 32 | next_] += 1
        self._words = list(numbers)
        keys = np.fromiter(pairs, np.int64, len(pairs))
        counts = np.fromiter(pairs.values(), np.int64, len(pairs))
        order = np.argsort(keys)
        before, self._after = keys[order] >> 32, keys[order] & 0xFFFF_FFFF
        # Word i has the numbers from i to i + 1, and each of its followers a part of them.
        running = np.cumsum(counts[order])
        begins = np.searchsorted(before, np.arange(len(numbers)))
        so_far = np.concatenate([[0], running])
        totals = np.diff(so_far[np.append(begins, len(before))])
        self._shares = before + (running - so_far[begins][before]) / totals[before]

    def texts(self, seed: int, batch: int = 20_000) -> Iterator[str]:
        """Yield texts without end, made so many at a time."""
        random = np.random.default_rng(seed)
        earlier: list[list[int]] = []
        while True:
            walks = self._walks(random, batch)
            versions = np.flatnonzero(random.random(batch) < VERSIONS) if earlier else np.empty(0, np.int64)
            for place, source in zip(
                versions.tolist(), random.integers(0, len(earlier) or 1, len(versions)).tolist(), strict=True
            ):
                walks[place] = self._version(random, earlier[source])
            earlier = walks
            words = self._words
            for walk in walks:
                yield "".join([words[number] for number in walk])

    def _walks(self, random: np.random.Generator, count: int) -> list[list[int]]:
        """So many walks from the end to the end, all a step at a time."""
        walks: list[list[int]] = [[] for _ in range(count)]
        at, under_way = np.zeros(count, np.int64), np.arange(count)
        for _ in range(_MOST_WORDS):
            at = self._follow(random, at)
            going = at != _END
            at, under_way = at[going], under_way[going]
            if not len(at):
                break
            for walk, number in zip(under_way.tolist(), at.tolist(), strict=True):
                walks[walk].append(number)
        return walks

    def _follow(self, random: np.random.Generator, at: NDArray[np.int64]) -> NDArray[np.int64]:
        # Strictly inside a word's numbers: rounding must not lead into the next word's.
        drawn = at + np.minimum(random.random(len(at)), 1 - 1e-6)
        followers: NDArray[np.int64] = self._after[np.searchsorted(self._shares, drawn, side="right")]
        return followers

    def _version(self, random: np.random.Generator, walk: list[int]) -> list[int]:
        """The walk with a tenth of its words, and at least one, drawn anew after the word before."""
        version = list(walk)
        for place in random.integers(0, len(walk), max(1, round(_CHANGED * len(walk)))).tolist():
            before = np.array([version[place - 1] if place else _END])
            number = int(self._follow(random, before)[0])
            if number != _END:
                version[place] = number
        return version
