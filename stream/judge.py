"""The judge: from texts in the order of a scope to verdicts. Plain Python; it knows neither Kafka nor Faust.

The verdict of an event is a function of the originals alive before it, the events before it, and the rules.
How the events are cut into batches, how often a batch is judged, and when, change nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from state.changelog import MAX_RECORD_BYTES, Record, encode, packed_size
from state.original import Original
from state.table import NONE_ALIVE, Position, SegmentTable
from stream.rules import Rules
from stream.text import Scheme, content_key, raw_key
from stream.verdict import (
    UNWRITABLE,
    Duplicate,
    Input,
    Passed,
    Reference,
    Rejected,
    Rejection,
    Text,
    Unique,
    Verdict,
)

_BITS: Final = 64


class Judgement(NamedTuple):
    """A judged batch. Nothing of it is stored before `SegmentTable.apply` is given its records."""

    verdicts: list[Verdict]
    """One for each input, in order."""
    records: list[Record]
    """What the changelog is given, each below `MAX_RECORD_BYTES`; never empty."""


class Judge:
    """Judges the batches of one scope, in order.

    Parameters:
        table: the scope's state. It is read, never written: the caller applies the records of a judgement
            once they are committed.
        scheme: how a text becomes a fingerprint; the table was opened under its id.
        rules: the rules of every batch that this judge is given.
        topic_id: written into each record, so that the state knows which topic its offsets are of.
    """

    def __init__(self, table: SegmentTable, scheme: Scheme, rules: Rules, topic_id: str = "") -> None:
        self._table = table
        self._scheme = scheme
        self._rules = rules
        self._topic_id = topic_id

    def start(self, offset: int) -> Record:
        """The first record of a scope that has none: it begins at `offset`, with no time and no originals."""
        return Record(offset, offset, 0, offset, self._topic_id, self._rules.id, (), ())

    def skip(self, offset: int) -> Record:
        """A record that moves the position to `offset`, over offsets that hold no events (markers).

        Raises:
            ValueError: the table has no position yet.
        """
        at = self._position()
        return Record(at.next, offset, at.time, at.boundary, self._topic_id, self._rules.id, (), ())

    def judge(self, inputs: Sequence[Input]) -> Judgement:
        """Judge the next events of the scope, in order of offset; the same call gives the same answer again.

        Raises:
            ValueError: the table has no position yet, or the batch is empty or begins below the position.
        """
        position = self._position()
        if not inputs or inputs[0].offset < position.next:
            raise ValueError(f"the next batch begins at or after offset {position.next}")
        clock = _Clock(inputs, position, self._rules.retention, self._table)
        texts = _Texts(inputs, clock, self._table, self._scheme, self._rules)
        matches, originals = _decide(inputs, clock, texts, self._rules.max_distance)
        verdicts = self._verdicts(inputs, clock, texts, matches, originals)
        return Judgement(verdicts, list(self._records(inputs, clock, position.next, originals)))

    def _position(self) -> Position:
        if self._table.position is None:
            raise ValueError("a scope is given its first position before it judges")
        return self._table.position

    def _verdicts(
        self,
        inputs: Sequence[Input],
        clock: "_Clock",
        texts: "_Texts",
        matches: "Sequence[_Match | None]",
        originals: Sequence[Original],
    ) -> list[Verdict]:
        matched = {original.offset: original for original in originals}
        stored = sorted(
            {match.offset for match in matches if match is not None and match.offset not in matched}
        )
        matched.update(zip(stored, self._table.originals(stored), strict=True))
        verdicts: list[Verdict] = []
        for event, time, key, match in zip(inputs, clock.times.tolist(), texts.keys, matches, strict=True):
            if isinstance(event, Rejection):
                verdicts.append(Rejected(event.offset, time, event.reason, event.error))
            elif match is None or isinstance(event, Passed):
                verdicts.append(Unique(event.offset, time, texts.fingerprints.get(key)))
            else:
                verdicts.append(
                    _duplicate(event, time, texts.fingerprints.get(key), match, matched[match.offset])
                )
        return verdicts

    def _records(
        self, inputs: Sequence[Input], clock: "_Clock", begin: int, originals: Sequence[Original]
    ) -> Iterator[Record]:
        # Besides originals no part of the batch carries more than the whole would.
        frame = len(encode(self._record(inputs, clock, len(inputs) - 1, begin, ())))
        start, size = 0, frame
        for original in originals:
            if size + packed_size(original) > MAX_RECORD_BYTES:
                end = int(np.searchsorted(clock.offsets, original.offset))
                yield self._record(inputs[start:end], clock, end - 1, begin, originals)
                begin, start, size = inputs[end - 1].offset + 1, end, frame
            size += packed_size(original)
        yield self._record(inputs[start:], clock, len(inputs) - 1, begin, originals)

    def _record(
        self, events: Sequence[Input], clock: "_Clock", last: int, begin: int, originals: Sequence[Original]
    ) -> Record:
        end = events[-1].offset + 1
        return Record(
            begin,
            end,
            int(clock.times[last]),
            clock.boundary(last, originals),
            self._topic_id,
            self._rules.id,
            tuple(e.offset for e in events if isinstance(e, Rejection) and e.reason == UNWRITABLE),
            tuple(original for original in originals if begin <= original.offset < end),
        )


class _Match(NamedTuple):
    offset: int
    """The original's."""
    distance: int | None
    """None where the content is the same."""


