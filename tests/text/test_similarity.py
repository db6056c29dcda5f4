import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.text import (
    cosine,
    cosine_of_characters,
    cosine_of_keywords,
    cosine_thousandths,
    edit_distance,
    edit_similarity,
)
from stream.text.similarity import cosine_of_vectors, keywords

WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 10**9), max_size=6)
SHORT = st.text(st.sampled_from("ab中\ud800"), max_size=12)


def test_the_cosine_of_characters_of_the_classic_article():
    assert cosine_of_characters("我是一个帅哥", "帅哥是我") == pytest.approx(0.8164965809277261)


@pytest.mark.data
def test_the_published_similarities_are_reproduced(vectors):
    for example in vectors["levenshtein"]:
        assert edit_distance(example["a"], example["b"]) == example["distance"]
    for example in vectors["cosine_characters"]:
        assert cosine_of_characters(example["a"], example["b"]) == pytest.approx(example["cosine"], rel=1e-12)
    for example in vectors["cosine_vectors"]:
        assert cosine_of_vectors(example["a"], example["b"]) == pytest.approx(example["cosine"], rel=1e-12)


def test_texts_without_words_are_similar_to_nothing():
    assert cosine({}, {"a": 1}) == 0
    assert cosine({}, {}) == 0
    assert cosine_thousandths({}, {}) == 0
    assert cosine_of_vectors([0, 0], [1, 2]) == 0


def test_vectors_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"shorter|longer"):
        cosine_of_vectors([1], [1, 2])


@given(WEIGHTS, WEIGHTS)
def test_thousandths_are_the_cosine_rounded_down(a, b):
    exact = cosine_thousandths(a, b)
    assert exact == cosine_thousandths(b, a)
    assert 0 <= exact <= 1000
    assert exact / 1000 - 1e-9 <= cosine(a, b) <= (exact + 1) / 1000 + 1e-9


@given(WEIGHTS.filter(bool), st.integers(1, 1000))
def test_the_same_words_in_the_same_proportions_are_wholly_similar(a, factor):
    assert cosine_thousandths(a, {word: weight * factor for word, weight in a.items()}) == 1000


def test_keywords_are_the_heaviest_words_and_ties_do_not_depend_on_their_order():
    assert keywords({"c": 1, "a": 1, "d": 9, "b": 1}, 3) == ["d", "a", "b"]


def test_the_cosine_of_keywords_looks_at_no_other_words():
    a = {"地震": 5.0, "中国": 4.0, "今天": 1.0}
    b = {"地震": 5.0, "中国": 4.0, "昨天": 1.0, "有": 0.5}
    assert cosine_of_keywords(a, b, 2) == pytest.approx(1)
    assert cosine_of_keywords(a, b, 10) == pytest.approx(cosine(a, b))


def test_the_cosine_of_keywords_weighs_a_keyword_of_one_text_in_the_other_too():
    a, b = {"x": 2.0, "y": 1.0}, {"y": 2.0, "x": 1.0}
    assert cosine_of_keywords(a, b, 1) == pytest.approx(4 / 5)


@given(SHORT, SHORT)
def test_edit_similarity_is_the_exact_share_in_thousandths_rounded_down(a, b):
    longer = max(len(a), len(b))
    exact = Fraction(longer - edit_distance(a, b), longer) if longer else Fraction(1)
    assert edit_similarity(a, b) == math.floor(exact * 1000)
    assert edit_similarity(a, b) == edit_similarity(b, a)


@given(SHORT, SHORT, st.integers(0, 1000))
def test_below_the_floor_the_similarity_is_0_and_from_it_on_exact(a, b, floor):
    exact = edit_similarity(a, b)
    assert edit_similarity(a, b, floor=floor) == (exact if exact >= floor else 0)


def test_two_empty_texts_are_equal_and_an_empty_one_is_like_no_other():
    assert edit_similarity("", "") == 1000
    assert edit_similarity("", "中") == 0
