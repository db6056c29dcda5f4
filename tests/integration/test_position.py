"""The position of a scope: what stops a worker, whether it starts or runs, and that what it names resolves it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from deployment import SECONDS, Deployment, Output, text
from workbench import NOON, Bench, bodies

from stream.broker import Noida, noida_binary
from stream.errors import ScopeError

# What moves offsets, deletes records and topics, is Kafka's administration: noida-db 0.2.3 lacks most of it.
pytestmark = pytest.mark.usefixtures("kafka")


def judged(deployment: Deployment, count: int = 30) -> list[Output]:
    """A worker has judged so many events, and was stopped."""
    worker = deployment.ready()
    deployment.produce([text(body, NOON) for body in bodies(count)])
    outputs = deployment.until_judged(count)
    assert worker.stop() == 0
    return outputs


def refused(deployment: Deployment, **settings: object) -> str:
    """What a worker says that does not go on."""
    worker = deployment.start(**settings)
    assert worker.wait() == 1
    return worker.said().rsplit("Error:", 1)[-1]


def textsieve(deployment: Deployment, *arguments: str, code: int = 0, **settings: object) -> str:
    """What a command says."""
    done = subprocess.run(
        [sys.executable, "-m", "stream", *arguments],
        env=deployment.settings(**settings),
        cwd=deployment.directory,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def run_named(deployment: Deployment, said: str) -> str:
    """Run the command that a sentence ends with."""
    return textsieve(deployment, *said.rsplit("textsieve ", 1)[1].split())


def go_on(deployment: Deployment, count: int, **settings: object) -> list[Output]:
    """A worker goes on; what it knows is known by the first text being a duplicate."""
    deployment.ready(**settings)
    deployment.produce([text(bodies(1)[0], NOON)])
    return deployment.until_judged(count)


def delete_records(deployment: Deployment, before: int) -> None:
    wanted = [TopicPartition(deployment.raw, 0, before)]
    admin = deployment.admin()
    for future in admin.delete_records(wanted).values():
        future.result(SECONDS)


def delete_topic(deployment: Deployment, topic: str) -> None:
    admin = deployment.admin()
    admin.delete_topics([topic])[topic].result(SECONDS)


@pytest.mark.parametrize("moved", [0, 20])
def test_a_committed_offset_that_somebody_moved_is_put_back(deployment: Deployment, moved: int) -> None:
    judged(deployment)
    deployment.move_offset(moved)
    said = refused(deployment)
    assert "the state ends at offset 30" in said
    assert f"committed offset is {moved}" in said
    assert said == textsieve(deployment, "position", code=1).rsplit("Error:", 1)[-1]
    assert "it is 30 now" in run_named(deployment, said)
    assert deployment.committed() == 30
    assert go_on(deployment, 31)[-1].kind == "duplicates"


def test_an_offset_that_expired_is_put_back(deployment: Deployment) -> None:
    judged(deployment)
    # What the broker does after an idle week.
    admin = deployment.admin()
    admin.delete_consumer_groups([deployment.prefix])[deployment.prefix].result(SECONDS)
    said = refused(deployment)
    assert "the state ends at offset 30" in said
    assert "no committed offset any more" in said
    assert "The group had no offset; it is 30 now" in run_named(deployment, said)
    assert go_on(deployment, 31)[-1].kind == "duplicates"


def test_events_that_retention_took_from_a_stopped_worker_are_skipped(deployment: Deployment) -> None:
    judged(deployment)
    deployment.produce([text(body, NOON) for body in bodies(20, first=100)])
    delete_records(deployment, 40)
    said = refused(deployment)
    assert "deleted offsets 30 to 39 before they were judged" in said
    assert "it goes on from 40" in run_named(deployment, said)
    outputs = go_on(deployment, 30 + 10 + 1)
    assert [output.line for output in outputs] == [*range(30), *range(40, 51)]
    assert outputs[-1].kind == "duplicates", "the state was kept"


def test_a_running_worker_stops_when_retention_overtakes_it(deployment: Deployment) -> None:
    worker = deployment.ready()
    deployment.produce([text(body, NOON) for body in bodies(5)])
    deployment.until_judged(5)
    with worker.paused():
        # The request that is open already is answered with the first event.
        deployment.produce([text(body, NOON) for body in bodies(1, first=100)])
        deployment.produce([text(body, NOON) for body in bodies(20, first=101)])
        delete_records(deployment, 15)
    assert worker.wait() == 1
    said = worker.said().rsplit("Error:", 1)[-1]
    assert "deleted offsets 6 to 14 before they were judged" in said


async def test_events_deleted_between_two_deliveries_are_noticed(bench: Bench) -> None:
    scope = await bench.scope()
    events = bench.produced(*bodies(20))
    assert await scope.process(events[:4]) == 4
    delete_records(bench.deployment, 12)
    with pytest.raises(ScopeError, match="deleted offsets 4 to 11 before they were judged"):
        await scope.process(events[12:])
    assert len(bench.kinds()) == 4


async def test_an_idle_scope_notices_that_everything_before_it_was_deleted(bench: Bench) -> None:
    scope = await bench.scope()
    bench.produced(*bodies(20))
    delete_records(bench.deployment, 20)
    with pytest.raises(ScopeError, match="deleted offsets 0 to 19"):
        await scope.inspect()


def test_a_topic_that_was_deleted_and_made_again_needs_another_group(deployment: Deployment) -> None:
    judged(deployment)
    delete_topic(deployment, deployment.raw)
    deployment.create(deployment.raw)
    deployment.produce([text(body, NOON) for body in bodies(40)])
    said = refused(deployment)
    assert "deleted and made again" in said
    assert "TEXTSIEVE_GROUP" in said
    deployment.ready(group=f"{deployment.prefix}-2")
    # The events of both topics have left, each once.
    deployment.until_lawful(70)


async def test_a_running_scope_does_not_take_a_new_topic_for_the_old_one(bench: Bench) -> None:
    scope = await bench.scope()
    assert await scope.process(bench.produced(*bodies(5))) == 5
    delete_topic(bench.deployment, bench.deployment.raw)
    bench.deployment.create(bench.deployment.raw)
    events = bench.produced(*bodies(20, first=100))
    with pytest.raises(ScopeError, match="deleted and made again"):
        await scope.process(events)
    with pytest.raises(ScopeError, match="deleted and made again"):
        await scope.inspect()
    assert len(bench.kinds()) == 5


def test_state_of_another_cluster_is_refused_and_another_directory_resolves_it(
    deployment: Deployment, tmp_path: Path
) -> None:
    if noida_binary() is None:
        pytest.skip("noida-db, which is the other cluster, is not installed for this platform")
    judged(deployment)
    with Noida(tmp_path / "noida") as other:
        said = refused(deployment, broker=other.bootstrap)
        assert said.count("belongs to cluster ") == said.count("not to cluster ") == 1, "both are named"
        assert "TEXTSIEVE_DATA_DIR" in said
        worker = deployment.ready(broker=other.bootstrap, data_dir=tmp_path / "new")
        assert worker.stop() == 0
    assert go_on(deployment, 31)[-1].kind == "duplicates"


def test_a_changelog_that_was_deleted_never_costs_the_state_on_disk(deployment: Deployment) -> None:
    judged(deployment)
    delete_topic(deployment, f"{deployment.prefix}-{deployment.raw}-changelog")
    said = refused(deployment)
    assert "somebody has deleted that topic" in said
    assert (deployment.state() / "CURRENT").exists(), "the state is kept"
    successor = f"{deployment.prefix}-2"
    deployment.produce([text(body, NOON) for body in bodies(3, first=200)])
    deployment.ready(group=successor, start_at=f"group:{deployment.prefix}")
    deployment.produce([text(body, NOON) for body in bodies(1, first=300)])
    assert [output.line for output in deployment.until_judged(34)] == list(range(34))


def test_positions_are_shown_without_a_state_at_hand(deployment: Deployment) -> None:
    judged(deployment, 7)
    shown = json.loads(textsieve(deployment, "position", "--json", data_dir=deployment.directory / "none"))
    assert shown == {
        "scope": f"{deployment.raw}:0",
        "committed": 7,
        "state": 7,
        "time": NOON,
        "begin": 0,
        "end": 7,
        "fault": None,
    }
    assert not (deployment.directory / "none").exists()
    assert f"{deployment.raw}:0" in textsieve(deployment, "position")


def test_a_position_is_not_moved_while_a_worker_runs_or_where_nothing_is_wrong(
    deployment: Deployment,
) -> None:
    scope = f"{deployment.raw}:0"
    worker = deployment.ready()
    for command in ("restore", "skip"):
        assert "has 1 worker. Stop all" in textsieve(deployment, "position", command, scope, code=1)
    assert worker.stop() == 0
    assert "there is nothing to skip" in textsieve(deployment, "position", "skip", scope, code=1)
    assert "is no scope of group" in textsieve(deployment, "position", "skip", f"{scope}0", code=1)
    deployment.move_offset(3)
    assert f"textsieve position restore {scope}" in textsieve(deployment, "position", "skip", scope, code=1)


def test_after_a_record_of_2099_another_group_takes_over_where_the_first_one_stood(
    deployment: Deployment,
) -> None:
    judged(deployment, 5)
    worker = deployment.ready()
    # Somebody opens the future for a moment.
    deployment.configure(deployment.raw, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    deployment.produce([text("来自未来的一句话", 4_070_908_800_000), text(bodies(1)[0], NOON + 1)])
    poisoned = deployment.until_judged(7)
    assert poisoned[6].kind == "unique", "the originals before it are forgotten"
    assert poisoned[6].header("textsieve-time") == "4070908800000"
    assert worker.stop() == 0
    deployment.configure(deployment.raw, {"message.timestamp.after.max.ms": "3600000"})
    successor = f"{deployment.prefix}-2"
    deployment.ready(group=successor, start_at=f"group:{deployment.prefix}")
    deployment.produce([text(bodies(1)[0], NOON + 2), text(bodies(1)[0], NOON + 3)])
    outputs = deployment.until_judged(9)
    assert [output.kind for output in outputs[7:]] == ["unique", "duplicates"]
    assert [output.header("textsieve-time") for output in outputs[7:]] == [str(NOON + 2), str(NOON + 3)]
