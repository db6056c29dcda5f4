"""What a verdict is, case by case, with real texts and the real scheme."""

import itertools
import tracemalloc
from dataclasses import replace

import pytest

from state.changelog import MAX_RECORD_BYTES, encode
from state.layout import Layout
from state.table import SegmentTable
from stream.judge import Judge
from stream.rules import Rules
from stream.text import Scheme, SchemeSpec, hamming_distance
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

HOUR = 3_600_000
# The classic verdict, whose distances are easily arranged; tests/test_second_look.py has the others.
RULES = Rules(retention=48 * HOUR, confirm="none")

WARNING = (
    "本市气象台今天上午发布暴雨橙色预警，预计未来三小时内城区大部分地区将出现强降雨，局部伴有雷电大风，请市民尽量减少外出，"
    "注意交通安全，远离低洼积水路段，学校和幼儿园做好停课准备，有关部门启动应急预案，加强巡查排险。"
)
OTHER = "昨晚的足球比赛太精彩了，最后一分钟主队攻入制胜一球，全场球迷沸腾，久久不愿离去。"


@pytest.fixture(scope="module")
def scheme():
    return Scheme.build(SchemeSpec())


@pytest.fixture
def table(tmp_path, scheme):
    layout = Layout((16, 16, 16, 16), 1)
    with SegmentTable.open(
        tmp_path,
        scheme=scheme.id,
        layout=layout,
        window_span=12 * HOUR,
        bands=scheme.spec.bands,
        origin={"topic": "t"},
    ) as table:
        yield table


@pytest.fixture
def judge(table, scheme):
    """Judges the events that it is given as one batch, commits it, and returns the verdicts."""
    table.apply([Judge(table, scheme, RULES, "topic-id").start(0)], 1)

    def judge_batch(*events, rules=RULES):
        judgement = Judge(table, scheme, rules, "topic-id").judge(events)
        table.apply(judgement.records, table.position.changelog + len(judgement.records))
        return judgement.verdicts

    return judge_batch


@pytest.fixture(scope="module")
def variants(scheme):
    """One text in many small variations, as fingerprint -> text, the text itself first."""
    clauses = WARNING.split("，")
    texts = [
        WARNING,
        *(WARNING + tail for tail in ("转发", "速看", "【组图】", "（记者张三）")),
        *("，".join([*clauses[:i], *clauses[i + 1 :]]) for i in range(len(clauses))),
        *(WARNING[:i] + WARNING[i + 1 :] for i in range(len(WARNING))),
    ]
    found = dict(zip(scheme.fingerprint([scheme.normalize(text) for text in texts]), texts, strict=True))
    # Those of one fingerprint: the last text. The distances are what matters.
    return {fingerprint: text for fingerprint, text in found.items() if fingerprint is not None}


def arrangement(variants, *distances):
    """The texts of the first variants that have these distances: (i, j, least, most) each."""
    count = 1 + max(max(i, j) for i, j, _, _ in distances)
    for candidate in itertools.permutations(variants, count):
        if all(
            least <= hamming_distance(candidate[i], candidate[j]) <= most for i, j, least, most in distances
        ):
            return [variants[fingerprint] for fingerprint in candidate]
    raise AssertionError("the variants hold no such texts")


def text(offset, content, time=HOUR, id=""):
    return Text(offset, time, content, id)


def summary(verdicts):
    """`None` for each unique text, else the reason and the original's offset."""
    return [
        (verdict.reason, verdict.original.offset) if isinstance(verdict, Duplicate) else None
        for verdict in verdicts
    ]


# Equal content


def test_of_two_equal_texts_in_one_batch_the_first_is_unique_and_the_second_its_duplicate(judge, scheme):
    fingerprint = scheme.fingerprint([scheme.normalize(OTHER)])[0]
    assert judge(text(0, OTHER, id="7"), text(1, OTHER, id="8")) == [
        Unique(0, HOUR, fingerprint),
        Duplicate(
            1, HOUR, "8", fingerprint, Reference(0, HOUR, "7"), "exact", "content", 1000, hamming_distance=0
        ),
    ]


