"""The life of a worker on a real Kafka: its start, its refusals, its place in the log."""

import asyncio
import sys
from itertools import pairwise

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import ConfigResource, ResourceType
from deployment import Deployment, text, unlike

from state.changelog import decode

# Noida-db 0.2.3 knows no bound on the future that it was not given, and a new member of a group waits.
pytestmark = pytest.mark.usefixtures("kafka")

NOON = 1_500_000_000_000


def sentences(count: int) -> list[str]:
    return [unlike(number) for number in range(count)]


def test_the_faust_command_runs_the_same_worker(deployment: Deployment) -> None:
    command = (sys.executable, "-m", "faust", "-A", "stream.app", "worker", "--without-web", "-l", "info")
    worker = deployment.start(*command)
    worker.until_said("is open at offset 0")
    deployment.produce([text("同样的话", NOON), text("同样的话", NOON)])
    assert [output.kind for output in deployment.until_judged(2)] == ["unique", "duplicates"]
    assert worker.stop() == 0


def test_topics_are_created_with_the_configuration_that_the_promises_need(deployment: Deployment) -> None:
    deployment.ready()
    resources = {
        name: ConfigResource(ResourceType.TOPIC, f"{deployment.prefix}{name}")
        for name in (".raw", ".unique", ".duplicates", ".rejected", "-rules", f"-{deployment.raw}-changelog")
    }
    admin = deployment.admin()
    futures = admin.describe_configs(list(resources.values()))
    config = {
        name: {key: entry.value for key, entry in futures[resource].result(60).items()}
        for name, resource in resources.items()
    }
    assert config[".raw"]["message.timestamp.after.max.ms"] == "3600000"
    for name in (".unique", ".duplicates", ".rejected"):
        assert int(config[name]["max.message.bytes"]) >= int(config[".raw"]["max.message.bytes"]) + 65536
        assert config[name]["message.timestamp.type"] == "CreateTime"
        assert config[name]["message.timestamp.after.max.ms"] == str(2**63 - 1)
    changelog = config[f"-{deployment.raw}-changelog"]
    assert (changelog["message.timestamp.type"], changelog["cleanup.policy"]) == ("LogAppendTime", "delete")
    assert (changelog["retention.ms"], changelog["retention.bytes"]) == ("-1", "-1")
    assert config["-rules"]["cleanup.policy"] == "compact"


def test_a_raw_topic_with_more_partitions_than_allowed_is_refused(deployment: Deployment) -> None:
    deployment.create(deployment.raw, 3)
    worker = deployment.start()
    assert worker.wait() == 1
    assert f"Topic {deployment.raw} has 3 partitions, TEXTSIEVE_PARTITIONS allows 1" in worker.said()
    assert "Traceback" not in worker.said().rsplit("Error:", 1)[-1]


def test_topics_that_could_break_a_promise_are_refused_each_with_its_cure(deployment: Deployment) -> None:
    deployment.create(deployment.raw, **{"message.timestamp.after.max.ms": 2**63 - 1})
    deployment.create(f"{deployment.prefix}.unique", **{"max.message.bytes": 1000})
    deployment.create(f"{deployment.prefix}.duplicates", **{"message.timestamp.type": "LogAppendTime"})
    deployment.create(f"{deployment.prefix}-{deployment.raw}-changelog", **{"retention.ms": 1000})
    worker = deployment.start()
    assert worker.wait() == 1
    said = worker.said().rsplit("Error:", 1)[-1]
    for name, cure in (
        (f"{deployment.prefix}.raw", "--add-config message.timestamp.after.max.ms=3600000"),
        (f"{deployment.prefix}.unique", "max.message.bytes=1114124"),
        (f"{deployment.prefix}.duplicates", "message.timestamp.type=CreateTime"),
        (f"{deployment.prefix}-{deployment.raw}-changelog", "retention.ms=-1"),
    ):
        line = next(line for line in said.splitlines() if f"--entity-name {name} " in line)
        assert cure in line


def test_without_a_broker_the_worker_ends_with_a_sentence(deployment: Deployment) -> None:
    worker = deployment.start(broker="127.0.0.1:1", deadline="2s")
    assert worker.wait() == 1
    assert "No broker answers at 127.0.0.1:1" in worker.said()


