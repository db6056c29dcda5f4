"""One piece of work at a time, repeated for as long as the broker is away, and ended in good time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from stream.connection import FORBIDDEN, IN_DOUBT
from stream.errors import BrokerError, ScopeClosedError

T = TypeVar("T")

log = logging.getLogger(__name__)

BACKOFF_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
"""The waits between attempts; the last one repeats for as long as the broker is away."""
FINISH_SECONDS: Final = 10.0
"""How long the work in hand is given to finish when it is to end. A transaction takes well under a second where the
broker answers; where it does not, the next owner of the scope finds out what became of it."""


class Turns:
    """The work on one scope: a turn at a time, until `end`.

    Parameters:
        name: the scope, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = asyncio.Lock()
        self._ending = asyncio.Event()
        self._work: asyncio.Task[Any] | None = None
        self._cut_short = False

    @property
    def ended(self) -> bool:
        """Whether no further turn is taken."""
        return self._ending.is_set()

    async def take(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do a piece of work when it is its turn; nothing where the work on this scope has ended.

        Raises:
            ScopeClosedError: it was cut short by `end`.
        """
        async with self._lock:
            if self.ended:
                return
            self._work = asyncio.create_task(work())
            try:
                await self._work
            except asyncio.CancelledError:
                waiting = asyncio.current_task()
                if self._cut_short and (waiting is None or not waiting.cancelling()):
                    raise self._ended_early() from None
                raise
            finally:
                self._work = None

    async def persist(self, trouble: str, action: Callable[[], Awaitable[T]]) -> T:
        """Do what needs the broker, again and again for as long as it does not answer.

        Parameters:
            trouble: what the log says is not possible meanwhile.

        Raises:
            ScopeClosedError: the work on this scope has ended.
            BrokerError: the broker does not allow it.
        """
        attempt = 1
        while True:
            self.require()
            try:
                return await action()
            except FORBIDDEN as error:
                raise BrokerError(f"Scope {self._name}: the broker does not allow it: {error!r}") from error
            except BrokerError as error:
                log.warning("Scope %s: %s: %s", self._name, trouble, error)
            except IN_DOUBT as error:
                log.warning("Scope %s: %s: %r", self._name, trouble, error)
            await self.pause(attempt)
            attempt += 1

    async def pause(self, attempt: int) -> None:
        """Wait before an attempt is repeated, for longer the more there were; shorter where the work ends."""
        try:
            async with asyncio.timeout(BACKOFF_SECONDS[min(attempt, len(BACKOFF_SECONDS)) - 1]):
                await self._ending.wait()
        except TimeoutError:
            pass

    def require(self) -> None:
        """Go on only while the work on this scope has not ended.

        Raises:
            ScopeClosedError: it has.
        """
        if self.ended:
            raise self._ended_early()

    def end(self) -> None:
        """Take no further turn."""
        self._ending.set()

    @asynccontextmanager
    async def last(self) -> AsyncIterator[None]:
        """End the work: the block runs when what is in hand is finished, or cut short after `FINISH_SECONDS`."""
        self.end()
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await self._lock.acquire()
        except TimeoutError:
            log.warning("Scope %s: the batch in hand is left, as the broker does not answer", self._name)
            self._cut_short = True
            if self._work is not None:
                self._work.cancel()
            await self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    def _ended_early(self) -> ScopeClosedError:
        return ScopeClosedError(
            f"Scope {self._name} is closed before its events are committed; its next owner goes on"
        )
