"""The judge against a plain model of what a verdict is, however the events are cut into batches."""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state.changelog import MAX_RECORD_BYTES, decode, encode
from state.layout import Layout
from state.table import SegmentTable
from stream import judge as judging
from stream.judge import Judge
from stream.rules import Rules
from stream.text import (
    Feature,
    Fingerprints,
    SchemeSpec,
    Signatures,
    Stored,
    cosine_thousandths,
    edit_similarity,
    estimated_resemblance,
    sketch,
)
from stream.verdict import (
    UNWRITABLE,
    Duplicate,
    Passed,
    Reference,
    Rejected,
    Rejection,
    Text,
    Unique,
)

# Every example has states of its own, and making one is mostly waiting for the disk; in memory it is not.
MEMORY = Path("/dev/shm")  # noqa: S108 - only a place for TemporaryDirectory
LAYOUT = Layout((16, 16, 16, 16), 1)

# Bits that lie in every block of the layout, so that no block alone finds all pairs.
CENTRES = (0, 0xFFFF_0000_FFFF_0000)
BITS = (0, 15, 16, 40, 63)


class FakeScheme:
    """Fingerprints made by hand: a letter for the centre, a digit for each bit that differs from it.

    A text of punctuation only has no features, and all of them have the same normal form. A trailing `x` makes
    another content of the same fingerprint. One band is of the letter, another of how many characters there are;
    the profile has a bit for each digit. Texts with a 4 do not meet those without.
    """

    spec = SchemeSpec(bands=2, near_from=2, short_chars=5)

    def salt(self, normalized: str) -> int:
        return 0xFFFF_FFFF_FFFF if "4" in normalized else 0

    def has_bands(self, normalized: str) -> bool:
        return len(normalized) >= self.spec.near_from

    def signatures(self, normalized: list[str], salts: list[int]) -> Signatures:
        assert all(map(self.has_bands, normalized))
        profiles = [self.profile(text) ^ salt for text, salt in zip(normalized, salts, strict=True)]
        bands = [self.bands(text) for text in normalized]
        return Signatures(np.array(profiles, np.uint64), np.array(bands, np.uint16).reshape(-1, 2))

    def profile(self, normalized: str) -> int:
        return sum(1 << 60 - int(digit) for digit in {*normalized} if digit.isdigit())

    def bands(self, normalized: str) -> tuple[int, int]:
        return ord(normalized[0]), len(normalized)

    def stored(self, normalized: str) -> Stored:
        short = len(normalized) < self.spec.short_chars
        return Stored(normalized, b"") if short else Stored("", sketch(normalized))

    def features(self, normalized: str) -> list[Feature]:
        return [Feature(character, 1, 1) for character in normalized]

    def normalize(self, text: str) -> str:
        return text.lower().strip(" !?")

    def fingerprint(self, normalized: list[str]) -> Fingerprints:
        found = [self.one(text) for text in normalized]
        return Fingerprints(
            np.array([value or 0 for value in found], np.uint64),
            np.array([value is not None for value in found], bool),
        )

    def one(self, normalized: str) -> int | None:
        if not normalized:
            return None
        bits = {BITS[int(digit)] for digit in normalized if digit.isdigit()}
        return CENTRES["ab".index(normalized[0])] ^ sum(1 << bit for bit in bits)


SCHEME = FakeScheme()


class Original(NamedTuple):
    offset: int
    time: int
    key: tuple[str, str]
    fingerprint: int | None
    id: str
    normalized: str
    crowded: frozenset[int]
    """By which bands it is not found."""
    by_fingerprint: bool


