"""Posting lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_model import LAYOUTS

from state.postings import append, keys, unpack


def packed(ids):
    return np.array(ids, "<u8").tobytes(), np.array(ids, "<u4").tobytes()


def posting(ids):
    return b"".join(packed(ids))


def test_postings_are_appended_behind_what_is_merged():
    assert append(posting([1, 4]), 5, *packed([6, 7])) == posting([1, 4, 6, 7])


def test_an_absent_list_begins_with_what_is_appended():
    assert append(None, 0, *packed([6, 7])) == posting([6, 7])


def test_what_an_unfinished_merge_left_is_replaced_not_doubled():
    left = append(posting([1, 4]), 5, *packed([6, 7]))
    assert append(left, 5, *packed([6, 7, 9])) == posting([1, 4, 6, 7, 9])


@given(st.sets(st.integers(0, 20)), st.integers(0, 20), st.sets(st.integers(0, 20)))
def test_a_list_holds_what_was_merged_and_what_was_appended(before, merged, added):
    added = {number for number in added if number >= merged}
    fingerprints, ids = unpack(append(posting(sorted(before)), merged, *packed(sorted(added))))
    assert ids.tolist() == sorted({number for number in before if number < merged} | added)
    assert fingerprints.tolist() == ids.tolist()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_keys_of_lists_sort_as_the_values_do_and_differ_where_they_do(layout):
    for table, bits in enumerate(layout.key_bits):
        values = sorted({0, 1, 255, 256, 2**bits - 1, 2 ** (bits - 1)})
        made = keys(layout, table, np.array(values, np.uint64))
        assert made == sorted(made)
        assert len(set(made)) == len(values)
        assert all(key.startswith(b"s" + bytes([table])) for key in made)
