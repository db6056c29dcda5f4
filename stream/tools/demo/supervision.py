"""A worker process that is started again when it dies or comes to a halt.

Starting again is safe at any moment: what a worker had not committed, its successor judges again.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from stream.broker.base import log_tail
from stream.broker.process import ChildProcess
from stream.errors import TextsieveError

MOST_RESTARTS: Final = 3
"""More would hide a fault that does not go away by itself."""
START_SECONDS: Final = 45.0
"""How long the first event may take after a start. It takes 4 s on a quiet machine; the group may keep the place
of a worker that was killed for the length of a session before that."""
STALL_SECONDS: Final = 20.0
"""How long an event may take after another while more of them wait. It takes 0.1 s."""


class WorkerError(TextsieveError):
    """The worker does not get on, however often it is started. The message has the end of its log."""


class SupervisedWorker:
    """`textsieve worker` as a process. It is stopped when the block is left, and dies with this process.

    Parameters:
        environment: the worker's environment.
        log: the file that it writes its log to.
        say: told, in a sentence, of every restart.
    """

    def __init__(self, environment: Mapping[str, str], log: Path, say: Callable[[str], None]) -> None:
        self._environment = environment
        self._log = log
        self._say = say
        self._process: ChildProcess | None = None
        self._restarts = 0
        self._left = 0
        self._until = 0.0

    def __enter__(self) -> "SupervisedWorker":
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The process id of the running worker; None where it does not run."""
        return None if self._process is None else self._process.pid

    def _start(self) -> None:
        # A module is looked for where this process looks for it, and nowhere else.
        here = [] if str(Path.cwd()) in sys.path else ["-P"]
        self._process = ChildProcess(
            [sys.executable, *here, "-m", "stream", "worker"],
            # Paths in the settings are relative to where the user is.
            directory=Path.cwd(),
            log=self._log,
            environment=self._environment,
        )
        self._until = time.monotonic() + START_SECONDS

    def attend(self, left: int) -> bool:
        """Start the worker again if it has ended, or if the number of events that left has not grown for long.

        To be called often, while events wait to be judged. Returns whether it was started again.

        Raises:
            WorkerError: it has been started again `MOST_RESTARTS` times already.
        """
        if left > self._left:
            self._left = left
            self._until = time.monotonic() + STALL_SECONDS
        if self._process is None:
            return False
        code = self._process.exit_code
        if code is None and time.monotonic() <= self._until:
            return False
        self._again("judges nothing" if code is None else f"ended by itself with exit code {code}")
        return True

    def _again(self, what: str) -> None:
        if self._restarts == MOST_RESTARTS:
            raise WorkerError(
                f"The worker {what}, though it was started {MOST_RESTARTS + 1} times. {log_tail(self._log)}"
            )
        self._restarts += 1
        self._say(
            f"The worker {what}. It is started again, time {self._restarts} of at most {MOST_RESTARTS}."
        )
        self.stop()
        self._start()

    def stop(self) -> None:
        """Let the worker finish its batch and stop it, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()


def environment(settings: Mapping[str, object], prefix: str) -> dict[str, str]:
    """The environment of this process with some settings changed; those set to None are left out of it.

    Parameters:
        settings: names of settings, in lower case and without the prefix.
        prefix: what the names of their variables begin with.
    """
    changed = {f"{prefix}{name.upper()}": value for name, value in settings.items()}
    kept = {name: value for name, value in os.environ.items() if name.upper() not in changed}
    return kept | {name: str(value) for name, value in changed.items() if value is not None}
