"""`textsieve worker`: run the application until it is told to stop."""

import logging

import faust

from stream.app import create_app
from stream.errors import BrokerError, TextsieveError
from stream.settings import Settings


class _Foreseen(logging.Filter):
    """Leaves out the tracebacks of our own errors: the command ends with their sentence."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is None or not isinstance(record.exc_info[1], TextsieveError)


def run(settings: Settings, log_level: str = "info") -> BaseException | None:
    """Run a worker; returns when it has stopped, with the error that ended it, or None after a signal.

    SIGINT and SIGTERM finish the batch in flight, commit, and close the state.
    """
    app = create_app(settings)
    worker = faust.Worker(app, loglevel=log_level, quiet=True)
    if log_level == "info":
        # Every service below says when it starts and stops; what matters of it, the application and its scopes say.
        for name in ("aiokafka", "faust", "mode"):
            logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("mode.worker", "faust.worker", "stream.app", "stream.scopes"):
        logging.getLogger(name).addFilter(_Foreseen())
    try:
        worker.execute_from_commandline()
    except SystemExit as stop:
        if stop.code and app.failure is None:
            app.failure = app.crash_reason or BrokerError(
                "The worker could not be started; the log above says why"
            )
    return app.failure
