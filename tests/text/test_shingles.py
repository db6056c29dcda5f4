"""Shingles, and the signatures and sketches that are made of them."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stream.text import (
    Normalization,
    Scheme,
    SchemeSpec,
    estimated_resemblance,
    exact_resemblance,
    normalize,
    signatures,
    sketch,
)
from stream.text.numbers import number_salt, numbers
from stream.text.shingles import counted_shingles, distinct_shingles, mixed

ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("哈哈哈赞[]\ud800😀"), max_size=30)
SENTENCE = (
    "本市气象台今天上午发布暴雨橙色预警，预计未来三小时内城区大部分地区将出现强降雨，局部伴有雷电大风。"
)


def hashes(shingles, row=0):
    begin, end = shingles.bounds[row], shingles.bounds[row + 1]
    return sorted(shingles.hashes[begin:end].tolist())


@given(st.lists(ANY_TEXT, max_size=5), st.integers(1, 4))
def test_every_occurrence_of_a_shingle_is_another_one(texts, size):
    counted, distinct = counted_shingles(texts, size), distinct_shingles(texts, size)
    for row, text in enumerate(texts):
        runs = [text[place : place + size] for place in range(len(text) - size + 1)]
        assert len({*hashes(counted, row)}) == len(hashes(counted, row)) == len(runs)
        assert len(hashes(distinct, row)) == len({*runs})


@given(st.lists(ANY_TEXT, max_size=5), st.integers(1, 4))
def test_what_is_in_a_batch_together_has_no_influence_on_shingles(texts, size):
    together = counted_shingles(texts, size)
    for row, text in enumerate(texts):
        assert hashes(together, row) == hashes(counted_shingles([text], size))


@given(ANY_TEXT, st.integers(1, 4), st.randoms())
def test_the_shingles_of_a_text_are_those_of_its_runs_wherever_they_are(text, size, random):
    # Single characters have no order.
    shuffled = list(text)
    random.shuffle(shuffled)
    assert hashes(counted_shingles([text], 1)) == hashes(counted_shingles(["".join(shuffled)], 1))


def test_hashing_never_maps_two_integers_to_one():
    values = np.arange(1 << 16, dtype=np.uint64) * np.uint64(1 << 40)
    assert len(np.unique(mixed(values))) == len(values)
    assert 0 not in mixed(values)


def test_the_values_that_stored_state_depends_on_do_not_change_by_accident():
    found = signatures([SENTENCE], 3, 2)
    assert [f"{value:016x}" for value in found.profiles.tolist()] == ["cdc3fd8be25c0ded"]
    assert found.bands.tolist() == [[50765, 57145, 29386]]
    assert hashlib.sha256(sketch(SENTENCE)).hexdigest()[:16] == "3018bd9f2efc3f9d"


def test_a_signature_is_the_same_in_another_process_under_another_hash_seed():
    code = f"from stream.text import signatures; print(signatures([{SENTENCE!r}], 12, 3))"
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


@given(st.lists(ANY_TEXT.filter(lambda text: len(text) >= 2), min_size=1, max_size=5))
def test_what_is_in_a_batch_together_has_no_influence_on_signatures(texts):
    together = signatures(texts, 4, 2)
    for row, text in enumerate(texts):
        alone = signatures([text], 4, 2)
        assert together.profiles[row] == alone.profiles[0]
        assert together.bands[row].tolist() == alone.bands[0].tolist()


def test_a_text_and_the_same_with_one_character_changed_share_bands_and_have_near_profiles():
    for place in range(0, len(SENTENCE), 3):
        changed = SENTENCE[:place] + "某" + SENTENCE[place + 1 :]
        found = signatures([SENTENCE, changed], 12, 3)
        assert (found.bands[0] == found.bands[1]).any()
        assert int(found.profiles[0] ^ found.profiles[1]).bit_count() <= 12


def test_a_repeated_character_more_often_is_near_and_much_more_often_is_not():
    texts = ["哈" * 20, "哈" * 21, "哈" * 300]
    found = signatures(texts, 12, 3)
    assert (found.bands[0] == found.bands[1]).sum() > 6
    assert int(found.profiles[0] ^ found.profiles[2]).bit_count() > 18


def test_under_another_salt_texts_do_not_meet():
    found = signatures([SENTENCE] * 2, 64, 1, np.array([0, 12345], np.uint64))
    # One in 65,536 keys is equal by chance.
    assert (found.bands[0] == found.bands[1]).sum() <= 1
    assert found.profiles[0] ^ found.profiles[1] == 12345


# Sketches


def test_the_exact_resemblance_is_the_share_of_common_runs_of_four():
    assert exact_resemblance("abcdef", "abcdxf") == 1000 * 1 // 5
    assert exact_resemblance("abcd", "abcd") == 1000
    assert exact_resemblance("abc", "xyz") == 1000
    assert exact_resemblance("abc", "wxyz") == 0


@given(ANY_TEXT, ANY_TEXT)
def test_an_estimate_is_symmetric_and_1000_for_equal_texts(a, b):
    assert estimated_resemblance(sketch(a), sketch(b)) == estimated_resemblance(sketch(b), sketch(a))
    assert estimated_resemblance(sketch(a), sketch(a)) == 1000


@given(ANY_TEXT, ANY_TEXT)
def test_the_estimate_is_nearly_exact_where_no_two_runs_share_a_bin(a, b):
    runs = {text[place : place + 4] for text in (a, b) for place in range(len(text) - 3)}
    assume(sum(map(any, zip(sketch(a), sketch(b), strict=True))) == len(runs) > 0)
    # What agrees by chance elsewhere is taken off: at most 1 in 255.
    assert 0 <= exact_resemblance(a, b) - estimated_resemblance(sketch(a), sketch(b)) <= 4


def test_what_agrees_by_chance_is_taken_off_an_estimate_which_is_never_below_0():
    differing, two_agree = bytes([1] * 510), bytes([1] * 2 + [2] * 508)
    # Of 510 bins that differ 2 agree by chance.
    assert estimated_resemblance(differing, two_agree) == 0
    assert estimated_resemblance(differing, bytes([2] * 510)) == 0
    # Half of them and 1 in 255 of the other half.
    assert estimated_resemblance(differing, bytes([1] * 256 + [2] * 254)) == 500


def test_the_error_of_an_estimate_is_as_documented():
    random = np.random.default_rng(3)
    letters = np.array([chr(code) for code in range(0x4E00, 0x4E00 + 3000)])
    for length, bound in ((500, 25), (1000, 22), (5000, 22)):
        errors = []
        for _ in range(60):
            text = "".join(random.choice(letters, length))
            # Half of what follows a cut at 9/11 of the text is common: (9 / 11) / (1 + 2 / 11) = 9 / 13.
            other = text[: length * 9 // 11] + "".join(random.choice(letters, length * 2 // 11))
            errors.append(estimated_resemblance(sketch(text), sketch(other)) - exact_resemblance(text, other))
        # A sample of 60 is within a fifth of its standard deviation.
        assert np.std(errors) <= 1.2 * bound
        assert abs(np.mean(errors)) <= 3 * bound / np.sqrt(60)


# Numbers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("第01集", ["01"]),
        ("10:30到12:00", ["10", "30", "12", "00"]),
        ("一二三", []),
        ("v2.0", ["2", "0"]),
        ("", []),
    ],
)
def test_numbers_are_the_runs_of_digits_in_their_order(text, found):
    assert numbers(text) == found


def test_a_salt_is_equal_for_equal_numbers_only():
    salts = [number_salt(text) for text in ("第1集", "第2集", "第01集", "1 2", "12", "2 1", "没有", "1集")]
    assert salts[6] == 0
    assert salts[0] == salts[7]
    assert len({*salts}) == len(salts) - 1


# What normalisation ignores


@pytest.mark.parametrize(
    ("text", "policy", "expected"),
    [
        ("看 http://t.cn/aB1，你好", {"urls": "ignore"}, "看 ,你好"),
        ("看https://a.b/c?d=1&e=2。好", {"urls": "ignore"}, "看 。好"),
        ("上www.a.com看", {"urls": "ignore"}, "上 看"),
        ("at.cn/ http", {"urls": "ignore"}, "at.cn/ http"),
        ("//@张三:转 @李四 你", {"mentions": "ignore"}, "转 你"),
        ("＠张三：好", {"mentions": "ignore"}, "好"),
        ("a@b.com 你", {"mentions": "ignore"}, "a@b.com 你"),
        ("@" + "名" * 31 + " 你", {"mentions": "ignore"}, "名 你"),
        ('<a href="x">中</a>国<br/>人', {}, "中国 人"),
        ("a<b c>d <三体> 1<2 &lt;b&gt;x", {}, "a<b c>d <三体> 1<2 x"),
        ("<B>中</B><!-- 第一段 -->国<BR>人", {}, "中国 人"),
        ("<b>中</b>", {"html_tags": "keep"}, "<b>中</b>"),
        ("http://a.b @张三", {}, "http://a.b @张三"),
    ],
)
def test_what_a_policy_ignores_is_gone_and_nothing_else(text, policy, expected):
    assert normalize(text, Normalization(**policy)) == expected


@given(st.text(st.sampled_from("<>a/ b=:@ht.pw\u200b&;#中&lt;＠"), max_size=40))
def test_a_normal_form_stays_what_it_is_whatever_is_ignored(text):
    policy = Normalization(urls="ignore", mentions="ignore")
    assert normalize(normalize(text, policy), policy) == normalize(text, policy)


def test_tags_nested_without_end_are_normalised_in_little_time():
    for text in ("<" * 50_000 + "b>" * 50_000, "<a" + " " * 100_000, "<!--" * 50_000):
        folded = normalize(text)
        assert normalize(folded) == folded


@pytest.mark.parametrize(
    "change",
    [
        {"bands": 11},
        {"rows": 2},
        {"near_from": 9},
        {"short_chars": 400},
        {"numbers_matter": True},
        {"normalization": Normalization(urls="ignore")},
        {"normalization": Normalization(mentions="ignore")},
        {"normalization": Normalization(html_tags="keep")},
    ],
)
def test_whatever_shapes_what_is_stored_changes_the_scheme(scheme, change):
    assert Scheme.build(SchemeSpec(**change)).id != scheme.id
