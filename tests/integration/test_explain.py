"""`textsieve explain` on a real Kafka: what it finds among outputs and markers, and what it says where it cannot."""

import json
import subprocess
import sys

import pytest
from confluent_kafka import Producer, TopicPartition
from deployment import KINDS, SECONDS, Deployment, Raw, text

from stream.errors import BrokerError, InputError
from stream.settings import load
from stream.text import Scheme
from stream.tools.explain import explain
from stream.tools.explanation import Explanation, parse_source

pytestmark = pytest.mark.usefixtures("kafka")

NOON = 1_500_000_000_000
CALLED = "你妈妈喊你回家吃饭哦，回家罗回家罗"
SHOUTED = "你妈妈叫你回家吃饭啦，回家罗回家罗"
# What becomes of them: unique, duplicate, duplicate, rejected.
EVENTS = [
    text(CALLED, NOON, id="a"),
    text(SHOUTED, NOON, id="b"),
    text(CALLED, NOON, id="a"),
    Raw(b"none", NOON),
]


def explained(
    deployment: Deployment, scheme: Scheme, offset: int, topic: str = "", **settings
) -> Explanation:
    given = load(**deployment.given(**settings))
    return explain(parse_source(f"{topic or deployment.raw}:0:{offset}"), settings=given, scheme=scheme)


def refused(deployment: Deployment, scheme: Scheme, offset: int, topic: str = "", **settings) -> str:
    with pytest.raises(InputError) as error:
        explained(deployment, scheme, offset, topic, **settings)
    return str(error.value)


def judged(deployment: Deployment, events: list[Raw] = EVENTS) -> None:
    """A worker has judged these events, and was stopped."""
    worker = deployment.ready()
    deployment.produce(events)
    deployment.until_judged(len(events))
    assert worker.stop() == 0


def delete_records(deployment: Deployment, topic: str, before: int) -> None:
    wanted = TopicPartition(topic, 0, before)
    admin = deployment.admin()
    admin.delete_records([wanted])[wanted].result(SECONDS)


def test_a_duplicate_is_shown_beside_its_original_and_others_with_their_reason(
    deployment: Deployment, scheme: Scheme
) -> None:
    judged(deployment)
    near = explained(deployment, scheme, 1)
    assert near.outcome == "duplicate"
    assert near.verdict["reason"] == "near"
    assert near.verdict["duplicate_of"]["source"] == near.original.source == f"{deployment.raw}:0:0"
    assert (near.original.text, near.event.text) == (CALLED, SHOUTED)
    assert near.pair.edit_distance == 2
    assert near.pair.hamming_distance == near.verdict["hamming_distance"]
    assert near.headers["scheme"] == scheme.id
    assert near.output == f"{deployment.prefix}.duplicates:0:0"
    assert near.notes == []
    assert explained(deployment, scheme, 2).verdict["reason"] == "redelivered"
    unique = explained(deployment, scheme, 0)
    assert (unique.outcome, unique.verdict, unique.pair) == ("unique", None, None)
    assert set(unique.headers) == {"fingerprint", "time", "scheme", "rules"}
    rejected = explained(deployment, scheme, 3)
    assert (rejected.outcome, rejected.headers["reason"]) == ("rejected", "invalid-json")
    assert "not JSON" in rejected.headers["error"]


def test_the_command_prints_it_and_its_json_is_one_object(deployment: Deployment) -> None:
    judged(deployment)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stream", "explain", *arguments],
            env=deployment.settings(),
            cwd=deployment.directory,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    shown = run(f"{deployment.raw}:0:1")
    assert shown.returncode == 0, shown.stderr
    assert f"{deployment.raw}:0:1 is a near-duplicate of {deployment.raw}:0:0" in shown.stdout
    assert "你妈妈{+叫+}你回家" in shown.stdout
    assert shown.stderr == ""
    as_json = json.loads(run(f"{deployment.raw}:0:1", "--json").stdout)
    assert as_json["pair"]["edit_similarity"] == 0.882
    beyond = run(f"{deployment.raw}:0:99")
    assert (beyond.returncode, beyond.stdout) == (1, "")
    assert beyond.stderr.startswith("Error: ")


