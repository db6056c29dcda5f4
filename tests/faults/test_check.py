"""The check of the fault harness finds what it is there to find."""

from stream.events import Output, RawEvent
from tests.faults.check import Findings, Seen, compare

RAW = [RawEvent("raw", 0, offset, 100, None, b"%d" % offset, ()) for offset in range(4)]
WANTED = [
    Output("unique", 0, 100, None, b"%d" % offset, (("textsieve-source", b"raw:0:%d" % offset),))
    for offset in range(4)
]
SEEN = [
    Seen("unique", 0, offset * 2, 100, None, b"%d" % offset, (("textsieve-source", b"raw:0:%d" % offset),))
    for offset in range(4)
]


def found(seen: list[Seen]) -> Findings:
    return compare(RAW, WANTED, seen)


def test_a_stream_as_the_offline_judge_has_it_is_sound() -> None:
    assert found(SEEN).sound


def test_an_event_that_never_left_is_lost() -> None:
    assert found(SEEN[:2] + SEEN[3:]) == Findings(["raw:0:2 never left"], [], [])


def test_an_event_that_left_twice_is_doubled_wherever_the_second_one_stands() -> None:
    again = SEEN[1]._replace(topic="duplicates", offset=9)
    assert found([*SEEN, again]) == Findings([], ["raw:0:1 left as unique:0:2 and as duplicates:0:9"], [])


def test_an_event_that_nobody_wrote_is_found() -> None:
    stranger = SEEN[0]._replace(offset=9, headers=(("textsieve-source", b"raw:0:77"),))
    assert "raw:0:77" in found([*SEEN, stranger]).doubled[0]


def test_an_event_that_left_after_a_later_one_is_out_of_order() -> None:
    findings = found([SEEN[0], SEEN[2], SEEN[1], SEEN[3]])
    assert len(findings.wrong) == 1
    assert "left after a later event" in findings.wrong[0]


def test_a_difference_in_any_part_of_an_event_is_wrong() -> None:
    for change in (
        {"topic": "duplicates"},
        {"partition": 1},
        {"key": b""},
        {"value": None},
        {"time": 101},
        {"headers": (("x", b"y"), *SEEN[1].headers)},
    ):
        findings = found([SEEN[0], SEEN[1]._replace(**change), *SEEN[2:]])
        assert len(findings.wrong) == 1, change
        assert not findings.lost and not findings.doubled, change


def test_the_time_of_an_event_that_its_sender_stamps_is_not_compared() -> None:
    expected = [output._replace(timestamp=None) for output in WANTED]
    assert compare(RAW, expected, SEEN).sound
