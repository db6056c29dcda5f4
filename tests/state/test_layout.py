"""Layouts: what they guarantee, and how they are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_model import LAYOUTS

from state.layout import Layout

LAYOUT = st.builds(
    lambda blocks, match: Layout(tuple(blocks), min(match, len(blocks))),
    st.lists(st.integers(1, 10), min_size=1, max_size=6),
    st.integers(1, 6),
)


def shared_tables(layout, one, other):
    keys = layout.keys(np.array([one, other], np.uint64))
    return np.flatnonzero(keys[:, 0] == keys[:, 1])


@given(layout=LAYOUT, data=st.data())
def test_two_fingerprints_within_the_distance_meet_in_a_table(layout, data):
    one = data.draw(st.integers(0, 2**layout.bits - 1))
    flipped = data.draw(st.sets(st.integers(0, layout.bits - 1), max_size=layout.max_distance))
    other = one ^ sum(1 << bit for bit in flipped)
    assert len(shared_tables(layout, one, other)) >= 1


@given(layout=LAYOUT, data=st.data())
def test_the_guaranteed_distance_is_the_largest_there_is(layout, data):
    # One bit changed in each of max_distance + 1 blocks leaves too few blocks untouched.
    spoilt = data.draw(st.permutations(range(len(layout.blocks))))[: layout.max_distance + 1]
    ends = np.cumsum(layout.blocks)
    other = sum(1 << int(layout.bits - ends[block]) for block in spoilt)
    assert len(shared_tables(layout, 0, other)) == 0


def test_a_table_has_a_key_for_each_choice_of_blocks():
    keys = Layout((16, 16, 16, 16), 2).keys(np.array([0x1111222233334444], np.uint64))[:, 0]
    assert [hex(key) for key in keys.tolist()] == [
        "0x11112222",
        "0x11113333",
        "0x11114444",
        "0x22223333",
        "0x22224444",
        "0x33334444",
    ]


def test_one_block_of_all_bits_finds_equal_fingerprints():
    layout = Layout((64,), 1)
    assert layout.max_distance == 0
    assert layout.keys(np.array([2**64 - 1], np.uint64)).tolist() == [[2**64 - 1]]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_layout_is_read_back_from_how_it_is_written(layout):
    assert Layout.parse(str(layout)) == layout


def test_the_default_layout_finds_a_distance_of_three():
    assert str(Layout()) == "16-16-16-16/1"
    assert Layout().max_distance == 3


@pytest.mark.parametrize(
    "text", ["", "16-16", "16-16/", "16--16/1", "a-16/1", "16-16/1/1", "-16/1", "１６/1"]
)
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(ValueError, match="A layout is written as"):
        Layout.parse(text)


@pytest.mark.parametrize(
    ("blocks", "match", "message"),
    [
        ((), 1, "at least one bit"),
        ((16, 0), 1, "at least one bit"),
        ((40, 30), 1, "at most 64 bits"),
        ((16, 16), 0, "Between 1 and 2"),
        ((16, 16), 3, "Between 1 and 2"),
        ((4,) * 16, 4, "more than 256"),
    ],
)
def test_blocks_that_make_no_table_are_refused(blocks, match, message):
    with pytest.raises(ValueError, match=message):
        Layout(blocks, match)