def test_where_raw_retention_has_passed_both_numbers_and_the_verdict_are_shown(
    deployment: Deployment, scheme: Scheme
) -> None:
    judged(deployment)
    delete_records(deployment, deployment.raw, 1)
    half = explained(deployment, scheme, 1)
    assert half.original.text is None
    assert "offset 0 was asked for, the log begins at 1" in half.original.fault
    assert (half.event.text, half.event.fault, half.pair) == (SHOUTED, None, None)
    assert half.verdict["reason"] == "near"
    delete_records(deployment, deployment.raw, 4)
    none = explained(deployment, scheme, 1)
    assert "offset 0 was asked for, the log begins at 4" in none.original.fault
    assert "offset 1 was asked for, the log begins at 4" in none.event.fault
    assert none.verdict == half.verdict
    assert explained(deployment, scheme, 3).headers["reason"] == "invalid-json"


def test_where_output_retention_has_passed_it_says_so(deployment: Deployment, scheme: Scheme) -> None:
    judged(deployment)
    # The first duplicate and what ends its transaction.
    second = explained(deployment, scheme, 2).output.rsplit(":", 1)[1]
    delete_records(deployment, f"{deployment.prefix}.duplicates", int(second))
    assert explained(deployment, scheme, 2).outcome == "duplicate"
    said = refused(deployment, scheme, 1)
    assert "its output is gone" in said
    assert f"{deployment.prefix}.duplicates:0:{second}" in said


def test_an_event_that_is_not_there_or_not_judged_is_an_error(deployment: Deployment, scheme: Scheme) -> None:
    judged(deployment)
    deployment.produce([text("还没有判定的一句话", NOON)])
    assert "is not judged yet: the last event of the scope that has left is 3" in refused(
        deployment, scheme, 4
    )
    assert "committed events end before offset 5" in refused(deployment, scheme, 5)
    assert "none of the raw topics" in refused(deployment, scheme, 0, topic="other")
    assert "no topic other" in refused(deployment, scheme, 0, topic="other", raw_topics="other")
    assert "TEXTSIEVE_UNIQUE_TOPIC" in refused(
        deployment, scheme, 0, **{f"{kind}_topic": f"{deployment.prefix}.no-{kind}" for kind in KINDS}
    )
    with pytest.raises(InputError, match="has no partition 1: it has 1"):
        explain(parse_source(f"{deployment.raw}:1:0"), settings=load(**deployment.given()), scheme=scheme)
    with pytest.raises(BrokerError, match="No broker answers"):
        explained(deployment, scheme, 0, broker="127.0.0.1:1", deadline="1s")


def test_before_anything_is_judged_nothing_is_said_to_be_gone(deployment: Deployment, scheme: Scheme) -> None:
    deployment.create(deployment.raw)
    for kind in KINDS:
        deployment.create(f"{deployment.prefix}.{kind}")
    deployment.produce([text("一句话")])
    assert "is not judged yet: none has left" in refused(deployment, scheme, 0)


class Written:
    """Outputs as a worker writes them, in many small transactions, some of them aborted.

    Two raw topics share the partitions; the second one is silent in the middle.
    """

    COUNT = 6000

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.other = f"{deployment.prefix}.other"
        for topic in (deployment.raw, self.other, *(f"{deployment.prefix}.{kind}" for kind in KINDS)):
            deployment.create(topic)
        bodies = [text(f"第{n}句话", NOON) for n in range(self.COUNT)]
        deployment.produce([event for body in bodies for event in (body, body._replace(topic=self.other))])
        self._producer = Producer(
            {"bootstrap.servers": deployment.bootstrap, "transactional.id": deployment.prefix, "linger.ms": 5}
        )
        self._producer.init_transactions(SECONDS)
        for first in range(0, self.COUNT, 100):
            for commit in (False, True) if first % 300 == 0 else (True,):
                self._transact(first, commit)

    def kind(self, number: int) -> str:
        return "rejected" if number % 1000 == 7 else ("unique", "duplicates")[number * 7919 % 3 == 1]

    def _transact(self, first: int, commit: bool) -> None:
        self._producer.begin_transaction()
        for number in range(first, first + 100):
            # What was aborted would have left elsewhere.
            kind = self.kind(number) if commit else "rejected"
            self._send(self.deployment.raw, number, kind)
            if not self.COUNT / 3 <= number < self.COUNT * 2 / 3:
                self._send(self.other, number, kind)
        if commit:
            self._producer.commit_transaction(SECONDS)
        else:
            self._producer.flush(SECONDS)
            self._producer.abort_transaction(SECONDS)

    def _send(self, topic: str, number: int, kind: str) -> None:
        verdict = {"reason": "near", "duplicate_of": {"source": f"{topic}:0:{number - 1}", "time": NOON}}
        headers = [
            ("textsieve-source", b"forged:0:1"),
            ("textsieve-verdict", json.dumps(verdict)),
            ("textsieve-source", f"{topic}:0:{number}"),
        ]
        value = json.dumps({"text": f"第{number}句话"}).encode()
        self._producer.produce(f"{self.deployment.prefix}.{kind}", value, None, 0, headers=headers)


