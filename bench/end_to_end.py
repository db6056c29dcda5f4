"""Texts a second through a real Kafka, exactly once, beside a floor and another stream processor; latency; recovery.

Run: python -m bench --millions 10 end_to_end
"""

import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import numpy as np
import xxhash
from confluent_kafka import Consumer, Producer

from bench.deployment import Cluster, Event, Run, Worker
from bench.model import Model, real_texts
from bench.preload import records
from bench.results import FOLDER, Options, Result, Table, Target, number, spread
from state.changelog import encode
from stream.broker import ApacheKafka
from stream.settings import Settings, load
from stream.topics import prepare

ROUNDS = 3
EVENTS = 200_000
"""In each round, for each contender."""
QUIX = "quixstreams==3.28.*"
GROUP = "textsieve"
RULES = {"textsieve, default rule": {}, "textsieve, confirm=none": {"TEXTSIEVE_CONFIRM": "none"}}
FLOOR, OTHER = "floor", "Quix Streams"
SPAN_HOURS = 47
"""The age of the oldest preloaded original: a little less than the retention."""
READY = "is open at offset"
LATENCY_SECONDS = 40
WARM_UP = 0.25
"""The share of the events that latency leaves out at the beginning."""
HOUR_MS = 3_600_000
HERE = Path(__file__).parent


def texts_of(data: Path) -> Iterator[str]:
    """The real comments, in their order, and then those of a model of them."""
    yield from real_texts(data, ("weibo-comments",))
    yield from Model(list(real_texts(data))).texts(seed=3)


def event(text: str) -> Event:
    """A text as a producer writes it."""
    return Event(json.dumps({"text": text}, ensure_ascii=False).encode())


def keyed(text: str) -> Event:
    """The same with the hash of its text as key."""
    return event(text)._replace(key=xxhash.xxh3_128_digest(text.encode()))


class Textsieve:
    """Our worker, over a state of so many millions of originals."""

    def __init__(self, cluster: Cluster, directory: Path, data: Path, millions: int) -> None:
        self.cluster = cluster
        self._directory = directory
        self.environment = {
            "TEXTSIEVE_BROKER": cluster.bootstrap,
            "TEXTSIEVE_GROUP": GROUP,
            "TEXTSIEVE_DATA_DIR": str(directory / "data"),
        }
        self._logs = count()
        self.settings: Settings = load(broker=cluster.bootstrap, group=GROUP)
        self.raw = self.settings.raw_topics[0]
        self.originals = self._preload(data, millions)

    def start(self, **environment: str) -> Worker:
        """Start a worker."""
        log = self._directory / f"worker-{next(self._logs)}.log"
        return Worker([sys.executable, "-m", "stream", "worker"], log, self.environment | environment)

    def _preload(self, data: Path, millions: int) -> int:
        """Write what a worker would have left behind: raw events, changelog, committed offset; no state."""
        topic_id = prepare(self.settings).topics[self.raw].id
        begin = int(time.time() * 1000) - SPAN_HOURS * HOUR_MS
        # The parts hold some 1.2 million offsets each.
        step = SPAN_HOURS * HOUR_MS // (millions * 1_300_000)
        originals = end = 0

        def changelog() -> Iterator[Event]:
            nonlocal originals, end
            for record in records(data, millions, lambda offset: begin + step * offset):
                originals += len(record.originals)
                end = record.next
                rules = self.settings.rules.id
                yield Event(encode(record._replace(topic_id=topic_id, rules=rules)))

        self.cluster.produce(self.settings.changelog_topic(self.raw), changelog())
        self.cluster.produce(self.raw, (Event(None) for _ in range(end)))
        self.cluster.commit(GROUP, self.raw, end)
        return originals


def recovery(sieve: Textsieve) -> tuple[float, float]:
    """Seconds until a worker without a state judges, and until one does that has its state."""
    seconds = []
    for _ in range(2):
        begin = time.monotonic()
        with sieve.start() as worker:
            worker.until_said(READY, 3600)
            seconds.append(time.monotonic() - begin)
    return seconds[0], seconds[1]


def judged(sieve: Textsieve, texts: Iterable[str], **environment: str) -> Run:
    """A backlog, taken by our worker."""
    begin = sieve.cluster.committed(GROUP, sieve.raw)
    end = begin + sieve.cluster.produce(sieve.raw, map(event, texts))
    with sieve.start(**environment) as worker:
        return sieve.cluster.watch(worker, GROUP, sieve.raw, begin, end)


