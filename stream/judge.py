"""The judge: from texts in the order of a scope to verdicts. Plain Python; it knows neither Kafka nor Faust.

The verdict of an event is a function of the originals alive before it, the events before it, and the rules.
How the events are cut into batches, how often a batch is judged, and when, change nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from state.changelog import MAX_RECORD_BYTES, Record, encode, packed_size
from state.original import Original
from state.table import NONE_ALIVE, Position, SegmentTable
from state.tables import NO_BAND
from stream import candidates
from stream.candidates import NOTHING, Candidates, Choice
from stream.confirm import Confirmation, Look, Match
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
        self._confirmation = Confirmation(scheme, rules)

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
        batch = _Batch(clock, texts, self._table, self._rules, self._confirmation)
        columns = (texts.keys, clock.times.tolist(), clock.horizons.tolist(), clock.alive.tolist())
        for event, *known in zip(inputs, *columns, strict=True):
            batch.decide(event, *known)
        verdicts = self._verdicts(inputs, clock, texts, batch)
        return Judgement(verdicts, list(self._records(inputs, clock, position.next, batch.originals)))

    def _position(self) -> Position:
        if self._table.position is None:
            raise ValueError("a scope is given its first position before it judges")
        return self._table.position

    def _verdicts(
        self, inputs: Sequence[Input], clock: "_Clock", texts: "_Texts", batch: "_Batch"
    ) -> list[Verdict]:
        originals = batch.matched()
        verdicts: list[Verdict] = []
        columns = zip(inputs, clock.times.tolist(), texts.keys, batch.matches, batch.capped, strict=True)
        for event, time, key, match, capped in columns:
            fingerprint = texts.fingerprints.get(key)
            if isinstance(event, Rejection):
                verdicts.append(Rejected(event.offset, time, event.reason, event.error))
            elif match is None or isinstance(event, Passed):
                verdicts.append(Unique(event.offset, time, fingerprint, capped))
            else:
                original = originals[match.offset]
                verdicts.append(_duplicate(event, time, fingerprint, match, capped, original))
        return verdicts

    def _records(
        self, inputs: Sequence[Input], clock: "_Clock", begin: int, originals: Sequence[Original]
    ) -> Iterator[Record]:
        # Besides originals no part of the batch carries more than the whole would.
        frame = len(encode(self._record(inputs, clock, len(inputs) - 1, begin, ())))
        start, size = 0, frame
        for original in originals:
            more = packed_size(original)
            if size + more > MAX_RECORD_BYTES:
                end = int(np.searchsorted(clock.offsets, original.offset))
                yield self._record(inputs[start:end], clock, end - 1, begin, originals)
                begin, start, size = inputs[end - 1].offset + 1, end, frame
            size += more
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
        normalized: content key -> normalised text, of those that are not judged by their content only.
        fingerprints: content key -> fingerprint, where one was computed and the text has features.
    """

    def __init__(
        self, inputs: Sequence[Input], clock: _Clock, table: SegmentTable, scheme: Scheme, rules: Rules
    ) -> None:
        self.keys: list[bytes] = []
        self.normalized: dict[bytes, str] = {}
        for event in inputs:
            key = b""
            if isinstance(event, Text) and len(event.text) > rules.max_text_chars:
                key = raw_key(event.text)
            elif isinstance(event, Text):
                plain = scheme.normalize(event.text)
                key = content_key(plain)
                self.normalized[key] = plain
            self.keys.append(key)
        self.stored = _find_content(table, set(self.keys) - {b""})
        self.fingerprints: dict[bytes, int] = {}
        self._fingerprint(inputs, clock, table, scheme)
        self._scheme = scheme
        self._salts = {key: scheme.salt(self.normalized[key]) for key in self.fingerprints}
        banded = [key for key in self.fingerprints if scheme.has_bands(self.normalized[key])]
        found = scheme.signatures(
            [self.normalized[key] for key in banded], [self._salts[key] for key in banded]
        )
        self._banded = {key: row for row, key in enumerate(banded)}
        self._profiles = found.profiles
        self._bands = found.bands.astype("<u2")

    def _fingerprint(
        self, inputs: Sequence[Input], clock: _Clock, table: SegmentTable, scheme: Scheme
    ) -> None:
        # A text whose content is stored and alive at its last occurrence is answered: no need to segment it.
        # One without features is known by its raw text and by nothing else, never as "a text without features".
        asked = [
            key
            for key, alive in dict(zip(self.keys, clock.alive.tolist(), strict=True)).items()
            if key in self.normalized and self.stored.get(key, -1) < alive
        ]
        found = scheme.fingerprint([self.normalized[key] for key in asked])
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

    def look(self, key: bytes, confirmation: Confirmation) -> Look:
        """Begin to compare a text that has a fingerprint."""
        return confirmation.look(self.normalized[key], self.fingerprints[key], self._salts[key])

    def original(self, event: Text, key: bytes, time: int, choice: Choice) -> Original:
        """What is stored of an event that was judged unique; it is not found by what a crowd has in common."""
        id_ = event.id.encode()
        if key not in self.fingerprints:
            return Original(event.offset, time, None, key, id_)
        text, sketch = self._scheme.stored(self.normalized[key])
        profile, bands = 0, b""
        if (row := self._banded.get(key)) is not None:
            profile, bands = int(self._profiles[row]), self._bands[row].tobytes()
        if choice.crowded is not None:
            bands = np.where(choice.crowded, np.uint16(NO_BAND), self._bands[row]).astype("<u2").tobytes()
        return Original(
            event.offset,
            time,
            self.fingerprints[key],
            key,
            id_,
            text,
            self._salts[key],
            profile,
            bands,
            sketch,
            choice.by_fingerprint,
        )

    def candidates(
        self, clock: _Clock, table: SegmentTable, rules: Rules, confirmation: Confirmation
    ) -> tuple[dict[bytes, int], Candidates]:
        """The rows of the texts that may be near-duplicates, by content key, and what finds their candidates."""
        keys = [key for key in self.fingerprints if confirmation.can_match(self.normalized[key])]
        first: dict[bytes, int] = {}
        for key, alive in zip(self.keys, clock.alive.tolist(), strict=True):
            first.setdefault(key, alive)
        salts = np.fromiter((self._salts[key] for key in keys), np.uint64, len(keys))
        rows = np.array([self._banded.get(key, -1) for key in keys], np.int64)
        banded = rows >= 0
        profiles = np.zeros(len(keys), np.uint64)
        profiles[banded] = self._profiles[rows[banded]]
        bands = np.zeros((len(keys), self._scheme.spec.bands), np.uint16)
        bands[banded] = self._bands[rows[banded]]
        texts = candidates.Texts(
            np.fromiter((self.fingerprints[key] for key in keys), np.uint64, len(keys)) ^ salts,
            profiles,
            bands,
            banded,
            np.fromiter((first[key] for key in keys), np.int64, len(keys)),
        )
        return {key: row for row, key in enumerate(keys)}, Candidates(table, texts, rules)


