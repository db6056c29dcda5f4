"""The whole of the real comments, with their record times of 2010 to 2015, through a real Kafka."""

import json
import lzma
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deployment import Deployment, Output, Raw

# With noida-db 0.2.3 a worker that follows a killed one may wait for the group for ever.
pytestmark = pytest.mark.usefixtures("kafka")


def comments(data_dir: Path) -> list[bytes]:
    with lzma.open(data_dir / "weibo-comments.jsonl.xz") as file:
        return [line.rstrip(b"\n") for line in file]


def as_events(lines: Sequence[bytes]) -> list[Raw]:
    times = (datetime.fromisoformat(json.loads(line)["time"]).replace(tzinfo=UTC) for line in lines)
    return [Raw(line, int(time.timestamp()) * 1000) for line, time in zip(lines, times, strict=True)]


def offline(lines: Sequence[bytes], directory: Path) -> dict[int, dict[str, object]]:
    """The verdicts of `textsieve dedup` on the same lines: line -> verdict, for every duplicate."""
    directory.mkdir(exist_ok=True)
    source = directory / "comments.jsonl"
    source.write_bytes(b"".join(line + b"\n" for line in lines))
    command = (
        sys.executable,
        "-m",
        "stream",
        "dedup",
        str(source),
        "--output-dir",
        str(directory / "offline"),
    )
    subprocess.run([*command, "--time-field", "time"], check=True, capture_output=True, cwd=directory)
    verdicts = map(json.loads, (directory / "offline" / "verdicts.jsonl").read_text().splitlines())
    return {int(verdict["source"].rsplit(":", 1)[1]): verdict for verdict in verdicts}


def figures(verdict: dict[str, object]) -> tuple[object, ...]:
    original = verdict["duplicate_of"]
    assert isinstance(original, dict)
    return (
        int(original["source"].rsplit(":", 1)[1]),
        original["time"],
        *(
            verdict[name]
            for name in ("id", "reason", "measure", "similarity", "hamming_distance", "fingerprint", "capped")
        ),
    )


def assert_same(outputs: Sequence[Output], verdicts: dict[int, dict[str, object]]) -> None:
    found = {output.line: figures(output.verdict) for output in outputs if output.kind == "duplicates"}
    assert found == {line: figures(verdict) for line, verdict in verdicts.items()}


@pytest.mark.timeout(600)
def test_96069_comments_keep_the_law_and_get_the_verdicts_of_dedup(
    deployment: Deployment, data_dir: Path
) -> None:
    lines = comments(data_dir)
    deployment.ready()
    deployment.produce(as_events(lines))
    outputs = deployment.until_judged(len(lines))
    assert [output.value for output in outputs] == lines
    assert_same(outputs, offline(lines, deployment.directory))


@pytest.mark.timeout(600)
def test_after_a_kill_in_mid_stream_every_event_has_left_once_and_every_verdict_is_the_same(
    deployment: Deployment, data_dir: Path
) -> None:
    lines = comments(data_dir)[:20_000]
    worker = deployment.ready(batch_size=200)
    deployment.produce(as_events(lines))
    worker.kill()
    judged = deployment.committed()
    assert 0 <= judged < len(lines), "the kill was to fall into the middle"
    deployment.ready(batch_size=300)
    outputs = deployment.until_judged(len(lines))
    assert [output.value for output in outputs] == lines
    assert_same(outputs, offline(lines, deployment.directory))


@pytest.mark.timeout(600)
def test_three_scopes_on_two_workers_that_come_and_go_are_judged_each_as_if_alone(
    deployment: Deployment, data_dir: Path
) -> None:
    lines = comments(data_dir)[:12_000]
    events = [event._replace(partition=number % 3) for number, event in enumerate(as_events(lines))]
    directories = [deployment.directory / name for name in ("one", "two")]
    first = deployment.ready(partitions=3, data_dir=directories[0])
    second = deployment.start(partitions=3, data_dir=directories[1])
    deployment.produce(events[:3000], **{"compression.type": "gzip"})
    second.until_said("is open at offset")
    deployment.produce(events[3000:6000], **{"compression.type": "snappy"})
    first.kill()
    deployment.start(partitions=3, data_dir=directories[0])
    deployment.produce(events[6000:9000], **{"compression.type": "lz4"})
    assert second.stop() == 0
    deployment.start(partitions=3, data_dir=directories[1])
    deployment.produce(events[9000:], **{"compression.type": "zstd"})
    outputs = deployment.until_judged(len(lines))
    for partition in range(3):
        mine = [output for output in outputs if output.source[1] == partition]
        assert [output.value for output in mine] == lines[partition::3]
        assert_same(mine, offline(lines[partition::3], deployment.directory / f"offline-{partition}"))
