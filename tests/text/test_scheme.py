import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.errors import SettingsError
from stream.text import Feature, Normalization, Scheme, SchemeSpec, hamming_distance
from stream.text import scheme as module
from stream.text.simhash import simhash, xxh3_64

ANY_TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("转发微博的了 \x00\ud800😀"), max_size=30
)


def of(scheme: Scheme, *texts: str) -> list[int | None]:
    return list(scheme.fingerprint([scheme.normalize(text) for text in texts]))


def test_texts_that_differ_in_one_word_have_close_fingerprints(scheme):
    a, b, other = of(
        scheme,
        "中国国家主席今天在北京人民大会堂会见了来访的美国客人，双方就两国关系和共同关心的国际问题交换了意见。",
        "中国国家主席昨天在北京人民大会堂会见了来访的美国客人，双方就两国关系和共同关心的国际问题交换了意见。",
        "杭州亚运会游泳比赛昨晚落幕，浙江选手获得三枚金牌，打破一项世界纪录，观众席上掌声雷动。",
    )
    assert hamming_distance(a, b) < 8 < 16 < hamming_distance(a, other)


def test_texts_that_look_the_same_have_one_fingerprint(scheme):
    assert len(set(of(scheme, "Ｈｅｌｌｏ，世界！", "hello 世界", "he\u200bllo\n\n世界。。。"))) == 1


@pytest.mark.parametrize("text", ["", " \n", "😀👍", "！！…——", "\x00\u200b", "\ud800"])
def test_a_text_without_features_has_no_fingerprint(scheme, text):
    assert of(scheme, text) == [None]
    assert scheme.features(scheme.normalize(text)) == []


@given(st.lists(ANY_TEXT, max_size=6))
def test_what_is_in_a_batch_together_has_no_influence(scheme, texts):
    assert of(scheme, *texts) == [of(scheme, text)[0] for text in texts]


@given(ANY_TEXT)
def test_a_text_has_a_fingerprint_if_and_only_if_it_has_features(scheme, text):
    normalized = scheme.normalize(text)
    assert (scheme.fingerprint([normalized])[0] is None) == (scheme.features(normalized) == [])


def test_a_text_of_stop_words_only_keeps_them_as_features(scheme):
    assert scheme.features("是的") == [
        Feature("是", level=1, occurrences=1),
        Feature("的", level=1, occurrences=1),
    ]
    alone, other, with_a_word = of(scheme, "是的", "不是吧", "是的地震")
    assert None not in (alone, other)
    assert alone != other
    assert of(scheme, "", "地震", "是的", "😀", "是的地震") == [None, with_a_word, alone, None, with_a_word]


def test_an_empty_batch_gives_no_fingerprints(scheme):
    assert len(scheme.fingerprint([])) == 0


def test_features_tell_word_level_and_occurrences_the_heaviest_first(scheme):
    features = scheme.features(scheme.normalize("你妈妈喊你回家吃饭哦，回家罗回家罗"))
    assert features[0] == Feature("回家", level=3, occurrences=3)
    assert features[0].weight == 9
    assert [feature.word for feature in features] == ["回家", "罗", "妈妈", "喊", "吃饭"]
    weights = [feature.weight for feature in features]
    assert weights == sorted(weights, reverse=True)


def test_every_occurrence_counts(scheme):
    once, often, alone = of(scheme, "北京 地震", "北京 北京 北京 北京 北京 地震", "北京")
    assert once != often
    assert often == alone


def test_the_fingerprint_is_the_simhash_of_the_features(scheme):
    normalized = scheme.normalize(
        "人间惨剧：今天下午约14点，宁波妇儿医院，一妇女携带一婴儿在住院楼跳楼 iPhone 17.2G"
    )
    features = scheme.features(normalized)
    expected = simhash([xxh3_64(f.word) for f in features], [f.weight for f in features])
    assert scheme.fingerprint([normalized])[0] == expected