class _Clock:
    """Stream time and what is alive, at every event of a batch.

    Attributes:
        offsets: (n,) int64.
        times: (n,) int64, the stream time at each event: the largest timestamp of accepted events so far.
        horizons: (n,) int64, an original is alive at an event if its time is above the event's horizon.
        alive: (n,) int64, the first offset alive at each event among the originals stored before the batch.
    """

    def __init__(
        self, inputs: Sequence[Input], position: Position, retention: int, table: SegmentTable
    ) -> None:
        own = (0 if isinstance(event, Rejection) else event.time or 0 for event in inputs)
        self.offsets: NDArray[np.int64] = np.fromiter(
            (event.offset for event in inputs), np.int64, len(inputs)
        )
        self.times: NDArray[np.int64] = np.maximum.accumulate(
            np.maximum(np.fromiter(own, np.int64, len(inputs)), position.time)
        )
        self.horizons = self.times - retention
        self.alive: NDArray[np.int64] = table.first_alive(self.horizons)

    def boundary(self, index: int, originals: Sequence[Original]) -> int:
        """The first offset alive after the event at `index`; no original below it is ever compared again."""
        if self.alive[index] != NONE_ALIVE:
            return int(self.alive[index])
        past = int(self.offsets[index]) + 1
        horizon = self.horizons[index]
        return next((o.offset for o in originals if o.offset < past and o.time > horizon), past)


class _Texts:
    """The distinct texts of a batch and what the state has to say of each.

    Attributes:
        keys: for each event its content key; empty for an event without a text.
        stored: content key -> the newest stored original of the same content, alive or not.
        fingerprints: content key -> fingerprint, where one was computed and the text has features.
        near: content key -> (distance, offset) of every stored original near enough, alive or not.
    """

    def __init__(
        self, inputs: Sequence[Input], clock: _Clock, table: SegmentTable, scheme: Scheme, rules: Rules
    ) -> None:
        self.keys: list[bytes] = []
        normalized: dict[bytes, str] = {}
        for event in inputs:
            key = b""
            if isinstance(event, Text) and len(event.text) > rules.max_text_chars:
                key = raw_key(event.text)
            elif isinstance(event, Text):
                plain = scheme.normalize(event.text)
                key = content_key(plain)
                normalized[key] = plain
            self.keys.append(key)
        self.stored = _find_content(table, set(self.keys) - {b""})
        self.fingerprints: dict[bytes, int] = {}
        self._fingerprint(inputs, clock, table, scheme, normalized)
        self.near = self._compare(clock, table, rules.max_distance)

    def _fingerprint(
        self,
        inputs: Sequence[Input],
        clock: _Clock,
        table: SegmentTable,
        scheme: Scheme,
        normalized: Mapping[bytes, str],
    ) -> None:
        # A text whose content is stored and alive at its last occurrence is answered: no need to segment it.
        # One without features is known by its raw text and by nothing else, never as "a text without features".
        asked = [
            key
            for key, alive in dict(zip(self.keys, clock.alive.tolist(), strict=True)).items()
            if key in normalized and self.stored.get(key, -1) < alive
        ]
        found = scheme.fingerprint([normalized[key] for key in asked])
        featureless: set[bytes] = set()
        for index, key in enumerate(asked):
            fingerprint = found[index]
            if fingerprint is None:
                featureless.add(key)
            else:
                self.fingerprints[key] = fingerprint
        if featureless:
            raw: set[bytes] = set()
            for index, event in enumerate(inputs):
                if self.keys[index] in featureless and isinstance(event, Text):
                    self.keys[index] = raw_key(event.text)
                    raw.add(self.keys[index])
            self.stored.update(_find_content(table, raw))

    def _compare(
        self, clock: _Clock, table: SegmentTable, max_distance: int
    ) -> dict[bytes, list[tuple[int, int]]]:
        keys = list(self.fingerprints)
        values = np.fromiter(self.fingerprints.values(), np.uint64, len(keys))
        first: dict[bytes, int] = {}
        for key, alive in zip(self.keys, clock.alive.tolist(), strict=True):
            first.setdefault(key, alive)
        boundaries = np.fromiter((first[key] for key in keys), np.int64, len(keys))
        near: dict[bytes, list[tuple[int, int]]] = {}
        matches = table.find_near(values, max_distance, boundaries)
        for query, offset, distance in zip(*(column.tolist() for column in matches), strict=True):
            near.setdefault(keys[query], []).append((distance, offset))
        return near


