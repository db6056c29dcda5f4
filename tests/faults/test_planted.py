"""The planted faults still fit the source, and what a run of the harness says is understood."""

import shutil
from pathlib import Path

import pytest

from tests.faults.planted import ROOT, outcome
from tests.faults.plants import PLANTS, Plant, PlantError, plant


@pytest.mark.parametrize("one", PLANTS, ids=lambda one: one.name)
def test_each_fault_can_be_planted_and_leaves_python(one: Plant, tmp_path: Path) -> None:
    edits = (*one.programme.edits, *one.edits)
    for file in {edit.file for edit in edits}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    plant(tmp_path, edits)
    for file in {edit.file for edit in edits}:
        source = (tmp_path / file).read_text()
        assert source != (ROOT / file).read_text()
        compile(source, file, "exec")


def test_a_fault_whose_passage_is_gone_is_refused(tmp_path: Path) -> None:
    (edit, *_) = PLANTS[0].edits
    (tmp_path / edit.file).parent.mkdir(parents=True)
    (tmp_path / edit.file).write_text("nothing of it\n")
    with pytest.raises(PlantError, match="0 times"):
        plant(tmp_path, (edit,))


def test_a_sound_run_finds_nothing() -> None:
    said = "seed 1: comparing\nseed 1: 6000 events, 0 lost, 0 doubled, 0 wrong, state equal, 63 s\n"
    assert outcome(0, said) == (True, "0 lost, 0 doubled, 0 wrong, state equal")


def test_a_run_with_anything_lost_has_found_it() -> None:
    said = "seed 1: 6000 events, 3 lost, 0 doubled, 0 wrong, state equal, 63 s\n  raw:0:1 never left\n"
    assert outcome(1, said) == (False, "3 lost, 0 doubled, 0 wrong, state equal")


def test_a_worker_that_ended_has_found_it_with_its_last_sentence() -> None:
    said = "seed 1: The worker at a ended by itself, code 1:\n[INFO] Starting\nError: Scope raw:0: its log is gone\n"
    assert outcome(1, said) == (
        False,
        "The worker at a ended by itself, code 1 Error: Scope raw:0: its log is gone",
    )


@pytest.mark.parametrize(
    "said", ["Traceback (most recent call last):\n", "seed 1: The worker at a ended by itself, code -9:\n"]
)
def test_a_harness_that_broke_has_found_nothing(said: str) -> None:
    assert outcome(1, said).sound is None