def test_a_first_start_without_events_commits_its_place_and_a_restart_goes_on_from_it(
    deployment: Deployment,
) -> None:
    worker = deployment.ready()
    assert deployment.committed() == 0
    assert worker.stop() == 0
    deployment.produce([text("第一次启动之后才来的话", NOON)])
    deployment.ready()
    assert [output.kind for output in deployment.until_judged(1)] == ["unique"]


def test_a_group_that_starts_at_latest_leaves_what_was_there_before(deployment: Deployment) -> None:
    deployment.create(deployment.raw)
    deployment.produce([text(sentence, NOON) for sentence in sentences(5)])
    deployment.ready(start_at="latest")
    deployment.produce([text("启动之后的话", NOON)])
    assert [output.line for output in deployment.until_judged(1)] == [5]


async def _produce_transactions(bootstrap: str, topic: str, bodies: list[bytes], aborted: set[int]) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"{topic}-producer"
    ) as producer:
        for number, body in enumerate(bodies):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, body, partition=0, timestamp_ms=NOON)
            if number in aborted:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()


def test_events_of_aborted_transactions_are_not_judged_and_markers_do_not_stop_the_worker(
    deployment: Deployment,
) -> None:
    worker = deployment.ready()
    bodies = [event.value or b"" for event in map(text, sentences(20))]
    aborted = {0, 3, 4, 19}
    asyncio.run(_produce_transactions(deployment.bootstrap, deployment.raw, bodies, aborted))
    outputs = deployment.until_judged(16)
    assert [output.value for output in outputs] == [body for n, body in enumerate(bodies) if n not in aborted]
    assert worker.stop() == 0
    deployment.ready()
    asyncio.run(_produce_transactions(deployment.bootstrap, deployment.raw, bodies, set()))
    kinds = [output.kind for output in deployment.until_judged(36)]
    assert kinds[16:].count("unique") == 4, "only the aborted ones are new"


def test_a_restart_keeps_verdicts_whatever_is_left_of_the_state(deployment: Deployment) -> None:
    bodies = sentences(300)
    worker = deployment.ready(batch_size=50)
    deployment.produce([text(body, NOON) for body in bodies])
    first = deployment.until_judged(300)
    originals = {str(output.value): output.line for output in first if output.kind == "unique"}
    assert worker.stop() == 0

    # Another directory is empty: the state is built anew from the changelog.
    worker = deployment.ready(data_dir=deployment.directory / "elsewhere")
    deployment.produce([text(body, NOON) for body in bodies])
    second = deployment.until_judged(600)[300:]
    assert {output.kind for output in second} == {"duplicates"}
    assert worker.stop() == 0

    # The first directory is behind by a whole run: the changelog's tail is read.
    deployment.ready()
    deployment.produce([text(body, NOON) for body in bodies])
    third = deployment.until_judged(900)[600:]
    for output in third:
        assert output.kind == "duplicates"
        if str(output.value) in originals:
            original = output.verdict["duplicate_of"]
            assert original["source"] == f"{deployment.raw}:0:{originals[str(output.value)]}"  # type: ignore[index]


def test_the_changelog_and_the_rules_say_what_was_judged_under_which_rules(deployment: Deployment) -> None:
    deployment.ready()
    deployment.produce([text(sentence, NOON) for sentence in sentences(30)])
    outputs = deployment.until_judged(30)
    records = [
        decode(message.value() or b"")
        for message in deployment.read(f"{deployment.prefix}-{deployment.raw}-changelog")
    ]
    assert (records[0].begin, records[0].next) == (0, 0)
    assert all(one.next == other.begin for one, other in pairwise(records))
    assert records[-1].next == 30
    assert records[-1].time == NOON
    stored = [original.offset for record in records for original in record.originals]
    assert stored == [output.line for output in outputs if output.kind == "unique"]
    rules = {message.key(): message.value() for message in deployment.read(f"{deployment.prefix}-rules")}
    assert set(rules) == {str(outputs[0].header("textsieve-rules")).encode()}


def test_state_of_another_scheme_is_refused(deployment: Deployment) -> None:
    assert deployment.ready().stop() == 0
    worker = deployment.start(html_entities=False)
    assert worker.wait() == 1
    assert "scheme" in worker.said().rsplit("Error:", 1)[-1]
