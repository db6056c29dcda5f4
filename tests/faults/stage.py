"""A broker, the workers on it, and what can be seen of them from outside."""

import random
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from stream.broker import ApacheKafka
from stream.settings import Settings, load
from tests.integration.deployment import Deployment, Raw, Worker

STALL_SECONDS = 180
"""How long the group's offset may stand still before the run fails. A fault costs a session timeout, a restart of
the broker and a worker's start; on a loaded machine each of them takes several times as long as on a quiet one."""

SETTINGS = {
    "session_timeout": "6s",
    "transaction_timeout": "6s",
    "deadline": "15s",
    "batch_size": 200,
    "retention": "20000s",
    "windows": 4,
    # So that an event which the raw topic took compressed is too wide for the outputs.
    "compression": "none",
}


class RunError(Exception):
    """The run cannot go on: a worker ended by itself, or nothing moves any more."""


class Stage:
    """One run's broker and workers.

    Attributes:
        broker: may be stopped, killed and started by a fault.
        chance: the only source of chance.
        places: who works where; each place has a state directory of its own.
        two: whether a second worker stands by.

    Parameters:
        stream: the events to feed, in order.
    """

    def __init__(
        self,
        directory: Path,
        broker: ApacheKafka,
        chance: random.Random,
        two: bool,
        stream: Iterable[Raw],
    ) -> None:
        self.broker = broker
        self.chance = chance
        self.two = two
        self.deployment = Deployment(broker.bootstrap, "faults", directory)
        self.places: dict[str, Worker] = {}
        self._stream = iter(stream)
        self._seen = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": self.deployment.prefix,
                "log_level": 0,  # that the broker goes away is what we are here for
                "reconnect.backoff.max.ms": 500,
            }
        )

    def settings(self, place: str = "a") -> Settings:
        """The settings of the worker at a place, as it has them."""
        return load(**self.deployment.given(**self._settings(place)))

    def _settings(self, place: str) -> dict[str, object]:
        return {"data_dir": self.deployment.directory / place, "standby": self.two, **SETTINGS}

    # Workers

    def start(self, place: str) -> None:
        """Start a worker at a place; it need not be ready."""
        environment = self.deployment.settings(**self._settings(place))
        command = (sys.executable, "-m", "tests.faults.worker", "worker")
        self.places[place] = self.deployment.start(*command, environment=environment)

    def active(self) -> str:
        """The place of the worker that holds the scope; waits until one does."""
        until = time.monotonic() + STALL_SECONDS
        while True:
            self.require_alive()
            for place, worker in self.places.items():
                said = worker.said()
                if said.rfind("is open at offset") > said.rfind(":0 is closed"):
                    return place
            self._pause(until, "no worker holds the scope")

    def forget_state(self, place: str) -> None:
        """Delete the state directory of a place."""
        shutil.rmtree(self.settings(place).data_dir, ignore_errors=True)

    def require_alive(self) -> None:
        for place, worker in self.places.items():
            code = worker.process.poll()
            if code is not None:
                raise RunError(
                    f"The worker at {place} ended by itself, code {code}:\n{worker.said()[-4000:]}"
                )

    # The stream

    def feed(self, count: int | None = None) -> None:
        """Append so many events of the stream, or all that are left, to the raw topic.

        Compressed: so it takes wider ones than an output topic does.
        """
        events = islice(self._stream, count)
        self.deployment.produce(events, **{"compression.type": "zstd", "message.max.bytes": 10_000_000})

    def committed(self) -> int:
        """The group's committed offset; what was last seen of it while the broker is away."""
        try:
            found = self._consumer.committed([TopicPartition(self.deployment.raw, 0)], timeout=1.0)
            self._seen = max(self._seen, found[0].offset)
        except KafkaException:
            pass
        return self._seen

    def until_committed(self, offset: int) -> float:
        """Wait until the group's offset is at least `offset`; how many seconds that took."""
        begun = moved = time.monotonic()
        last = -1
        while (now := self.committed()) < offset:
            self.require_alive()
            if now > last:
                last, moved = now, time.monotonic()
            self._pause(moved + STALL_SECONDS, f"the group's offset stands at {now}")
        return time.monotonic() - begun

    def _pause(self, until: float, trouble: str) -> None:
        if time.monotonic() > until:
            raise RunError(f"After {STALL_SECONDS} s {trouble}\n{self._stacks()}")
        time.sleep(0.02)  # polling, bounded above

    def _stacks(self) -> str:
        """The end of the workers' logs, with the stacks of their threads and tasks, which mode prints at SIGUSR1."""
        before = [worker.said() for worker in self.places.values()]
        for worker in self.places.values():
            worker.process.send_signal(signal.SIGUSR1)
        time.sleep(3)  # for people who look for the cause; nothing waits on it
        logs = [
            (place, said, worker.said())
            for (place, worker), said in zip(self.places.items(), before, strict=True)
        ]
        return "\n".join(f"{place}: {said[-3000:]}\n{now[len(said) :]}" for place, said, now in logs)

    def wait(self, least: float, most: float) -> None:
        """Let a random time pass: the moment of a fault is what is drawn here."""
        time.sleep(self.chance.uniform(least, most))

    def close(self) -> None:
        self._consumer.close()
        self.deployment.close()
