"""What the second look costs a text, over a million texts that are compared with.

Run: python -P bench/second_look.py [--texts 1000000] [directory of the real texts]

The same texts are judged twice, side by side, batch by batch: under the classic rule (no bands stored, nothing
confirmed) and under the default rules. What is loaded are real comments, posts and headlines in random order, then
texts made of two halves of real ones each, until there are as many as asked for. What is timed are the last 50,000
real comments, in their order. From normalisation to the stored state; no Kafka.
"""

import argparse
import json
import lzma
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from stream.settings import Settings, load
from stream.text import Scheme
from stream.tools.offline import judging
from stream.verdict import Duplicate, Input, Text, Unique, Verdict

FILES = ("weibo-comments", "weibo-posts", "weibo-headlines-2023")
BATCH = 500
COMMENTS = 96_069
TIMED = 50_000
CONTENDERS: dict[str, dict[str, object]] = {"classic": {"confirm": "none", "bands": 0}, "second look": {}}


def real_texts(directory: Path) -> Iterator[str]:
    """The texts of all files, in their order."""
    for name in FILES:
        with lzma.open(directory / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)


def joined(texts: Sequence[str], random_: random.Random) -> str:
    """The first half of one text and the second half of another."""
    one, other = random_.choice(texts), random_.choice(texts)
    return one[: len(one) // 2] + other[len(other) // 2 :]


def batches(texts: Sequence[str], count: int) -> Iterator[tuple[bool, list[Input]]]:
    """Batches, and whether each is timed. The first texts are the comments, in their order."""
    random_ = random.Random(1)
    timed = texts[COMMENTS - TIMED : COMMENTS]
    pool = [*texts[: COMMENTS - TIMED], *texts[COMMENTS:]]
    random_.shuffle(pool)
    pool += [joined(pool, random_) for _ in range(count - len(pool))]
    stream = [*pool[:count], *timed]
    for first in range(0, len(stream), BATCH):
        part = stream[first : first + BATCH]
        yield first >= count, [Text(first + i, None, text, "") for i, text in enumerate(part)]


def main() -> None:
    """Print what each takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "directory", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "data"
    )
    parser.add_argument("--texts", type=int, default=1_000_000)
    arguments = parser.parse_args()
    texts = list(real_texts(arguments.directory))
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    loading = dict.fromkeys(CONTENDERS, 0.0)
    verdicts = {name: [0, 0] for name in CONTENDERS}
    with ExitStack() as stack:
        judges: dict[str, Callable[[Sequence[Input]], list[Verdict]]] = {}
        for name, overrides in CONTENDERS.items():
            settings: Settings = load(**overrides)
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="textsieve-"))
            scheme = Scheme.build(settings.scheme_spec)
            judges[name] = stack.enter_context(judging(Path(directory) / "state", settings, scheme))
        for timed, batch in batches(texts, arguments.texts):
            for name, judge in judges.items():
                begin = time.perf_counter()
                found = judge(batch)
                took = time.perf_counter() - begin
                verdicts[name][0] += sum(isinstance(verdict, Unique) for verdict in found)
                verdicts[name][1] += sum(isinstance(verdict, Duplicate) for verdict in found)
                if timed:
                    seconds[name].append(took)
                else:
                    loading[name] += took
    for name, taken in seconds.items():
        each = [1e6 * second / BATCH for second in taken]
        spread = f"median {statistics.median(each):.1f}, 99% {statistics.quantiles(each, n=100)[98]:.1f}"
        print(
            f"{name:12}{statistics.mean(each):6.1f} µs a text (by batches: {spread}); "
            f"while loading {1e6 * loading[name] / arguments.texts:.1f}; "
            f"{verdicts[name][0]} unique, {verdicts[name][1]} duplicates"
        )
    for what, measure in (("mean", statistics.mean), ("median", statistics.median)):
        print(
            f"second look / classic, {what}: {measure(seconds['second look']) / measure(seconds['classic']):.2f}"
        )


if __name__ == "__main__":
    main()