def _find_content(table: SegmentTable, keys: set[bytes]) -> dict[bytes, int]:
    order = sorted(keys)
    found = zip(order, table.find_content(order), strict=True)
    return {key: offset for key, offset in found if offset is not None}


class _Fresh:
    """The originals of the batch so far, in order, of at most `size`.

    Only they are compared, not all pairs of the batch: 500 texts of one template, all near each other, would
    be a quarter of a million pairs, of which the first text is the one that counts.
    """

    def __init__(self, size: int) -> None:
        self.originals: list[Original] = []
        self._latest: dict[bytes, Original] = {}
        self._fingerprints = np.empty(size, np.uint64)
        self._offsets = np.empty(size, np.int64)
        self._times = np.empty(size, np.int64)
        self._count = 0

    def add(self, original: Original) -> None:
        """Take in the next one."""
        self.originals.append(original)
        self._latest[original.content] = original
        if original.fingerprint is not None:
            self._fingerprints[self._count] = original.fingerprint
            self._offsets[self._count] = original.offset
            self._times[self._count] = original.time
            self._count += 1

    def exact(self, key: bytes, horizon: int) -> int | None:
        """The offset of the one alive with this content."""
        original = self._latest.get(key)
        return original.offset if original is not None and original.time > horizon else None

    def near(self, fingerprint: int, max_distance: int, horizon: int) -> Iterator[tuple[int, int]]:
        """Distance and offset of each one alive and near enough."""
        filled = slice(self._count)
        distances = np.bitwise_count(self._fingerprints[filled] ^ np.uint64(fingerprint))
        places = np.flatnonzero((distances <= max_distance) & (self._times[filled] > horizon))
        return zip(distances[places].tolist(), self._offsets[places].tolist(), strict=True)


def _decide(
    inputs: Sequence[Input], clock: _Clock, texts: _Texts, max_distance: int
) -> tuple[list[_Match | None], list[Original]]:
    """For each event the original that it duplicates, or None; and the originals of the batch, in order."""
    matches: list[_Match | None] = []
    fresh = _Fresh(len(inputs))
    columns = zip(
        inputs, texts.keys, clock.times.tolist(), clock.horizons.tolist(), clock.alive.tolist(), strict=True
    )
    for event, key, time, horizon, alive in columns:
        if not isinstance(event, Text):
            matches.append(None)
            continue
        fingerprint = texts.fingerprints.get(key)
        match = _exact(key, horizon, alive, texts, fresh)
        if match is None and fingerprint is not None:
            candidates = [pair for pair in texts.near.get(key, ()) if pair[1] >= alive]
            candidates += fresh.near(fingerprint, max_distance, horizon)
            if candidates:
                # The smaller distance wins, then the lower offset.
                distance, offset = min(candidates)
                match = _Match(offset, distance)
        if match is None:
            fresh.add(Original(event.offset, time, fingerprint, key, event.id.encode(), ""))
        matches.append(match)
    return matches, fresh.originals


def _exact(key: bytes, horizon: int, alive: int, texts: _Texts, fresh: _Fresh) -> _Match | None:
    offset = fresh.exact(key, horizon)
    if offset is None and texts.stored.get(key, -1) >= alive:
        offset = texts.stored[key]
    return None if offset is None else _Match(offset, None)


def _duplicate(
    event: Text, time: int, fingerprint: int | None, match: _Match, original: Original
) -> Duplicate:
    reference = Reference(original.offset, original.time, original.id.decode())
    if match.distance is not None:
        similarity = _thousandths(_BITS - match.distance, _BITS)
        return Duplicate(
            event.offset,
            time,
            event.id,
            fingerprint,
            reference,
            "near",
            "hamming",
            similarity,
            match.distance,
        )
    # Equal content, equal fingerprint: an answered text was never segmented, so the original's serves.
    reason: Final = "redelivered" if event.id and event.id == reference.id else "exact"
    distance = None if original.fingerprint is None else 0
    return Duplicate(
        event.offset, time, event.id, original.fingerprint, reference, reason, "content", 1000, distance
    )


def _thousandths(part: int, whole: int) -> int:
    """Part / whole in thousandths, halves up; integers, so that every processor agrees."""
    return (2000 * part + whole) // (2 * whole)
