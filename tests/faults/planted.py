"""`python -m tests.faults.planted`: does the harness find faults that are really there?

Each fault is planted in a copy of the source, and the harness has to fail on it; on a copy with nothing planted
the same run has to be sound.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table

from tests.faults.__main__ import DATA
from tests.faults.plants import PLANTS, Edit, Plant, Programme, plant

ROOT = Path(__file__).parents[2]
SEEDS = (1, 2, 3)
"""A fault at an unlucky moment is found by the run that hits the moment: so many runs have the chance."""
SECONDS = 1_200
"""The longest that a run may take; it ends by itself long before, where nothing moves any more."""
_VERDICT = re.compile(r"^seed \d+: \d+ events, (.*), \d+ s$", re.MULTILINE)
_ENDED = re.compile(r"^seed \d+: (The worker at \w+ .*|After \d+ s .*)$", re.MULTILINE)
_SENTENCE = re.compile(r"^textsieve: .*$|^.*(?:Error|error): .*$|^.*\[ERROR\].*$", re.MULTILINE)


class Outcome(NamedTuple):
    """What a run of the harness came to."""

    sound: bool | None
    """None where the harness itself broke: that finds nothing."""
    how: str


def outcome(code: int, said: str) -> Outcome:
    """What a run that ended with this code said."""
    if verdict := _VERDICT.search(said):
        return Outcome(code == 0, verdict[1])
    ended = _ENDED.search(said)
    # A worker that somebody else has killed says nothing about the harness.
    if ended and "code -9" not in ended[1]:
        sentences = _SENTENCE.findall(said[ended.end() :])
        return Outcome(False, " ".join([ended[1].rstrip(":"), *sentences[-1:]]))
    return Outcome(None, f"ended with code {code}: {said[-1500:]}")


def harness(directory: Path, programme: Programme, edits: Sequence[Edit], seed: int) -> Outcome:
    """Run the harness on a copy of the source with these edits."""
    root = directory / "source"
    for package in ("stream", "state", "tests"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    plant(root, (*programme.edits, *edits))
    kept = directory / "run"
    arguments = [f"--{name}={count}" for name, count in programme.faults.items()]
    command = (sys.executable, "-m", "tests.faults", f"--seed={seed}", f"--events={programme.events}")
    done = subprocess.run(
        (*command, *arguments, f"--keep={kept}"),
        cwd=root,
        # So wide that no sentence is wrapped.
        env={**os.environ, "PYTHONPATH": str(root), "TEXTSIEVE_DATA": str(DATA.resolve()), "COLUMNS": "2000"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    return outcome(done.returncode, done.stdout)


def tried(
    name: str, programme: Programme, edits: Sequence[Edit], seeds: Iterable[int], say: Console
) -> Outcome:
    """Run with one seed after another until something is found."""
    found = Outcome(True, "")
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="textsieve-planted-") as scratch:
            found = harness(Path(scratch), programme, edits, seed)
        say.print(f"{name}: seed {seed}: {found.how}", markup=False, highlight=False)
        if found.sound is not True:
            return found._replace(how=f"seed {seed}: {found.how}")
    return found


@click.command()
@click.option("--only", help="Only the plants whose name has this in it.")
@click.option("--control/--no-control", default=True, help="Run each programme with nothing planted, too.")
def main(only: str | None, control: bool) -> None:
    """Plant faults in the source one by one, and see that the harness finds each."""
    console = Console(width=160)
    plants = [one for one in PLANTS if not only or only in one.name]
    table = Table("planted", "found", "how", title="planted faults", show_lines=True)
    right = True
    for one in (*_controls(plants if control else ()), *plants):
        seeds = SEEDS if one.edits else SEEDS[:1]
        found = tried(one.name, one.programme, one.edits, seeds, console)
        wanted = not one.edits
        right = right and found.sound is wanted
        answer = {True: "no", False: "yes", None: "the harness broke"}[found.sound]
        table.add_row(one.name, answer, found.how[:400])
    console.print(table, markup=False)
    sys.exit(not right)


def _controls(plants: Iterable[Plant]) -> list[Plant]:
    programmes = {id(one.programme): one.programme for one in plants}
    return [Plant(f"nothing ({', '.join(one.faults)})", one, ()) for one in programmes.values()]


if __name__ == "__main__":
    main()
