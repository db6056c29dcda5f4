"""`textsieve idf build topic:NAME`: what of a topic is counted, and that it says what stands in its way."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from deployment import SECONDS, Deployment, text

from stream.errors import BrokerError, InputError
from stream.settings import load
from stream.text import Scheme
from stream.tools.idf import Report, build

pytestmark = pytest.mark.usefixtures("kafka")


def report(deployment: Deployment, scheme: Scheme, output: Path, topic: str = "") -> Report:
    settings = load(**deployment.given())
    return build(f"topic:{topic or deployment.raw}", output, settings=settings, scheme=scheme)


def transact(deployment: Deployment, body: str, *, commit: bool) -> None:
    """A transaction with one event, which leaves a marker too."""
    producer = Producer({"bootstrap.servers": deployment.bootstrap, "transactional.id": deployment.prefix})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(deployment.raw, json.dumps({"text": body}).encode(), partition=0)
    if commit:
        producer.commit_transaction(SECONDS)
    else:
        producer.flush(SECONDS)
        producer.abort_transaction(SECONDS)


def test_committed_events_of_all_partitions_are_counted(
    deployment: Deployment, scheme: Scheme, tmp_path: Path
) -> None:
    deployment.create(deployment.raw, 2)
    deployment.produce([text("north south"), text("north")._replace(partition=1), text("east")])
    transact(deployment, "south aborted", commit=False)
    transact(deployment, "south committed", commit=True)
    transact(deployment, "east aborted", commit=False)
    deployment.produce([text("0")._replace(value=None)])
    seen = report(deployment, scheme, tmp_path / "idf.txt")
    assert seen == Report(documents=4, left_out=1, words=2, undercount=0)
    # ln(4 / 3)
    assert (tmp_path / "idf.txt").read_text().splitlines()[1:] == ["north 0.287682", "south 0.287682"]


def test_a_topic_gives_the_bytes_that_a_file_of_its_events_gives(
    deployment: Deployment, scheme: Scheme, tmp_path: Path
) -> None:
    deployment.create(deployment.raw)
    texts = [f"第{n}句话说的是{n * 37 % 11}件事情，word{n % 13}" for n in range(3000)]
    deployment.produce([text(body) for body in texts])
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"text": body}) + "\n" for body in texts))
    seen: list[tuple[int, int, int | None]] = []
    build(
        f"topic:{deployment.raw}",
        tmp_path / "topic.txt",
        settings=load(**deployment.given()),
        scheme=scheme,
        progress=lambda *told: seen.append(told),
    )
    build(str(file), tmp_path / "file.txt", settings=load(), scheme=scheme)
    assert (tmp_path / "topic.txt").read_bytes() == (tmp_path / "file.txt").read_bytes()
    assert seen[-1] == (3000, 3000, 3000)


def test_what_retention_has_left_is_counted(deployment: Deployment, scheme: Scheme, tmp_path: Path) -> None:
    deployment.create(deployment.raw)
    deployment.produce([text("gone gone"), text("here"), text("here")])
    wanted = TopicPartition(deployment.raw, 0, 1)
    admin = deployment.admin()
    admin.delete_records([wanted])[wanted].result(SECONDS)
    assert report(deployment, scheme, tmp_path / "idf.txt").documents == 2


def test_a_topic_that_is_not_there_is_an_error_and_is_not_made(
    deployment: Deployment, scheme: Scheme, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="there is no such topic"):
        report(deployment, scheme, tmp_path / "idf.txt", "no.such.topic")
    assert "no.such.topic" not in deployment.admin().list_topics(timeout=SECONDS).topics
    assert not (tmp_path / "idf.txt").exists()


def test_a_broker_that_is_away_is_an_error_within_the_deadline(scheme: Scheme, tmp_path: Path) -> None:
    settings = load(broker="127.0.0.1:1", deadline="1s")
    with pytest.raises(BrokerError, match="No broker answers"):
        build("topic:texts.raw", tmp_path / "idf.txt", settings=settings, scheme=scheme)