def test_a_duplicate_in_a_later_batch_is_the_same_as_in_the_batch_of_its_original(judge, scheme):
    judge(text(0, OTHER, id="7"))
    fingerprint = scheme.fingerprint([scheme.normalize(OTHER)])[0]
    assert judge(text(1, OTHER, id="8")) == [
        Duplicate(1, HOUR, "8", fingerprint, Reference(0, HOUR, "7"), "exact", "content", 1000, 0)
    ]


def test_texts_that_only_look_different_to_a_program_are_exact_duplicates(judge):
    verdicts = judge(text(0, "Kafka 4.0 发布了"), text(1, "ＫＡＦＫＡ　4.0 \u200b发布了"))
    assert summary(verdicts) == [None, ("exact", 0)]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("7", "7", "redelivered"),
        ('"7"', '"7"', "redelivered"),
        ("7", "8", "exact"),
        ("7", '"7"', "exact"),
        ("", "", "exact"),
        ("7", "", "exact"),
    ],
)
def test_equal_content_under_an_equal_id_is_redelivered_and_otherwise_exact(judge, first, second, reason):
    judge(text(0, OTHER, id=first))
    assert summary(judge(text(1, OTHER, id=second))) == [(reason, 0)]


def test_equal_ids_of_different_content_make_no_duplicate(judge):
    assert summary(judge(text(0, OTHER, id="7"), text(1, WARNING, id="7"))) == [None, None]


# Near content


@pytest.mark.parametrize(("distance", "similarity"), [(1, 984), (2, 969), (3, 953)])
def test_a_text_within_the_distance_is_a_near_duplicate(judge, variants, distance, similarity):
    first, second = arrangement(variants, (0, 1, distance, distance))
    judge(text(0, first))
    (verdict,) = judge(text(1, second, id="1.10"))
    assert (verdict.reason, verdict.measure, verdict.id) == ("near", "hamming", "1.10")
    assert (verdict.similarity, verdict.hamming_distance) == (similarity, distance)
    assert variants[verdict.fingerprint] == second


def test_a_text_beyond_the_distance_is_unique(judge, variants):
    first, second = arrangement(variants, (0, 1, 4, 4))
    assert summary(judge(text(0, first), text(1, second))) == [None, None]


def test_the_distance_of_the_rules_decides(judge, variants):
    first, second = arrangement(variants, (0, 1, 3, 3))
    strict = replace(RULES, max_distance=2)
    assert summary(judge(text(0, first), text(1, second), rules=strict)) == [None, None]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_duplicate_is_compared_with_originals_never_with_another_duplicate(judge, variants, cut):
    chain = arrangement(variants, (0, 1, 1, 3), (1, 2, 1, 3), (0, 2, 4, 64))
    events = [text(offset, content) for offset, content in enumerate(chain)]
    verdicts = judge(*events[:cut]) + (judge(*events[cut:]) if events[cut:] else [])
    assert summary(verdicts) == [None, ("near", 0), None]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_the_nearer_of_two_originals_wins_even_if_it_is_the_later(judge, variants, cut):
    far, near, query = arrangement(variants, (0, 1, 4, 64), (0, 2, 3, 3), (1, 2, 1, 2))
    events = [text(0, far), text(1, near), text(2, query)]
    verdicts = judge(*events[:cut]) + (judge(*events[cut:]) if events[cut:] else [])
    assert summary(verdicts) == [None, None, ("near", 1)]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_of_two_originals_equally_near_the_earlier_wins(judge, variants, cut):
    first, second, query = arrangement(variants, (0, 1, 4, 64), (0, 2, 2, 2), (1, 2, 2, 2))
    events = [text(0, first), text(1, second), text(2, query)]
    verdicts = judge(*events[:cut]) + (judge(*events[cut:]) if events[cut:] else [])
    assert summary(verdicts) == [None, None, ("near", 0)]


def test_equal_content_wins_over_an_earlier_text_that_is_only_near(judge, variants):
    earlier, equal = arrangement(variants, (0, 1, 1, 3))
    judge(text(0, earlier), text(1, equal), rules=replace(RULES, max_distance=0))
    assert summary(judge(text(2, equal))) == [("exact", 1)]


