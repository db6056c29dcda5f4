"""What a benchmark has to say: its question, tables of figures, and how they stand to the targets; as JSON.

A benchmark runs its contenders in turn, in one run, and quotes medians with their spread, and ratios. Times of two runs
are not to be compared: the machine may have had other work.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, Self

__all__ = ["FOLDER", "Options", "Result", "Spread", "Table", "Target", "number", "spread"]

FOLDER = Path(".bench")
"""Where results are kept, and what benchmarks preload."""

_PACKAGES = ("numpy", "rocksdict", "rjieba", "faust-streaming", "aiokafka", "confluent-kafka")


class Options(NamedTuple):
    """What a benchmark is told."""

    data: Path
    """The directory of the real texts."""
    millions: int
    """How many million originals are live, at most."""


class Spread(NamedTuple):
    """The middle of some measurements and how far they lie apart."""

    median: float
    low: float
    """The first quartile."""
    high: float
    """The third quartile."""

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.low)} to {number(self.high)})"


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the quartiles of at least two values."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def number(value: float) -> str:
    """Return a number with three digits that count, thousands apart."""
    digits = max(0, 2 - (len(str(int(abs(value)))) - 1)) if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


@dataclass
class Table:
    """Rows of cells under a caption; a cell is text as the page shows it."""

    caption: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)


@dataclass
class Target:
    """What was asked for, and what was measured."""

    what: str
    asked: str
    measured: str
    met: bool


@dataclass
class Result:
    """Everything that one benchmark found.

    Attributes:
        name: by which it is run.
        title: a heading.
        question: what it asks, and how.
        tables: what it found.
        targets: how that stands to what was asked for.
        notes: what the figures mean and leave out, a paragraph each.
        samples: the single measurements.
        versions: of what was measured beside ourselves.
        machine: what it ran on.
        day: when, a date.
    """

    name: str
    title: str
    question: str
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    samples: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    day: str = ""

    def save(self, *packages: str) -> None:
        """Write it down, with the machine, the day and the versions of our packages and those named."""
        self.machine = _machine()
        self.day = time.strftime("%Y-%m-%d")
        self.versions |= {name: metadata.version(name) for name in (*_PACKAGES, *packages)}
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1)
        (FOLDER / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, name: str) -> Self | None:
        """Return what a benchmark found when it last ran; None where it has not."""
        path = FOLDER / f"{name}.json"
        if not path.exists():
            return None
        values = json.loads(path.read_text(encoding="utf-8"))
        values["tables"] = [Table(**table) for table in values["tables"]]
        values["targets"] = [Target(**target) for target in values["targets"]]
        return cls(**values)


def _machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
