"""How long from a record in the raw topic to its committed output, as a consumer sees it?

A real Kafka and a worker with its default settings, both on this machine; real comments at a steady rate, half of
what the worker can do unless told otherwise. The clock is the one of this process: a record is stamped when it is
handed to the producer, and again when a read_committed consumer has its output.

Run: python -P bench/latency.py [--rate 1500] [--seconds 30]
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, KafkaError, Producer

from stream.broker import ApacheKafka

DATA = Path(os.environ.get("TEXTSIEVE_DATA", Path(__file__).parents[2] / "shared" / "data"))
OUTPUTS = ["texts.unique", "texts.duplicates", "texts.rejected"]
WARM_UP = 0.2
"""The share of the events that is left out at the beginning."""


def texts() -> Iterator[bytes]:
    """Real comments, over and over, each with its number."""
    with lzma.open(DATA / "weibo-comments.jsonl.xz") as file:
        lines = [json.loads(line)["text"] for line in file]
    for number, text in enumerate(cycle(lines)):
        yield json.dumps({"text": text, "id": number}).encode()


def main() -> None:
    """Measure, and print the percentiles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=1500, help="events a second")
    parser.add_argument("--seconds", type=int, default=30)
    arguments = parser.parse_args()
    count = arguments.rate * arguments.seconds
    sent, seen = np.zeros(count), np.zeros(count)
    with tempfile.TemporaryDirectory() as directory, ApacheKafka(Path(directory) / "kafka") as broker:
        log = Path(directory) / "worker.log"
        environment = os.environ | {"TEXTSIEVE_BROKER": broker.bootstrap, "TEXTSIEVE_DATA_DIR": directory}
        with log.open("wb") as file:
            command = [sys.executable, "-P", "-m", "stream", "worker"]
            worker = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)
        while "is open at offset" not in log.read_text():
            assert worker.poll() is None, log.read_text()
            time.sleep(0.1)  # polling a file, before anything is measured
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "latency",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
                "log_level": 0,
            }
        )
        consumer.subscribe(OUTPUTS)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1, "log_level": 0})
        done, number, begun = 0, 0, time.monotonic()
        stream = texts()
        while done < count:
            while number < count and time.monotonic() >= begun + number / arguments.rate:
                producer.produce("texts.raw", next(stream))
                sent[number] = time.monotonic()
                number += 1
            producer.poll(0)
            for message in consumer.consume(1000, 0.002):
                if message.error() is None:
                    headers = dict(message.headers() or [])
                    place = int(headers["textsieve-source"].rsplit(b":", 1)[1])
                    seen[place] = time.monotonic()
                    done += 1
                elif message.error().code() != KafkaError._PARTITION_EOF:
                    raise SystemExit(str(message.error()))
        consumer.close()
        worker.terminate()
        worker.wait()
    milliseconds = ((seen - sent) * 1000)[int(count * WARM_UP) :]
    shown = {
        name: np.percentile(milliseconds, share)
        for name, share in {"50%": 50, "99%": 99, "99.9%": 99.9}.items()
    }
    print(f"{arguments.rate} events/s for {arguments.seconds} s, raw to committed output, ms:")
    print(
        ", ".join(f"{name} {value:.0f}" for name, value in shown.items()), f"longest {milliseconds.max():.0f}"
    )


if __name__ == "__main__":
    main()
