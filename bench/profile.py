"""Where the time of one text goes in a worker at full load: samples of its stacks, as a table and a flame graph.

Run: python -m bench --millions 1 profile
"""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.deployment import Cluster
from bench.end_to_end import GROUP, RULES, Textsieve, event, texts_of
from bench.results import FOLDER, Options, Result, Table, number
from stream.broker import ApacheKafka

EVENTS = 100_000
"""A backlog, under each rule."""
PROFILED = 15
"""Seconds of samples, which begin when the worker is at full load."""
RATE = 200
"""Samples a second."""

STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("text: normalise", ("stream/text/normalize.py",)),
    ("text: cut into words", ("stream/text/segment.py",)),
    (
        "text: fingerprint, bands",
        ("stream/text/simhash.py", "stream/text/minhash.py", "stream/text/shingles.py"),
    ),
    ("confirmation", ("stream/confirm.py", "stream/text/similarity.py", "stream/text/sketch.py")),
    ("insert and merge", ("(apply) state/table.py", "(_apply)", "(merge_step)", "(apply)")),
    ("lookup", ("state/", "stream/candidates.py")),
    ("verdict", ("stream/judge.py", "stream/text/")),
    ("wire: decode, headers, verdict", ("stream/events.py",)),
    (
        "produce and commit",
        ("stream/writer.py", "stream/transactor.py", "aiokafka/producer", "aiokafka/record"),
    ),
    ("Faust and fetching", ("faust/", "mode/", "aiokafka/", "stream/agents", "stream/scope")),
)
"""What a stack belongs to: the stage one of whose marks is in the innermost frame that has any."""


def stage(stack: str) -> str:
    """Return the stage of a stack, frames from the outermost on with semicolons between."""
    frames = stack.split(";")
    # What is done for a write counts as the write, however deep it goes.
    for name, marks in STAGES:
        if name == "insert and merge" and any(mark in frame for mark in marks for frame in frames):
            return name
    for frame in reversed(frames):
        for name, marks in STAGES:
            if any(mark in frame for mark in marks):
                return name
    return "other: event loop, threads"


def stacks(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each stack that was seen and how often."""
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        yield stack, int(count)


def main(options: Options) -> None:
    """Measure, and save the result and the flame graph."""
    texts = texts_of(options.data)
    result = Result("profile", "Where the time goes", "")
    shares: dict[str, dict[str, float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="kafka-", dir=FOLDER.absolute()) as name,
        ApacheKafka(Path(name) / "kafka") as broker,
    ):
        assert broker.pid is not None
        cluster = Cluster(broker.bootstrap, broker.pid)
        sieve = Textsieve(cluster, Path(name), options.data, options.millions)
        for rule, environment in RULES.items():
            begin = cluster.committed(GROUP, sieve.raw)
            end = begin + cluster.produce(sieve.raw, map(event, islice(texts, EVENTS)))
            with sieve.start(**environment) as worker:
                while cluster.committed(GROUP, sieve.raw) == begin:
                    worker.require(True, "it begins")
                busy = worker.cpu()
                raw = Path(name) / "stacks.txt"
                _sample(worker.process.pid, raw, "raw")
                at = cluster.committed(GROUP, sieve.raw)
                micros = 1e6 * (worker.cpu() - busy) / (at - begin)
                if at >= end:
                    raise SystemExit("the backlog was too small: raise EVENTS")
                if rule == "textsieve, default rule":
                    page = Path("docs/performance")
                    page.mkdir(parents=True, exist_ok=True)
                    _sample(worker.process.pid, page / "worker.svg", "flamegraph")
            seen: Counter[str] = Counter()
            for stack, count in stacks(raw):
                seen[stage(stack)] += count
            total = seen.total()
            shares[rule] = {what: micros * count / total for what, count in seen.items()}
            result.samples[rule] = {"CPU, µs an event": micros, **shares[rule]}
    names = [*(name for name, _ in STAGES), "other: event loop, threads"]
    result.question = (
        f"What does a worker spend its CPU on at full load, with {sieve.originals:,} live originals? Its stacks were "
        f"sampled {RATE} times a second for {PROFILED} s by py-spy, only threads that hold the interpreter or compute; "
        "the CPU that it used is shared out in proportion."
    )
    result.tables.append(
        Table(
            "µs of CPU an event",
            ("stage", *RULES),
            [
                *((name, *(number(shares[rule].get(name, 0)) for rule in RULES)) for name in names),
                ("all", *(number(sum(shares[rule].values())) for rule in RULES)),
            ],
        )
    )
    result.notes.append("![Flame graph of a worker under the default rule](performance/worker.svg)")
    result.save("py-spy")


def _sample(pid: int, path: Path, format_: str) -> None:
    command = [
        str(Path(sys.executable).with_name("py-spy")),
        "record",
        "--pid",
        str(pid),
        "--output",
        str(path),
    ]
    command += ["--format", format_, "--duration", str(PROFILED), "--rate", str(RATE), "--nonblocking"]
    subprocess.run(command, check=True, capture_output=True)
