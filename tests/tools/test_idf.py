"""`textsieve idf build`: the table that it writes, and what it does with too many words and with wrong files."""

import gzip
import json
import lzma
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.errors import InputError, SettingsError
from stream.settings import load
from stream.text import Scheme, SchemeSpec
from stream.text.weigh import read_idf_table
from stream.tools import idf as tool
from stream.tools.files import OutputError
from stream.tools.idf import DocumentFrequencies, Report, counting_scheme

ROOT = Path(__file__).parents[2]
TEXTS = ("北京下雨了，北京", "上海下雨了", "北京 iPhone", "😀", "岗上的iPhone")


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return Scheme.build(SchemeSpec())


@pytest.fixture
def build(scheme: Scheme):
    def of(source: Path, output: Path, scheme: Scheme = scheme, **options) -> Report:
        chosen = {"settings": load(), **options}
        return tool.build(str(source), output, scheme=scheme, **chosen)

    return of


@pytest.fixture
def built(tmp_path: Path, build):
    """Build a table from texts; gives its lines and what was reported."""

    def of(*texts: str, name: str = "texts.jsonl", **options) -> tuple[list[str], Report]:
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
        compressed = {".xz": lzma.compress, ".gz": gzip.compress}.get(Path(name).suffix, bytes)(lines)
        (tmp_path / name).write_bytes(compressed)
        output = tmp_path / "idf.txt"
        report = build(tmp_path / name, output, **options)
        return output.read_text(encoding="utf-8").split("\n"), report

    return of


def facts(lines: list[str]) -> dict[str, object]:
    return dict(json.loads(lines[0].split(" ", 3)[3]))


@pytest.mark.parametrize("name", ["texts.jsonl", "texts.jsonl.xz", "texts.jsonl.gz"])
def test_a_table_has_the_words_of_two_texts_and_more_sorted_with_their_smoothed_idf(built, name: str):
    lines, report = built(*TEXTS, name=name)
    # ln(5 / 3); every text counts, and a word once in each.
    assert lines[1:] == ["iphone 0.510826", "下雨 0.510826", "了 0.510826", "北京 0.510826", ""]
    assert report == Report(documents=5, left_out=0, words=4, undercount=0)


def test_the_header_says_of_how_many_texts_and_what_cut_them_into_words(built, scheme: Scheme):
    lines, _ = built(*TEXTS)
    assert lines[0].startswith("textsieve-idf 1 ")
    assert (facts(lines)["documents"], facts(lines)["words"], facts(lines)["min_documents"]) == (5, 4, 2)
    cut = facts(lines)["words_of"]
    assert cut["segmenter"] == scheme.description["segmenter"]
    assert cut["dictionary"] == scheme.description["dictionary"]
    assert cut["normalization"] == scheme.description["normalization"]


def test_words_below_the_minimum_are_left_out(built):
    lines, report = built(*TEXTS, min_documents=1)
    assert {"上海 0.916291", "岗上 0.916291"} <= set(lines)
    assert report.words == len(lines) - 2 == 7
    with pytest.raises(InputError, match="no word is in 4 or more of 5 texts"):
        built(*TEXTS, min_documents=4)


def test_a_word_of_every_text_has_a_negative_idf(built):
    assert built("北京", "北京")[0][1] == "北京 -0.405465"


def test_what_is_no_text_is_no_document(build, tmp_path: Path):
    file = tmp_path / "mixed.jsonl"
    file.write_bytes(
        b'{"text":"one two"}\n\xff\n{}\n{"text":1}\n\n{"text":"one"}\r\n{"text":"one too long"}\n'
    )
    report = build(file, tmp_path / "idf.txt", settings=load(max_text_chars=8))
    assert report == Report(documents=2, left_out=5, words=1, undercount=0)


