"""The consumer group as its coordinator sees it: who holds which partition.

Asked through aiokafka and not, as the other questions to the broker's administration, through librdkafka: that ends
the process with an assertion where a coordinator is just loading (librdkafka issue 4605, with confluent-kafka 2.16.1).
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import for_code

from stream.connection import aiokafka_options
from stream.settings import Settings

_SETTLED: Final = {"Stable", "Empty", "Dead"}


class Group(NamedTuple):
    """A consumer group."""

    settled: bool
    """Whether no rebalance is under way: only then does it say for sure who holds what."""
    members: int
    """How many members it has; none where there is no such group."""
    holders: Mapping[tuple[str, int], str]
    """Who holds each (topic, partition), by client id."""


async def describe_group(settings: Settings) -> Group:
    """The group of the settings.

    Raises:
        KafkaError, TimeoutError, OSError: the broker gave no answer within the deadline.
    """
    client = AIOKafkaAdminClient(
        **aiokafka_options(settings) | {"bootstrap_servers": settings.broker},
        request_timeout_ms=settings.deadline,
    )
    try:
        async with asyncio.timeout(settings.deadline / 1000):
            await client.start()
            answers = await client.describe_consumer_groups([settings.group])
    finally:
        await client.close()
    code, _, state, _, _, members = answers[0].groups[0]
    if code:
        raise for_code(code)
    holders = {
        (topic, partition): client_id
        for _, client_id, _, _, assignment in members
        if assignment
        for topic, partitions in ConsumerProtocolMemberAssignment.decode(assignment).assignment
        for partition in partitions
    }
    return Group(state in _SETTLED, len(members), holders)
