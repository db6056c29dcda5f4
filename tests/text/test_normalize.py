import importlib.util
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream.errors import SettingsError
from stream.text import Normalization, normalize

needs_opencc = pytest.mark.skipif(
    importlib.util.find_spec("opencc") is None, reason="opencc is not installed (an extra)"
)
FOLDING = Normalization(fold_script=True)

TRICKY = (
    "&;#ampltguoxnu0138 \t\n\u3000\u200b\u00ad\ufe0f\x00\ud800\udfffAaßẞİıſΑά\u0301\u0345ﬃ①㍿ｱﾞ＆；乾隆後瞭"
)
ANY_CHARACTER = st.characters(exclude_categories=()) | st.sampled_from(TRICKY)
ANY_TEXT = st.text(ANY_CHARACTER, max_size=60)
HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
ENTITIES = st.lists(
    st.sampled_from(["&", "amp;", "#38;", "&num;", "&#109;", "&semi;", "lt;", "＆", "\u200b", "a"])
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Ｈｅｌｌｏ　Ｗｏｒｌｄ", "hello world"),
        ("  你好 \t\r\n 世界\u00a0", "你好 世界"),
        ("STRASSE straße", "strasse strasse"),
        ("é", "e\u0301"),
        ("①㎏½", "1kg1⁄2"),
        ("tea &amp; toast&nbsp;&lt;b&gt; &#20013;&#x56fd;", "tea & toast <b> 中国"),
        ("&amp;amp;amp;quot;", '"'),
        ("＆ａｍｐ；", "&"),
    ],
)
def test_texts_that_look_the_same_are_the_same(text, normal):
    assert normalize(text) == normalize(normal)


@pytest.mark.parametrize(
    "invisible",
    # Characters of every kind that the Unicode database calls ignorable, and the ends of their ranges.
    list(
        "\u200b\u200d\u200e\u200f\ufeff\u00ad\u034f\u061c\u115f\u180b\u180f\u202a\u202e\u2060\u206f\u3164\uffa0"
    )
    + list(
        "\ufe00\ufe0f\ufff9\ufffb\x00\x08\x0e\x1b\x7f\x84\x86\x9f\U0001d173\U000e0001\U000e007f\U000e0fff"
    ),
)
def test_characters_that_show_nothing_are_dropped_also_inside_words(invisible):
    assert normalize(f"{invisible}免{invisible}费 e{invisible}\u0301") == "免费 é"


def test_white_space_between_words_is_kept_as_one_space_whatever_its_kind():
    assert normalize("a\x1cb\x85c\u2028d \u200b e") == "a b c d e"


def test_an_entity_without_its_semicolon_stays_so_that_urls_are_not_damaged():
    assert normalize("t.cn/?a=1&copy=2&amp=3&lt") == "t.cn/?a=1&copy=2&amp=3&lt"


def test_entities_stay_where_the_policy_says_so():
    assert normalize("&amp;", Normalization(html_entities=False)) == "&amp;"


def test_lone_surrogates_stay_in_their_place():
    assert normalize("中\ud800文\udfff") == "中\ud800文\udfff"


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\x00", "\n\u3000\ufeff"])
def test_a_text_of_nothing_visible_becomes_empty(text):
    assert normalize(text) == ""


@given(ANY_TEXT, st.booleans())
@example("α\u0345\u0301", True)
@example("&am\u200bp;lt;", True)
def test_normalising_twice_is_normalising_once(text, html_entities):
    policy = Normalization(html_entities=html_entities)
    once = normalize(text, policy)
    assert normalize(once, policy) == once


@given(ENTITIES.map("".join))
@example("&a&#109;p;")
def test_normalising_twice_is_normalising_once_for_nested_entities(text):
    once = normalize(text)
    assert normalize(once) == once


def nested_entity(depth: int) -> str:
    """An entity that one fold after the other turns into an ampersand, at the rate of one level a fold."""
    text = "&"
    for _ in range(depth):
        before, _, after = text.rpartition("&")
        text = f"{before}&a&#109;p;{after}"
    return text


@pytest.mark.parametrize("depth", [1, 5, 7, 8, 9, 20, 1000])
def test_entities_nested_deeper_than_any_real_text_still_reach_a_fixed_point(depth):
    once = normalize(nested_entity(depth))
    assert normalize(once) == once


def test_a_megabyte_of_nested_ampersands_is_one_ampersand():
    assert normalize("&" + "amp;" * 250_000) == "&"
    assert normalize("&" + "#0038;" * 150_000) == "&"


def test_every_character_has_a_normal_form_that_is_a_fixed_point():
    changed = []
    for code in range(sys.maxunicode + 1):
        once = normalize(f"a{chr(code)}b")
        if normalize(once) != once:
            changed.append(hex(code))
    assert changed == []


@needs_opencc
def test_traditional_and_simplified_texts_are_equal_when_scripts_are_folded():
    assert normalize("我們發現了臺灣的漢字", FOLDING) == normalize("我们发现了台湾的汉字", FOLDING)
    assert normalize("我們發現了臺灣的漢字") != normalize("我们发现了台湾的汉字")


@needs_opencc
def test_folding_scripts_leaves_lone_surrogates_and_nothing_else_untouched():
    assert normalize("漢\ud800字\x00\udc00", FOLDING) == "汉\ud800字\udc00"


@needs_opencc
@given(
    st.text(
        st.characters(exclude_categories=())
        | st.sampled_from(TRICKY)
        | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
    )
)
def test_normalising_twice_is_normalising_once_when_scripts_are_folded(text):
    once = normalize(text, FOLDING)
    assert normalize(once, FOLDING) == once


def test_without_opencc_folding_scripts_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opencc", None)
    sys.modules["stream.text.normalize"]._script_folder.cache_clear()
    try:
        with pytest.raises(SettingsError, match="pip install opencc"):
            normalize("漢字", FOLDING)
    finally:
        sys.modules["stream.text.normalize"]._script_folder.cache_clear()