def test_the_format_and_the_field_are_those_of_the_settings(build, tmp_path: Path):
    file = tmp_path / "texts"
    file.write_bytes(b"one two\r\none\n")
    report = build(file, tmp_path / "idf.txt", settings=load(input_format="plain"))
    assert (report.documents, report.words) == (2, 1)
    file.write_bytes(b'{"body":"one"}\n{"body":"one"}\n')
    assert build(file, tmp_path / "idf.txt", settings=load(text_field="body")).words == 1
    with pytest.raises(
        InputError, match=r"of 0 texts \(2 lines or events are no texts\)\. Is it the right source"
    ):
        build(file, tmp_path / "idf.txt")


def test_texts_are_cut_as_the_worker_cuts_them_whatever_table_it_has(built, tmp_path: Path):
    dictionary = tmp_path / "words.txt"
    dictionary.write_text("岗上上\n", encoding="utf-8")
    damaged = tmp_path / "damaged.txt"
    damaged.write_text("textsieve-idf 1 0 {}\n")
    scheme = counting_scheme(load(user_dictionary=dictionary, idf_table=damaged))
    lines, _ = built("岗上上", "岗上上", scheme=scheme)
    assert lines[1].split()[0] == "岗上上"
    assert facts(lines)["words_of"]["user_dictionary"] is not None


def test_a_word_of_more_than_64_characters_is_not_counted(built):
    lines, _ = built("a" * 64, "a" * 64, "b" * 65, "b" * 65)
    assert [line.split()[0] for line in lines[1:-1]] == ["a" * 64]


def test_another_hash_seed_and_another_engine_give_the_same_bytes(tmp_path: Path):
    file = tmp_path / "texts.jsonl"
    texts = [f"第{n}句话说的是{n * 37 % 11}件事情，word{n % 13}" for n in range(200)]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    contents = []
    for seed, engine in (("1", "rjieba"), ("2", "rjieba"), ("3", "jieba")):
        output = tmp_path / f"idf-{seed}.txt"
        env = {
            **os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "TEXTSIEVE_ENGINE": engine,
        }  # fmt: skip
        command = [sys.executable, "-m", "stream", "idf", "build", str(file), "--output", str(output)]
        subprocess.run([*command, "--max-words", "1000"], env=env, check=True, capture_output=True)
        contents.append(output.read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].splitlines()[1:] == contents[2].splitlines()[1:]


# Bounded memory


def test_above_the_bound_the_rarest_words_are_forgotten_and_the_loss_is_known():
    frequencies = DocumentFrequencies(max_words=4)
    for words in ("ab", "ab", "ac", "d"):
        frequencies.add(words)
    assert (frequencies.at_least(1), frequencies.undercount) == ({"a": 3, "b": 2, "c": 1, "d": 1}, 0)
    frequencies.add("e")
    assert (frequencies.at_least(1), frequencies.undercount) == ({"a": 3, "b": 2}, 1)
    frequencies.add("c")
    assert frequencies.at_least(1)["c"] == 1, "it was in two"


DOCUMENTS = st.lists(st.lists(st.sampled_from("abcdefghijkl"), max_size=6), max_size=60)


@given(DOCUMENTS, st.integers(1, 8))
def test_a_count_is_never_too_high_and_never_lower_than_the_loss_allows(documents, max_words):
    frequencies = DocumentFrequencies(max_words)
    most = 0
    for words in documents:
        frequencies.add(words)
        most = max(most, len(frequencies.at_least(0)))
    true = Counter(word for words in documents for word in set(words))
    counted = frequencies.at_least(0)
    assert most <= max_words
    for word, count in true.items():
        assert count - frequencies.undercount <= counted.get(word, 0) <= count
    if len(true) <= max_words:
        assert counted == true


def test_a_loss_is_in_the_report_and_in_the_header(built):
    lines, report = built(*[f"word{n} other" for n in range(100)], *["again"] * 9, max_words=20)
    assert report.undercount == facts(lines)["undercount"] > 0
    assert "again" in {line.split()[0] for line in lines[1:-1]}


# The file