def test_a_batch_of_one_template_does_not_need_memory_for_all_its_pairs(table, scheme):
    table.apply([Judge(table, scheme, RULES).start(0)], 1)
    peaks = []
    for size in (600, 1200):
        events = [text(n, f"{WARNING}{n}") for n in range(size)]
        tracemalloc.start()
        verdicts = Judge(table, scheme, RULES).judge(events).verdicts
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert summary(verdicts).count(None) < 0.1 * size
    # Twice the texts have four times the pairs.
    assert peaks[1] < 2.5 * peaks[0]


# Time


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("age", "alive"), [(48 * HOUR - 1, True), (48 * HOUR, False)])
def test_a_text_is_unique_again_when_the_retention_has_passed(judge, age, alive, together):
    events = [text(0, OTHER, HOUR), text(1, OTHER, HOUR + age)]
    verdicts = judge(*events) if together else [judge(event)[0] for event in events]
    assert summary(verdicts) == [None, ("exact", 0) if alive else None]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_near_text_is_unique_again_when_the_retention_has_passed(judge, variants, cut):
    first, second = arrangement(variants, (0, 1, 1, 3))
    events = [text(0, first, HOUR), text(1, second, 48 * HOUR), text(2, second, 49 * HOUR)]
    verdicts = judge(*events[:cut]) + (judge(*events[cut:]) if events[cut:] else [])
    assert summary(verdicts) == [None, ("near", 0), None]


def test_a_duplicate_does_not_prolong_the_life_of_its_original(judge):
    verdicts = judge(*(text(n, OTHER, n * 30 * HOUR) for n in range(5)))
    assert summary(verdicts) == [None, ("exact", 0), None, ("exact", 2), None]


def test_a_batch_that_spans_more_than_the_retention_lets_its_own_texts_expire(judge):
    judge(text(0, WARNING, HOUR))
    verdicts = judge(
        text(1, WARNING, 2 * HOUR),
        text(2, OTHER, 3 * HOUR),
        text(3, OTHER, 200 * HOUR),
        text(4, WARNING, 200 * HOUR),
        text(5, OTHER, 400 * HOUR),
        text(6, OTHER, 400 * HOUR),
    )
    assert summary(verdicts) == [("exact", 0), None, None, None, None, ("exact", 5)]
    # The text that was a duplicate first, and so needed no fingerprint, has one where it is an original.
    assert verdicts[3].fingerprint == verdicts[0].fingerprint is not None


def test_a_backlog_of_old_events_is_deduplicated_like_any_other(judge):
    judge(text(0, WARNING, 1000 * HOUR))
    verdicts = judge(text(1, OTHER, 5 * HOUR), text(2, OTHER, 900 * HOUR), text(3, OTHER, 0))
    assert summary(verdicts) == [None, ("exact", 1), ("exact", 1)]
    assert {verdict.time for verdict in verdicts} == {1000 * HOUR}
    assert verdicts[1].original.time == 1000 * HOUR


def test_an_event_without_a_timestamp_happens_at_the_stream_time(judge):
    verdicts = judge(text(0, OTHER, None), text(1, WARNING, 5 * HOUR), text(2, OTHER, None))
    assert [verdict.time for verdict in verdicts] == [0, 5 * HOUR, 5 * HOUR]


def test_a_rejected_event_does_not_move_the_time(judge):
    # A rejection carries no timestamp: whatever its event had, it cannot count.
    verdicts = judge(text(0, OTHER), Rejection(1, "invalid-json", "A sentence."), text(2, OTHER))
    assert verdicts[1] == Rejected(1, HOUR, "invalid-json", "A sentence.")
    assert summary(verdicts) == [None, None, ("exact", 0)]


