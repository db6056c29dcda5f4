"""Two workers and one scope: who stands by, who takes over, and under which rules."""

import json
import sys
from pathlib import Path

import pytest
from deployment import Deployment, text
from workbench import NOON, bodies

from state.layout import Layout
from state.table import SegmentTable
from stream.events import RawEvent
from stream.events import decode as decode_event
from stream.judge import Judge
from stream.settings import load
from stream.text import Scheme
from stream.verdict import Unique

# With noida-db 0.2.3 a group does not notice that a member died.
pytestmark = pytest.mark.usefixtures("kafka")


def test_a_standby_keeps_a_copy_and_takes_over_from_it(deployment: Deployment) -> None:
    common = {"standby": True, "session_timeout": "6s", "transaction_timeout": "6s"}
    active = deployment.ready(data_dir=deployment.directory / "a", **common)
    deployment.produce([text(body, NOON) for body in bodies(100)])
    deployment.until_judged(100)
    second = deployment.start(data_dir=deployment.directory / "b", **common)
    second.until_said("is followed from changelog offset")
    deployment.produce([text(body, NOON) for body in bodies(100, first=100)])
    deployment.until_judged(200)
    active.kill()
    second.until_said("is open at offset 200")
    deployment.produce([text(body, NOON) for body in bodies(200)])
    kinds = [output.kind for output in deployment.until_judged(400)[200:]]
    assert set(kinds) == {"duplicates"}
    assert second.stop() == 0


def test_each_worker_judges_under_its_own_rules_and_nothing_else_differs(
    deployment: Deployment, scheme: Scheme, tmp_path: Path
) -> None:
    deployment.create(deployment.raw)
    lines = [body[:-1] + ("事" if number % 3 else "件") for number, body in enumerate(bodies(30))] * 3
    events = [text(line, NOON + 1000 * number) for number, line in enumerate(lines * 2)]
    plans = [(0, "0.8", "2d"), (60, "1", "20s"), (120, "0.8", "2d")]
    for begin, similarity, retention in plans:
        worker = deployment.ready(min_edit_similarity=similarity, retention=retention)
        deployment.produce(events[begin : begin + 60])
        deployment.until_judged(begin + 60)
        assert worker.stop() == 0
    outputs = deployment.until_judged(180)

    raw = [
        RawEvent(deployment.raw, 0, offset, int(event.time or 0), None, event.value, ())
        for offset, event in enumerate(events)
    ]
    expected = []
    with SegmentTable.open(
        tmp_path / "offline",
        scheme=scheme.id,
        layout=Layout(),
        window_span=10**9,
        bands=scheme.spec.bands,
        origin={},
    ) as table:
        for begin, similarity, retention in plans:
            rules = load(min_edit_similarity=similarity, retention=retention).rules
            judge = Judge(table, scheme, rules)
            if not begin:
                table.apply([judge.start(0)], 1)
            judgement = judge.judge([decode_event(event, rules) for event in raw[begin : begin + 60]])
            table.apply(judgement.records, begin + 2)
            for verdict in judgement.verdicts:
                original = None if isinstance(verdict, Unique) else verdict.original.offset  # type: ignore[union-attr]
                expected.append((rules.id, original))
    found = [
        (
            output.header("textsieve-rules"),
            int(str(output.verdict["duplicate_of"]["source"]).rsplit(":", 1)[1])  # type: ignore[index]
            if output.kind == "duplicates"
            else None,
        )
        for output in outputs
    ]
    assert found == expected
    assert len({rules for rules, _ in found}) == 2
    recorded = {message.key() for message in deployment.read(f"{deployment.prefix}-rules")}
    assert recorded == {rules.encode() for rules, _ in found if rules}
    assert all(
        json.loads(message.value() or b"") for message in deployment.read(f"{deployment.prefix}-rules")
    )


FORGETFUL = """
from faust.assignor.partition_assignor import PartitionAssignor
from stream.cli import run

groups = PartitionAssignor._get_copartitioned_groups.__func__
left = [True]

def forget_once(cls, topics, cluster, subscriptions):
    return groups(cls, set() if left and left.pop() else topics, cluster, subscriptions)

PartitionAssignor._get_copartitioned_groups = classmethod(forget_once)
run()
"""
"""A worker whose assignor misses the topic at first, as where its metadata is empty after a broker came back."""


def test_a_partition_that_the_group_has_given_to_nobody_is_claimed(deployment: Deployment) -> None:
    deployment.create(deployment.raw)
    deployment.produce([text(body, NOON) for body in bodies(5)])
    worker = deployment.start(sys.executable, "-c", FORGETFUL, "worker")
    worker.until_said("Nobody holds")
    assert len(deployment.until_judged(5)) == 5
