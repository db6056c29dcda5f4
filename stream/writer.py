"""The transactional producer of a scope: one transaction for outputs, changelog and input offset.

A producer is disposable. aiokafka's has no deadline in any transactional call, and after an error its state says
little; so each call has one here, and whoever is in doubt replaces the producer. A new one with the same
transactional id fences the old and finishes its transaction.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    IllegalOperation,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    ProducerClosed,
    RecordListTooLargeError,
)

from stream.connection import aiokafka_options
from stream.errors import ScopeError
from stream.events import Output
from stream.settings import Settings

log = logging.getLogger(__name__)

REFUSALS: Final = (MessageSizeTooLargeError, InvalidTimestampError, RecordListTooLargeError)
"""What a broker answers when it will never take a record, however often it is sent."""

BATCH_BYTES: Final = 256 * 1024
"""aiokafka keeps one batch in flight for each partition: at its default of 16 KiB a transaction of 500 texts
would take more than ten round trips, one after the other. Above this the broker gains nothing more."""
REQUEST_BYTES: Final = 64 * 1024 * 1024
"""The largest record that we try to send, before compression: a value of megabytes that compressed small enough
for the raw topic must fit; one that the broker refuses is rejected as unwritable."""
STOP_SECONDS: Final = 5.0
"""How long a producer in doubt is given to say goodbye. It is replaced in any case."""


_NULL: Final = object()
"""Stands for a null value until it is serialised: aiokafka 0.14 asserts that key and value are not both None
(aiokafka/producer/producer.py, `send`), but a tombstone without a key is an event that Kafka takes."""


@asynccontextmanager
async def _deadline(seconds: float, what: str) -> AsyncIterator[None]:
    """Give up after so long, with a `TimeoutError` that says what was not done by then."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TimeoutError(f"{what} was not done within {seconds:.0f} s") from error


def _heard(answer: "asyncio.Future[Any]") -> None:
    """Take note of an answer: asyncio logs the traceback of an error that nobody has taken note of."""
    if not answer.cancelled():
        answer.exception()


class RefusedError(Exception):
    """The broker will never take some outputs of a batch.

    Attributes:
        suspects: the places in the batch of those that failed; aiokafka fails a whole record batch together, so
            there may be innocent ones among them.
    """

    def __init__(self, suspects: Sequence[int]) -> None:
        super().__init__(f"{len(suspects)} outputs were refused")
        self.suspects = suspects


def transactional_id(group: str, raw: TopicPartition) -> str:
    """The transactional id of a scope: fixed for ever, as it alone keeps a predecessor from writing on."""
    return f"{group}-{raw.topic}-{raw.partition}"


