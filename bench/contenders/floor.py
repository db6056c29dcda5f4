"""The floor: a Faust agent that does nothing but forward every event, with the guarantees that textsieve gives.

Batches of 500, one transactional producer, outputs and input offsets in one transaction; every send is awaited before
the commit. It reads committed events only and leaves key, value, headers and timestamp alone.

Run: python bench/contenders/floor.py BROKER GROUP RAW OUTPUT
"""

import asyncio
import sys
from typing import cast

import faust
from aiokafka import AIOKafkaProducer

from stream.transport import ReadCommittedTransport

BATCH = 500
WAIT = 0.1


def application(broker: str, group: str, raw: str, output: str) -> faust.App:
    """The application that forwards one topic to another."""
    app = faust.App(
        group,
        broker=f"kafka://{broker}",
        consumer_auto_offset_reset="earliest",
        broker_commit_interval=3600.0,
        broker_commit_every=2**31,
        broker_session_timeout=10.0,
        stream_wait_empty=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        store="memory://",
        web_enabled=False,
    )
    app.transport = ReadCommittedTransport(app.conf.broker_consumer, app)
    topic = app.topic(raw, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    @app.agent(topic)
    async def forward(events: faust.StreamT[bytes]) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker,
            transactional_id=f"{group}-{raw}-0",
            compression_type="zstd",
            linger_ms=0,
        )
        await producer.start()
        stream = cast("faust.Stream[bytes]", events)
        async for batch in stream.noack_take(BATCH, within=WAIT):
            async with producer.transaction():
                sent = [
                    await producer.send(
                        output,
                        event.message.value,
                        event.message.key,
                        timestamp_ms=round(event.message.timestamp * 1000),
                        headers=list(event.message.headers or ()),
                    )
                    for event in batch
                ]
                await asyncio.gather(*sent)
                last = batch[-1].message
                await producer.send_offsets_to_transaction({last.tp: last.offset + 1}, group)

    return app


if __name__ == "__main__":
    worker = faust.Worker(application(*sys.argv[1:]), loglevel="warning")
    worker.execute_from_commandline()