class Model:
    """What a verdict is, written down plainly: every original is looked at for every event."""

    def __init__(self, start: int) -> None:
        self.time = 0
        self.boundary = start
        self.times: list[tuple[int, int]] = []
        self.originals: list[Original] = []

    def judge(self, event, rules):
        offset = event.offset
        if not isinstance(event, Rejection):
            self.time = max(self.time, event.time or 0)
        self.times.append((offset, self.time))
        first = min(p for p, time in self.times if time > self.time - rules.retention)
        self.boundary = max(self.boundary, first)
        if isinstance(event, Rejection):
            return Rejected(offset, self.time, event.reason, event.error)
        if isinstance(event, Passed):
            return Unique(offset, self.time, None)
        normalized = SCHEME.normalize(event.text)
        if len(event.text) > rules.max_text_chars:
            key, fingerprint = ("raw", event.text), None
        elif (fingerprint := SCHEME.one(normalized)) is None:
            key = ("raw", event.text)
        else:
            key = ("normalized", normalized)
        candidates = [original for original in self.originals if self.boundary <= original.offset < offset]
        exact = [original for original in candidates if original.key == key]
        if exact:
            return self.same_content(event, fingerprint, min(exact, key=lambda original: original.offset))
        candidates = [original for original in candidates if original.fingerprint is not None]
        # A text that no other can be confirmed with is not found by its fingerprint.
        near, found_by, capped = [], (frozenset(), False), False
        if fingerprint is not None and (rules.confirm == "none" or len(normalized) >= SCHEME.spec.near_from):
            chosen, found_by, capped = self.candidates(normalized, fingerprint, candidates, rules)
            near = [
                (-similarity, distance, original.offset, measure, original)
                for original in chosen
                if (distance := self.distance(fingerprint, original)) is not None
                if (found := self.second_look(normalized, distance, original, rules))
                for measure, similarity in [found]
            ]
        if near:
            thousandths, distance, _, measure, original = min(near)
            found = Reference(original.offset, original.time, original.id)
            return Duplicate(
                offset,
                self.time,
                event.id,
                fingerprint,
                found,
                "near",
                measure,
                -thousandths,
                distance,
                capped,
            )
        self.originals.append(Original(offset, self.time, key, fingerprint, event.id, normalized, *found_by))
        return Unique(offset, self.time, fingerprint, capped)

    def distance(self, fingerprint, original):
        return (fingerprint ^ original.fingerprint).bit_count()

    def candidates(self, normalized, fingerprint, originals, rules):
        """Those that may be near, by what the text will be found if it is unique, and whether there may be more."""
        salt = SCHEME.salt(normalized)
        chosen = [
            original
            for original in originals
            if original.by_fingerprint
            if (fingerprint ^ salt ^ original.fingerprint ^ SCHEME.salt(original.normalized)).bit_count()
            <= rules.max_distance
        ]
        if rules.confirm == "none":
            return chosen, (frozenset(), True), False

        def apart_from(original):
            return (self.profile(normalized) ^ self.profile(original.normalized)).bit_count()

        chosen = [original for original in chosen if apart_from(original) <= max(rules.max_profile_distances)]
        by_fingerprint = len(chosen) < rules.max_crowd
        if not SCHEME.has_bands(normalized):
            return chosen, (frozenset(), by_fingerprint), not by_fingerprint
        met, crowded = {}, set()
        for band, key in enumerate(SCHEME.bands(normalized)):
            same = [
                original
                for original in originals
                if SCHEME.has_bands(original.normalized) and band not in original.crowded
                if SCHEME.bands(original.normalized)[band] == key
                if apart_from(original) <= max(rules.max_profile_distances)
            ]
            if len(same) >= rules.max_crowd:
                crowded.add(band)
            for original in same:
                met[original] = met.get(original, 0) + 1
        reach = rules.max_profile_distances
        nearest = sorted(
            (
                original
                for original, shared in met.items()
                if original not in chosen
                if apart_from(original) <= reach[min(shared, len(reach)) - 1]
            ),
            key=lambda original: (apart_from(original), original.offset),
        )
        capped = bool(crowded) or not by_fingerprint or len(nearest) > rules.max_compared
        return chosen + nearest[: rules.max_compared], (frozenset(crowded), by_fingerprint), capped

    def profile(self, normalized):
        if not SCHEME.has_bands(normalized):
            return 0
        return SCHEME.profile(normalized) ^ SCHEME.salt(normalized)

    def second_look(self, normalized, distance, original, rules):
        """By what the two are similar and how much, or None."""
        if SCHEME.salt(normalized) != SCHEME.salt(original.normalized):
            return None
        if rules.confirm == "none":
            return "hamming", round(1000 * (64 - distance) / 64)
        texts = normalized, original.normalized
        if min(map(len, texts)) < SCHEME.spec.near_from:
            return None
        if max(map(len, texts)) >= SCHEME.spec.short_chars:
            measure, least = "resemblance", rules.min_resemblance
            similarity = estimated_resemblance(*map(sketch, texts))
        elif rules.confirm == "edit":
            measure, least = "edit", rules.min_edit_similarity
            similarity = edit_similarity(*texts)
        else:
            measure, least = "cosine", rules.min_cosine
            similarity = cosine_thousandths(*(dict.fromkeys(text, 1) for text in texts))
        return (measure, similarity) if similarity >= least else None

    def same_content(self, event, fingerprint, original):
        found = Reference(original.offset, original.time, original.id)
        reason = "redelivered" if event.id and event.id == original.id else "exact"
        distance = None if fingerprint is None else 0
        return Duplicate(
            event.offset, self.time, event.id, fingerprint, found, reason, "content", 1000, distance
        )

    def alive(self):
        return [original.offset for original in self.originals if original.offset >= self.boundary]


