"""`textsieve compare`: what it says of a pair of texts, and that the judge says the same."""

import json
import lzma
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from stream.errors import InputError
from stream.settings import Settings, load
from stream.text import Scheme, parse_hex
from stream.tools.compare import Comparison, as_json, as_table, compare, read_text
from stream.tools.differences import MAX_CHARACTERS, Run, Span, abridged, differences, marked, spans

CALLED = "你妈妈喊你回家吃饭哦，回家罗回家罗"
SHOUTED = "你妈妈叫你回家吃饭啦，回家罗回家罗"


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load()


@pytest.fixture(scope="module")
def scheme(settings: Settings) -> Scheme:
    return Scheme.build(settings.scheme_spec)


@pytest.fixture
def pair(settings: Settings, scheme: Scheme):
    def of(a: str, b: str, **chosen) -> Comparison:
        return compare(a, b, settings=load(**chosen) if chosen else settings, scheme=scheme)

    return of


def printed(comparison: Comparison) -> str:
    out = StringIO()
    Console(file=out, width=100, highlight=False).print(as_table(comparison))
    return out.getvalue()


def test_a_near_duplicate_is_measured_in_every_way(pair):
    result = as_json(pair(CALLED, SHOUTED))
    assert set(result) >= {
        "fingerprints",
        "hamming_distance",
        "cosine_words",
        "cosine_characters",
        "edit_distance",
        "edit_similarity",
        "verdict",
    }
    assert result["edit_distance"] == 2
    assert result["edit_similarity"] == 0.882
    a, b = map(parse_hex, result["fingerprints"])
    assert result["hamming_distance"] == (a ^ b).bit_count() <= 3
    assert result["verdict"]["outcome"] == "duplicate"
    assert result["verdict"]["reason"] == "near"
    assert [token["word"] for token in result["tokens"][0]][:2] == ["回家", "罗"]
    assert result["tokens"][0][0] == {"word": "回家", "level": 3, "occurrences": 3, "weight": 9}
    assert result["differing"] == [
        {"a_start": 3, "a": "喊", "b_start": 3, "b": "叫"},
        {"a_start": 9, "a": "哦", "b_start": 9, "b": "啦"},
    ]
    json.dumps(result)


def test_the_cosine_of_characters_is_the_published_one(pair):
    assert as_json(pair("我是一个帅哥", "帅哥是我"))["cosine_characters"] == 0.816


def test_cosines_count_every_occurrence_and_that_of_words_its_level_too(pair):
    # 回家 9, 罗 6, 妈妈 3, 吃饭 3 in both; 喊 3 in one, 叫 2 in the other: 135 / √(144 · 139).
    assert as_json(pair(CALLED, SHOUTED))["cosine_words"] == 0.954
    # (2 · 1 + 1 · 1) / √(5 · 2)
    assert as_json(pair("aab", "ab"))["cosine_characters"] == 0.948


def test_texts_that_differ_only_in_what_normalisation_folds_are_exact_duplicates(pair):
    result = as_json(pair("Ｈello &amp; 你好", "hello & 你好"))
    assert result["verdict"]["reason"] == "exact"
    assert (result["edit_distance"], result["edit_similarity"], result["hamming_distance"]) == (0, 1.0, 0)


def test_unlike_texts_are_unique_with_the_distance_as_the_reason(pair):
    comparison = pair("今天天气很好", "The quick brown fox", confirm="none")
    assert as_json(comparison)["verdict"]["outcome"] == "unique"
    assert as_json(comparison)["verdict"]["reason"] is None
    assert f"differ in {comparison.pair.hamming_distance} of 64 bits" in comparison.explanation


def test_texts_without_features_have_no_fingerprint_and_are_duplicates_only_of_themselves(pair):
    result = as_json(pair("😀", "！"))
    assert result["fingerprints"] == [None, None]
    assert result["hamming_distance"] is None
    assert result["verdict"]["outcome"] == "unique"
    assert "features" in result["verdict"]["explanation"]
    assert as_json(pair("😀", "😀"))["verdict"]["reason"] == "exact"


def test_a_text_above_the_bound_is_judged_by_its_content_only(pair):
    near = pair(CALLED, SHOUTED, max_text_chars=10)
    assert as_json(near)["verdict"]["outcome"] == "unique"
    assert "above 10 characters" in near.explanation


def test_the_settings_are_the_worker_s(pair):
    similarity = pair(CALLED, SHOUTED).pair.edit_similarity
    for least, outcome in ((similarity, "duplicate"), (similarity + 1, "unique")):
        found = as_json(pair(CALLED, SHOUTED, min_edit_similarity=least, near_from=2))["verdict"]
        assert found["outcome"] == outcome
        assert f"0.{least}" in found["explanation"]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"near_from": 40}, "fewer than 40 characters"),
        ({"numbers_matter": True}, "their numbers differ"),
        ({"short_chars": 10}, "resemblance"),
        ({"confirm": "cosine"}, "cosine of words"),
        ({"confirm": "none"}, "fingerprints differ"),
        ({"bands": 0, "max_distance": 0}, "do not meet"),
    ],
)
def test_the_explanation_names_what_decided(overrides, said):
    one, other = "第1集：小猪佩奇去海边玩沙子", "第2集：小猪佩奇去海边玩沙子"
    settings = load(**overrides)
    comparison = compare(one, other, settings=settings, scheme=Scheme.build(settings.scheme_spec))
    assert said in comparison.explanation


