"""The short version of `make faults`: every kind of fault once, on a few thousand events."""

import secrets
from pathlib import Path

import pytest

from tests.faults.faults import FAULTS
from tests.faults.run import run


@pytest.mark.timeout(600)
@pytest.mark.kafka
def test_nothing_is_lost_doubled_or_misjudged_whatever_happens(
    java_and_maven: None, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = secrets.randbelow(1_000_000)
    report = run(tmp_path, data_dir, seed, 10_000, dict.fromkeys(FAULTS, 1), lambda said: print(said))
    assert report.sound, f"seed {seed}: {report.findings}, {report.state}"
    assert set(report.recoveries) == set(FAULTS)