def test_a_table_is_replaced_and_never_left_half(build, built, tmp_path: Path):
    built(*TEXTS)
    before = (tmp_path / "idf.txt").read_bytes()
    cut = lzma.compress(b'{"text":"other"}\n' * 9)[:-20]
    (tmp_path / "cut.jsonl.xz").write_bytes(cut)
    with pytest.raises(InputError, match=r"cut\.jsonl\.xz cannot be decompressed"):
        build(tmp_path / "cut.jsonl.xz", tmp_path / "idf.txt")
    assert (tmp_path / "idf.txt").read_bytes() == before
    built("新的", "新的")
    assert (tmp_path / "idf.txt").read_bytes() != before
    assert {path.suffix for path in tmp_path.iterdir()} == {".jsonl", ".xz", ".txt"}, "nothing is left behind"


def test_what_is_no_table_is_never_replaced(build, built, tmp_path: Path):
    built(*TEXTS)
    (tmp_path / "other").write_bytes(b"something else")
    for output in (tmp_path / "other", tmp_path / "texts.jsonl", tmp_path):
        with pytest.raises(OutputError, match=re.escape(str(output))):
            build(tmp_path / "texts.jsonl", output)
    assert (tmp_path / "other").read_bytes() == b"something else"
    (tmp_path / "other").write_bytes(b"")
    assert build(tmp_path / "texts.jsonl", tmp_path / "other").words == 4


@pytest.mark.parametrize("name", ["nowhere", "/", "topic"])
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(build, tmp_path: Path, name: str):
    with pytest.raises(InputError, match=name):
        build(name, tmp_path / "idf.txt")
    assert not (tmp_path / "idf.txt").exists()


# Its use


def test_a_scheme_weighs_by_the_table_and_is_another_one(built, scheme: Scheme, tmp_path: Path):
    built(*["北京 下雨"] * 20, *["北京"] * 2000, "上海", "上海")
    own = Scheme.build(SchemeSpec(idf_table=tmp_path / "idf.txt"))
    levels = {feature.word: feature.level for feature in own.features("北京下雨上海岗上")}
    # ln(2022 / 2021), ln(2022 / 21) = 4.6, ln(2022 / 3) = 6.5, and a word that the table lacks.
    assert levels == {"北京": 1, "下雨": 2, "上海": 3, "岗上": 4}
    assert own.id != scheme.id
    changed = {name for name, part in own.description.items() if part != scheme.description[name]}
    assert changed == {"weights"}
    before = own.id
    built(*["北京 下雨"] * 20, *["北京"] * 2000, "上海", "上海", "上海")
    assert Scheme.build(SchemeSpec(idf_table=tmp_path / "idf.txt")).id != before


def test_a_table_that_is_missing_or_of_another_kind_is_refused_by_the_scheme(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"The IDF table .*none\.txt cannot be read"):
        Scheme.build(SchemeSpec(idf_table=tmp_path / "none.txt"))
    (tmp_path / "jieba.txt").write_text("北京 3.5\n")
    with pytest.raises(SettingsError, match=r"jieba\.txt, line 1.*textsieve idf build"):
        Scheme.build(SchemeSpec(idf_table=tmp_path / "jieba.txt"))


def test_real_texts_give_the_idf_that_their_own_counts_give(
    build, tmp_path: Path, data_dir: Path, scheme: Scheme
):
    build(data_dir / "news-2020.jsonl.xz", tmp_path / "idf.txt")
    table = read_idf_table((tmp_path / "idf.txt").read_bytes(), "idf.txt")
    with lzma.open(data_dir / "news-2020.jsonl.xz", "rt") as file:
        texts = [json.loads(line)["text"] for line in file]
    true = Counter(word for text in texts for word in set(scheme.words(scheme.normalize(text))))
    assert table.keys() == {word for word, count in true.items() if count > 1 and len(word) <= 64}
    assert all(abs(math.log(len(texts) / (true[word] + 1)) - idf) < 1e-6 for word, idf in table.items())
