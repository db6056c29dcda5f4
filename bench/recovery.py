"""How many originals a second does a state take in that is built anew from its changelog, and how much memory?

The originals have random fingerprints, contents and twelve bands, and a text of 20 characters each; they stand in
records of 300, as a worker writes them, and fill four windows. No Kafka: what reading the changelog takes comes on top.

Run: python -P bench/recovery.py [--originals 1000000]
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from state.changelog import Record, decode, encode
from state.layout import Layout
from state.original import Original
from state.table import SegmentTable

RECORD = 300
BANDS = 12
TEXT = "一条二十个字的微博短文" * 2
CHUNK = 300
"""Records in one application: what a reader hands over at a time."""


def records(count: int) -> Iterator[bytes]:
    """Packed changelog records with so many originals."""
    chance = random.Random(1)
    for begin in range(0, count, RECORD):
        originals = [
            Original(
                offset,
                offset,
                chance.getrandbits(64),
                chance.randbytes(16),
                b"%d" % offset,
                TEXT,
                0,
                chance.getrandbits(64),
                chance.randbytes(2 * BANDS),
            )
            for offset in range(begin, min(begin + RECORD, count))
        ]
        yield encode(
            Record(begin, begin + len(originals), begin + RECORD, 0, "topic", "rules", (), originals)
        )


def chunks(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The records as a reader hands them over."""
    for begin in range(0, len(values), CHUNK):
        yield values[begin : begin + CHUNK]


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--originals", type=int, default=1_000_000)
    count = parser.parse_args().originals
    values = list(records(count))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spent = {"decode": 0.0, "write": 0.0, "index": 0.0}
    with tempfile.TemporaryDirectory() as directory:

        def opened() -> SegmentTable:
            return SegmentTable.open(
                Path(directory) / "state",
                scheme="s",
                layout=Layout(),
                window_span=count // 4 + 1,
                bands=BANDS,
                origin={},
            )

        with opened() as table:
            done = 0
            for chunk in chunks(values):
                begun = time.perf_counter()
                decoded = [decode(value) for value in chunk]
                spent["decode"] += time.perf_counter() - begun
                begun = time.perf_counter()
                done += len(chunk)
                table.load(decoded, done)
                spent["write"] += time.perf_counter() - begun
        begun = time.perf_counter()
        opened().close()
        spent["index"] += time.perf_counter() - begun
    whole = sum(spent.values())
    for name, seconds in spent.items():
        print(f"{name:8} {seconds:7.2f} s {count / seconds:12,.0f} originals/s")
    print(f"whole    {whole:7.2f} s {count / whole:12,.0f} originals/s")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory   {(after - before) / 1024:7.0f} MiB more than before, at its peak")


if __name__ == "__main__":
    main()