def test_an_event_passed_without_a_text_moves_the_time_and_is_never_compared(judge, table):
    verdicts = judge(text(0, OTHER), Passed(1, 2 * HOUR), Passed(2, None), text(3, OTHER, 100 * HOUR))
    assert verdicts[1:3] == [Unique(1, 2 * HOUR, None), Unique(2, 2 * HOUR, None)]
    assert judge(Passed(4, 500 * HOUR), text(5, OTHER, HOUR))[1].time == 500 * HOUR
    assert [original.offset for original in table.contents()] == [5]


def test_what_has_expired_stays_expired_under_a_longer_retention(judge):
    judge(text(0, OTHER, HOUR))
    judge(text(1, WARNING, 50 * HOUR))
    assert summary(judge(text(2, OTHER, 50 * HOUR), rules=replace(RULES, retention=480 * HOUR))) == [None]


def test_a_longer_retention_keeps_what_is_still_alive(judge):
    judge(text(0, OTHER, HOUR))
    longer = replace(RULES, retention=480 * HOUR)
    assert summary(judge(text(1, OTHER, 300 * HOUR), rules=longer)) == [("exact", 0)]


def test_a_shorter_retention_holds_from_its_first_event_on(judge):
    judge(text(0, OTHER, HOUR))
    assert summary(judge(text(1, OTHER, 3 * HOUR), rules=replace(RULES, retention=HOUR))) == [None]


# Texts without features, and very long ones


def test_featureless_texts_are_duplicates_only_of_the_very_same_text(judge):
    contents = ["😀😀", "", "😀", "！！！", "!!!", "😀😀", "\x00", "", "  ", "!!!"]
    verdicts = judge(*(text(offset, content) for offset, content in enumerate(contents)))
    assert summary(verdicts) == [
        None, None, None, None, None, ("exact", 0), None, ("exact", 1), None, ("exact", 4),
    ]  # fmt: skip
    assert verdicts[5].fingerprint is None
    assert verdicts[5].hamming_distance is None
    later = judge(*(text(10 + offset, content) for offset, content in enumerate(contents)))
    assert [pair and pair[1] for pair in summary(later)] == [0, 1, 2, 3, 4, 0, 6, 1, 8, 4]


