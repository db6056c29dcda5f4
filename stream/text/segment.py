"""Segmentation: a normalised text becomes its words.

Runs of Han characters go to an engine (`jieba`, or `rjieba`, the same algorithm in Rust); all else is split
by one rule of ours, because there the engines differ. Both engines are built from one table of frequencies,
so with the hidden Markov model off they return the same words.
"""

import importlib.metadata
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from stream.text.dictionary import HAN

__all__ = ["Engine", "JiebaSegmenter", "RjiebaSegmenter", "Segmenter", "engine_version", "segmenter"]

Engine = Literal["jieba", "rjieba"]
"""The segmenters to choose from, by the name of their package."""


class Segmenter(Protocol):
    """Splits normalised texts into words."""

    def segment(self, normalized: str) -> list[str]:
        """Return the words of a normalised text, in order, repeated as often as they occur.

        Punctuation, symbols, emoji, white space and lone surrogates are no words and separate the others.
        """
        ...


class RjiebaSegmenter:
    """The segmenter in Rust: more than twenty times as fast as `JiebaSegmenter`, with the same words.

    Parameters:
        frequencies: how often each word of the dictionary occurs; all positive.
        hmm: guess words that the dictionary lacks, by a hidden Markov model.
    """

    def __init__(self, frequencies: Mapping[str, int], *, hmm: bool = False) -> None:
        from rjieba import Jieba  # noqa: PLC0415  The other engine does without it.

        engine: Jieba = Jieba.empty()  # type: ignore[no-untyped-call]
        for word, frequency in frequencies.items():
            engine.add_word(word, frequency, None)
        self._cut = engine.cut
        self._hmm = hmm

    def segment(self, normalized: str) -> list[str]:
        """See `Segmenter.segment`."""
        return _segment(normalized, lambda run: self._cut(run, self._hmm))


class JiebaSegmenter:
    """The reference segmenter, in Python. Parameters as for `RjiebaSegmenter`."""

    def __init__(self, frequencies: Mapping[str, int], *, hmm: bool = False) -> None:
        with warnings.catch_warnings():
            # The package is of 2020: invalid escapes in its patterns, and an import of pkg_resources.
            warnings.simplefilter("ignore")
            from jieba import Tokenizer  # noqa: PLC0415  The other engine does without it.

        # A tokenizer that already has its table never initialises itself. Its own way would read a
        # marshalled table from the shared temporary directory, where anyone could have put one, and write
        # its progress to standard error.
        tokenizer = Tokenizer()
        tokenizer.FREQ = _with_prefixes(frequencies)
        tokenizer.total = sum(frequencies.values())
        tokenizer.initialized = True
        self._cut = tokenizer.lcut
        self._hmm = hmm

    def segment(self, normalized: str) -> list[str]:
        """See `Segmenter.segment`."""
        return _segment(normalized, lambda run: self._cut(run, HMM=self._hmm))


def segmenter(engine: Engine, frequencies: Mapping[str, int], *, hmm: bool = False) -> Segmenter:
    """Return the segmenter of that name."""
    if engine == "jieba":
        return JiebaSegmenter(frequencies, hmm=hmm)
    return RjiebaSegmenter(frequencies, hmm=hmm)


def engine_version(engine: Engine) -> str:
    """Return the version of the installed package of an engine."""
    return importlib.metadata.version(engine)


def _segment(normalized: str, cut: Callable[[str], list[str]]) -> list[str]:
    words: list[str] = []
    for run in _RUNS.findall(normalized):
        if "\u4e00" <= run[0] <= "\u9fd5":
            words += cut(run)
        else:
            words.append(run)
    return words


def _with_prefixes(frequencies: Mapping[str, int]) -> dict[str, int]:
    """The table that jieba searches: each word, and with frequency 0 each beginning of one."""
    table = dict(frequencies)
    for word in frequencies:
        for end in range(1, len(word)):
            table.setdefault(word[:end], 0)
    return table


def _combining_marks() -> str:
    """Every mark (Mn, Mc, Me) of the planes that have letters, for a class of a regular expression."""
    return "".join(chr(code) for code in range(0x20000) if unicodedata.category(chr(code))[0] == "M")


# The rare ideographs: extensions of the Han block, the ideographic zero and the iteration mark. jieba has no
# words with them; each stands by itself.
_RARE_HAN = "\u3005\u3007\u3400-\u4dbf\u9fd6-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"

_RUNS = re.compile(
    # A run of Han characters, for the engine.
    f"[{HAN}]+"
    f"|[{_RARE_HAN}]"
    # Japanese writes no spaces: kana are kept apart from the letters beside them.
    f"|[{_KANA}]+"
    # Letters and digits of all other scripts with their combining marks. A point or comma between two digits
    # is inside a number: 17.2g, 1,000,000. Everything else separates, so a URL falls into its pieces.
    f"|(?:[^\\W_{HAN}{_RARE_HAN}{_KANA}][{_combining_marks()}]*|(?<=[0-9])[.,](?=[0-9]))+"
)
