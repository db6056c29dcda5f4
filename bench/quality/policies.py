"""What each policy changes: how many events of real streams become duplicates under it."""

import json
import lzma
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stream.settings import load
from stream.text import Scheme
from stream.tools.dedup import judged
from stream.verdict import Duplicate

__all__ = ["STREAMS", "Policy", "policies"]

STREAMS = {
    "posts": "weibo-posts.jsonl.xz",
    "comments": "weibo-comments.jsonl.xz",
    "news": "news-2020.jsonl.xz",
}
"""The files that are judged, each as one stream, up to `_MOST` events."""

_MOST = 20_000

_SETTINGS: dict[str, dict[str, object]] = {
    "the defaults": {},
    "`CONFIRM=none`": {"confirm": "none"},
    "`CONFIRM=cosine`": {"confirm": "cosine"},
    "`NUMBERS_MATTER=true`": {"numbers_matter": True},
    "`URLS=ignore`": {"urls": "ignore"},
    "`MENTIONS=ignore`": {"mentions": "ignore"},
    "`HTML_TAGS=keep`": {"html_tags": "keep"},
    "`FOLD_SCRIPT=true`": {"fold_script": True},
    "`NEAR_FROM=6`": {"near_from": 6},
    "`SHORT_CHARS=140`": {"short_chars": 140},
    "`MIN_EDIT_SIMILARITY=0.9`": {"min_edit_similarity": 900},
    "`MIN_EDIT_SIMILARITY=0.7`": {"min_edit_similarity": 700},
    "`MIN_RESEMBLANCE=0.8`": {"min_resemblance": 800},
    "`MIN_RESEMBLANCE=0.6`": {"min_resemblance": 600},
    "`MAX_COMPARED=1000`": {"max_compared": 1000},
    "`BANDS=0`": {"bands": 0},
}


class Policy(NamedTuple):
    """A setting and what it makes of each stream."""

    name: str
    duplicates: list[tuple[int, int]]
    """For each stream how many events are duplicates of the same content, and how many near ones."""


def policies(directory: Path) -> Iterator[Policy]:
    """Yield what every policy makes of every stream."""
    streams = [list(_lines(directory / file)) for file in STREAMS.values()]
    for name, overrides in _SETTINGS.items():
        settings = load(**overrides)
        scheme = Scheme.build(settings.scheme_spec)
        found = []
        for lines in streams:
            with tempfile.TemporaryDirectory(prefix="textsieve-") as state:
                batches = judged(iter(lines), Path(state) / "state", settings, scheme)
                reasons = [
                    verdict.reason
                    for batch in batches
                    for _, verdict in batch
                    if isinstance(verdict, Duplicate)
                ]
            found.append((len(reasons) - reasons.count("near"), reasons.count("near")))
        yield Policy(name, found)


def _lines(path: Path) -> Iterator[bytes]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for _, line in zip(range(_MOST), lines, strict=False):
            yield json.dumps({"text": json.loads(line)["text"]}).encode()
