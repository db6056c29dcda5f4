"""A scope on a real Kafka, without Faust: deliveries, crashes and lost answers at the moments that matter."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from workbench import NOON, Bench, bodies

from stream.errors import ScopeClosedError
from stream.events import Output, RawEvent
from stream.writer import Writer


def after_commit(error: Exception) -> Callable[..., object]:
    """A writer whose first answer is lost: the transaction is committed, the caller gets an error."""
    transact = Writer.transact
    left = [error]

    async def lose(
        self: Writer, outputs: Sequence[Output], state: Sequence[Output], raw: TopicPartition, end: int
    ) -> list[int]:
        offsets = await transact(self, outputs, state, raw, end)
        if left and outputs:
            raise left.pop()
        return offsets

    return lose


async def test_events_delivered_twice_are_judged_once(bench: Bench) -> None:
    scope = await bench.scope()
    events = bench.produced(*bodies(10))
    assert await scope.process(events[:6]) == 6
    assert await scope.process(events[2:]) == 4
    assert await scope.process(events) == 0
    assert len(bench.kinds()) == 10


async def test_a_commit_whose_answer_was_lost_is_not_repeated(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = await bench.scope()
    events = bench.produced("同样的话", "同样的话", "另一件事情")
    monkeypatch.setattr(Writer, "transact", after_commit(TimeoutError()))
    assert await scope.process(events) == 3
    assert bench.kinds() == ["unique", "duplicates", "unique"]
    assert scope.position.next == 3
    assert await scope.process(bench.produced("另一件事情")) == 1
    assert bench.kinds() == ["unique", "duplicates", "unique", "duplicates"]


async def test_a_batch_whose_transaction_failed_is_judged_again_with_the_same_verdicts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = await bench.scope()
    events = bench.produced("同样的话", "同样的话")
    commit = AIOKafkaProducer.commit_transaction
    left = [TimeoutError(), ConnectionResetError()]

    async def fail(self: AIOKafkaProducer) -> None:
        if left:
            raise left.pop()
        await commit(self)

    monkeypatch.setattr(AIOKafkaProducer, "commit_transaction", fail)
    assert await scope.process(events) == 2
    assert bench.kinds() == ["unique", "duplicates"]


async def test_a_crash_between_the_commit_and_rocksdb_is_repaired_from_the_changelog(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CrashError(Exception):
        pass

    scope = await bench.scope()
    events = bench.produced("同样的话", "另一件事情")
    monkeypatch.setattr(Writer, "transact", after_commit(CrashError()))  # type: ignore[arg-type]
    with pytest.raises(CrashError):
        await scope.process(events)
    assert scope.position.next == 0, "nothing was written to RocksDB"
    await bench.close(scope)

    scope = await bench.scope()
    assert scope.position.next == 2
    await scope.process(bench.produced("同样的话"))
    assert bench.kinds() == ["unique", "unique", "duplicates"]


async def test_a_crash_before_the_commit_leaves_neither_outputs_nor_state(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CrashError(Exception):
        pass

    async def crash(self: AIOKafkaProducer) -> None:
        raise CrashError

    scope = await bench.scope()
    events = bench.produced("同样的话")
    with monkeypatch.context() as patch:
        patch.setattr(AIOKafkaProducer, "commit_transaction", crash)
        with pytest.raises(CrashError):
            await scope.process(events)
    await bench.close(scope)
    assert bench.kinds() == []

    scope = await bench.scope()
    assert scope.position.next == 0
    await scope.process(events)
    assert bench.kinds() == ["unique"], "a text is never a duplicate of its own first attempt"


async def test_a_scope_that_the_group_gave_to_another_worker_writes_nothing_more(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Both are told apart by the group, of which only the new one is a member.
    raw = bench.deployment.raw
    async with bench.member("old", raw):
        old = await bench.scope(client_id="old")
        events = bench.produced(*bodies(4))
        await old.process(events[:2])
    async with bench.member("new", raw):
        new = await bench.scope(client_id="new", data_dir=tmp_path / "other")
        assert await new.process(events[:3]) == 1
        with pytest.raises(ScopeClosedError, match="held by new now: this worker writes nothing more"):
            await old.process(events)
        assert await old.process(events) == 0
        caplog.clear()
        assert await new.process(events) == 1
        assert not caplog.records, "the old one left the new one alone"
    assert len(bench.kinds()) == 4


async def test_without_a_group_the_latest_to_come_goes_on_where_the_other_was(
    bench: Bench, tmp_path: Path
) -> None:
    old = await bench.scope()
    events = bench.produced(*bodies(9))
    await old.process(events[:2])
    new = await bench.scope(data_dir=tmp_path / "other")
    assert await new.process(events[:5]) == 3
    await old.process(events[:7])
    assert old.position.next == 7
    await new.process(events)
    assert new.position.next == 9
    assert len(bench.kinds()) == 9


async def test_events_that_lie_before_the_first_delivery_are_judged_all_the_same(bench: Bench) -> None:
    scope = await bench.scope()
    events = bench.produced(*bodies(20))
    assert await scope.process(events[15:]) == 20
    assert len(bench.kinds()) == 20


async def test_old_deliveries_before_new_ones_neither_lose_nor_double_an_event(bench: Bench) -> None:
    # As after a rebalance: what was buffered before it comes first, then all from the committed offset on.
    scope = await bench.scope()
    events = bench.produced(*bodies(20))
    assert await scope.process([*events[15:18], *events[:12]]) == 18
    assert await scope.process([*events[12:20]]) == 2
    assert len(bench.kinds()) == 20


async def test_after_a_redelivery_a_gap_is_looked_into(bench: Bench) -> None:
    scope = await bench.scope()
    events = bench.produced(*bodies(20))
    assert await scope.process(events[:8]) == 8
    assert await scope.process([*events[2:5], *events[14:]]) == 12
    assert len(bench.kinds()) == 20


async def test_an_idle_scope_judges_what_nobody_delivered_and_moves_its_position_over_markers(
    bench: Bench,
) -> None:
    scope = await bench.scope()
    producer = AIOKafkaProducer(
        bootstrap_servers=bench.deployment.bootstrap, transactional_id=f"{bench.deployment.raw}-p"
    )
    async with producer, producer.transaction():
        body = json.dumps({"text": "事务里的一句话"}).encode()
        await producer.send_and_wait(bench.deployment.raw, body, partition=0, timestamp_ms=NOON)
    while not bench.deployment.read(bench.deployment.raw):
        pass  # a commit that has returned may not be in the log yet
    await scope.settle()
    assert bench.kinds() == ["unique"], "an event that nobody delivered is judged"
    assert scope.position.next == 2
    assert bench.deployment.committed() == 2
    assert await scope.process([RawEvent(bench.deployment.raw, 0, 0, NOON, None, body, ())]) == 0


async def test_the_batch_in_flight_is_finished_before_a_scope_closes(bench: Bench) -> None:
    import asyncio

    scope = await bench.scope()
    events = bench.produced(*bodies(50))
    judging = asyncio.create_task(scope.process(events))
    await asyncio.sleep(0)
    await scope.close()
    with suppress(ScopeClosedError):
        await judging
    assert len(bench.kinds()) == bench.deployment.committed() == scope.position.next
    assert scope.position.next in (0, 50)


async def test_a_state_directory_that_another_process_holds_is_refused(bench: Bench) -> None:
    await bench.scope()
    with pytest.raises(Exception, match=r"(?i)another|held|in use"):
        await bench.scope()
