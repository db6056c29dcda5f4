"""Progress on a terminal's standard error, for work that turns out to be long."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

DELAY: Final = 2.0
"""Seconds before anything is shown: most runs are over by then, and a bar that flashes by is noise."""


@contextmanager
def shown(what: str) -> Iterator[Callable[[int, int, int | None], None]]:
    """Give a function to be told of texts done, bytes done, and bytes in all (None where that is unknown).

    Nothing is shown where standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield lambda done, position, size: None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]:,} texts"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=None, done=0)
    begun = time.monotonic()

    def update(done: int, position: int, size: int | None) -> None:
        if time.monotonic() - begun < DELAY:
            return
        bar.start()
        bar.update(task, completed=position, total=size, done=done)

    try:
        yield update
    finally:
        bar.stop()
