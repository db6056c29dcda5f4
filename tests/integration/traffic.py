"""Events with known repeats among them, and a worker that several tests give them to."""

import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import KafkaException
from deployment import SECONDS, Deployment, Output, Raw, text, unlike

NOON = 1_500_000_000_000

Law = Callable[..., list[Output]]
"""Waits until so many events have left a deployment: each once, as the offline judge has it."""


def events(count: int, first: int = 0) -> list[Raw]:
    """Some of them are texts that came before, word for word or nearly."""
    made = []
    for number in range(first, first + count):
        of = number - 7 if number % 5 == 3 and number > 7 else number
        made.append(text(unlike(of) + "！" * (number % 2), NOON + number, id=number))
    return made


class Stream:
    """A running worker, and the events that it has been given.

    Parameters:
        settings: of the worker.
    """

    def __init__(self, deployment: Deployment, lawful: Law, **settings: object) -> None:
        self.deployment = deployment
        self.worker = deployment.ready(**settings)
        self.transactional_id = f"{deployment.prefix}-{deployment.raw}-0".encode()
        self.count = 0
        self.sound = True
        """Whether the last thing that a test saw of it was that all is in order."""
        self._lawful = lawful

    def produce(self, count: int = 20) -> None:
        self.sound = False
        self.deployment.produce(events(count, first=self.count))
        self.count += count

    def until_committed(self, offset: int | None = None) -> None:
        """Wait until the group has committed an offset, by default the end of all that was produced."""
        wanted = self.count if offset is None else offset
        until = time.monotonic() + SECONDS
        while True:
            # Just back, a broker does not yet know all that it is asked.
            with suppress(KafkaException):
                if self.deployment.committed() >= wanted:
                    return
            assert self.worker.process.poll() is None, f"the worker ended:\n{self.worker.said()[-3000:]}"
            assert time.monotonic() < until, f"{wanted} was not committed:\n{self.worker.said()[-3000:]}"

    def require_lawful(self) -> None:
        """Every event leaves once, as the offline judge has it."""
        self._lawful(self.deployment, self.count)
        self.sound = True
