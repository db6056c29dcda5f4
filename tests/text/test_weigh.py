import math

import pytest

from stream.text.dictionary import jieba_file
from stream.text.weigh import WordLevels, idf, read_idf, smoothed_idf, tf, tf_idf


@pytest.fixture(scope="module")
def table():
    return read_idf(jieba_file("analyse/idf.txt"))


def test_the_published_example_in_base_10():
    assert tf_idf(tf(3, 100), idf(10_000_000, 1000, base=10)) == pytest.approx(0.12)


def test_a_word_that_every_document_has_weighs_nothing():
    assert idf(10_000, 10_000) == 0


@pytest.mark.data
def test_the_published_values_are_reproduced(vectors):
    one, several, given_idf = vectors["tf_idf"]
    assert tf_idf(one["tf"], idf(one["documents"], one["document_frequency"], base=10)) == pytest.approx(
        one["tf_idf"]
    )
    total = sum(
        tf_idf(frequency, idf(several["documents"], documents))
        for frequency, documents in zip(several["tf"], several["document_frequency"], strict=True)
    )
    assert total == pytest.approx(several["tf_idf_sum"], abs=5e-8)
    total = sum(
        tf_idf(frequency, idf(int(ratio), 1))
        for frequency, ratio in zip(given_idf["tf"], given_idf["idf_of"], strict=True)
    )
    assert total == pytest.approx(given_idf["tf_idf_sum"], abs=5e-8)


def test_the_table_of_jieba_is_smoothed_idf_over_its_documents(table):
    for word in ("的", "中国", "条例", "岗上", "生化学"):
        documents_with = 1_088_899 / math.exp(table[word]) - 1
        assert documents_with == pytest.approx(round(documents_with), abs=1e-3)
        assert smoothed_idf(1_088_899, round(documents_with)) == pytest.approx(table[word], abs=1e-9)


def test_a_word_that_no_document_has_still_has_a_smoothed_idf():
    assert smoothed_idf(1000, 0, base=10) == pytest.approx(3)


def test_levels_run_from_1_for_common_words_to_5_for_rare_ones(table):
    levels = WordLevels(table)
    assert [levels.level(word) for word in ("我们", "记者", "条例", "肺炎", "岗上")] == [1, 2, 3, 4, 5]


def test_a_level_begins_at_its_cut():
    levels = WordLevels({"below": 3.999, "at": 4.0}, cuts=(4.0, 6.0, 8.0, 10.0))
    assert [levels.level("below"), levels.level("at")] == [1, 2]


def test_a_word_that_the_table_lacks_has_the_level_of_the_unknown_weight():
    levels = WordLevels({}, unknown=7.0)
    assert levels.level("新词") == 3
    assert WordLevels({}).level("iphone") == 4
