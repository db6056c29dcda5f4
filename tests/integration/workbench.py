"""Scopes on a real Kafka without Faust: a test delivers the events, and decides when."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer
from deployment import Deployment, text, unlike

from stream import topics
from stream.events import RawEvent
from stream.replica import Replica
from stream.scope import Scope
from stream.settings import Settings, load
from stream.text import Scheme

NOON = 1_500_000_000_000


class Bench:
    """Makes scopes of one deployment and closes them all in the end."""

    def __init__(self, deployment: Deployment, scheme: Scheme) -> None:
        self.deployment = deployment
        self.scheme = scheme
        self.replicas: dict[Scope, Replica] = {}

    def settings(self, **overrides: object) -> Settings:
        return load(**self.deployment.given(**overrides))

    @asynccontextmanager
    async def member(self, client_id: str, topic: str) -> AsyncIterator[None]:
        """A member of the group, which holds the topic's partition for the length of a block."""
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=self.deployment.bootstrap,
            group_id=self.deployment.prefix,
            client_id=client_id,
            enable_auto_commit=False,
        )
        topics.prepare(self.settings())
        async with consumer:
            yield

    async def scope(self, client_id: str | None = None, **overrides: object) -> Scope:
        """An open scope of partition 0."""
        settings = self.settings(**overrides)
        replica = Replica(settings, self.scheme.id, topics.prepare(settings), self.deployment.raw, 0)
        scope = Scope(settings, self.scheme, replica, client_id)
        self.replicas[scope] = replica
        await scope.open()
        return scope

    async def close_all(self) -> None:
        for scope in list(self.replicas):
            await self.close(scope)

    async def close(self, scope: Scope) -> None:
        await scope.close()
        await self.replicas.pop(scope).shut_down()

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


def bodies(count: int, first: int = 0) -> list[str]:
    return [unlike(n) for n in range(first, first + count)]
