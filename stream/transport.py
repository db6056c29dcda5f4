"""The one place where a class of Faust is overridden: the raw consumer reads committed events only, starts, and ends.

Faust 0.15.3 asks for `read_committed` only under its own exactly-once (faust/transport/drivers/aiokafka.py,
`_create_worker_consumer`); without it, an event of an aborted transaction would be judged.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

import mode
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError
from faust.transport.drivers import aiokafka as driver

log = logging.getLogger(__name__)

START_AGAIN_SECONDS: Final = 1.0
"""The wait before a consumer that found no broker is started again."""
STOP_SECONDS: Final = 5.0
"""How long the consumer is given to leave its group. Where it does not, its session runs out."""


class _Thread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        # Faust's own switch, thrown for this one call: elsewhere it would start Faust's transactions.
        self.consumer.in_transaction = True
        try:
            return super()._create_worker_consumer(transport)
        finally:
            self.consumer.in_transaction = False

    async def on_start(self) -> None:
        await _once_there_is_a_broker(self, super().on_start)

    async def on_thread_stop(self) -> None:
        # While the broker is away, stopping an aiokafka 0.14 consumer raises CancelledError out of a fetch that waits
        # to be repeated (aiokafka/consumer/fetcher.py, `close`). The thread would end in mid-stop, and Faust would
        # wait a minute for it.
        stopping = asyncio.ensure_future(super().on_thread_stop())
        done, _ = await asyncio.wait([stopping], timeout=STOP_SECONDS)
        if not done:
            stopping.cancel()
        elif stopping.cancelled() or stopping.exception() is not None:
            log.warning("The consumer did not stop in order, as the broker does not answer")


class _Consumer(driver.Consumer):
    def _new_consumer_thread(self) -> driver.AIOKafkaConsumerThread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)


class _Producer(driver.Producer):
    async def on_start(self) -> None:
        await _once_there_is_a_broker(self, super().on_start)


async def _once_there_is_a_broker(service: mode.Service, start: Callable[[], Awaitable[None]]) -> None:
    """Start a client of Faust's. The topics were prepared a moment ago: a broker that is away now is waited for."""
    while not service.should_stop:
        try:
            await start()
            return
        except KafkaConnectionError as error:
            log.warning("%s cannot start: %s", service.label, error)
        await service.sleep(START_AGAIN_SECONDS)


class ReadCommittedTransport(driver.Transport):
    """Faust's aiokafka transport, with consumers that read what was committed, and clients that wait for a broker."""

    Consumer: ClassVar[type[driver.Consumer]] = _Consumer
    Producer: ClassVar[type[driver.Producer]] = _Producer
