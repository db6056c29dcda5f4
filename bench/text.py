"""Texts a second on one core, from raw text to fingerprint, and what each step takes of it.

Run: python -P bench/text.py [directory of the real texts]
"""

import json
import lzma
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from stream.text import Scheme, SchemeSpec, content_key

FILES = ("weibo-comments", "weibo-posts", "news-2020")
ROUNDS = 7
BATCH = 500  # Texts in one call, as a worker takes them.
MOST = 20_000  # Texts of one file.


def rate(work: Callable[[], object], texts: int) -> float:
    """Texts a second, the median of the rounds."""
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return texts / statistics.median(seconds)


def each(step: Callable[[str], object], texts: list[str]) -> None:
    """Take one step with every text."""
    for text in texts:
        step(text)


def in_batches(scheme: Scheme, forms: list[str]) -> None:
    """Segment and fingerprint normalised texts."""
    for first in range(0, len(forms), BATCH):
        scheme.fingerprint(forms[first : first + BATCH])


def everything(scheme: Scheme, texts: list[str]) -> None:
    """Normalise, segment and fingerprint."""
    for first in range(0, len(texts), BATCH):
        scheme.fingerprint([scheme.normalize(text) for text in texts[first : first + BATCH]])


def main() -> None:
    """Print a line for each file."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    begin = time.perf_counter()
    scheme = Scheme.build(SchemeSpec())
    print(f"built in {time.perf_counter() - begin:.2f} s")
    for name in FILES:
        with lzma.open(directory / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines][:MOST]
        forms = [scheme.normalize(text) for text in texts]
        steps = {
            "all": partial(everything, scheme, texts),
            "normalise": partial(each, scheme.normalize, texts),
            "segment": partial(each, scheme.words, forms),
            "fingerprint": partial(in_batches, scheme, forms),
            "key": partial(each, content_key, forms),
        }
        for step, work in steps.items():
            print(f"{name:16}{step:12}{rate(work, len(texts)):>12,.0f} texts/s")


if __name__ == "__main__":
    main()