def _find_content(table: SegmentTable, keys: set[bytes]) -> dict[bytes, int]:
    order = sorted(keys)
    found = zip(order, table.find_content(order), strict=True)
    return {key: offset for key, offset in found if offset is not None}


class _Batch:
    """Decides about the events of a batch, one after another.

    Attributes:
        matches: for each event so far the original that it duplicates, or None.
        capped: for each event so far whether it met a crowd.
        originals: the originals of the batch so far, in order.
    """

    def __init__(
        self, clock: _Clock, texts: _Texts, table: SegmentTable, rules: Rules, confirmation: Confirmation
    ) -> None:
        self.matches: list[Match | None] = []
        self.capped: list[bool] = []
        self.originals: list[Original] = []
        self._texts = texts
        self._table = table
        self._confirmation = confirmation
        self._latest: dict[bytes, Original] = {}
        self._rows, self._candidates = texts.candidates(clock, table, rules, confirmation)
        self._stored = dict(
            zip(self._candidates.stored, table.originals(self._candidates.stored), strict=True)
        )

    def decide(self, event: Input, key: bytes, time: int, horizon: int, alive: int) -> None:
        """Decide about the next event.

        Parameters:
            event: the event.
            key: its content key.
            time: the stream time at it.
            horizon: an original of the batch is alive if its time is above it.
            alive: the first offset alive among what is stored.
        """
        match, capped = None, False
        if isinstance(event, Text):
            match = self._exact(key, horizon, alive)
            choice = NOTHING
            if match is None:
                choice = self._choose(key, horizon, alive)
                match, capped = self._nearest(key, choice), choice.capped
            if match is None:
                self._add(key, self._texts.original(event, key, time, choice))
        self.matches.append(match)
        self.capped.append(capped)

    def matched(self) -> dict[int, Original]:
        """Every original that an event so far duplicates, by its offset."""
        known = {original.offset: original for original in self.originals}
        asked = {match.offset for match in self.matches if match is not None and match.offset not in known}
        return known | {
            offset: original
            for offset, original in zip(sorted(asked), self._read(sorted(asked)), strict=True)
        }

    def _exact(self, key: bytes, horizon: int, alive: int) -> Match | None:
        fresh = self._latest.get(key)
        if fresh is not None and fresh.time > horizon:
            return Match(fresh.offset, "content", 1000, None)
        stored = self._texts.stored.get(key, -1)
        return Match(stored, "content", 1000, None) if stored >= alive else None

    def _choose(self, key: bytes, horizon: int, alive: int) -> Choice:
        row = self._rows.get(key)
        return NOTHING if row is None else self._candidates.of(row, alive, horizon)

    def _nearest(self, key: bytes, choice: Choice) -> Match | None:
        if not choice.stored and not choice.fresh:
            return None
        look = self._texts.look(key, self._confirmation)
        matches = [
            match
            for original in (*self._read(choice.stored), *choice.fresh)
            if (match := look.match(original))
        ]
        return min(matches, key=lambda match: match.rank, default=None)

    def _read(self, offsets: Sequence[int]) -> list[Original]:
        missing = [offset for offset in offsets if offset not in self._stored]
        self._stored.update(zip(missing, self._table.originals(missing), strict=True))
        return [self._stored[offset] for offset in offsets]

    def _add(self, key: bytes, original: Original) -> None:
        self.originals.append(original)
        self._latest[key] = original
        if key in self._rows:
            self._candidates.add(self._rows[key], original)


def _duplicate(
    event: Text, time: int, fingerprint: int | None, match: Match, capped: bool, original: Original
) -> Duplicate:
    reference = Reference(original.offset, original.time, original.id.decode())
    reason: Literal["redelivered", "exact", "near"] = "near"
    distance = match.distance
    if match.measure == "content":
        # Equal content, equal fingerprint: an answered text was never segmented, so the original's serves.
        reason = "redelivered" if event.id and event.id == reference.id else "exact"
        fingerprint = original.fingerprint
        distance = None if fingerprint is None else 0
    return Duplicate(
        event.offset,
        time,
        event.id,
        fingerprint,
        reference,
        reason,
        match.measure,
        match.similarity,
        distance,
        capped,
    )