class Writer:
    """Writes the transactions of one scope under one transactional id, fixed for ever.

    Only that id fences (aiokafka knows no KIP-447): two scopes never share one, and a scope never changes it.
    """

    def __init__(self, settings: Settings, transactional_id: str) -> None:
        self._settings = settings
        self._transactional_id = transactional_id
        self._deadline = settings.deadline / 1000
        self._producer: AIOKafkaProducer | None = None
        self._batch_bytes = BATCH_BYTES
        self._trying = False
        self._stopping: set[asyncio.Task[None]] = set()

    async def replace(self) -> None:
        """Become the only writer: returns when every predecessor is fenced and its transaction finished.

        Raises:
            KafkaError, TimeoutError, OSError: the broker did not let us.
        """
        # The new one fences it: nobody waits for its goodbye.
        self._let_go()
        settings = self._settings
        self._producer = AIOKafkaProducer(
            **aiokafka_options(settings),
            transactional_id=self._transactional_id,
            transaction_timeout_ms=settings.transaction_timeout,
            compression_type=None if settings.compression == "none" else settings.compression,
            max_batch_size=self._batch_bytes,
            max_request_size=REQUEST_BYTES,
            value_serializer=_serialize,
        )
        async with _deadline(self._deadline, "the start of a producer"):
            await self._producer.start()

    async def transact(
        self, outputs: Sequence[Output], state: Sequence[Output], raw: TopicPartition, end: int
    ) -> list[int]:
        """Commit the outputs, the records of the state and the group's offset `end` together.

        Returns the offsets that the records of the state were given.

        Raises:
            RefusedError: the broker will never take some of the outputs; nothing was committed.
            KafkaError, TimeoutError, OSError: whether it was committed is not known.
        """
        producer = self._started()
        async with _deadline(self._deadline, "a transaction"):
            with _broken_as_closed():
                await producer.begin_transaction()
                answers = await self._answers(producer, (*outputs, *state))
                suspects = [
                    index
                    for index, answer in enumerate(answers[: len(outputs)])
                    if isinstance(answer, REFUSALS)
                ]
                if suspects:
                    raise RefusedError(suspects)
                for answer in answers:
                    if isinstance(answer, asyncio.CancelledError):
                        # aiokafka's, of a producer that stopped; ours would have ended the wait for the answers.
                        raise ProducerClosed from answer
                    if isinstance(answer, BaseException):
                        raise answer
                await producer.send_offsets_to_transaction({raw: end}, self._settings.group)
                await producer.commit_transaction()
        return [answer.offset for answer in answers[len(outputs) :]]

    async def _answers(self, producer: AIOKafkaProducer, outputs: Sequence[Output]) -> list[Any]:
        """What became of each record; a record that failed does not fail aiokafka's transaction by itself."""
        sent: list[asyncio.Future[Any]] = []
        try:
            for output in outputs:
                answer = await self._send(producer, output)
                # Where the deadline passes meanwhile, aiokafka answers when nobody listens any more.
                answer.add_done_callback(_heard)
                sent.append(answer)
        finally:
            # Also where a send failed midway: an answer that nobody awaits would be logged as forgotten.
            answers = await asyncio.gather(*sent, return_exceptions=True)
        return answers

    async def refusal(self, output: Output) -> str | None:
        """Send one output alone, in a transaction that is thrown away: why it is refused, or None if it is taken.

        The producer cannot be used for anything else until it is replaced.

        Raises:
            KafkaError, TimeoutError, OSError: the broker gave no answer about this output.
        """
        if not self._trying:
            await self.replace()
        producer = self._started()
        try:
            async with asyncio.timeout(self._deadline):
                with _broken_as_closed():
                    if not self._trying:
                        await producer.begin_transaction()
                    # Until something goes wrong, the next output can be tried in the same transaction.
                    self._trying = False
                    await (await self._send(producer, output))
                    self._trying = True
        except REFUSALS as error:
            return type(error).__name__
        return None

    def halve_batches(self) -> None:
        """From the next producer on, put fewer records into a batch: a broker refuses or takes a batch as a whole."""
        self._batch_bytes = max(1, self._batch_bytes // 2)

    async def _send(self, producer: AIOKafkaProducer, output: Output) -> "asyncio.Future[Any]":
        try:
            sent: asyncio.Future[Any] = await producer.send(
                output.topic,
                _NULL if output.value is None else output.value,
                key=output.key,
                partition=output.partition,
                timestamp_ms=output.timestamp,
                headers=list(output.headers),
            )
            return sent
        except REFUSALS as error:
            # Refused before it was sent, by the producer's own bound: the same answer, in the same place.
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            future.set_exception(error)
            return future

    async def stop(self) -> None:
        """Let go of the producer; an open transaction is left for the next one to abort."""
        self._let_go()
        if self._stopping:
            _, left = await asyncio.wait(self._stopping, timeout=STOP_SECONDS)
            if left:
                log.warning("The producer %s has not stopped yet; it is left behind", self._transactional_id)

    def _let_go(self) -> None:
        producer, self._producer = self._producer, None
        self._trying = False
        if producer is not None:
            # A task of its own, never cancelled: aiokafka takes a stop that was cut short for done, and would leave
            # its sender behind. It ends at the latest when the next producer has fenced it.
            stopping = asyncio.create_task(producer.stop())
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopped)

    def _stopped(self, stopping: "asyncio.Task[None]") -> None:
        self._stopping.discard(stopping)
        if not stopping.cancelled() and (error := stopping.exception()) is not None:
            log.warning("The producer %s did not stop in order: %r", self._transactional_id, error)

    def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise ScopeError(f"The producer {self._transactional_id} was not started")
        return self._producer


def _serialize(value: object) -> object:
    return None if value is _NULL else value


@contextmanager
def _broken_as_closed() -> Iterator[None]:
    """Raise a Kafka error where a producer that has failed for good says so in other ways.

    aiokafka 0.14 asserts (transaction_manager.py), or takes the transaction for one that was never begun
    (`IllegalOperation` is no `KafkaError`: producer.py, `send`).
    """
    try:
        yield
    except (AssertionError, IllegalOperation) as error:
        raise ProducerClosed from error
