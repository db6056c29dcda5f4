"""Originals as values in RocksDB."""

import pytest
from hypothesis import given
from state_model import LAYOUTS, original, originals

from state.original import band_rows, decode, encode, segment_rows, times


@given(originals)
def test_an_original_is_read_back_as_it_was(item):
    assert decode(item.offset, encode(item)) == item


def test_a_fingerprint_of_zero_is_not_none():
    values = [encode(original(1, 5, 0)), encode(original(2, 7, None)), encode(original(3, 9, 2**64 - 1))]
    rows = segment_rows(LAYOUTS[0], [1, 2, 3], values)
    assert decode(1, values[0]).fingerprint == 0
    assert decode(2, values[1]).fingerprint is None
    assert rows.ids.tolist() == [1, 3]
    assert rows.values.tolist() == [[0, 2**64 - 1], [0, 0]]
    assert times(values).tolist() == [5, 7, 9]


def test_a_content_key_of_another_length_is_refused():
    with pytest.raises(ValueError, match="16 bytes, not 3"):
        encode(original(1, 1)._replace(content=b"abc"))


def test_a_value_that_was_cut_is_refused():
    value = encode(original(1, 1)._replace(id=b'"id"', bands=b"bands", sketch=b"sketch"))
    for size in range(len(value)):
        with pytest.raises(ValueError, match="too short"):
            decode(1, value[:size])


def test_originals_that_may_not_meet_are_indexed_under_their_salts():
    values = [encode(original(1, 5, 12)._replace(salt=salt)) for salt in (0, 2**63 | 7)]
    rows = segment_rows(LAYOUTS[0], [1, 2], values)
    assert rows.values[0].tolist() == [12, 12 ^ (2**63 | 7)]
    assert rows.keys[0].tolist() == [0, 2**15]


def test_only_originals_with_bands_are_indexed_by_them():
    with_bands = original(1, 5)._replace(profile=9, bands=b"\x01\x02\x03\x04", id=b"id", text="text")
    rows = band_rows(2, [4, 7], [encode(original(0, 5)), encode(with_bands)])
    assert rows.values.tolist() == [[9]]
    assert rows.ids.tolist() == [7]
    assert [keys.tolist() for keys in rows.keys] == [[0x0201], [0x0403]]
