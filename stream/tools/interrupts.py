"""Signals that end a command which has things to put away: they interrupt it once, and then never its cleaning up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `kill`, and the terminal that is closed."""


class Interrupted(KeyboardInterrupt):
    """One of `ENDING` has come.

    Attributes:
        exit_code: what a shell expects of a program that a signal ended: 128 and the signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first signal of `ENDING` into `Interrupted`; until the block is left, the following are ignored.

    Only for the main thread.
    """
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> NoReturn:
        received.append(number)
        for ending in ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise Interrupted(number)

    before = {ending: signal.signal(ending, interrupt) for ending in ENDING}
    try:
        yield
    except Exception as error:
        # confluent-kafka 2.16 makes a TypeError of what a handler raises while it reads its configuration.
        if received:
            raise Interrupted(received[0]) from error
        raise
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)
