"""A proxy between clients and a Kafka that reads what passes, and cuts, holds or refuses it when a test says so.

It reads the head of each request (api key, version, correlation id) and so knows the answer to it, too. It runs in
a thread of its own; a test calls it from another.
"""

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Self, TypeVar

T = TypeVar("T")

COMMAND_SECONDS = 30
"""How long an order to the proxy may take. It takes a millisecond."""


class Api(IntEnum):
    """The api keys of Kafka's protocol that the tests meddle with."""

    PRODUCE = 0
    FETCH = 1
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    HEARTBEAT = 12
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


COORDINATOR_NOT_AVAILABLE = 15
"""The error code."""


class Side(Enum):
    """Where on its way a call is met."""

    REQUEST = "before the broker acted"
    ANSWER = "after the broker acted"


@dataclass
class Trap:
    """Waits for a call of an api whose request contains some bytes, on one side of the broker."""

    api: Api
    side: Side
    containing: bytes = b""
    passing: int = 0
    """How many such calls it lets pass first."""
    sprung: threading.Event = field(default_factory=threading.Event)

    def __str__(self) -> str:
        return f"{self.api.name} {self.side.value}"

    def require_sprung(self, seconds: float = 60) -> None:
        assert self.sprung.wait(seconds), f"no {self} ever passed"


class Proxy:
    """Listens on a port of 127.0.0.1 and forwards to another, for the length of a `with` block.

    A broker on `upstream` must advertise `port` to whoever comes this way, or its clients do not stay on it.
    """

    def __init__(self, port: int, upstream: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self._port = port
        self._upstream = upstream
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy {port}", daemon=True)
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._coordinators = True
        self._cuts: list[Trap] = []
        self._holds: dict[int, tuple[Trap, asyncio.Event]] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self._order(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._order(self._refuse())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # What a test may order

    def cut(self, api: Api, side: Side, containing: bytes = b"", passing: int = 0) -> Trap:
        """Cut the connection, once, when such a call comes by."""
        trap = Trap(api, side, containing, passing)
        self._order(_call(self._cuts.append, trap))
        return trap

    @contextmanager
    def holding(self, api: Api, side: Side, containing: bytes = b"") -> Iterator[Trap]:
        """Hold such calls back, and all that follow on their connections, until the block ends."""
        trap, released = Trap(api, side, containing), asyncio.Event()
        self._order(_call(self._holds.__setitem__, id(trap), (trap, released)))
        try:
            yield trap
        finally:
            self._order(_call(self._holds.pop, id(trap)))
            self._order(_call(released.set))

    @contextmanager
    def without_coordinators(self) -> Iterator[None]:
        """Answer that there is no coordinator for whatever is asked for until the block ends."""
        self._order(_call(setattr, self, "_coordinators", False))
        try:
            yield
        finally:
            self._order(_call(setattr, self, "_coordinators", True))

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Cut every connection and refuse new ones until the block ends."""
        self._order(self._refuse())
        try:
            yield
        finally:
            self._order(self._listen())

    # In the thread of the proxy

    def _order(self, order: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(order, self._loop).result(COMMAND_SECONDS)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        try:
            await self._forward(reader, writer)
        except asyncio.CancelledError:
            pass  # by `_refuse`, which is done with it then
        finally:
            self._links.discard(link)
            writer.transport.abort()

    async def _forward(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            broker, to_broker = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            return  # the broker is away: so is the proxy
        asked: dict[int, tuple[int, bytes]] = {}

        async def pass_request(frame: bytes) -> bytes:
            api, _, correlation = struct.unpack_from(">hhi", frame)
            asked[correlation] = (api, frame)
            await self._meet(Side.REQUEST, api, frame)
            return frame

        async def pass_answer(frame: bytes) -> bytes:
            (correlation,) = struct.unpack_from(">i", frame)
            api, request = asked.pop(correlation)
            await self._meet(Side.ANSWER, api, request)
            if api == Api.FIND_COORDINATOR and not self._coordinators:
                return _no_coordinator(request, frame)
            return frame

        pumps = [
            asyncio.create_task(_pump(client, to_broker, pass_request)),
            asyncio.create_task(_pump(broker, to_client, pass_answer)),
        ]
        try:
            # Whichever side goes first, the other one goes with it.
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            to_broker.transport.abort()

    async def _meet(self, side: Side, api: int, request: bytes) -> None:
        """Let a call pass now, later, or (`ConnectionError`) never."""
        for trap, released in list(self._holds.values()):
            if _fits(trap, side, api, request):
                trap.sprung.set()
                await released.wait()
        for trap in list(self._cuts):
            if _fits(trap, side, api, request):
                if trap.passing:
                    trap.passing -= 1
                    continue
                self._cuts.remove(trap)
                trap.sprung.set()
                raise ConnectionAbortedError


def _fits(trap: Trap, side: Side, api: int, request: bytes) -> bool:
    return trap.side is side and trap.api == api and trap.containing in request


def _no_coordinator(request: bytes, answer: bytes) -> bytes:
    """The answer with the error COORDINATOR_NOT_AVAILABLE in it."""
    (version,) = struct.unpack_from(">h", request, 2)
    assert version < 3, f"FindCoordinator of version {version} has its error elsewhere"
    # The correlation id, from version 1 on the throttle time, the error.
    at = 8 if version else 4
    return answer[:at] + struct.pack(">h", COORDINATOR_NOT_AVAILABLE) + answer[at + 2 :]


async def _pump(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, meet: Callable[[bytes], Awaitable[bytes]]
) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await source.readexactly(4)
            frame = await source.readexactly(int.from_bytes(head, "big"))
            target.write(head + await meet(frame))
            await target.drain()


async def _call(function: Callable[..., T], *arguments: object) -> T:
    return function(*arguments)
