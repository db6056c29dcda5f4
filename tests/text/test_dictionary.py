import pytest

from stream.errors import SettingsError
from stream.text import normalize
from stream.text.dictionary import jieba_file, merge_user_dictionary, read_dictionary
from stream.text.segment import JiebaSegmenter, RjiebaSegmenter

BASE = {"你": 50, "好": 50, "你好": 30, "世界": 20, "世": 5, "界": 5}


def merge(content: str | bytes, base=BASE):
    data = content.encode() if isinstance(content, str) else content
    return merge_user_dictionary(base, data, normalize, name="words.txt")


def cuts(frequencies, text):
    found = {tuple(engine(frequencies).segment(text)) for engine in (JiebaSegmenter, RjiebaSegmenter)}
    assert len(found) == 1
    return list(found.pop())


def test_the_dictionary_of_the_package_is_read_whole():
    frequencies = read_dictionary(jieba_file("dict.txt"))
    assert len(frequencies) > 340_000
    assert frequencies["中国"] > 0
    assert min(frequencies.values()) > 0


def test_a_missing_file_of_the_package_is_named():
    with pytest.raises(SettingsError, match=r"nothing\.txt"):
        jieba_file("nothing.txt")


def test_lines_may_leave_out_the_frequency_and_the_tag():
    merged = merge("\ufeff词甲 7 nz\n词乙 8\n\n词丙 n\n词丁\r\n")
    assert (merged["词甲"], merged["词乙"]) == (7, 8)
    assert {"词丙", "词丁"} <= merged.keys()


def test_a_byte_order_mark_on_a_line_of_its_own_is_no_word():
    assert merge("\ufeff\n词甲 7").keys() == {*BASE, "词甲"}


def test_the_given_dictionary_is_left_as_it_was():
    merge("你好 900")
    assert BASE["你好"] == 30


@pytest.mark.parametrize("word", ["你好世界", "世界你好你好", "好世", "冥"])
def test_a_word_without_a_frequency_is_kept_whole_by_both_engines(word):
    assert cuts(merge(word), word) == [word]


def test_a_frequency_of_0_takes_the_word_out():
    assert cuts(BASE, "你好") == ["你好"]
    assert cuts(merge("你好 0"), "你好") == ["你", "好"]
    assert "你好" not in merge("你好 0")
    assert cuts(merge("世界 0\n世 0\n界 0"), "世界") == ["世", "界"]


def test_words_are_normalised_like_the_texts_they_are_to_be_found_in():
    assert "你好世界" in merge("你\u200b好世界 5")


@pytest.mark.parametrize(
    "line", ["T恤 3 n", "iphone", "云 计算 5", "词甲 3 ＮＺ", "词甲 12345678901", "中" * 65]
)
def test_a_word_that_could_never_be_found_is_refused_with_its_line(line):
    with pytest.raises(SettingsError, match=r"words\.txt.*line 2"):
        merge(f"词甲 3\n{line}\n")


def test_a_dictionary_that_is_not_utf_8_is_refused():
    with pytest.raises(SettingsError, match=r"words\.txt is not UTF-8"):
        merge("你好".encode("gb18030"))
