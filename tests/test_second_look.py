"""The second look with the real scheme: what is confirmed, what is not, and what a crowd changes."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stream.settings import load
from stream.text import Scheme
from stream.tools.offline import judging
from stream.verdict import Duplicate, Text, Unique, Verdict

CALLED = "你妈妈喊你回家吃饭哦，回家罗回家罗"
SHOUTED = "你妈妈叫你回家吃饭啦，回家罗回家罗"
PARAGRAPH = (
    "本市气象台今天上午发布暴雨橙色预警，预计未来三小时内城区大部分地区将出现强降雨，局部伴有雷电大风，请市民尽量减少外出，"
    "注意交通安全，远离低洼积水路段，学校和幼儿园做好停课准备，有关部门启动应急预案，加强巡查排险。"
)

Judge = Callable[..., list[Verdict]]


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Judges texts as one stream, cut into batches, under settings."""
    asked = itertools.count()
    schemes: dict[str, Scheme] = {}

    def judge(
        *texts: str, cut: int = 1000, times: list[int] | None = None, **overrides: object
    ) -> list[Verdict]:
        settings = load(**overrides)
        scheme = schemes.setdefault(repr(settings.scheme_spec), Scheme.build(settings.scheme_spec))
        events = [Text(n, times[n] if times else 1, text, "") for n, text in enumerate(texts)]
        with judging(tmp_path / str(next(asked)), settings, scheme) as judge_next:
            return [
                verdict
                for first in range(0, len(events), cut)
                for verdict in judge_next(events[first : first + cut])
            ]

    return judge


def originals(verdicts: list[Verdict]) -> list[int | None]:
    return [verdict.original.offset if isinstance(verdict, Duplicate) else None for verdict in verdicts]


def varied(text: str, count: int) -> list[str]:
    """The text with its characters from some place on replaced, `count` times, another way each."""
    keep = len(text) * 3 // 4
    return [
        text[:keep]
        + "".join(chr(0x4E00 + (n * 7919 + k * 104_729) % 20_000) for k in range(len(text) - keep))
        for n in range(count)
    ]


# What confirms


@pytest.mark.parametrize("cut", [1, 1000])
def test_a_short_text_with_a_few_other_characters_is_a_near_duplicate_by_edit_similarity(judged, cut):
    other = PARAGRAPH.replace("橙色", "红色")
    _, verdict = judged(PARAGRAPH, other, cut=cut)
    assert (verdict.reason, verdict.measure, verdict.similarity) == ("near", "edit", 990)
    # By words alone it would not be found.
    assert verdict.hamming_distance > 3
    assert originals(judged(PARAGRAPH, other, cut=cut, confirm="none")) == [None, None]


@pytest.mark.parametrize("cut", [1, 1000])
def test_texts_of_the_same_words_that_say_something_else_are_told_apart(judged, cut):
    # One emoticon, often repeated, outweighs everything else in the fingerprint.
    one, other = "说得真好" + "[哈哈]" * 7, "[哈哈]" * 9 + "你们自己看吧"
    assert originals(judged(one, other, cut=cut)) == [None, None]
    assert originals(judged(one, other, cut=cut, confirm="none")) == [None, 0]


def test_the_threshold_is_the_least_similarity_that_is_enough(judged):
    assert originals(judged(CALLED, SHOUTED, min_edit_similarity=882)) == [None, 0]
    assert originals(judged(CALLED, SHOUTED, min_edit_similarity=883)) == [None, None]


def test_the_cosine_of_words_can_confirm_instead(judged):
    one, other = "我今天在北京吃饭喝茶看电影", "看电影喝茶吃饭在北京我今天"
    assert originals(judged(one, other, max_distance=0)) == [None, None]
    _, verdict = judged(one, other, max_distance=0, confirm="cosine")
    assert (verdict.measure, verdict.similarity, verdict.hamming_distance) == ("cosine", 1000, 0)


def test_long_texts_are_compared_by_resemblance(judged):
    long = PARAGRAPH * 5
    other = long.replace("暴雨橙色", "台风红色", 1) + "（记者张三）"
    _, verdict = judged(long, other)
    assert verdict.measure == "resemblance"
    assert verdict.similarity > 850
    assert originals(judged(long, PARAGRAPH * 2 + "".join(varied(PARAGRAPH, 3)))) == [None, None]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("tail", ["", "，" + "".join(varied("一二三四五六七八九十", 20))])