TEXTS = st.sampled_from([True] * 5 + [False]).flatmap(
    lambda features: (
        st.builds(
            lambda letter, digits, other, padding: letter + digits + other + padding,
            st.sampled_from("aaAb"),
            st.sampled_from(["", "0", "1", "2", "01", "10", "12", "34", "012", "0123", "01234"]),
            st.sampled_from(["", "", "x"]),
            st.sampled_from(["", "", " ", "    !"]),
        )
        if features
        else st.sampled_from(["", "!", "?", " ", "!!!!!!!!"])
    )
)
# Steps of the producer's clock: mostly a little on, often back, sometimes far past every retention.
STEPS = st.sampled_from([None, 0, 0, 0, 1, 1, 2, 3, 5, 8, 15, 16, -1, -4, -20, -60, 40, 41, 500])
KINDS = st.sampled_from(["text"] * 12 + ["passed", "rejected", UNWRITABLE])
# The texts of a log are few, so that they come again and again.
POOL = st.lists(TEXTS, min_size=6, max_size=8)
EVENTS = st.lists(
    st.tuples(
        KINDS,
        st.sampled_from([1, 1, 1, 2, 7]),
        STEPS,
        st.integers(0, 7),
        st.sampled_from(["", "", "1", '"1"']),
    ),
    min_size=6,
    max_size=40,
)
RULES = st.builds(
    Rules,
    retention=st.sampled_from([1, 15, 40, 40, 150, 150, 700]),
    max_distance=st.integers(0, 3),
    confirm=st.sampled_from(["none", "edit", "edit", "cosine"]),
    min_edit_similarity=st.sampled_from([500, 750]),
    min_cosine=st.sampled_from([500, 750]),
    min_resemblance=st.sampled_from([100, 300]),
    max_profile_distances=st.sampled_from([(0,), (1, 2), (2, 2), (0, 3), (3, 3, 3)]),
    max_crowd=st.sampled_from([1, 2, 3, 5, 1000, 1000]),
    max_compared=st.sampled_from([1, 2, 1000]),
    max_text_chars=st.sampled_from([3, 6, 1000]),
)
# What happens between two batches.
CHANCES = st.sampled_from(["nothing"] * 8 + ["merge", "merge", "reopen", "rebuild", "skip", "skip"])
PARTS = st.lists(st.tuples(RULES, EVENTS), min_size=1, max_size=3)
CUTS = st.lists(st.tuples(st.integers(1, 20), CHANCES), min_size=1, max_size=8)


def log_of(pool, parts):
    """Events with rising offsets from 5 on, and each one's rules."""
    offset, clock, log = 4, 1000, []
    for rules, events in parts:
        for kind, gap, step, place, id in events:
            offset += gap
            clock = max(0, clock + (step or 0))
            time = None if step is None else clock
            if kind == "text":
                log.append((Text(offset, time, pool[place % len(pool)], id), rules))
            elif kind == "passed":
                log.append((Passed(offset, time), rules))
            else:
                log.append((Rejection(offset, kind, "A sentence."), rules))
    return log


