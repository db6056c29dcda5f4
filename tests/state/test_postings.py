"""Posting lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_model import LAYOUTS

from state.postings import append, column, counts, ids
from state.tables import BANDS, SEGMENTS, Tables


def packed(numbers):
    other = [number + 100 for number in numbers]
    return [
        np.array(numbers, "<u8").tobytes(),
        np.array(other, "<u8").tobytes(),
        np.array(numbers, "<u4").tobytes(),
    ]


def posting(numbers):
    return b"".join(packed(numbers))


def test_postings_are_appended_behind_what_is_merged():
    assert append(posting([1, 4]), 5, packed([6, 7])) == posting([1, 4, 6, 7])


def test_an_absent_list_begins_with_what_is_appended():
    assert append(None, 0, packed([6, 7])) == posting([6, 7])


def test_what_an_unfinished_merge_left_is_replaced_not_doubled():
    left = append(posting([1, 4]), 5, packed([6, 7]))
    assert append(left, 5, packed([6, 7, 9])) == posting([1, 4, 6, 7, 9])


@given(st.sets(st.integers(0, 20)), st.integers(0, 20), st.sets(st.integers(0, 20)))
def test_a_list_holds_what_was_merged_and_what_was_appended(before, merged, added):
    added = {number for number in added if number >= merged}
    made = append(posting(sorted(before)), merged, packed(sorted(added)))
    expected = sorted({number for number in before if number < merged} | added)
    assert ids(made, 2).tolist() == column(made, 0, 2).tolist() == expected
    assert column(made, 1, 2).tolist() == [number + 100 for number in expected]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_keys_of_lists_sort_as_the_values_do_and_differ_where_they_do(layout):
    for table, bits in enumerate(layout.key_bits):
        values = sorted({0, 1, 255, 256, 2**bits - 1, 2 ** (bits - 1)})
        tables = Tables.of_segments(layout)
        made = tables.lists(table, np.array(values, tables.types[table]))
        assert made == sorted(made)
        assert len(set(made)) == len(values)
        assert all(key.startswith(SEGMENTS + bytes([table])) for key in made)


def test_lists_of_bands_and_of_segments_are_never_the_same():
    keys = np.arange(3, dtype=np.uint16)
    segments, bands = Tables.of_segments(LAYOUTS[0]).lists(1, keys), Tables.of_bands(4).lists(1, keys)
    assert not {*segments} & {*bands}
    assert all(key.startswith(BANDS) for key in bands)


@given(st.lists(st.tuples(st.sets(st.integers(0, 20)), st.integers(0, 21)), max_size=4))
def test_only_what_is_merged_of_a_list_counts(lists):
    for merged in range(22):
        found = counts([posting(sorted(held)) for held, _ in lists], merged, 2)
        assert found.tolist() == [sum(number < merged for number in held) for held, _ in lists]