def forwarded(cluster: Cluster, directory: Path, texts: Iterable[str], number_: int) -> Run:
    """A backlog, taken by the floor."""
    raw, out, group = f"floor-{number_}.raw", f"floor-{number_}.out", f"floor-{number_}"
    cluster.create(raw, out)
    end = cluster.produce(raw, map(event, texts))
    command = [sys.executable, str(HERE / "contenders" / "floor.py"), cluster.bootstrap, group, raw, out]
    with Worker(command, directory / f"{group}.log", {"PYTHONPATH": str(HERE.parent)}) as worker:
        return cluster.watch(worker, group, raw, 0, end)


def deduplicated(cluster: Cluster, directory: Path, texts: Iterable[str], number_: int, python: Path) -> Run:
    """A backlog, taken by Quix Streams."""
    raw, out, group = f"quix-{number_}.raw", f"quix-{number_}.out", f"quix-{number_}"
    cluster.create(raw, out)
    end = cluster.produce(raw, map(keyed, texts))
    command = [str(python), str(HERE / "contenders" / "quix.py"), cluster.bootstrap, group, raw, out]
    with Worker([*command, str(directory / group)], directory / f"{group}.log", {}) as worker:
        return cluster.watch(worker, group, raw, 0, end)


def quix_python() -> Path:
    """The interpreter of an environment that has Quix Streams, which is made where it is missing."""
    folder = FOLDER / "quix"
    python = folder.absolute() / "bin" / "python"
    if not (folder / ".installed").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", QUIX], check=True)
        (folder / ".installed").touch()
    return python


def latency(
    cluster: Cluster, raw: str, outputs: Sequence[str], texts: Iterator[str], rate: int
) -> list[float]:
    """Milliseconds from handing a record to the producer until a read_committed consumer has its output."""
    total = rate * LATENCY_SECONDS
    sent, seen = np.zeros(total), np.zeros(total)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "latency",
            "isolation.level": "read_committed",
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    consumer.subscribe(list(outputs))
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 1, "log_level": 0})
    while not consumer.assignment():
        consumer.poll(0.1)
    done = at = 0
    begun = time.monotonic()
    while done < total:
        while at < total and time.monotonic() >= begun + at / rate:
            producer.produce(raw, event(next(texts)).value, at.to_bytes(8, "big"), partition=0)
            sent[at] = time.monotonic()
            at += 1
        producer.poll(0)
        for message in consumer.consume(1000, 0.002):
            key = message.key()
            if message.error() is None and key is not None and len(key) == 8:
                seen[int.from_bytes(key, "big")] = time.monotonic()
                done += 1
        if time.monotonic() > begun + 5 * LATENCY_SECONDS:
            raise SystemExit(f"only {done} of {total} outputs came")
    consumer.close()
    return [float(value) for value in ((seen - sent) * 1000)[int(total * WARM_UP) :]]


def failover(sieve: Textsieve, directory: Path, texts: Iterator[str]) -> float:
    """Seconds from the death of a worker until its standby has committed."""
    second = {"TEXTSIEVE_DATA_DIR": str(directory / "standby"), "TEXTSIEVE_STANDBY": "true"}
    with sieve.start() as first:
        first.until_said(READY, 600)
        with sieve.start(**second) as standby:
            standby.until_said("is followed from", 3600)
            begin = sieve.cluster.committed(GROUP, sieve.raw)
            end = begin + sieve.cluster.produce(sieve.raw, map(event, islice(texts, 2000)))
            while sieve.cluster.committed(GROUP, sieve.raw) < end:
                first.require(True, "the first worker stands")
            killed = time.monotonic()
            first.kill()
            sieve.cluster.produce(sieve.raw, map(event, islice(texts, 500)))
            while sieve.cluster.committed(GROUP, sieve.raw) <= end:
                standby.require(time.monotonic() < killed + 600, "the standby does not take over")
                time.sleep(0.05)
            return time.monotonic() - killed


