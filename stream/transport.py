"""The one place where a class of Faust is overridden: the raw consumer reads committed events only.

Faust 0.15.3 asks for `read_committed` only under its own exactly-once (faust/transport/drivers/aiokafka.py,
`_create_worker_consumer`); without it, an event of an aborted transaction would be judged.
"""

from typing import ClassVar

from aiokafka import AIOKafkaConsumer
from faust.transport.drivers import aiokafka as driver


class _Thread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        # Faust's own switch, thrown for this one call: elsewhere it would start Faust's transactions.
        self.consumer.in_transaction = True
        try:
            return super()._create_worker_consumer(transport)
        finally:
            self.consumer.in_transaction = False


class _Consumer(driver.Consumer):
    def _new_consumer_thread(self) -> driver.AIOKafkaConsumerThread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)


class ReadCommittedTransport(driver.Transport):
    """Faust's aiokafka transport, with consumers that read what was committed."""

    Consumer: ClassVar[type[driver.Consumer]] = _Consumer
