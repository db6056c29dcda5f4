"""One run: a stream of real texts, faults at moments that a seed chooses, and the check at the end."""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stream.broker import ApacheKafka
from stream.text import Scheme
from tests.faults import corpus
from tests.faults.check import Findings, Seen, compare
from tests.faults.faults import FAULTS, NEED_TWO
from tests.faults.judge import as_event, judged, state_faults
from tests.faults.stage import Stage
from tests.integration.deployment import KINDS

Say = Callable[[str], None]


class Report(NamedTuple):
    """What a run did and found."""

    seed: int
    events: int
    recoveries: Mapping[str, Sequence[float]]
    """For each fault the seconds from each injection to the next commit."""
    findings: Findings
    state: Sequence[str]
    """How the states on disk differ from what the changelog says."""

    @property
    def sound(self) -> bool:
        return self.findings.sound and not self.state

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each fault: its name, how often, the median and the longest recovery in seconds."""
        return [
            (name, str(len(times)), f"{statistics.median(times):.1f}", f"{max(times):.1f}")
            for name, times in self.recoveries.items()
        ]


def plan(faults: Mapping[str, int], chance: random.Random) -> list[tuple[str, float]]:
    """The faults in a random order, each with the share of its slice of the stream after which it happens."""
    names = [name for name, count in sorted(faults.items()) for _ in range(count)]
    chance.shuffle(names)
    return [(name, chance.uniform(0.0, 0.6)) for name in names]


def run(directory: Path, data: Path, seed: int, events: int, faults: Mapping[str, int], say: Say) -> Report:
    """Run a stream through faults.

    Raises:
        RunError: a worker ended by itself, or nothing moved any more.
    """
    chance = random.Random(seed)
    planned = plan(faults, chance)
    recoveries: dict[str, list[float]] = {name: [] for name in faults if faults[name]}
    with ApacheKafka(directory / "kafka") as broker:
        two = bool(NEED_TWO & recoveries.keys())
        stage = Stage(directory, broker, chance, two, corpus.stream(data, events, seed))
        try:
            stage.deployment.create(stage.deployment.raw, **{"message.timestamp.after.max.ms": 3_600_000})
            # A slice for each fault and one to end with; always one more than the fault needs, so that there is
            # something to judge whatever it takes.
            size = events // (len(planned) + 2)
            stage.feed(2 * size)
            for place in "ab" if stage.two else "a":
                stage.start(place)
            for number, (name, share) in enumerate(planned):
                stage.until_committed(int(size * (number + share)))
                stage.wait(0, 0.1)
                stage.active()
                begun = time.monotonic()
                seconds = FAULTS[name](stage)
                stage.feed(size)
                # What was in flight when it happened may still have been committed.
                stage.until_committed(stage.committed() + 1)
                recoveries[name].append(seconds or time.monotonic() - begun)
                say(f"seed {seed}: {number + 1} of {len(planned)} faults ({name}), at {stage.committed()}")
            stage.feed()
            stage.until_committed(events)
            for worker in stage.places.values():
                code = worker.stop()
                assert code == 0, worker.said()[-4000:]
            say(f"seed {seed}: comparing with the offline judge")
            return Report(seed, events, recoveries, *_checked(stage, directory))
        finally:
            stage.close()


def _checked(stage: Stage, directory: Path) -> tuple[Findings, list[str]]:
    settings = stage.settings()
    scheme = Scheme.build(settings.scheme_spec)
    raw = [as_event(message) for message in stage.deployment.read(stage.deployment.raw)]
    seen = [
        Seen(*as_event(message))
        for kind in KINDS
        for message in stage.deployment.read(f"{stage.deployment.prefix}.{kind}")
    ]
    findings = compare(raw, judged(raw, settings, scheme, directory / "offline"), seen)
    changelog = stage.deployment.read(settings.changelog_topic(stage.deployment.raw))
    state = [
        f"at {place}: {fault}"
        for place in sorted(stage.places)
        for fault in state_faults(changelog, stage.settings(place), scheme.id, directory / f"rebuilt-{place}")
    ]
    return findings, state