def test_around_the_length_that_divides_short_from_long_the_order_does_not_matter(judged, swapped, tail):
    body = "".join(varied(PARAGRAPH, 9))
    short, long = body[:499], (body[: 501 - len(tail)] + tail)[:501]
    texts = (long, short) if swapped else (short, long)
    _, verdict = judged(*texts)
    assert len(short), len(long) == (499, 501)
    _, other = judged(*reversed(texts))
    assert type(verdict) is type(other)
    if isinstance(verdict, Duplicate):
        assert verdict[4:] != () and verdict.measure == other.measure == "resemblance"
        assert verdict.similarity == other.similarity


def test_both_short_is_edit_and_one_longer_is_resemblance(judged):
    body = "".join(varied(PARAGRAPH, 9))
    for lengths, measure in (((498, 499), "edit"), ((499, 500), "resemblance"), ((500, 501), "resemblance")):
        for texts in itertools.permutations(body[:length] for length in lengths):
            _, verdict = judged(*texts)
            assert verdict.measure == measure


def test_the_most_similar_original_wins_even_if_it_is_not_the_first(judged):
    far, near = CALLED.replace("回家罗", "回来吧", 1), CALLED.replace("哦", "啦")
    assert originals(judged(far, near, CALLED, min_edit_similarity=850)) == [None, None, 1]


# Very short texts


def test_different_texts_below_ten_characters_are_never_merged(judged):
    texts = ["转发微博", "转发微薄", "第01集", "第02集", "九个字的一句话在这", "九个字的一句话在那"]
    assert originals(judged(*texts)) == [None] * len(texts)
    assert originals(judged("转发微博", "转发微博 ")) == [None, 0]


def test_a_short_text_is_no_duplicate_of_a_longer_one_either(judged):
    assert originals(judged("一二三四五六七八九", "一二三四五六七八九十")) == [None, None]
    assert originals(judged("一二三四五六七八九", "一二三四五六七八九十", near_from=9)) == [None, 0]


# Policies


def test_where_numbers_matter_texts_with_other_numbers_are_never_near(judged):
    episodes = [f"《小猪佩奇》第{n:02}集在线观看完整版高清" for n in range(1, 30)]
    assert originals(judged(*episodes)) == [None] + [0] * 28
    assert originals(judged(*episodes, numbers_matter=True)) == [None] * 29
    assert originals(judged(*episodes, numbers_matter=True, confirm="none")) == [None] * 29
    same = [episodes[0], episodes[0].replace("高清", "超清")]
    assert originals(judged(*same, numbers_matter=True)) == [None, 0]
    long = [PARAGRAPH * 5 + f"第{n}号" for n in range(3)]
    assert originals(judged(*long)) == [None, 0, 0]
    assert originals(judged(*long, numbers_matter=True)) == [None] * 3


def test_texts_with_other_numbers_that_meet_by_chance_are_told_apart(judged):
    # Of these 80,000 pairs a few have a band in common, and of half of them the profiles are near enough here.
    episodes = [f"《小猪佩奇》第{n:03}集在线观看完整版高清" for n in range(400)]
    rules = {"numbers_matter": True, "max_profile_distances": (32,)}
    assert originals(judged(*episodes, **rules)) == [None] * 400


def test_links_names_and_scripts_count_or_do_not(judged):
    links = ["看看这个视频 http://t.cn/aaaaaa", "看看这个视频 http://t.cn/zzzzzz"]
    assert originals(judged(*links, min_edit_similarity=1000)) == [None, None]
    (_, verdict) = judged(*links, urls="ignore")
    assert verdict.reason == "exact"
    names = ["@张三 你快来看看这个", "@李四 你快来看看这个"]
    assert originals(judged(*names, min_edit_similarity=1000)) == [None, None]
    assert judged(*names, mentions="ignore")[1].reason == "exact"
    scripts = ["這個問題應該怎麼處理纔對", "这个问题应该怎么处理才对"]
    assert originals(judged(*scripts)) == [None, None]
    assert originals(judged(*scripts, fold_script=True)) == [None, 0]


# Crowds


def test_in_a_crowd_a_text_is_found_by_what_it_has_of_its_own_however_the_stream_is_cut(judged):
    texts = [*varied(PARAGRAPH, 150), PARAGRAPH]
    rules = {"max_crowd": 16, "max_distance": 0}
    answers = [judged(*texts, cut=cut, **rules) for cut in (1, 7, 64, 1000)]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][-1].capped
    assert not answers[0][10].capped
    for copied in (1, 149):
        changed = texts[copied][:-1] + "某"
        assert originals(judged(*texts[:150], changed, **rules))[-1] == copied


