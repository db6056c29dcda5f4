"""`textsieve worker`: run the application until it is told to stop."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

import faust

from state.errors import StateError
from stream.app import create_app
from stream.errors import BrokerError, TextsieveError
from stream.settings import PREFIX, Settings

log = logging.getLogger(__name__)

SPARING_SECONDS: Final = 10.0
"""While the broker is away, aiokafka says so a hundred times a second: in a minute six thousand lines."""


class _Foreseen(logging.Filter):
    """Leaves out what mode says of our own errors (a traceback, a crash): the command ends with their sentence."""

    def __init__(self, worker: faust.Worker) -> None:
        super().__init__()
        self._worker = worker

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno == logging.CRITICAL and "crash" in record.getMessage():
            return not isinstance(self._worker.crash_reason, TextsieveError)
        return record.exc_info is None or not isinstance(record.exc_info[1], TextsieveError)


class _Sparing(logging.Filter):
    """Lets the same error pass once in `SPARING_SECONDS`."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            return True
        words = record.getMessage()
        if record.created < self._said.get(words, 0.0) + SPARING_SECONDS:
            return False
        self._said[words] = record.created
        return True


def run(settings: Settings, log_level: str = "info") -> BaseException | None:
    """Run a worker; returns when it has stopped, with the error that ended it, or None after a signal.

    SIGINT and SIGTERM finish the batch in flight, commit, and close the state.

    Raises:
        StateError: the data directory cannot be used, or another worker of the group uses it.
        SettingsError: a file that a setting names cannot be used.
    """
    _require_writable(settings.data_dir)
    with _held(settings.data_dir / f"{settings.group}.lock"):
        return _run(settings, log_level)


def _run(settings: Settings, log_level: str) -> BaseException | None:
    log.info("Connecting to %s", settings.broker)
    app = create_app(settings)
    worker = faust.Worker(app, loglevel=log_level, quiet=True)
    if log_level == "info":
        # Every service below says when it starts and stops; what matters of it, the application and its scopes say.
        for name in ("aiokafka", "faust", "mode"):
            logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("mode.worker", "faust.worker", "stream.app", "stream.scopes"):
        logging.getLogger(name).addFilter(_Foreseen(worker))
    for name in ("aiokafka", "aiokafka.consumer.fetcher", "aiokafka.consumer.group_coordinator"):
        logging.getLogger(name).addFilter(_Sparing())
    try:
        worker.execute_from_commandline()
    except SystemExit as stop:
        if stop.code and app.failure is None:
            app.failure = app.crash_reason or BrokerError(
                "The worker could not be started; the log above says why"
            )
    return app.failure


@contextmanager
def _held(file: Path) -> Iterator[None]:
    """Hold a file for this process alone. The system lets go of it when the process ends, however it ends."""
    if fcntl is None:
        # Windows has no such locks: there two workers are noticed where they meet at one scope.
        yield
        return
    with file.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StateError(
                f"Another worker of this group keeps its state in {file.parent}. Stop it, or give this one a "
                f"{PREFIX}DATA_DIR of its own."
            ) from error
        yield


def _require_writable(directory: Path) -> None:
    # Before Faust makes directories of its own in it, and fails with a traceback.
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise StateError(
            f"The state cannot be kept in {directory} ({error}). See that it is a directory, that there is room, and "
            "that this user may write to it; or choose another TEXTSIEVE_DATA_DIR."
        ) from error
