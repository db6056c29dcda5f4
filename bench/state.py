"""What a state of millions of live originals costs: to build, open, keep, and to judge a text against.

Run: python -m bench --millions 50 state
"""

import gc
import os
import resource
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from bench.model import Model, real_texts
from bench.preload import PART, records
from bench.results import FOLDER, Options, Result, Table, Target, number
from state.changelog import Record
from state.layout import Layout
from state.table import SegmentTable
from stream.judge import Judge
from stream.settings import Settings, load
from stream.text import Scheme
from stream.verdict import Text

STAGES = (1, 10, 20, 50)
"""Millions of live originals at which everything is measured."""
WINDOW = 15_000_000
"""Offsets in a window: some 12.5 million originals, so that 50 million lie in four windows and a part of a fifth."""
RULES = {"confirm=none": {"confirm": "none"}, "default rule": {}}
BATCH = 500
BATCHES = 40
"""In which texts are judged, at each stage under each rule."""
ALONE = 4_000
"""Texts that are judged alone."""
FRESH = 200_000
"""Originals that are taken in singly, as a worker does, before a stage is measured: what has not been merged."""
SEED = 7


class Look(NamedTuple):
    """What was measured in a process that opened the state and judged."""

    open_seconds: float
    resident: int
    """Bytes, without what the interpreter and the scheme take."""
    cold: dict[str, list[float]]
    """By rule, seconds of each batch, with nothing of the state in the system's cache before the first."""
    batches: dict[str, list[float]]
    alone: dict[str, list[float]]
    """By rule, seconds of each text that was judged alone, warm."""
    near: list[float]
    """Seconds of each batch of fingerprints that was looked up and nothing else."""
    found: int


def opened(path: Path, window: int, bands: int) -> SegmentTable:
    """The state in `path`; time is the offset, so a window is as many milliseconds long as it has offsets."""
    return SegmentTable.open(
        path, scheme="bench", layout=Layout(), window_span=window, bands=bands, origin={"topic": "bench"}
    )


def queries(data: Path, count: int) -> list[str]:
    """Texts of the model that are in no preload."""
    return list(islice(Model(list(real_texts(data))).texts(SEED), count))


def settings_of(rule: str) -> Settings:
    """The settings of one of `RULES`; nothing has expired."""
    return load(retention="3650d", **RULES[rule])


