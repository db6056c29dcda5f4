"""Originals as values in RocksDB."""

import pytest
from hypothesis import given
from state_model import original, originals

from state.original import decode, encode, fingerprints, times


@given(originals)
def test_an_original_is_read_back_as_it_was(item):
    assert decode(item.offset, encode(item)) == item


def test_a_fingerprint_of_zero_is_not_none():
    values = [encode(original(1, 5, 0)), encode(original(2, 7, None)), encode(original(3, 9, 2**64 - 1))]
    found, present = fingerprints(values)
    assert decode(1, values[0]).fingerprint == 0
    assert decode(2, values[1]).fingerprint is None
    assert present.tolist() == [True, False, True]
    assert found[present].tolist() == [0, 2**64 - 1]
    assert times(values).tolist() == [5, 7, 9]


def test_a_content_key_of_another_length_is_refused():
    with pytest.raises(ValueError, match="16 bytes, not 3"):
        encode(original(1, 1)._replace(content=b"abc"))


def test_a_value_that_was_cut_is_refused():
    value = encode(original(1, 1)._replace(id=b'"id"', bands=b"bands", sketch=b"sketch"))
    for size in range(len(value)):
        with pytest.raises(ValueError, match="too short"):
            decode(1, value[:size])