def main(options: Options) -> None:
    """Measure, and save the result."""
    texts = texts_of(options.data)
    python = quix_python()
    runs: dict[str, list[Run]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="kafka-", dir=FOLDER.absolute()) as name,
        ApacheKafka(Path(name) / "kafka") as broker,
    ):
        directory = Path(name)
        assert broker.pid is not None
        cluster = Cluster(broker.bootstrap, broker.pid)
        print("preloading", flush=True)
        sieve = Textsieve(cluster, directory, options.data, options.millions)
        print(f"{sieve.originals:,} originals; rebuilding", flush=True)
        rebuild, restart = recovery(sieve)
        print(f"rebuilt in {rebuild:.0f} s, restarted in {restart:.1f} s", flush=True)
        for round_ in range(ROUNDS):
            # The same texts for all, but for our two rules, which share a state.
            part = list(islice(texts, EVENTS))
            other = list(islice(texts, EVENTS))
            for contender, run in (
                (FLOOR, lambda p=part, r=round_: forwarded(cluster, directory, p, r)),
                ("textsieve, default rule", lambda p=part: judged(sieve, p)),
                (
                    "textsieve, confirm=none",
                    lambda p=other: judged(sieve, p, TEXTSIEVE_CONFIRM="none"),
                ),
                (OTHER, lambda p=part, r=round_: deduplicated(cluster, directory, p, r, python)),
            ):
                found = run()
                runs.setdefault(contender, []).append(found)
                print(f"{contender}: {found.rate:,.0f} events/s", flush=True)
        waits: dict[str, tuple[int, list[float]]] = {}
        for contender, environment in RULES.items():
            half = int(spread([run.rate for run in runs[contender]]).median / 2)
            with sieve.start(**environment) as worker:
                worker.until_said(READY, 600)
                waits[contender] = half, latency(cluster, sieve.raw, sieve.settings.topics, texts, half)
        failed_over = failover(sieve, directory, texts)
    _report(options, sieve.originals, runs, waits, (rebuild, restart, failed_over))


def _report(
    options: Options,
    originals: int,
    runs: dict[str, list[Run]],
    waits: dict[str, tuple[int, list[float]]],
    seconds: tuple[float, float, float],
) -> None:
    result = Result(
        "end_to_end",
        "Through Kafka, exactly once",
        f"How many events a second does a worker take from a backlog of {EVENTS:,} real and made comments, with a real "
        f"Apache Kafka on the same two cores, outputs and offsets in one transaction per batch of 500? textsieve has "
        f"{originals:,} live originals preloaded. The floor is a Faust agent that only forwards every event through "
        "one transactional producer; Quix Streams removes exact duplicates by key, with its state in RocksDB.",
    )
    floor = spread([run.rate for run in runs[FLOOR]]).median
    table = Table(
        f"Median of {ROUNDS} rounds in turn, and quartiles",
        (
            "",
            "events/s",
            "beside the floor",
            "CPU of the worker, µs an event",
            "of the broker",
            "resident, MiB",
        ),
    )
    for contender, found in runs.items():
        rates = spread([run.rate for run in found])
        own = spread([1e6 * run.own_cpu / run.events for run in found]).median
        broker = spread([1e6 * run.broker_cpu / run.events for run in found]).median
        resident = max(run.resident for run in found) / 2**20
        table.rows.append(
            (
                contender,
                str(rates),
                f"{rates.median / floor:.2f}",
                number(own),
                number(broker),
                f"{resident:,.0f}",
            )
        )
    slow = Table(
        "Milliseconds from the producer until a consumer has the committed output, at half the rate",
        ("", "events/s", "50%", "99%", "99.9%", "longest"),
    )
    for contender, (rate, values) in waits.items():
        shares = np.percentile(values, [50, 99, 99.9])
        slow.rows.append((contender, f"{rate:,}", *(f"{value:.0f}" for value in (*shares, max(values)))))
    rebuild, restart, failed_over = seconds
    again = Table(
        f"Until a worker judges again, with {originals:,} live originals",
        ("", "seconds"),
        [
            ("state lost: built anew from the changelog", f"{rebuild:.0f}"),
            ("restart with its state, from the start of the process", f"{restart:.1f}"),
            ("killed: until its standby has committed (session timeout 10 s)", f"{failed_over:.1f}"),
        ],
    )
    result.tables += [table, slow, again]
    ours = spread([run.rate for run in runs["textsieve, default rule"]]).median
    result.targets += [
        Target(
            f"end to end, default rule, {options.millions} million live, beside the floor",
            "at least 0.5",
            f"{ours / floor:.2f}",
            ours / floor >= 0.5,
        ),
        Target("the same, events/s", "goal 2,800", f"{ours:,.0f}", ours >= 2800),
        Target(
            f"warm restart with {options.millions} million live",
            "within 10 s",
            f"{restart:.1f} s",
            restart <= 10,
        ),
        Target(
            "rebuild from the changelog",
            "at least 50,000 originals/s",
            f"{originals / rebuild:,.0f}",
            originals / rebuild >= 50_000,
        ),
    ]
    result.samples = {contender: [run._asdict() for run in found] for contender, found in runs.items()}
    result.versions[OTHER] = QUIX.partition("==")[2]
    result.save("psutil")
