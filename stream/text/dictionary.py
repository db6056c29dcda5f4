"""The dictionary of a segmenter: words and their frequencies, read once and given to every engine.

The engines read files differently (what a missing frequency, a zero, an upper-case letter means), so no
engine reads a file: both are built from the one table made here.
"""

import importlib.util
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

from stream.errors import SettingsError

__all__ = ["HAN", "default_frequency", "jieba_file", "merge_user_dictionary", "read_dictionary"]

HAN = "\u4e00-\u9fd5"
"""The characters that go to the engines, as a range of a regular expression.

What jieba takes for Han; rjieba takes more, and it is on the difference that they would disagree. Every
word of jieba's dictionary is inside, but for some seventy that mix in Latin letters (`T恤`).
"""


def jieba_file(name: str) -> bytes:
    """Return a data file of the installed package `jieba`, such as `dict.txt`, without importing it.

    Raises:
        SettingsError: the package is not installed, or has no such file.
    """
    package = importlib.util.find_spec("jieba")
    if package is None or not package.submodule_search_locations:
        raise SettingsError("The dictionary of the package jieba is used; install it: pip install jieba.")
    try:
        return Path(package.submodule_search_locations[0], name).read_bytes()
    except OSError as error:
        raise SettingsError(f"The package jieba lacks {name}: {error}. Install it again.") from error


def read_dictionary(content: bytes) -> dict[str, int]:
    """Return the frequency of each word of a dictionary in jieba's format, `word frequency tag` a line."""
    frequencies: dict[str, int] = {}
    for line in content.decode("utf-8").splitlines():
        word, frequency, _ = line.split(" ", 2)
        frequencies[word] = int(frequency)
    return frequencies


def merge_user_dictionary(
    frequencies: Mapping[str, int], content: bytes, normalize: Callable[[str], str], name: str
) -> dict[str, int]:
    """Return a dictionary with the words of a user dictionary added, replaced or taken out.

    The format is jieba's: `word [frequency] [tag]` a line, UTF-8. Without a frequency a word gets the least
    one by which it is kept whole (`default_frequency`), seen from the lines above it; frequency 0 takes the
    word out. Tags have no effect. Words are normalised, as the texts are in which they are to be found.
    The name of the file is for messages.

    Raises:
        SettingsError: the content is not UTF-8, or words in it could never be found because they have
            characters other than Han (or more than 64); the message names their lines.
    """
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise SettingsError(f"The user dictionary {name} is not UTF-8: {error}. Convert it.") from error
    merged = dict(frequencies)
    total = sum(merged.values())
    unusable: list[str] = []
    for number, line in enumerate(lines, start=1):
        entry = _USER_ENTRY.fullmatch(line.strip())
        if entry is None:  # An empty line.
            continue
        word = normalize(entry["word"])
        if not _HAN_WORD.fullmatch(word):
            unusable.append(f"line {number} ({entry['word']})")
            continue
        given = entry["frequency"]
        frequency = int(given) if given is not None else default_frequency(word, merged, total)
        total += frequency - merged.pop(word, 0)
        if frequency:
            merged[word] = frequency
    if unusable:
        raise SettingsError(
            f"The user dictionary {name} has {len(unusable)} words that are not 1 to 64 Han characters "
            f"and could never be found (other scripts are split by a fixed rule): {', '.join(unusable[:5])}"
            f"{', …' if len(unusable) > 5 else ''}. Take them out."
        )
    return merged


def default_frequency(word: str, frequencies: Mapping[str, int], total: int) -> int:
    """Return the least frequency with which a word is more probable than every way of cutting it up.

    The idea is jieba's `suggest_freq`; it is computed exactly here, so that no engine's rounding enters.
    """
    best: list[Fraction] = [Fraction(1)]  # best[i]: the probability of the most probable cut of word[:i].
    for end in range(1, len(word) + 1):
        best.append(
            max(
                best[start] * Fraction(frequencies.get(word[start:end], 1), total)
                for start in range(end)
                if end - start == 1 or word[start:end] in frequencies
            )
        )
    return int(best[-1] * total) + 1


_USER_ENTRY = re.compile(r"(?P<word>.+?)(?: (?P<frequency>[0-9]{1,9}))?(?: [a-z]+)?")
_HAN_WORD = re.compile(f"[{HAN}]{{1,64}}")
