"""Changelog records."""

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from state_model import original, originals, record, texts

from state.changelog import Record, decode, encode, packed_size
from state.errors import ChangelogError

records = st.builds(
    Record,
    begin=st.integers(0, 2**62),
    next=st.integers(0, 2**62),
    time=st.integers(-(2**62), 2**62),
    boundary=st.integers(0, 2**62),
    topic_id=st.text(max_size=30),
    rules=st.text(max_size=30),
    unwritable=st.lists(st.integers(0, 2**62), max_size=4).map(tuple),
    originals=st.lists(originals, max_size=6),
)

SMALL = Record(
    3, 9, 5, 1, "topic", "rules", (4,), [original(3, 2), original(5, 5, None)._replace(text="重复")]
)


@given(records)
def test_a_record_is_read_back_as_it_was(item):
    assert decode(encode(item)) == item


@given(originals, st.lists(originals, max_size=3))
def test_the_packed_size_is_what_an_original_adds_to_a_record(item, others):
    without, with_it = record(others, 0, 1, 0), record([*others, item], 0, 1, 0)
    assert len(encode(with_it)) - len(encode(without)) == packed_size(item)


@given(texts)
def test_a_text_with_lone_surrogates_survives(text):
    item = original(1, 1)._replace(text=text + "\ud83d")
    assert decode(encode(record([item], 0, 2, 1))).originals == [item]


def test_a_record_of_a_past_version_is_still_read():
    # Written by format 2: what is in a changelog stays there for as long as it holds live originals.
    written = (
        "7473760203000000000000000900000000000000050000000000000001000000000000000500050000000100000002000000"
        "746f70696372756c657304000000000000000300000000000000050000000000000002000000000000000500000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100"
        "0000000000000000000000000000000300000000000000000000000000000005000000000000000000000000000000000000"
        "0000000000000000000006000000e9878de5a48d2fadf0d3ce0d3aa0"
    )
    assert decode(bytes.fromhex(written)) == SMALL


def test_a_cut_record_is_refused_wherever_it_was_cut():
    data = encode(SMALL)
    for size in range(len(data)):
        with pytest.raises(ChangelogError):
            decode(data[:size])


def test_a_record_with_one_changed_bit_is_refused():
    data = encode(SMALL)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChangelogError):
            decode(bytes(changed))


def test_a_record_with_something_behind_it_is_refused():
    with pytest.raises(ChangelogError, match="damaged"):
        decode(encode(SMALL) + b"x")


def test_a_record_of_a_newer_format_says_that_a_newer_version_reads_it():
    data = bytearray(encode(SMALL))
    data[3] = 3
    with pytest.raises(ChangelogError, match="format 3, this version reads format 2"):
        decode(bytes(data))


def test_what_another_program_wrote_is_refused():
    with pytest.raises(ChangelogError, match="another program"):
        decode(b'{"text": "hello"}')


def test_a_record_that_promises_more_than_it_holds_is_refused():
    body = bytearray(encode(SMALL)[:-8])
    body[46] = 200  # how many originals there are
    with pytest.raises(ChangelogError, match="contradicts itself"):
        decode(bytes(body) + xxhash.xxh3_64_digest(bytes(body))[::-1])


def test_a_content_key_of_another_length_is_refused():
    with pytest.raises(ValueError, match="16 bytes"):
        encode(record([original(1, 1)._replace(content=b"abc")], 0, 2, 1))
