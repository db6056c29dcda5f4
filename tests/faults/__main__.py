"""`python -m tests.faults`: runs with faults; prints a table for each, and fails if anything is wrong."""

import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tests.faults.faults import FAULTS
from tests.faults.run import Report, run
from tests.faults.stage import RunError

DATA = Path(os.environ.get("TEXTSIEVE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def _counts(function):
    for name, fault in reversed(FAULTS.items()):
        function = click.option(f"--{name}", type=click.IntRange(0), default=0, help=fault.__doc__)(function)
    return function


@click.command()
@click.option(
    "--seed", type=int, multiple=True, help="Of each run; several are several runs. [default: a random one]"
)
@click.option("--events", type=click.IntRange(100), default=20_000, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep everything in this directory.")
@_counts
def main(seed: tuple[int, ...], events: int, keep: Path | None, **counts: int) -> None:
    """Judge a stream of real texts under fire, and compare what left with the offline judge."""
    faults = {name.replace("_", "-"): count for name, count in counts.items()}
    console = Console()
    sound = True
    for one in seed or (secrets.randbelow(1_000_000),):
        with tempfile.TemporaryDirectory(prefix="textsieve-faults-") as scratch:
            directory = (keep or Path(scratch)) / str(one)
            directory.mkdir(parents=True)
            begun = time.monotonic()
            try:
                report = run(directory, DATA, one, events, faults, lambda said: print(said, flush=True))
            except RunError as error:
                console.print(f"seed {one}: {error}", markup=False)
                sys.exit(1)
            _show(console, report, time.monotonic() - begun)
            sound = sound and report.sound
    sys.exit(not sound)


def _show(console: Console, report: Report, seconds: float) -> None:
    table = Table("fault", "times", "recovery, median s", "longest s", title=f"seed {report.seed}")
    for row in report.rows():
        table.add_row(*row)
    console.print(table)
    findings = report.findings
    console.print(
        f"seed {report.seed}: {report.events} events, {len(findings.lost)} lost, {len(findings.doubled)} doubled, "
        f"{len(findings.wrong)} wrong, state {'differs' if report.state else 'equal'}, {seconds:.0f} s"
    )
    for sentence in (*findings.lost[:5], *findings.doubled[:5], *findings.wrong[:5], *report.state[:5]):
        console.print(f"  {sentence}", markup=False)


if __name__ == "__main__":
    main()
