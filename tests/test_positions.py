"""Positions that agree, and a sentence with the cure for each way in which they do not."""

import pytest

from state.table import Position
from stream.errors import ScopeError
from stream.positions import Place, agree

POSITION = Position(next=30, changelog=7, time=0, boundary=0, rules="r", topic_id="id")
PLACE = Place("texts.raw:0", "group", "changes", "id", POSITION, committed=30, begin=0, end=50)


def test_a_scope_whose_positions_are_equal_goes_on() -> None:
    assert agree(PLACE)
    assert agree(PLACE._replace(begin=30, end=30))


def test_a_scope_without_any_position_may_begin() -> None:
    assert not agree(PLACE._replace(position=None, committed=None))


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (
            PLACE._replace(position=None),
            ["committed offset 30", "changes holds no record", "TEXTSIEVE_GROUP"],
        ),
        (
            PLACE._replace(committed=None),
            ["ends at offset 30", "no committed offset any more", "position restore texts.raw:0"],
        ),
        (
            PLACE._replace(committed=20),
            ["ends at offset 30", "is 20", "position restore texts.raw:0"],
        ),
        (PLACE._replace(committed=31), ["ends at offset 30", "is 31", "position restore texts.raw:0"]),
        (PLACE._replace(begin=41), ["deleted offsets 30 to 40", "retention.ms", "position skip texts.raw:0"]),
        (PLACE._replace(end=29), ["offset 30 is beyond the end", "(29)"]),
        (PLACE._replace(topic_id="new"), ["id id", "id new", "made again"]),
    ],
)
def test_positions_that_differ_stop_the_scope_with_both_and_the_cure(place: Place, words: list[str]) -> None:
    with pytest.raises(ScopeError) as caught:
        agree(place)
    for word in ["Scope texts.raw:0, group group", *words]:
        assert word in str(caught.value)
