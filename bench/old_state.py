"""What does the segment table cost: to insert, merge, look up and open, and in bytes on disk?

Half of the fingerprints are drawn at random, half lie within a few bits of one of many centres, as versions of
one text do. Originals are applied in records of a batch each, as after a transaction, with a slice of merging
between two; lookups are measured when everything is in place, in batches and singly.

    python -P bench/state.py --texts 1000000 --windows 4
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from state.changelog import Record, decode, encode
from state.layout import Layout
from state.original import Original
from state.table import MERGE_AT, SegmentTable

SEED = 20200101
TEXT = "转发微博：寻找走失的孩子，请大家帮忙扩散一下，谢谢"


def fingerprints(count: int) -> NDArray[np.uint64]:
    """Half at random, half within three bits of one of the centres, ``(count,) uint64``."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, 2**64, count, dtype=np.uint64)
    centres = rng.integers(0, 2**64, max(count // 20, 1), dtype=np.uint64)
    near = rng.random(count) < 0.5
    drawn[near] = centres[rng.integers(0, len(centres), int(near.sum()))]
    for _ in range(3):
        drawn[near] ^= np.uint64(1) << rng.integers(0, 64, int(near.sum()), dtype=np.uint64)
    return drawn


def records(drawn: NDArray[np.uint64], batch: int) -> Iterator[Record]:
    """Records of a batch each; every text takes a millisecond."""
    for begin in range(0, len(drawn), batch):
        originals = [
            Original(
                offset, offset, fingerprint, (offset * 0x9E3779B97F4A7C15 % 2**128).to_bytes(16, "little"),
                str(offset).encode(), TEXT,
            )
            for offset, fingerprint in enumerate(drawn[begin : begin + batch].tolist(), begin)
        ]  # fmt: skip
        yield Record(
            begin, begin + len(originals), begin + len(originals), 0, "topic", "rules", (), originals
        )


def show(what: str, seconds: list[float], each: int = 1) -> None:
    """Mean, 99th percentile and maximum, in microseconds for each of `each` texts or calls."""
    micros = np.array(seconds) * 1e6 / each
    print(
        f"{what:34} mean {micros.mean():10.1f} µs   p99 {np.percentile(micros, 99):10.1f} µs   "
        f"max {micros.max():10.1f} µs"
    )


def main() -> None:
    """Build a table, and print what each step took."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--texts", type=int, default=1_000_000)
    arguments.add_argument("--windows", type=int, default=4)
    arguments.add_argument("--batch", type=int, default=500)
    arguments.add_argument("--layout", type=Layout.parse, default=Layout())
    arguments.add_argument("--merge-at", type=int, default=MERGE_AT)
    options = arguments.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="textsieve-bench-"))
    try:
        measure(directory / "state", options)
    finally:
        shutil.rmtree(directory)


def opened(path: Path, options: argparse.Namespace) -> SegmentTable:
    """The table, and how long it took to open."""
    start = perf_counter()
    table = SegmentTable.open(
        path,
        scheme="bench",
        layout=options.layout,
        window_span=-(-options.texts // options.windows),
        bands=0,
        origin={"topic": "bench"},
        merge_at=options.merge_at,
    )
    print(f"{'open':34} {perf_counter() - start:.2f} s")
    return table


def measure(path: Path, options: argparse.Namespace) -> None:
    """Everything, in the order in which it happens to a state."""
    drawn = fingerprints(options.texts)
    table = opened(path, options)
    applied, merged, packed, coded = [], [], 0, []
    for number, record in enumerate(records(drawn, options.batch)):
        start = perf_counter()
        data = encode(record)
        record = decode(data)
        coded.append(perf_counter() - start)
        packed += len(data)
        start = perf_counter()
        table.apply([record], number + 1)
        applied.append(perf_counter() - start)
        start = perf_counter()
        table.merge_step()
        merged.append(perf_counter() - start)
    show("record encoded, decoded, per text", coded, options.batch)
    show("apply, per text", applied, options.batch)
    show("apply, per batch", applied)
    slices = [seconds for seconds in merged if seconds > 1e-4]
    if slices:
        show("merge, per slice", slices)
        print(f"{'merge, in all':34} {sum(slices):.1f} s")
    look_up(table, drawn, options, "as it is after inserting")
    table.close()
    table = opened(path, options)
    start = perf_counter()
    while table.merge_step():
        pass
    print(f"{'the rest of the merging':34} {perf_counter() - start:.1f} s")
    table.close()
    table = opened(path, options)
    look_up(table, drawn, options, "closed windows merged, cold")
    look_up(table, drawn, options, "closed windows merged, warm")
    table.close()
    disk = sum(file.stat().st_size for file in path.rglob("*") if file.suffix == ".sst")
    log = sum(file.stat().st_size for file in path.rglob("*.log"))
    print(
        f"{'disk, per text':34} {disk / options.texts:.0f} B in tables, {log / options.texts:.0f} B in the log"
    )
    print(f"{'changelog, per text':34} {packed / options.texts:.0f} B, {len(TEXT.encode())} of them text")


def look_up(table: SegmentTable, drawn: NDArray[np.uint64], options: argparse.Namespace, state: str) -> None:
    """Look up stored fingerprints and new ones, in batches and singly."""
    in_memory = sum(window.unmerged for window in table.windows())
    print(f"-- {state}: {len(table.windows())} windows, {in_memory} originals in memory")
    rng = np.random.default_rng(SEED + 1)
    distance = table.layout.max_distance
    stored = drawn[rng.integers(0, len(drawn), 20_000)]
    fresh = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
    for what, queries in (("stored", stored), ("new", fresh)):
        batches, singles, found = [], [], 0
        for begin in range(0, len(queries), options.batch):
            batch = queries[begin : begin + options.batch]
            start = perf_counter()
            found += len(table.find_near(batch, distance, np.zeros(len(batch), np.int64)).query)
            batches.append(perf_counter() - start)
        for i in range(2000):
            start = perf_counter()
            table.find_near(queries[i : i + 1], distance, np.zeros(1, np.int64))
            singles.append(perf_counter() - start)
        show(f"find_near, {what}, batch, per query", batches, options.batch)
        show(f"find_near, {what}, singly", singles)
        print(f"{'':34} {found / len(queries):.2f} found per query")
    keys = [bytes(rng.bytes(16)) for _ in range(options.batch)]
    seconds = []
    for _ in range(20):
        start = perf_counter()
        table.find_content(keys)
        seconds.append(perf_counter() - start)
    show("find_content, new, per key", seconds, options.batch)
    seconds = []
    for _ in range(20):
        offsets = rng.integers(0, len(drawn), options.batch).tolist()
        start = perf_counter()
        table.originals(offsets)
        seconds.append(perf_counter() - start)
    show("originals, per offset", seconds, options.batch)
    horizons = np.sort(rng.integers(0, len(drawn), options.batch))
    start = perf_counter()
    table.first_alive(horizons)
    print(
        f"{'first_alive, horizons anywhere':34} {(perf_counter() - start) * 1e6 / options.batch:.1f} µs each"
    )


if __name__ == "__main__":
    main()
