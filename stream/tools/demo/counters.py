"""How far a run over a topic is: counters that move on a terminal, or else a line now and then."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from stream.tools.tally import Tally

LINE_SECONDS: Final = 5.0
"""Between two lines, where there is no terminal: a log should tell progress and stay short."""


class Counters(ABC):
    """Says sentences and shows counts on standard error."""

    @abstractmethod
    def say(self, sentence: str) -> None:
        """Print a sentence that stays."""

    @abstractmethod
    def show(self, tally: Tally) -> None:
        """Show the counts of now; called often."""


class _Moving(Counters):
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, visible=False)

    def say(self, sentence: str) -> None:
        self._progress.console.print(sentence, markup=False, highlight=False)

    def show(self, tally: Tally) -> None:
        judged = tally.unique + tally.duplicates + tally.rejected
        self._progress.update(
            self._task, visible=True, completed=judged, total=tally.raw, description=_counts(tally)
        )


class _Lines(Counters):
    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = time.monotonic() + LINE_SECONDS

    def say(self, sentence: str) -> None:
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def show(self, tally: Tally) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_SECONDS
            self.say(_counts(tally))


def _counts(tally: Tally) -> str:
    return (
        f"raw {tally.raw:,}: unique {tally.unique:,}, duplicates {tally.duplicates:,}, "
        f"rejected {tally.rejected:,}"
    )


@contextmanager
def counters(*, moving: bool) -> Iterator[Counters]:
    """Counters on standard error; a moving line is gone at the end.

    Parameters:
        moving: whether they can move, because a terminal shows them.
    """
    console = Console(stderr=True)
    if not moving:
        yield _Lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Moving(progress)
