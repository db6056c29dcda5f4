"""How many bytes on disk, and in the changelog, does an original of real texts take?

Judges the real comments and headlines, without expiry, merges everything, and opens the state once more.

Run: python -P bench/disk.py [directory of the real texts]
"""

import json
import lzma
import sys
import tempfile
from pathlib import Path

from state.changelog import encode
from state.layout import Layout
from state.table import SegmentTable
from stream.judge import Judge
from stream.settings import Settings
from stream.text import Scheme
from stream.verdict import Text

FILES = ("weibo-comments", "weibo-headlines-2023")
BATCH = 500


def opened(path: Path, scheme: Scheme, merge_at: int) -> SegmentTable:
    """The state, whose windows are merged when they hold that many originals."""
    return SegmentTable.open(
        path,
        scheme=scheme.id,
        layout=Layout(),
        window_span=2**60,
        bands=scheme.spec.bands,
        origin={},
        merge_at=merge_at,
    )


def main(data: Path) -> None:
    """Measure, and print a line for each figure."""
    settings = Settings()
    scheme = Scheme.build(settings.scheme_spec)
    texts: list[str] = []
    for name in FILES:
        with lzma.open(data / f"{name}.jsonl.xz") as file:
            texts.extend(json.loads(line)["text"] for line in file)
    originals = logged = 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "state"
        with opened(path, scheme, merge_at=10_000) as table:
            judge = Judge(table, scheme, settings.rules)
            table.apply([judge.start(0)], 1)
            for begin in range(0, len(texts), BATCH):
                batch = enumerate(texts[begin : begin + BATCH], begin)
                records = judge.judge([Text(offset, 0, text, str(offset)) for offset, text in batch]).records
                table.apply(records, begin + 2)
                originals += sum(len(record.originals) for record in records)
                logged += sum(len(encode(record)) for record in records)
                while table.merge_step():
                    pass
        opened(path, scheme, merge_at=10_000).close()
        size = sum(file.stat().st_size for file in path.iterdir())
    print(f"{originals} originals of {len(texts)} texts")
    print(f"state      {size / originals:6.1f} bytes an original")
    print(f"changelog  {logged / originals:6.1f} bytes an original, before compression")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data")
