import json
import lzma
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.text import Scheme, SchemeSpec, normalize
from stream.text.segment import JiebaSegmenter, RjiebaSegmenter, engine_version

NO_WORDS = RjiebaSegmenter({"中": 1})

DICTIONARIES = st.dictionaries(
    st.text("甲乙丙", min_size=1, max_size=4), st.sampled_from([1, 2, 3, 10, 1000]), min_size=1, max_size=12
)


def test_a_sentence_is_cut_into_the_words_of_the_dictionary(scheme: Scheme):
    assert scheme.words("我来到北京清华大学") == ["我", "来到", "北京", "清华大学"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://t.cn/zay3?a=1&b_c", ["http", "t", "cn", "zay3", "a", "1", "b", "c"]),
        ("17.2g 1,000,000元 3. .5 1..2", ["17.2g", "1,000,000", "元", "3", "5", "1", "2"]),
        ("café naïve übung", ["café", "naïve", "übung"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("हिन्दी ไทยนี้", ["हिन्दी", "ไทยนี้"]),
        ("スマホでiphoneを買う", ["スマホで", "iphone", "を", "買", "う"]),
        ("二〇二〇年㐀㐁", ["二", "〇", "二", "〇", "年", "㐀", "㐁"]),
        ("привет,мир", ["привет", "мир"]),
        ("@张三:hi", ["张", "三", "hi"]),
    ],
)
def test_what_is_not_han_is_split_by_one_rule(text, words):
    assert NO_WORDS.segment(text) == words


@pytest.mark.parametrize(
    "text", ["", " ", "，。！？…", "😀👍🏽", "[]()", "\ud800\udfff", "_", "\u0301", "\ue000"]
)
def test_punctuation_symbols_emoji_and_surrogates_are_no_words(text):
    assert NO_WORDS.segment(normalize(text)) == []


@given(st.text(st.characters(exclude_categories=())))
def test_every_letter_and_digit_is_in_exactly_one_word(text):
    normalized = normalize(text)
    letters = [character for character in normalized if character.isalnum()]
    words = "".join(NO_WORDS.segment(normalized))
    assert [character for character in words if character.isalnum()] == letters


@given(DICTIONARIES, st.text("甲乙丙丁", max_size=24))
def test_both_engines_cut_alike_whatever_the_dictionary_and_its_ties(frequencies, text):
    assert JiebaSegmenter(frequencies).segment(text) == RjiebaSegmenter(frequencies).segment(text)


@pytest.mark.data
def test_both_engines_cut_every_text_of_the_data_alike(data_dir, scheme, reference_scheme):
    han = re.compile("[\u4e00-\u9fd5]+")
    runs: set[str] = set()
    for path in sorted(data_dir.glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                for text in (record["text"], record.get("title", ""), *record.get("edits", ())):
                    runs.update(han.findall(normalize(text)))
    assert len(runs) > 400_000
    assert [run for run in sorted(runs) if scheme.words(run) != reference_scheme.words(run)] == []


@pytest.mark.data
def test_both_engines_agree_with_a_user_dictionary(data_dir, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("转发微博\n新冠肺炎 3 n\n中国 0\n我爱\n的话题 900000\n", encoding="utf-8")
    schemes = [
        Scheme.build(SchemeSpec(engine=engine, user_dictionary=words)) for engine in ("jieba", "rjieba")
    ]
    with lzma.open(data_dir / "weibo-comments.jsonl.xz", "rt", encoding="utf-8") as lines:
        texts = [normalize(json.loads(line)["text"]) for line in lines][:5000]
    found: set[str] = set()
    for text in texts:
        one, other = (scheme.words(text) for scheme in schemes)
        assert one == other
        found.update(one)
    assert "转发微博" in found
    assert "中国" not in found


def test_the_hidden_markov_model_joins_words_that_the_dictionary_lacks():
    frequencies = {"杭": 1, "研": 1, "大厦": 5, "他": 9, "来到": 9, "了": 9, "网易": 5}
    for engine in (JiebaSegmenter, RjiebaSegmenter):
        assert "杭研" in engine(frequencies, hmm=True).segment("他来到了网易杭研大厦")
        assert "杭研" not in engine(frequencies).segment("他来到了网易杭研大厦")


def test_jieba_prints_nothing_and_leaves_no_file_behind(tmp_path):
    program = (
        "from stream.text.segment import JiebaSegmenter\n"
        "assert JiebaSegmenter({'你好': 3}).segment('你好') == ['你好']\n"
        "import jieba\n"
        "assert not jieba.dt.initialized\n"
    )
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path), "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_version_of_an_engine_is_that_of_its_installed_package():
    assert re.fullmatch(r"\d+(\.\d+)+", engine_version("rjieba"))