class Scope:
    """A table and its changelog, and what can befall them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.changelog: list[bytes] = []
        self.names = itertools.count()
        self.table = self.open()

    def open(self) -> SegmentTable:
        self.path = self.directory / str(next(self.names))
        return self.reopened()

    def reopened(self) -> SegmentTable:
        return SegmentTable.open(
            self.path,
            scheme="fake",
            layout=LAYOUT,
            window_span=60,
            window_floor=1,
            bands=2,
            origin={"topic": "t"},
            merge_at=3,
        )

    def commit(self, records) -> None:
        self.changelog += map(encode, records)
        self.table.apply(list(map(decode, self.changelog[-len(records) :])), len(self.changelog))

    def happen(self, what: str, upcoming: int) -> None:
        """What lies between two batches; `upcoming` is the offset of the next event."""
        if what == "merge":
            while self.table.merge_step():
                pass
        elif what == "reopen":
            self.table.close()
            self.table = self.reopened()
        elif what == "rebuild":
            position = self.table.position
            self.table.close()
            self.table = self.open()
            self.table.apply(list(map(decode, self.changelog)), len(self.changelog))
            assert self.table.position == position
        elif what == "skip" and upcoming > self.table.position.next:
            position = self.table.position
            record = Judge(self.table, SCHEME, Rules(), "id").skip(upcoming)
            check_records([record], position.next, [Passed(upcoming - 1, None)], position.boundary)
            self.commit([record])


@contextmanager
def scope() -> Iterator[Scope]:
    with tempfile.TemporaryDirectory(
        prefix="textsieve-", dir=MEMORY if MEMORY.is_dir() else None
    ) as directory:
        opened = Scope(Path(directory))
        try:
            yield opened
        finally:
            opened.table.close()


def batches(log, cuts):
    """The log cut into batches of one set of rules, and what happens after each."""
    sizes = itertools.cycle(cuts)
    for _, part in itertools.groupby(log, key=lambda item: item[1]):
        events = list(part)
        while events:
            size, chance = next(sizes)
            yield events[:size], chance
            events = events[size:]


def check_records(records, begin, events, boundary) -> None:
    """The records of a batch cover it without a gap, and name what the broker refused."""
    assert [record.begin for record in records] == [begin, *(record.next for record in records[:-1])]
    assert records[-1].next == events[-1].offset + 1
    assert all(len(encode(record)) <= MAX_RECORD_BYTES for record in records)
    refused = [e.offset for e in events if isinstance(e, Rejection) and e.reason == UNWRITABLE]
    assert [offset for record in records for offset in record.unwritable] == refused
    for record in records:
        assert all(record.begin <= offset < record.next for offset in record.unwritable)
    assert all(record.boundary <= record.next for record in records)
    boundaries = [boundary, *(record.boundary for record in records)]
    assert boundaries == sorted(boundaries)


QUICK = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def judged(log, cuts):
    """Every verdict of the judge, each batch judged twice; what is alive is compared with the model's."""
    first = log[0][0].offset
    model = Model(first)
    verdicts, expected = [], []
    with scope() as opened:
        opened.commit([Judge(opened.table, SCHEME, log[0][1], "id").start(first)])
        chance = "nothing"
        for batch, next_chance in batches(log, cuts):
            events, rules = [event for event, _ in batch], batch[0][1]
            opened.happen(chance, events[0].offset)
            position = opened.table.position
            judgement = Judge(opened.table, SCHEME, rules, "id").judge(events)
            assert Judge(opened.table, SCHEME, rules, "id").judge(events) == judgement
            check_records(judgement.records, position.next, events, position.boundary)
            opened.commit(judgement.records)
            verdicts += judgement.verdicts
            expected += [model.judge(event, rules) for event in events]
            assert [original.offset for original in opened.table.contents()] == model.alive()
            assert opened.table.position.next == events[-1].offset + 1
            assert opened.table.position.time == model.time
            assert opened.table.position.rules == rules.id
            chance = next_chance
    return verdicts, expected


@QUICK
@given(pool=POOL, parts=PARTS, cuts=CUTS)
def test_verdicts_are_those_of_the_plain_model_however_the_log_is_cut(pool, parts, cuts):
    verdicts, expected = judged(log_of(pool, parts), cuts)
    assert verdicts == expected


@settings(QUICK, max_examples=30)
@given(pool=POOL, parts=PARTS, cuts=CUTS, room=st.integers(0, 200))
def test_verdicts_do_not_depend_on_how_records_are_split(pool, parts, cuts, room):
    with pytest.MonkeyPatch.context() as patch:
        # Room for 20 offsets that were refused, and for one or a few originals.
        patch.setattr(judging, "MAX_RECORD_BYTES", 900 + room)
        verdicts, expected = judged(log_of(pool, parts), cuts)
    assert verdicts == expected