def test_the_same_words_in_ever_another_order_are_a_crowd_too(judged):
    words = ["气象", "台风", "暴雨", "城区", "北京", "上海", "广州", "深圳", "杭州", "苏州", "南京", "武汉"]
    texts = [" ".join(words[n:] + words[:n]) for n in range(12)]
    texts += [" ".join(words[n:] + words[:n]) for words in [words[::-1]] for n in range(12)]
    rules = {"max_crowd": 8, "min_edit_similarity": 990}
    answers = [judged(*texts, cut=cut, **rules) for cut in (1, 5, 1000)]
    assert all(answer == answers[0] for answer in answers)
    assert [verdict.capped for verdict in answers[0]] == [False] * 8 + [True] * 16
    # One that met the crowd is found all the same, by what it has of its own.
    (*_, verdict) = judged(*texts, texts[20] + "。一", **rules | {"min_edit_similarity": 900})
    assert verdict.original.offset == 20
    # Without a second look they are what they are to a simhash.
    assert originals(judged(*texts, confirm="none", **rules)) == [None] + [0] * 23


def test_only_the_nearest_are_compared_and_the_verdict_says_so(judged):
    texts = varied(PARAGRAPH, 60)
    changed = texts[3][:-1] + "某"
    verdict = judged(*texts, changed, max_compared=2, max_profile_distances=(32,), max_distance=0)[-1]
    assert (verdict.original.offset, verdict.capped) == (3, True)
    assert not judged(*texts, changed, max_profile_distances=(32,), max_compared=1000, max_crowd=1000)[
        -1
    ].capped


@pytest.mark.parametrize("cut", [1, 3, 1000])
def test_of_those_whose_profiles_are_equally_near_the_oldest_are_compared(judged, cut):
    clauses = PARAGRAPH.split("，")
    # Of the same characters, so of the same profile.
    texts = ["，".join(clauses[n:] + clauses[:n]) for n in range(0, 8, 2)]
    changed = texts[0].replace("橙色", "红色")
    verdicts = judged(*texts, changed, cut=cut, max_compared=1, max_distance=0)
    assert originals(verdicts) == [None] * 4 + [0]
    assert verdicts[-1].capped


def test_what_has_expired_is_no_part_of_a_crowd(judged):
    texts = [*varied(PARAGRAPH, 100), PARAGRAPH]
    times = [n if n < 99 else 10_000 for n in range(101)]
    verdict = judged(*texts, times=times, retention=5_000, max_crowd=16, max_distance=0)[-1]
    assert verdict == Unique(100, 10_000, verdict.fingerprint, capped=False)


def test_without_bands_only_fingerprints_make_candidates(judged):
    assert originals(judged(CALLED, SHOUTED, bands=0)) == [None, 0]
    assert originals(judged(PARAGRAPH, PARAGRAPH.replace("橙色", "红色"), bands=0)) == [None, None]


# Determinism


def test_verdicts_are_the_same_under_another_hash_seed_batch_size_and_number_of_threads(
    data_dir: Path, tmp_path: Path
):
    code = (
        "import sys, json, lzma\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from pathlib import Path\n"
        "from stream.settings import load\n"
        "from stream.text import Scheme\n"
        "from stream.tools.dedup import judged\n"
        "sys.setswitchinterval(1e-5)\n"
        "data, state, size, threads = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])\n"
        "lines = [line for line in lzma.open(data / 'weibo-posts.jsonl.xz')][:3000]\n"
        "lines = [json.dumps({'text': json.loads(line)['text']}).encode() for line in lines]\n"
        "settings = load()\n"
        "scheme = Scheme.build(settings.scheme_spec)\n"
        "def verdicts(number):\n"
        "    batches = judged(iter(lines), state / str(number), settings, scheme, None, size)\n"
        "    return str([verdict for batch in batches for _, verdict in batch])\n"
        # As a worker does, which judges each of its scopes in a thread of its own, with one scheme.
        "with ThreadPoolExecutor(threads) as pool:\n"
        "    (answer,) = set(pool.map(verdicts, range(threads)))\n"
        "print(answer)\n"
    )
    answers = set()
    for seed, size, threads in (("1", "500", "1"), ("2", "37", "3")):
        command = [sys.executable, "-c", code, str(data_dir), str(tmp_path / seed), size, threads]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads}
        answers.add(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
    assert len(answers) == 1
    assert b"'edit'" in answers.pop()
