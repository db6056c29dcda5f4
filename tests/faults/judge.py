"""What the offline judge makes of the raw log, and whether a state is what the changelog says."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from confluent_kafka import Message

from state.changelog import Record, decode
from state.errors import StateError
from state.layout import Layout
from state.table import SegmentTable
from stream.admin import Admin
from stream.events import Outbox, Output, RawEvent, unwritable
from stream.events import decode as decode_event
from stream.judge import Judge
from stream.settings import Settings
from stream.text import Scheme
from tests.faults.corpus import WIDE_BYTES

_BATCH = 1000
REFUSAL = "MessageSizeTooLargeError"
"""What the broker says to an event of the stream that is wider than an output topic takes."""


def as_event(message: Message) -> RawEvent:
    """A message, as a consumer is handed it."""
    return RawEvent(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


def judged(events: Sequence[RawEvent], settings: Settings, scheme: Scheme, directory: Path) -> list[Output]:
    """The output of each event by the worker's judge, without Kafka, in one go."""
    rules = settings.rules
    outbox = Outbox(settings.topics, scheme.id, settings.rules.id)
    outputs: list[Output] = []
    with _table(directory, settings, scheme.id, {"offline": "yes"}) as table:
        judge = Judge(table, scheme, rules)
        table.apply([judge.start(0)], 1)
        for begin in range(0, len(events), _BATCH):
            batch = events[begin : begin + _BATCH]
            judgement = judge.judge(
                [
                    unwritable(event.offset, REFUSAL) if _is_refused(event) else decode_event(event, rules)
                    for event in batch
                ]
            )
            outputs += map(outbox.output, batch, judgement.verdicts)
            table.apply(judgement.records, begin + 2)
            table.merge_step()
    return outputs


def _is_refused(event: RawEvent) -> bool:
    # The corpus has nothing in between the widest text and this.
    return len(event.value or b"") >= WIDE_BYTES


def state_faults(changelog: Sequence[Message], settings: Settings, scheme: str, rebuilt: Path) -> list[str]:
    """How the state of a stopped worker, brought up to the changelog's end, differs from one built from it alone."""
    admin, topic = Admin(settings), settings.changelog_topic(settings.raw_topics[0])
    origin = {
        "cluster": admin.cluster_id(),
        "group": settings.group,
        "topic": settings.raw_topics[0],
        "partition": "0",
        "changelog": admin.describe([topic])[topic].id,
    }
    records = [(message.offset(), decode(message.value())) for message in changelog]
    live_directory = settings.data_dir / settings.group / f"{settings.raw_topics[0]}-0"
    with (
        _table(live_directory, settings, scheme, origin) as live,
        _table(rebuilt, settings, scheme, origin) as anew,
    ):
        begin = live.position.changelog if live.position else 0
        try:
            _apply(live, [item for item in records if item[0] >= begin])
            _apply(anew, records)
        except StateError as error:
            return [f"the changelog does not fit: {error}"]
        return list(_differences(live, anew))


def _apply(table: SegmentTable, records: Sequence[tuple[int, Record]]) -> None:
    for begin in range(0, len(records), _BATCH):
        batch = records[begin : begin + _BATCH]
        table.apply([record for _, record in batch], batch[-1][0] + 1)
        table.merge_step()


def _differences(live: SegmentTable, anew: SegmentTable) -> Iterable[str]:
    assert live.position is not None and anew.position is not None
    if live.position._replace(changelog=0) != anew.position._replace(changelog=0):
        yield f"the live state stands at {live.position}, the rebuilt one at {anew.position}"
    kept, built = list(live.contents()), list(anew.contents())
    if kept != built:
        missing = {one.offset for one in built} - {one.offset for one in kept}
        more = {one.offset for one in kept} - {one.offset for one in built}
        yield f"the live state lacks originals at {sorted(missing)[:5]} and has more at {sorted(more)[:5]}"
        return
    sample = [one for one in built if one.fingerprint is not None][:: max(1, len(built) // 500)]
    fingerprints = np.array([one.fingerprint for one in sample], np.uint64)
    boundaries = np.full(len(sample), anew.position.boundary, np.int64)
    for found, wanted in zip(
        live.find_near(fingerprints, 3, boundaries), anew.find_near(fingerprints, 3, boundaries), strict=True
    ):
        if not np.array_equal(found, wanted):
            yield "the live state finds other neighbours than the rebuilt one"
    banded = [one for one in sample if one.bands]
    profiles = np.array([one.profile for one in banded], np.uint64)
    bands = (
        np.frombuffer(b"".join(one.bands for one in banded), "<u2").reshape(-1, live.bands).astype(np.uint16)
    )
    met = [
        sorted(zip(*(column.tolist() for column in meetings), strict=True))
        for meetings in (
            table.find_similar(profiles, bands, 18, boundaries[: len(banded)]) for table in (live, anew)
        )
    ]
    if met[0] != met[1]:
        yield "the live state finds others with the same bands than the rebuilt one"
    keys = [one.content for one in sample]
    if live.find_content(keys) != anew.find_content(keys):
        yield "the live state finds other content than the rebuilt one"


def _table(directory: Path, settings: Settings, scheme: str, origin: dict[str, str]) -> SegmentTable:
    return SegmentTable.open(
        directory,
        scheme=scheme,
        layout=Layout.parse(settings.layout),
        window_span=settings.window_span,
        bands=settings.bands,
        origin=origin,
    )
