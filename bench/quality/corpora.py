"""The corpora: the real texts, each distinct normalised text once, in the order of the files.

A pair of equal normalised texts is found by content and no question of quality, so none is left in.
"""

import json
import lzma
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.quality.errors import QualityError
from stream.text import Scheme

__all__ = ["LONG", "SHORT", "Corpus", "Measure", "data_directory", "read_corpora"]

SHORT = 10
"""Characters of a short text that can be told from a near one; below, other texts are other texts."""

LONG = 500
"""Characters from which a text is long."""

VERY_SHORT_HEADLINE = 6

Measure = Literal["edit", "resemblance", "identity"]
"""What makes two texts near-duplicates: edit similarity (short texts), the resemblance of their character
4-grams (long ones), or nothing at all (very short ones: any two that differ are different)."""


@dataclass(frozen=True)
class Corpus:
    """Texts that are compared with each other.

    Attributes:
        name: how tables and files call it.
        contents: what it is, in a few words.
        measure: what makes two of its texts near-duplicates.
        texts: distinct and normalised.
    """

    name: str
    contents: str
    measure: Measure
    texts: list[str]


def data_directory() -> Path:
    """Return the directory of the real texts: `TEXTSIEVE_DATA`, or `shared/data` beside the repository.

    Raises:
        QualityError: there is none.
    """
    beside = Path(__file__).parents[3] / "shared" / "data"
    directory = Path(os.environ.get("TEXTSIEVE_DATA", beside))
    if not directory.is_dir():
        raise QualityError(f"The real texts are not at {directory}. Name their directory in TEXTSIEVE_DATA.")
    return directory


def read_corpora(directory: Path, scheme: Scheme) -> list[Corpus]:
    """Return every corpus, short ones first. Texts without features (only punctuation, only emoji) are left out.

    Args:
        directory: where the files are.
        scheme: gives a text the form in which it is compared, and says whether it has features.

    Raises:
        QualityError: a file is missing or cannot be read.
    """

    def distinct(file: str) -> list[str]:
        texts = (text for record in _records(directory / file) for text in _texts(record))
        forms = list(dict.fromkeys(map(scheme.normalize, texts)))
        present = scheme.fingerprint(forms).present.tolist()
        return [form for form, has_features in zip(forms, present, strict=True) if has_features]

    def between(texts: Iterable[str], least: int, below: float = float("inf")) -> list[str]:
        return [text for text in texts if least <= len(text) < below]

    posts = distinct("weibo-posts.jsonl.xz")
    comments = distinct("weibo-comments.jsonl.xz")
    headlines = distinct("weibo-headlines-2023.jsonl.xz")
    learners = distinct("learner-edits.jsonl.xz")
    news = distinct("news-2020.jsonl.xz")
    laws = distinct("laws.jsonl.xz")
    return [
        Corpus("posts", "microblogs with many reposts", "edit", between(posts, SHORT)),
        Corpus("comments", "comments on microblogs", "edit", between(comments, SHORT)),
        Corpus("headlines", "trending headlines of a year", "edit", between(headlines, SHORT)),
        Corpus("learner-edits", "sentences and their corrected versions", "edit", between(learners, SHORT)),
        Corpus("news", "agency news", "resemblance", between(news, LONG)),
        Corpus("laws", "statutes of many cities", "resemblance", between(laws, LONG)),
        Corpus("short-comments", "the comments below 10 characters", "identity", between(comments, 1, SHORT)),
        Corpus(
            "short-headlines", "the headlines below 6", "identity", between(headlines, 1, VERY_SHORT_HEADLINE)
        ),
    ]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise QualityError(f"{path} cannot be read: {error}. Fetch the real texts again.") from error


def _texts(record: dict[str, Any]) -> Iterator[str]:
    yield record["text"]
    yield from record.get("edits", ())
