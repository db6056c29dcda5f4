"""What every embedded broker is: a directory, a loopback address, and a life of starts, stops and kills."""

import secrets
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from stream.broker.process import ChildProcess
from stream.errors import BrokerError

START_SECONDS = 90.0
"""How long a broker may take until it answers. Apache Kafka takes 2 s on a quiet machine with two cores; a
shorter bound would fail starts on a loaded one, a longer one would only delay the sentence that says why."""

LOG_LINES = 15
"""How many lines of the broker's log an error shows: the exception that ended it is among the last ones."""

Progress = Callable[[str], None]
"""Is told, in a sentence, what takes long."""


def silent(_: str) -> None:
    """Progress that nobody watches."""


class Broker(ABC):
    """A broker of our own on 127.0.0.1, for tests and for a first run. Not thread-safe.

    Used as a context manager it is started on entry and stopped on exit. `start` blocks (call it through
    `asyncio.to_thread` where a loop runs). What was written survives `stop`, `kill` and `start`.

    Args:
        directory: holds data, configuration and log of this broker; made where it is missing, never deleted.
        port: the port to listen on, or None for a free one.

    Attributes:
        directory: as given, absolute.
        bootstrap: `host:port` for clients, the same over all restarts.
        log: the file with everything that the broker printed.
    """

    name: str
    """What a person calls it, with its version where that is known."""

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        self.directory = directory.absolute()
        self.port, self._second_port = free_ports(2)
        if port is not None:
            self.port = port
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.log = self.directory / "broker.log"
        self._process: ChildProcess | None = None

    @abstractmethod
    def _prepare(self) -> None:
        """Bring about all that the command needs. Called before every start, in an existing directory."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """The program and its arguments, to run in the foreground."""

    @property
    def pid(self) -> int | None:
        """The process id of the running broker, None where it does not run."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the broker and return when it answers; a running one is left alone.

        Raises:
            BrokerError: it cannot run here, ended, or did not answer within `START_SECONDS`. The message says
                what to do, or has the end of its log.
        """
        if self._process is not None and self._process.exit_code is None:
            return
        self.kill()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._prepare()
        self._process = ChildProcess(self._command(), directory=self.directory, log=self.log)
        try:
            self._wait_until_it_answers(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop the broker in an orderly way, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def kill(self) -> None:
        """End the broker with SIGKILL, if it runs: what a crash is, for a test."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def wait(self) -> None:
        """Block for as long as the broker runs.

        Raises:
            BrokerError: it has ended, though nobody here stopped it.
        """
        if self._process is not None:
            self._process.wait()
            self.check()

    def check(self) -> None:
        """Make sure that a broker which was started and not stopped still runs.

        Raises:
            BrokerError: it has ended, though nobody here stopped it.
        """
        if self._process is not None and self._process.exit_code is not None:
            raise self._failure(f"ended by itself with exit code {self._process.exit_code}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_until_it_answers(self, process: ChildProcess) -> None:
        # An open port is not enough: a broker accepts connections before it can serve them.
        deadline = time.monotonic() + START_SECONDS
        admin = AdminClient(
            {
                "bootstrap.servers": self.bootstrap,
                "log_level": 0,  # refused connections are what we wait out
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 100,
            }
        )
        while True:
            try:
                if admin.describe_cluster(request_timeout=1.0).result().nodes:
                    return
            except KafkaException as error:
                reason = error.args[0].str()
            else:
                reason = "it names no node"
            if process.exit_code is not None:
                raise self._failure(f"ended while it started, with exit code {process.exit_code}")
            if time.monotonic() > deadline:
                raise self._failure(f"did not answer within {START_SECONDS:.0f} s ({reason})")

    def _failure(self, what: str) -> BrokerError:
        return BrokerError(f"{self.name} on {self.bootstrap} {what}. {log_tail(self.log)}")


def log_tail(log: Path) -> str:
    """The last `LOG_LINES` lines of a log with a heading that names the file, or where the file should be."""
    if not log.exists():
        return f"It wrote no log ({log})."
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    return "\n".join([f"The end of {log}:", *lines])


def free_ports(count: int) -> list[int]:
    """Distinct ports of 127.0.0.1 on which nothing listens, and which no client is given by chance.

    Below the ephemeral range (from 32768 on Linux, 49152 on macOS): while a broker is down, a client that
    keeps trying to reach a port of that range can be given the very port as its own, connect to itself, and
    so keep the broker from starting again.

    Raises:
        BrokerError: no such ports were found.
    """
    found: list[int] = []
    with ExitStack() as held:
        for _ in range(1000):
            port = 20000 + secrets.randbelow(12000)
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise BrokerError("No free port between 20000 and 32000 on 127.0.0.1. Stop what listens there.")