@pytest.mark.parametrize("text", ["[red]text[/red]", "\ud800 lone", "\x1b[31mcolour", "", "a\tb\nc"])
def test_any_text_can_be_printed_and_is_no_markup(pair, text: str):
    shown = printed(pair(text, "[bold]text"))
    assert "[bold]" in shown.replace("{+", "").replace("+}", "")
    assert "\x1b" not in shown
    shown.encode()


def test_what_is_printed_marks_differences_and_shared_words_without_colours(pair):
    shown = printed(pair(CALLED, SHOUTED))
    assert "你妈妈[-喊-]你回家吃饭[-哦-]," in shown
    assert "你妈妈{+叫+}你回家吃饭{+啦+}," in shown
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.strip()}
    assert rows["回家"] == ["3", "3", "3", "9", "9", "="]
    assert rows["叫"] == ["2", "-", "1", "-", "2"]
    assert "B is a duplicate: the edit similarity is 0.882; from 0.800 on it is enough." in shown


def test_the_cosine_of_words_and_the_verdict_do_not_depend_on_which_text_is_first(pair):
    one, other = as_json(pair(CALLED, SHOUTED)), as_json(pair(SHOUTED, CALLED))
    for key in ("hamming_distance", "cosine_words", "cosine_characters", "edit_distance", "edit_similarity"):
        assert one[key] == other[key]
    assert one["verdict"] == other["verdict"]


@pytest.mark.parametrize("confirm", ["edit", "none"])
def test_on_real_corrections_the_verdict_agrees_with_the_figures(pair, data_dir: Path, confirm: str):
    with lzma.open(data_dir / "learner-edits.jsonl.xz", "rt") as file:
        records = [json.loads(next(file)) for _ in range(30)]
    outcomes = set()
    for record in records:
        comparison = pair(record["text"], record["edits"][0], confirm=confirm)
        verdict = as_json(comparison)["verdict"]
        near = (
            comparison.pair.hamming_distance <= 3
            if confirm == "none"
            else comparison.pair.edit_similarity >= 800
        )
        near = near or comparison.pair.edit_distance == 0
        assert verdict["outcome"] == ("duplicate" if near else "unique")
        outcomes.add(verdict["outcome"])
    assert outcomes == {"duplicate", "unique"}


# Arguments


def test_an_argument_is_the_text_itself_or_after_an_at_sign_a_file(tmp_path: Path):
    file = tmp_path / "text"
    file.write_bytes("\ufeff一\n二\r\n".encode())
    assert read_text("一 二") == "一 二"
    assert read_text(f"@{file}") == "一\n二"
    assert read_text("@@张三 你好") == "@张三 你好"


def test_a_file_that_cannot_be_read_is_an_error_that_names_it_and_the_way_out(tmp_path: Path):
    with pytest.raises(InputError, match=r"张三 你好.*@@"):
        read_text("@张三 你好")
    with pytest.raises(InputError, match="cannot be read"):
        read_text(f"@{tmp_path}")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match=r"latin is not UTF-8"):
        read_text(f"@{tmp_path / 'latin'}")


# Differences


def test_runs_put_together_are_the_texts_and_shared_runs_are_equal():
    a, b = "今天的天气真好啊", "昨天天气好，啊"
    of_a, of_b = differences(a, b)
    assert "".join(run.text for run in of_a) == a
    assert "".join(run.text for run in of_b) == b
    assert "".join(run.text for run in of_a if run.shared) == "".join(run.text for run in of_b if run.shared)
    for runs in (of_a, of_b):
        assert all(one.shared != other.shared for one, other in pairwise(runs))


def test_equal_texts_are_one_shared_run_and_empty_ones_none():
    assert differences("一样", "一样") == ([Run("一样", True)], [Run("一样", True)])
    assert differences("", "新") == ([], [Run("新", False)])


def test_spans_are_where_the_texts_differ_and_put_in_their_place_they_make_the_other_text():
    assert spans("今天的天气真好啊", "今天天气，真好") == [
        Span(2, "的", 2, ""),
        Span(5, "", 4, "，"),
        Span(7, "啊", 7, ""),
    ]
    assert spans("一样", "一样") == []
    assert spans("", "新") == [Span(0, "", 0, "新")]
    a, b = "昨天天气好，啊那么好" * 3, "今天的天气真好啊真的" * 3
    made = a
    for span in reversed(spans(a, b)):
        assert a[span.a_start :].startswith(span.a)
        assert b[span.b_start :].startswith(span.b)
        made = made[: span.a_start] + span.b + made[span.a_start + len(span.a) :]
    assert made == b


def test_texts_too_long_to_be_compared_in_their_places_are_measured_all_the_same(pair):
    long = pair("长" * (MAX_CHARACTERS + 1), "长" * MAX_CHARACTERS)
    assert as_json(long)["differing"] is None
    assert as_json(long)["edit_distance"] == 1
    assert f"Texts above {MAX_CHARACTERS} characters are not shown" in printed(long)


def test_long_shared_runs_are_abridged_and_differences_never():
    runs = [Run("同" * 100, True), Run("异" * 100, False)]
    assert marked(abridged(runs), "[-", "-]") == "同" * 20 + "…" + "同" * 20 + "[-" + "异" * 100 + "-]"
