"""Millions of live originals, made once and kept: texts of the model, judged as a worker would judge them.

They are made in parts of a million originals, each from texts of its own that are judged against each other, so that
a part holds no near-duplicates, and of crowds what the judge keeps of them. Two originals of different parts may be
near-duplicates; the judge would have kept one. Parts are kept as changelog records in `.bench`.
"""

import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

from rich.progress import track

from bench.model import Model, real_texts
from bench.results import FOLDER
from state.changelog import Record, decode, encode
from state.layout import Layout
from state.table import SegmentTable
from stream.judge import Judge
from stream.settings import load
from stream.text import Scheme
from stream.verdict import Text

PART = 1_000_000
"""Originals in a part, or a few less: it ends with a record."""
BATCH = 500
_SIZE = struct.Struct("<I")


def records(data: Path, parts: int, clock: Callable[[int], int] = lambda offset: offset) -> Iterator[Record]:
    """Yield the records of so many parts, one after another in offsets that rise.

    Parts that are missing are made first, on all cores.

    Args:
        data: the directory of the real texts.
        parts: how many.
        clock: the stream time at an offset; it never falls.
    """
    folder = prepare(data, parts)
    base = 0
    for part in range(parts):
        end = 0
        for record in map(decode, _values(folder / f"{part:03}")):
            end = record.next
            yield _moved(record, base, clock)
        base += end


def _moved(record: Record, base: int, clock: Callable[[int], int]) -> Record:
    originals = [
        original._replace(offset=base + original.offset, time=clock(base + original.offset))
        for original in record.originals
    ]
    return record._replace(
        begin=base + record.begin,
        next=base + record.next,
        time=clock(base + record.next - 1),
        boundary=0,
        originals=originals,
    )


def prepare(data: Path, parts: int) -> Path:
    """Make what is missing of so many parts, and return their directory."""
    scheme = Scheme.build(load().scheme_spec)
    folder = FOLDER / f"originals-{scheme.id}"
    folder.mkdir(parents=True, exist_ok=True)
    missing = [part for part in range(parts) if not (folder / f"{part:03}").exists()]
    if missing:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            made = pool.map(partial(_make, data, folder), missing)
            for _ in track(made, f"Preloads of {PART:,} originals", len(missing)):
                pass
    return folder


def _make(data: Path, folder: Path, part: int) -> None:
    settings = load()
    scheme = Scheme.build(settings.scheme_spec)
    texts = Model(list(real_texts(data))).texts(seed=1000 + part)
    whole = folder / f"{part:03}"
    unfinished = whole.with_suffix(".unfinished")
    with (
        tempfile.TemporaryDirectory(prefix="textsieve-") as directory,
        unfinished.open("wb") as file,
        SegmentTable.open(
            Path(directory) / "state",
            scheme=scheme.id,
            layout=Layout.parse(settings.layout),
            window_span=2**60,
            bands=scheme.spec.bands,
            origin={},
        ) as table,
    ):
        judge = Judge(table, scheme, settings.rules, "preload")
        table.apply([judge.start(0)], 1)
        kept = begin = 0
        while kept < PART - BATCH:
            batch = [Text(begin + i, 0, text, "") for i, text in enumerate(islice(texts, BATCH))]
            judged = judge.judge(batch).records
            table.apply(judged, begin + 2)
            table.merge_step()
            for record in judged:
                value = encode(record)
                file.write(_SIZE.pack(len(value)) + value)
                kept += len(record.originals)
            begin += BATCH
    unfinished.rename(whole)


def _values(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while size := file.read(_SIZE.size):
            yield file.read(_SIZE.unpack(size)[0])
