import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.text.simhash import (
    format_bits,
    format_hex,
    hamming_distance,
    hamming_distances,
    md5_64,
    parse_bits,
    parse_hex,
    signed_sums,
    simhash,
    simhash_batch,
    string_hash,
    xxh3_64,
)

UINT64 = st.integers(0, 2**64 - 1)
FEATURES = st.lists(st.tuples(UINT64, st.integers(1, 255)), max_size=12)
TIES = st.sampled_from([0, 1])


def batch(texts, tie=0):
    flat = [feature for text in texts for feature in text]
    bounds = np.cumsum([0, *map(len, texts)])
    return simhash_batch(
        np.array([hash_ for hash_, _ in flat], np.uint64),
        np.array([weight for _, weight in flat], np.uint8),
        bounds.astype(np.int64),
        tie=tie,
    )


def classic_128(text):
    tokens = text.split()
    return simhash([string_hash(token) for token in tokens], [1] * len(tokens), bits=128, tie=1)


def test_the_weighted_sum_of_the_classic_article():
    hashes = [parse_bits("100101"), parse_bits("101011")]
    assert signed_sums(hashes, [4, 5], bits=6) == [9, -9, 1, -1, 1, 9]
    assert simhash(hashes, [4, 5], bits=6) == parse_bits("101011")


def test_the_128_bit_fingerprints_of_the_classic_article():
    one, two = "This is a test string for testing", "This is a test string for testing also"
    assert classic_128(one) == 9961709360205638079444993160
    assert hamming_distance(classic_128(one), classic_128(two)) == 12


def test_the_64_bit_fingerprint_of_the_package_simhash():
    assert simhash([md5_64("aaa"), md5_64("bbb")], [1, 1]) == 57087923692560392


@pytest.mark.data
def test_all_published_fingerprints_are_reproduced(vectors):
    for text, value in vectors["simhash_128"]["values"].items():
        assert classic_128(text) == value
    for one, two, distance in vectors["simhash_128"]["distances"]:
        assert hamming_distance(classic_128(one), classic_128(two)) == distance

    numbers = [md5_64(str(i)) for i in range(500)]
    pair, plain, weighted = (value["fingerprint"] for value in vectors["simhash_64_md5"]["values"])
    assert simhash([md5_64("aaa"), md5_64("bbb")], [1, 1]) == pair
    assert simhash(numbers, [1] * 500) == plain
    assert simhash(numbers, [50 * i for i in range(500)]) == weighted
    assert batch([[(number, 1) for number in numbers]])[0] == plain

    example = vectors["weighted_sum_example"]
    hashes = [parse_bits(digits) for digits in example["hashes"]]
    assert signed_sums(hashes, example["weights"], bits=6) == example["sums"]
    assert format_bits(simhash(hashes, example["weights"], bits=6), 6) == example["bits"]


@pytest.mark.data
def test_all_published_distances_are_reproduced(vectors):
    for example in vectors["hamming"]:
        parse = parse_hex if example.get("base") == 16 else parse_bits
        assert hamming_distance(parse(example["a"]), parse(example["b"])) == example["distance"]


@pytest.mark.data
def test_exhaustive_search_finds_the_published_pairs(vectors):
    for example in vectors["all_pairs_within_3"]:
        values = np.array(sorted(example["fingerprints"]), np.uint64)
        pairs = [
            [int(value), int(values[other])]
            for i, value in enumerate(values)
            for other in np.nonzero(hamming_distances(values, int(value)) <= 3)[0]
            if other > i
        ]
        assert sorted(pairs) == sorted(sorted(pair) for pair in example["pairs"])


def test_the_tie_rule_decides_the_bits_whose_sum_is_0():
    opposite = [0b1100, 0b1010]
    assert simhash(opposite, [1, 1], bits=4, tie=0) == 0b1000
    assert simhash(opposite, [1, 1], bits=4, tie=1) == 0b1110
    assert batch([[(hash_, 1) for hash_ in opposite]], tie=0)[0] == 0b1000
    assert batch([[(hash_, 1) for hash_ in opposite]], tie=1)[0] == 0b1110


@given(st.lists(FEATURES, max_size=8), TIES)
def test_a_batch_gives_each_text_what_the_definition_gives_it_alone(texts, tie):
    expected = [simhash([h for h, _ in text], [w for _, w in text], tie=tie) for text in texts]
    assert list(batch(texts, tie)) == expected


def test_a_batch_of_many_slices_and_one_text_longer_than_a_slice_is_exact():
    rng = random.Random(5)
    sizes = [3, 0, 5000, 5000, 0, 30_000, 1, *[rng.randrange(40) for _ in range(900)], 8192, 8193, 0]
    texts = [[(rng.getrandbits(64), rng.randrange(1, 6)) for _ in range(size)] for size in sizes]
    expected = [simhash([h for h, _ in text], [w for _, w in text]) for text in texts]
    assert list(batch(texts)) == expected


def test_the_sums_of_a_long_text_do_not_overflow():
    text = [(2**64 - 1, 255)] * 300_000 + [(0, 255)] * 299_999
    assert batch([text])[0] == 2**64 - 1


def test_a_text_without_features_has_no_fingerprint():
    assert simhash([], []) is None
    found = batch([[], [(7, 1)], []])
    assert (len(found), list(found)) == (3, [None, 7, None])
    assert found.present.tolist() == [False, True, False]
    assert (found.values.dtype, found.present.dtype) == (np.uint64, np.bool_)


def test_features_of_weight_0_are_none():
    assert list(batch([[(7, 0)], [(7, 0), (9, 1)]])) == [None, 9]


def test_a_feature_whose_hash_is_0_gives_the_fingerprint_0_which_is_one():
    assert list(batch([[(0, 1)]])) == [0]


def test_an_empty_batch_has_no_fingerprints():
    assert list(batch([])) == []


@given(st.lists(UINT64), UINT64)
def test_distances_of_a_column_are_those_of_its_values(values, value):
    found = hamming_distances(np.array(values, np.uint64), value)
    assert found.tolist() == [hamming_distance(each, value) for each in values]
    assert found.dtype == np.uint8


@given(UINT64)
def test_a_fingerprint_is_read_back_from_its_digits(fingerprint):
    assert len(format_hex(fingerprint)) == 16
    assert len(format_bits(fingerprint)) == 64
    assert parse_hex(format_hex(fingerprint)) == fingerprint
    assert parse_bits(format_bits(fingerprint)) == fingerprint


@pytest.mark.parametrize("digits", ["", "-1", " 1", "1_0", "0x1", "１", "g"])
def test_what_is_not_digits_is_no_fingerprint(digits):
    for parse in (parse_hex, parse_bits):
        with pytest.raises(ValueError, match="not a number"):
            parse(digits)


def test_the_hash_of_a_feature_is_the_same_on_every_machine():
    assert format_hex(xxh3_64("中国")) == XXH3_OF_CHINA
    assert xxh3_64("\ud800") != xxh3_64("\ud801")


XXH3_OF_CHINA = "884fa07d2830d4cf"  # By xxhash itself, of the three-byte forms.
