"""Writes docs/performance.md from the results of the benchmarks, so that it cannot drift."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.results import Result, Table

__all__ = ["ORDER", "write"]

ORDER = ("text", "state", "end_to_end", "profile")
"""The benchmarks, in the order of the page."""

_TITLE = """# Performance

Written by `make bench`; do not edit. Every contender of a table ran in turn with the others, in one run on one machine.
Figures of different benchmarks may come from different hours of a noisy machine: compare within a table.
"""


def write(page: Path) -> None:
    """Write the page from every result there is."""
    results = [result for name in ORDER if (result := Result.load(name)) is not None]
    page.write_text("\n".join(_lines(results)), encoding="utf-8")


def _lines(results: Sequence[Result]) -> Iterator[str]:
    yield _TITLE
    if any(result.targets for result in results):
        yield "## Targets\n"
        yield from _table(
            ("what", "asked", "measured", ""),
            [
                (target.what, target.asked, target.measured, "met" if target.met else "**missed**")
                for result in results
                for target in result.targets
            ],
        )
    for result in results:
        yield f"## {result.title}\n"
        yield f"{result.question}\n"
        for table in result.tables:
            yield from _captioned(table)
        for note in result.notes:
            yield f"{note}\n"
        machine = ", ".join(f"{name} {value}" for name, value in result.machine.items())
        versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
        yield f"<sub>{result.day}; {machine}; {versions}. Run: `python -m bench {result.name}`.</sub>\n"


def _captioned(table: Table) -> Iterator[str]:
    yield f"{table.caption}:\n"
    yield from _table(table.columns, table.rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"| :-- |{' --: |' * (len(columns) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
