import math

import pytest

from stream.errors import SettingsError
from stream.text.dictionary import jieba_file
from stream.text.weigh import (
    WordLevels,
    idf,
    idf_table,
    read_idf,
    read_idf_table,
    smoothed_idf,
    tf,
    tf_idf,
)


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


# A table of one's own


@pytest.fixture
def own():
    """A table of three words, as bytes."""
    return "".join(f"{line}\n" for line in idf_table({"中": 1, "b": 9, "a": 3}, 9, {"fact": "é"})).encode()


def refused(content: bytes) -> str:
    with pytest.raises(SettingsError) as error:
        read_idf_table(content, "own.txt")
    return str(error.value)


def test_a_table_of_ones_own_is_read_as_it_was_made(own):
    read = read_idf_table(own, "own.txt")
    assert read == {"a": 0.81093, "b": -0.105361, "中": 1.504077}
    assert list(read) == ["a", "b", "中"]
    assert all(
        abs(value - smoothed_idf(9, df)) < 1e-6 for value, df in zip(read.values(), (3, 9, 1), strict=True)
    )


def test_an_idf_that_rounds_to_zero_has_no_sign():
    assert idf_table({"a": 5_000_000}, 5_000_000, {})[1] == "a 0.000000"
    assert idf_table({"a": 4}, 5, {})[1] == "a 0.000000"


def test_a_table_without_words_can_be_read():
    (header,) = idf_table({}, 1, {})
    assert read_idf_table(f"{header}\n".encode(), "own.txt") == {}


def test_a_file_of_another_kind_is_refused(own):
    for content in (b"", jieba_file("analyse/idf.txt")[:1000], b'{"text":"a"}\n', own[1:], b"\n" + own):
        assert "own.txt, line 1: this is no IDF table of textsieve" in refused(content)


def test_another_format_is_refused_with_both_numbers(own):
    said = refused(own.replace(b"textsieve-idf 1", b"textsieve-idf 2", 1))
    assert "own.txt, line 1" in said
    assert "'2'" in said
    assert "reads format 1" in said


@pytest.mark.parametrize(
    "line",
    ["a", "a ", " 1.000000", "a 1.0", "a nan", "a inf", "a b 1.000000", "", "a 1.000000\r", "a,1.000000"],
)
def test_a_line_without_a_word_and_a_number_is_named(own, line: str):
    lines = own.decode().split("\n")
    lines[2] = line
    said = refused("\n".join(lines).encode())
    assert "own.txt, line 3: " in said
    assert "textsieve idf build" in said


def test_a_table_that_was_cut_off_anywhere_is_refused(own):
    for length in range(len(own)):
        said = refused(own[:length])
        assert "own.txt, line " in said
        assert "textsieve idf build" in said
    lines = own[: own.index(b"b -")]
    assert "line 2: the file ends here with 1 words; by its header it has 3" in refused(lines)


def test_any_other_byte_is_noticed(own):
    for place, byte in enumerate(own):
        refused(own[:place] + bytes([byte ^ 1]) + own[place + 1 :])


def test_what_was_added_or_changed_places_is_noticed(own):
    header, a, b, c, _ = own.split(b"\n")
    refused(own + b"d 1.000000\n")
    refused(own + b"d 1.0000")
    assert "checksum" in refused(b"\n".join([header, b, a, c, b""]))