def test_both_engines_give_the_same_fingerprints(scheme, reference_scheme):
    texts = ["转发微博", "我来到北京清华大学 http://t.cn/zAy3", "漢字かな한국어 17.2G", "", "😀"]
    assert of(scheme, *texts) == of(reference_scheme, *texts)


def test_fingerprints_do_not_change_when_the_vocabulary_is_forgotten(scheme, monkeypatch):
    texts = ["我来到北京清华大学", "转发微博", "我来到北京"]
    before = of(scheme, *texts)
    monkeypatch.setattr(module, "_VOCABULARY_LIMIT", 1)
    assert [of(scheme, *texts) for _ in range(3)] == [before] * 3
    assert len(scheme._vocabulary) == len(scheme._vocabulary._hashes) == len(scheme._vocabulary._levels) == 0


def test_the_id_is_a_hash_of_the_description(scheme):
    canonical = json.dumps(scheme.description, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert scheme.id == hashlib.sha256(canonical.encode()).hexdigest()[:16]


def test_a_description_cannot_be_changed_from_outside(scheme):
    scheme.description["simhash"]["bits"] = 1
    assert scheme.description["simhash"]["bits"] == 64


def test_the_id_is_the_same_in_every_process(scheme):
    program = "from stream.text import Scheme, SchemeSpec\nprint(Scheme.build(SchemeSpec()).id)"
    environment = {
        "PYTHONPATH": ":".join(sys.path),
        "PYTHONHASHSEED": "7",
        "TZ": "Asia/Shanghai",
        "LC_ALL": "C",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == scheme.id


def test_every_choice_makes_another_id(scheme, reference_scheme, tmp_path, monkeypatch):
    words = tmp_path / "words.txt"
    words.write_text("转发微博\n", encoding="utf-8")
    ids = [
        scheme.id,
        reference_scheme.id,
        Scheme.build(SchemeSpec(hmm=True)).id,
        Scheme.build(SchemeSpec(user_dictionary=words)).id,
        Scheme.build(SchemeSpec(normalization=Normalization(html_entities=False))).id,
    ]
    words.write_text("转发微博 5\n", encoding="utf-8")
    ids.append(Scheme.build(SchemeSpec(user_dictionary=words)).id)
    monkeypatch.setattr(module, "STOP_WORDS", frozenset({"的"}))
    ids.append(Scheme.build(SchemeSpec()).id)
    assert len(set(ids)) == len(ids)


def test_a_user_dictionary_counts_by_its_content_not_its_place(tmp_path):
    ids = set()
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("转发微博\n", encoding="utf-8")
        ids.add(Scheme.build(SchemeSpec(user_dictionary=tmp_path / name)).id)
    assert len(ids) == 1


def test_a_user_dictionary_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"missing\.txt cannot be read"):
        Scheme.build(SchemeSpec(user_dictionary=tmp_path / "missing.txt"))


def test_a_width_that_cannot_be_stored_is_refused():
    with pytest.raises(SettingsError, match="128 bits"):
        Scheme.build(SchemeSpec(bits=128))


def test_fingerprints_are_columns(scheme):
    found = scheme.fingerprint(["北京", ""])
    assert found.values.dtype == np.uint64
    assert found.present.tolist() == [True, False]
    assert found.values[1] == 0


def test_threads_that_share_a_scheme_get_the_fingerprints_of_one_alone():
    """A worker judges its scopes in a thread each, with one scheme."""
    texts = [[f"w{thread}x{number} 第{number}句" for number in range(3000)] for thread in range(4)]

    def fingerprints(scheme, part):
        batches = (scheme.fingerprint(part[at : at + 50]) for at in range(0, len(part), 50))
        return [fingerprint for batch in batches for fingerprint in batch]

    alone, shared = Scheme.build(SchemeSpec()), Scheme.build(SchemeSpec())
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(partial(fingerprints, shared), texts))
    finally:
        sys.setswitchinterval(before)
    assert found == [fingerprints(alone, part) for part in texts]
