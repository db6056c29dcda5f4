"""`textsieve demo`: real texts through a broker and a worker, from nothing to the law in one command."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from stream.events import RawEvent, decode
from stream.rules import Rules
from stream.settings import PREFIX, load
from stream.tools.demo.counters import Counters
from stream.tools.demo.outcomes import Outcomes
from stream.tools.demo.pairs import Pair, interesting, pairs
from stream.tools.demo.reviews import Texts
from stream.tools.demo.stage import Stage
from stream.tools.demo.supervision import SupervisedWorker, environment
from stream.tools.demo.traffic import OutcomeReader, RawWriter
from stream.tools.tally import Tally
from stream.topics import prepare
from stream.verdict import Text


class Report(NamedTuple):
    """What a demo did."""

    tally: Tally
    faults: list[str]
    """A sentence for each way in which the law does not hold; empty where it does."""
    pairs: list[Pair]
    """Some duplicates with their originals."""
    seconds: float
    """From the first events that left to the last ones."""
    events_per_second: float | None
    """Over those seconds; None where all left at once."""
    left_out: int
    """Texts too large for an event of Kafka; they were not written."""


def run(texts: Texts, stage: Stage, counters: Counters, *, limit: int | None = None) -> Report:
    """Write the texts to the raw topic, have a worker judge them, and count what leaves.

    Parameters:
        texts: what is written, with the time of now.
        stage: the broker and the names of the topics.
        counters: told what happens.
        limit: the most texts; all of them where it is None.

    Raises:
        BrokerError, TopicError: the broker does not do what it should.
        InputError: the texts cannot be read.
        SettingsError: the environment has settings that are none, or that contradict each other.
        WorkerError: the worker does not get on.
    """
    chosen = _chosen(texts, stage)
    settings = load(**chosen)
    prepare(settings)
    counters.say(f"Writing {texts.name} to {settings.raw_topics[0]}; a worker judges them as they come.")
    writer = RawWriter(settings, islice(texts.values, limit))
    with (
        OutcomeReader(settings) as reader,
        SupervisedWorker(environment(chosen, PREFIX), stage.directory / "worker.log", counters.say) as worker,
    ):
        while writer.outstanding or reader.outcomes.left < writer.written:
            writer.write_some()
            reader.read_some()
            stage.check()
            if worker.attend(reader.outcomes.left):
                reader.reconnect()
            counters.show(reader.outcomes.tally(writer.written))
        worker.stop()
        reader.read_to_end()
    outcomes = reader.outcomes
    later = outcomes.left - reader.first
    return Report(
        tally=outcomes.tally(writer.written),
        faults=outcomes.faults(writer.written),
        pairs=_pairs(outcomes, writer.kept, settings.rules),
        seconds=reader.seconds,
        events_per_second=later / reader.seconds if later and reader.seconds else None,
        left_out=writer.left_out,
    )


def _chosen(texts: Texts, stage: Stage) -> Mapping[str, object]:
    """What the demo sets; the rest, such as the largest distance, comes from the environment."""
    return {
        **stage.settings,
        **texts.settings,
        "data_dir": stage.directory / "state",
        # The three topics have one partition, so that an offset names an event.
        "partitions": 1,
        "topic_retention": "forever",
        "start_at": "earliest",
        # A worker that had to be killed keeps its place in the group for no longer than this.
        "session_timeout": "6s",
        "transaction_timeout": "6s",
        "web": False,
    }


def _pairs(outcomes: Outcomes, values: Iterable[bytes], rules: Rules) -> list[Pair]:
    events = (
        decode(RawEvent("", 0, offset, 0, None, value, ()), rules) for offset, value in enumerate(values)
    )
    texts = {event.offset: event.text for event in events if isinstance(event, Text)}
    return interesting(pairs(outcomes.matches, texts))