def look(path: Path, window: int, bands: int, texts: Sequence[str]) -> Look:
    """Open the state and judge texts against it, storing nothing. Runs in a process of its own."""
    scheme = Scheme.build(settings_of("default rule").scheme_spec)
    scheme.fingerprint([scheme.normalize(text) for text in texts])
    gc.collect()
    before = _resident()
    begin = time.perf_counter()
    table = opened(path, window, bands)
    open_seconds = time.perf_counter() - begin
    position = table.position
    assert position is not None

    def judged(rule: str, some: Sequence[str]) -> float:
        judge = Judge(table, scheme, settings_of(rule).rules)
        inputs = [Text(position.next + i, position.time, text, "") for i, text in enumerate(some)]
        begin = time.perf_counter()
        judge.judge(inputs)
        return time.perf_counter() - begin

    def batches(rule: str, part: Sequence[str]) -> list[float]:
        return [judged(rule, part[first : first + BATCH]) for first in range(0, len(part), BATCH)]

    rules = [rule for rule in RULES if bands or rule == "confirm=none"]
    cold = {}
    for rule in rules:
        _forget(path)
        cold[rule] = batches(rule, texts[: BATCH * BATCHES // 4])
    # Twice, in turn: what the first time brings into the caches is warm the second time.
    warm: dict[str, list[float]] = {}
    for _ in range(2):
        warm = {rule: batches(rule, texts[: BATCH * BATCHES]) for rule in rules}
    alone = {rule: [judged(rule, [text]) for text in texts[:ALONE]] for rule in rules}
    values = scheme.fingerprint([scheme.normalize(text) for text in texts[: BATCH * BATCHES]]).values
    near, found = [], 0
    for first in range(0, len(values), BATCH):
        begin = time.perf_counter()
        found += len(table.find_near(values[first : first + BATCH], 3, np.zeros(BATCH, np.int64)).query)
        near.append(time.perf_counter() - begin)
    resident = _resident() - before
    table.close()
    return Look(open_seconds, resident, cold, warm, alone, near, found)


def alone(function: Callable[..., Look], *arguments: object) -> Look:
    """Run in a process of its own, so that its memory is only what it needs."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Build(NamedTuple):
    """What it took to bring a state to its size."""

    loaded: int
    load_seconds: float
    """To write originals that were not there before, as a rebuild does, and then to index them."""
    fresh: int
    apply_seconds: float
    merge_slices: list[float]
    """Seconds of each slice of merging between two transactions."""


def build(path: Path, window: int, bands: int, coming: Iterator[Record], originals: int) -> Build:
    """Take in so many originals: most at once, the last ones as a worker does, in transactions."""
    begin = time.perf_counter()
    loaded = fresh = 0
    chunk: list[Record] = []
    with opened(path, window, bands) as table:
        done = table.position.changelog if table.position else 0
        for record in coming:
            chunk.append(record)
            done += 1
            loaded += len(record.originals)
            if len(chunk) == 300 or loaded >= originals - FRESH:
                table.load(chunk, done)
                chunk = []
            if loaded >= originals - FRESH:
                break
    opened(path, window, bands).close()
    load_seconds = time.perf_counter() - begin
    apply_seconds, slices = 0.0, []
    with opened(path, window, bands) as table:
        while table.merge_step():
            pass
        for record in coming:
            done += 1
            fresh += len(record.originals)
            begin = time.perf_counter()
            table.apply([record], done)
            applied = time.perf_counter()
            table.merge_step()
            apply_seconds += applied - begin
            slices.append(time.perf_counter() - applied)
            if fresh >= FRESH:
                break
    return Build(loaded, load_seconds, fresh, apply_seconds, slices)


def faiss_beside(
    fingerprints: NDArray[np.uint64], asked: NDArray[np.uint64]
) -> tuple[float, list[float], int, int]:
    """Seconds to build FAISS's multi-index hash, seconds of each batch, pairs found, and its bytes in memory."""
    faiss.omp_set_num_threads(1)
    gc.collect()
    before = _resident()
    begin = time.perf_counter()
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    stored = fingerprints.view(np.uint8).reshape(-1, 8)
    for first in range(0, len(stored), PART):
        index.add(stored[first : first + PART])
    built = time.perf_counter() - begin
    memory = _resident() - before
    rows = asked.view(np.uint8).reshape(-1, 8)
    seconds, found = [], 0
    for first in range(0, len(rows), BATCH):
        begin = time.perf_counter()
        limits, _, _ = index.range_search(rows[first : first + BATCH], 4)
        seconds.append(time.perf_counter() - begin)
        found += int(limits[-1])
    return built, seconds, found, memory


def main(options: Options) -> None:
    """Measure, and save the result."""
    stages = [stage for stage in STAGES if stage <= options.millions]
    bands = load().scheme_spec.bands
    texts = queries(options.data, BATCH * BATCHES)
    result = Result(
        "state",
        "Millions of live originals",
        "What does it cost to keep, open and search a state of so many live originals, and to judge a text against "
        "them? The originals are made by a model of the real comments and posts and judged against each other in parts "
        "of a million; the texts that are judged are made by the same model and are in none of them. Seconds are of "
        "one core, from the raw text to the verdict, without Kafka.",
    )
    judged = Table(
        "µs a text from the raw text to its verdict; in batches of 500 the mean (and the 99th percentile of batches), "
        "alone the mean, 50th, 99th and 99.9th percentile",
        ("live originals", "windows", "rule", "cold batches", "warm batches", "alone", "50%", "99%", "99.9%"),
    )
    kept = Table(
        "Built, opened, kept",
        (
            "live originals",
            "built anew, originals/s",
            "taken in singly, µs each",
            "merge slices, 99% / longest, ms",
            "open, s",
            "bytes on disk each",
            "resident, MiB",
        ),
    )
    beside = Table(
        "Looking up fingerprints within Hamming distance 3, µs each in batches of 500, beside FAISS "
        "IndexBinaryMultiHash (4 hashes of 16 bits) in memory",
        ("live originals", "ours", "FAISS", "pairs found, ours / FAISS", "FAISS builds, s", "FAISS, MiB"),
    )
    FOLDER.mkdir(exist_ok=True)
    means: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="state-", dir=FOLDER) as directory:
        path = Path(directory) / "state"
        fingerprints = array("Q")
        coming = _noting(records(options.data, stages[-1]), fingerprints)
        values = _fingerprints(texts)
        size = 0
        for stage in stages:
            built = build(path, WINDOW, bands, coming, stage * PART - size)
            size += built.loaded + built.fresh
            found = alone(look, path, WINDOW, bands, texts)
            with opened(path, WINDOW, bands) as table:
                windows = len(table.windows())
            disk = sum(file.stat().st_size for file in path.rglob("*") if file.suffix == ".sst")
            for rule in found.batches:
                judged.rows.append((f"{size:,}", str(windows), rule, *_costs(found, rule)))
            means[stage] = {rule: _mean(found.batches[rule], BATCH) for rule in found.batches}
            slices = np.array([s for s in built.merge_slices if s > 1e-3] or [0.0]) * 1000
            kept.rows.append(
                (
                    f"{size:,}",
                    f"{built.loaded / built.load_seconds:,.0f}",
                    number(1e6 * built.apply_seconds / built.fresh),
                    f"{np.percentile(slices, 99):.0f} / {slices.max():.0f}",
                    f"{found.open_seconds:.1f}",
                    f"{disk / size:.0f}",
                    f"{found.resident / 2**20:.0f}",
                )
            )
            built_in, seconds, pairs, memory = faiss_beside(np.array(fingerprints, np.uint64), values)
            beside.rows.append(
                (
                    f"{size:,}",
                    _each(found.near),
                    _each(seconds),
                    f"{found.found:,} / {pairs:,}",
                    f"{built_in:.1f}",
                    f"{memory / 2**20:.0f}",
                )
            )
            result.samples[str(stage)] = {**found._asdict(), "build": built._asdict(), "faiss": seconds}
        last = found
        expired = _expire(path, bands)
    result.tables += [judged, kept, beside]
    result.notes += [
        f"A window with {expired[0]:,} originals expired in {1000 * expired[1]:.0f} ms.",
        "FAISS keeps the fingerprints only: nothing on disk, no expiry, nothing of the text; a crash loses it. It "
        "finds what differs in less than 4 bits, as we do.",
    ]
    _targets(result, stages[-1], means, last)
    result.save("faiss-cpu")


def _targets(result: Result, most: int, means: dict[int, dict[str, float]], last: Look) -> None:
    asked = {"confirm=none": (200, 500), "default rule": (500, 2000)}
    for rule, (mean, high) in asked.items():
        micros = np.array(last.alone[rule]) * 1e6
        batch, p99 = means[most][rule], float(np.percentile(micros, 99))
        result.targets.append(
            Target(
                f"{rule}, {most} million live, warm: a text judged in batches, mean; alone, 99%",
                f"lookup at most {mean} µs; {high} µs (at 50 million)",
                f"{number(batch)} µs; {number(p99)} µs",
                batch <= mean and p99 <= high and most == 50,
            )
        )
    for rule in asked:
        growth = means[most][rule] / means[1][rule]
        result.targets.append(
            Target(
                f"{rule}: cost per text, {most} million live beside 1 million",
                "less than 3 times (at 50 million)",
                f"{growth:.2f} times",
                growth < 3 and most == 50,
            )
        )
    resident = last.resident / 2**20
    result.targets.append(
        Target(
            f"resident memory of the state, {most} million live",
            "at most 1.5 GB beside the block cache",
            f"{resident:,.0f} MiB with it",
            resident <= 1500 + 256 and most == 50,
        )
    )


def _expire(path: Path, bands: int) -> tuple[int, float]:
    """How many originals the oldest window has, and how many seconds the record takes that lets it expire."""
    with opened(path, WINDOW, bands) as table:
        position, first = table.position, table.windows()[0]
        assert position is not None
        record = Record(
            position.next, position.next + 1, position.time, first.last + 1, position.topic_id, position.rules
        )
        begin = time.perf_counter()
        table.apply([record], position.changelog + 1)
        return first.originals, time.perf_counter() - begin


def _noting(coming: Iterator[Record], fingerprints: "array[int]") -> Iterator[Record]:
    for record in coming:
        fingerprints.extend(o.fingerprint for o in record.originals if o.fingerprint is not None)
        yield record


def _fingerprints(texts: Sequence[str]) -> NDArray[np.uint64]:
    scheme = Scheme.build(load().scheme_spec)
    return scheme.fingerprint([scheme.normalize(text) for text in texts]).values


def _costs(found: Look, rule: str) -> Iterator[str]:
    yield _each(found.cold[rule])
    yield _each(found.batches[rule])
    micros = np.array(found.alone[rule]) * 1e6
    yield from (number(float(value)) for value in (micros.mean(), *np.percentile(micros, [50, 99, 99.9])))


def _each(seconds: Sequence[float]) -> str:
    micros = np.array(seconds) * 1e6 / BATCH
    return f"{number(float(micros.mean()))} ({number(float(np.percentile(micros, 99)))})"


def _mean(seconds: Sequence[float], each: int) -> float:
    return 1e6 * sum(seconds) / (each * len(seconds))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _forget(path: Path) -> None:
    """Have the system forget what it holds of the state's files."""
    os.sync()
    for file in path.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
