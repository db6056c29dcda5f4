"""The worker's judge without Kafka: one scope, whose state lives as long as the work."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from state.layout import Layout
from state.table import SegmentTable
from stream.judge import Judge
from stream.settings import Settings
from stream.text import Scheme
from stream.verdict import Input, Verdict

TOPIC: Final = "file"
"""Stands for the topic in the name of an event: `file:0:<offset>`."""


@contextmanager
def judging(
    state: Path, settings: Settings, scheme: Scheme
) -> Iterator[Callable[[Sequence[Input]], list[Verdict]]]:
    """Give a function that judges the next batch of a scope that begins at offset 0, and remembers it.

    Parameters:
        state: the directory of the state, which is made. It is the caller's to delete.
        settings: the rules, the layout of the table, the number of windows.
        scheme: how a text becomes a fingerprint.

    Raises:
        StateError: the state cannot be written.
    """
    with SegmentTable.open(
        state,
        scheme=scheme.id,
        layout=Layout.parse(settings.layout),
        window_span=settings.window_span,
        bands=scheme.spec.bands,
        origin={"topic": TOPIC},
    ) as table:
        judge = Judge(table, scheme, settings.rules)
        # As many as a changelog would hold by now.
        applied = 1
        table.apply([judge.start(0)], applied)

        def judge_next(inputs: Sequence[Input]) -> list[Verdict]:
            nonlocal applied
            judgement = judge.judge(inputs)
            applied += len(judgement.records)
            table.apply(judgement.records, applied)
            table.merge_step()
            return judgement.verdicts

        yield judge_next
