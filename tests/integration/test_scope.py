"""A scope on a real Kafka, without Faust: deliveries, crashes and lost answers at the moments that matter."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from deployment import Deployment, text

from stream import topics
from stream.errors import ScopeError
from stream.events import Output, RawEvent
from stream.scope import Scope
from stream.settings import Settings, load
from stream.text import Scheme
from stream.writer import Writer

NOON = 1_500_000_000_000


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return Scheme.build(Settings().scheme_spec)


class Bench:
    """Makes scopes of one deployment and closes them all in the end."""

    def __init__(self, deployment: Deployment, scheme: Scheme) -> None:
        self.deployment = deployment
        self.scheme = scheme
        self.stack = AsyncExitStack()

    def settings(self, **overrides: object) -> Settings:
        d = self.deployment
        return load(
            broker=d.bootstrap,
            group=d.prefix,
            raw_topics=(d.raw,),
            unique_topic=f"{d.prefix}.unique",
            duplicates_topic=f"{d.prefix}.duplicates",
            rejected_topic=f"{d.prefix}.rejected",
            topic_retention=-1,
            **{"data_dir": d.directory / "data", **overrides},
        )

    async def scope(self, **overrides: object) -> Scope:
        """An open scope of partition 0."""
        settings = self.settings(**overrides)
        scope = Scope(settings, self.scheme, topics.prepare(settings), self.deployment.raw, 0)
        self.stack.push_async_callback(scope.close)
        await scope.open()
        return scope

    def produced(self, *bodies: str) -> list[RawEvent]:
        """Events that stand in the raw topic, as a consumer is handed them."""
        self.deployment.produce([text(body, NOON) for body in bodies])
        messages = self.deployment.read(self.deployment.raw)[-len(bodies) :]
        return [
            RawEvent(self.deployment.raw, 0, m.offset() or 0, NOON, None, m.value(), ()) for m in messages
        ]

    def kinds(self) -> list[str]:
        """What has left, in the order of the raw events; each exactly once."""
        outputs = sorted(self.deployment.outputs(), key=lambda output: output.line)
        lines = [output.line for output in outputs]
        assert lines == sorted(set(lines)), "an event left twice"
        return [output.kind for output in outputs]


@pytest.fixture
async def bench(deployment: Deployment, scheme: Scheme) -> AsyncIterator[Bench]:
    bench = Bench(deployment, scheme)
    yield bench
    await bench.stack.aclose()


def bodies(count: int, first: int = 0) -> list[str]:
    return [f"第{n}句话说的是{n * 7919 % 1000}件完全不同的事情" for n in range(first, first + count)]


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
    await scope.close()

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
    await scope.close()
    assert bench.kinds() == []

    scope = await bench.scope()
    assert scope.position.next == 0
    await scope.process(events)
    assert bench.kinds() == ["unique"], "a text is never a duplicate of its own first attempt"


async def test_a_scope_that_another_worker_took_over_writes_nothing_and_says_so(
    bench: Bench, tmp_path: Path
) -> None:
    old = await bench.scope()
    events = bench.produced(*bodies(4))
    await old.process(events[:2])
    new = await bench.scope(data_dir=tmp_path / "other")
    assert await new.process(events) == 2
    assert await new.process(bench.produced(*bodies(1, first=7))) == 1
    with pytest.raises(ScopeError, match="another worker has judged on to offset 5"):
        await old.process(events)
    assert len(bench.kinds()) == 5
    # The old one's last attempt has fenced the new one, which finds its feet again.
    assert await new.process(bench.produced(*bodies(2, first=10))) == 2
    assert len(bench.kinds()) == 7


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


async def test_an_idle_scope_moves_its_position_over_markers_but_never_over_events(bench: Bench) -> None:
    scope = await bench.scope()
    producer = AIOKafkaProducer(
        bootstrap_servers=bench.deployment.bootstrap, transactional_id=f"{bench.deployment.raw}-p"
    )
    async with producer, producer.transaction():
        body = json.dumps({"text": "事务里的一句话"}).encode()
        await producer.send_and_wait(bench.deployment.raw, body, partition=0, timestamp_ms=NOON)
    await scope.settle()
    assert scope.position.next == 0, "there is an event to judge"
    assert await scope.process([RawEvent(bench.deployment.raw, 0, 0, NOON, None, body, ())]) == 1
    await scope.settle()
    assert scope.position.next == 2
    assert bench.deployment.committed() == 2


async def test_the_batch_in_flight_is_finished_before_a_scope_closes(bench: Bench) -> None:
    import asyncio

    scope = await bench.scope()
    events = bench.produced(*bodies(50))
    judging = asyncio.create_task(scope.process(events))
    await asyncio.sleep(0)
    await scope.close()
    assert await judging in (0, 50)
    assert len(bench.kinds()) == await judging
    assert bench.deployment.committed() == await judging


async def test_a_state_directory_that_another_process_holds_is_refused(bench: Bench) -> None:
    await bench.scope()
    with pytest.raises(Exception, match=r"(?i)another|held|in use"):
        await bench.scope()