def test_a_text_longer_than_the_limit_is_judged_by_its_exact_content_only(judge, variants):
    first, second = arrangement(variants, (0, 1, 1, 3))
    limited = replace(RULES, max_text_chars=len(WARNING) // 2)
    verdicts = judge(*(text(n, t) for n, t in enumerate([first, second, first, first + " "])), rules=limited)
    assert summary(verdicts) == [None, None, ("exact", 0), None]
    assert verdicts[0].fingerprint is None
    assert (verdicts[2].fingerprint, verdicts[2].hamming_distance) == (None, None)
    assert summary(judge(text(4, second), text(5, first + " "), rules=limited)) == [
        ("exact", 1),
        ("exact", 3),
    ]


def test_a_text_as_long_as_the_limit_is_compared_like_any_other(judge):
    exact = replace(RULES, max_text_chars=len(OTHER))
    assert judge(text(0, OTHER), rules=exact)[0].fingerprint is not None


def test_lone_surrogates_and_nul_are_judged_like_other_characters(judge):
    verdicts = judge(
        *(text(n, t) for n, t in enumerate([OTHER + "\ud800", OTHER + "\ud800", "\ud800", "\udfff"]))
    )
    assert summary(verdicts)[1] == ("exact", 0)
    assert summary(verdicts)[2:] == [None, None]


# Records


def test_a_scope_begins_with_a_record_that_holds_nothing(table, scheme):
    record = Judge(table, scheme, RULES, "topic-id").start(42)
    assert (record.begin, record.next, record.time, record.boundary) == (42, 42, 0, 42)
    assert (record.topic_id, record.rules, record.originals) == ("topic-id", RULES.id, ())


def test_a_record_without_originals_moves_the_position_over_markers(judge, table, scheme):
    judge(text(0, OTHER))
    record = Judge(table, scheme, RULES, "topic-id").skip(9)
    table.apply([record], 7)
    assert (table.position.next, table.position.time) == (9, HOUR)
    assert summary(judge(text(9, OTHER))) == [("exact", 0)]


def test_the_record_of_a_batch_covers_rejected_events_and_gaps(judge, table):
    judge(text(2, OTHER), Rejection(8, "no-text", "A sentence."))
    assert (table.position.next, table.position.rules, table.position.topic_id) == (9, RULES.id, "topic-id")


def test_the_record_names_the_offsets_that_the_broker_refused(table, scheme):
    table.apply([Judge(table, scheme, RULES).start(0)], 1)
    events = [text(0, OTHER), Rejection(1, UNWRITABLE, "A."), Rejection(2, "no-text", "A."), text(3, WARNING)]
    (record,) = Judge(table, scheme, RULES).judge(events).records
    assert record.unwritable == (1,)
    assert [original.offset for original in record.originals] == [0, 3]


def test_an_original_is_stored_with_its_stream_time_id_and_fingerprint(judge, table, scheme):
    judge(text(0, WARNING, 9 * HOUR), text(1, OTHER, HOUR, id="1.10"))
    _, original = table.contents()
    assert (original.offset, original.time, original.id) == (1, 9 * HOUR, b"1.10")
    assert original.fingerprint == scheme.fingerprint([scheme.normalize(OTHER)])[0]


def test_no_record_is_larger_than_the_changelog_takes(table, scheme):
    table.apply([Judge(table, scheme, RULES).start(0)], 1)
    id = '"' + "\\u0001" * 256 + '"'
    events = [text(n, f"!{n}", id=id) if n % 3 else Rejection(n, UNWRITABLE, "A.") for n in range(3000)]
    records = Judge(table, scheme, RULES, "an-id-of-a-topic").judge(events).records
    assert len(records) > 5
    assert max(len(encode(record)) for record in records) <= MAX_RECORD_BYTES
    # Full ones: no more records than are needed.
    assert min(len(encode(record)) for record in records[:-1]) > MAX_RECORD_BYTES - 16_000
    assert [record.begin for record in records] == [0, *(record.next for record in records[:-1])]
    assert records[-1].next == 3000
    assert [offset for record in records for offset in record.unwritable] == list(range(0, 3000, 3))


def test_each_of_several_records_says_where_time_and_boundary_stand_at_its_end(table, scheme):
    table.apply([Judge(table, scheme, RULES).start(0)], 1)
    id = '"' + "\\u0001" * 256 + '"'
    events = [text(n, f"!{n}", n * HOUR, id) for n in range(1000)]
    records = Judge(table, scheme, RULES).judge(events).records
    assert [record.time for record in records] == [(record.next - 1) * HOUR for record in records]
    # At the event n those of the 48 hours up to it are alive: from n - 47 on.
    assert [record.boundary for record in records] == [record.next - 1 - 47 for record in records]


def test_the_boundary_of_a_record_never_lies_past_its_end(table, scheme, monkeypatch):
    table.apply([Judge(table, scheme, RULES).start(0)], 1)
    # Room for one original a record.
    monkeypatch.setattr("stream.judge.MAX_RECORD_BYTES", 300)
    events = [text(0, OTHER), Passed(1, 500 * HOUR), text(9, WARNING, 500 * HOUR)]
    records = Judge(table, scheme, RULES).judge(events).records
    assert [(record.next, record.boundary) for record in records] == [(2, 2), (10, 9)]


def test_a_batch_after_which_nothing_is_alive_moves_the_boundary_past_it(judge, table):
    judge(text(0, OTHER))
    judge(Passed(1, 500 * HOUR))
    assert table.position.boundary == 2
    assert table.windows() == []


# Misuse


def test_a_scope_without_a_position_cannot_judge(table, scheme):
    judge = Judge(table, scheme, RULES)
    with pytest.raises(ValueError, match="first position"):
        judge.judge([text(0, OTHER)])
    with pytest.raises(ValueError, match="first position"):
        judge.skip(1)


def test_a_batch_that_is_empty_or_begins_below_the_position_is_refused(judge):
    judge(text(3, OTHER))
    for events in ([], [text(3, OTHER)]):
        with pytest.raises(ValueError, match="at or after offset 4"):
            judge(*events)