def test_among_thousands_of_outputs_markers_and_another_topic_s_the_right_one_is_found(
    deployment: Deployment, scheme: Scheme
) -> None:
    written = Written(deployment)
    settings = {"raw_topics": f"{deployment.raw},{written.other}"}
    for number in (0, 1, 7, 99, 100, 2007, 2999, 4001, 5555, written.COUNT - 1):
        found = explained(deployment, scheme, number, **settings)
        assert found.output.startswith(f"{deployment.prefix}.{written.kind(number)}:0:"), number
        assert found.source == f"{deployment.raw}:0:{number}"
        assert found.notes == []
        if found.outcome == "duplicate":
            assert (found.original.text, found.event.text) == (f"第{number - 1}句话", f"第{number}句话")
    for number in (3, 5555):
        assert explained(deployment, scheme, number, written.other, **settings).source.startswith(
            written.other
        )
    assert "was passed over" in refused(deployment, scheme, 3000, written.other, **settings)


def test_an_offset_of_a_marker_is_no_event(deployment: Deployment, scheme: Scheme) -> None:
    deployment.create(deployment.raw)
    producer = Producer({"bootstrap.servers": deployment.bootstrap, "transactional.id": deployment.prefix})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(deployment.raw, EVENTS[0].value, timestamp=NOON, partition=0)
    producer.commit_transaction(SECONDS)
    deployment.ready()
    deployment.produce([EVENTS[1]])
    deployment.until_judged(2)
    assert explained(deployment, scheme, 2).original.source == f"{deployment.raw}:0:0"
    assert "there is no event at this offset" in refused(deployment, scheme, 1)


def test_what_was_judged_otherwise_is_said(deployment: Deployment, scheme: Scheme) -> None:
    judged(deployment)
    other = Scheme.build(load(html_entities=False).scheme_spec)
    notes = explained(deployment, other, 1, html_entities=False, max_distance=1).notes
    assert len(notes) == 2
    assert f"scheme {scheme.id}; " in notes[0]
    assert other.id in notes[0]
    assert "rules" in notes[1]
    long = explained(deployment, scheme, 1, max_text_chars=10)
    assert long.pair is None
    assert "above 10 (TEXTSIEVE_MAX_TEXT_CHARS)" in long.notes[-1]
    no_text = explained(deployment, scheme, 1, text_field="body")
    assert "by the settings of now it is no text: The object has no field 'body'" in no_text.event.fault


def test_a_raw_topic_that_was_made_again_is_not_taken_for_the_old_one(
    deployment: Deployment, scheme: Scheme
) -> None:
    judged(deployment)
    admin = deployment.admin()
    admin.delete_topics([deployment.raw])[deployment.raw].result(SECONDS)
    deployment.create(deployment.raw)
    deployment.produce([text("另外一些话", NOON), text("完全不同的话", NOON)])
    found = explained(deployment, scheme, 1)
    assert "another event stands there" in found.event.fault
    assert found.pair is None


def test_what_a_second_group_has_judged_again_is_found_and_said(
    deployment: Deployment, scheme: Scheme
) -> None:
    judged(deployment)
    others = {"confirm": "none", "max_distance": 0}
    deployment.ready(group=f"{deployment.prefix}-2", data_dir=deployment.directory / "2", **others)
    outputs = deployment.until_lawful(8)
    assert [output.kind for output in outputs if output.line == 1] == ["unique", "duplicates"]
    found = explained(deployment, scheme, 1)
    assert found.outcome == "duplicate"
    assert "also left as" in found.notes[-1]
    assert "(unique)" in found.notes[-1]
