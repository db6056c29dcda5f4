"""The command line: what it prints where, and its exit codes."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stream.cli import main

ROOT = Path(__file__).parents[1]
TEXTS = b'{"text":"one text"}\n{"text":"one text"}\n{}\n'


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, env=env)


def textsieve(*arguments: str, stdin: bytes = b"", cwd: Path) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "stream", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, env=env, check=False)


@pytest.fixture
def texts(tmp_path: Path) -> str:
    path = tmp_path / "texts.jsonl"
    path.write_bytes(TEXTS)
    return str(path)


@pytest.mark.parametrize("command", [[], *([name] for name in main.commands), ["idf", "build"]], ids=str)
def test_every_command_has_help_that_says_more_than_its_name(command: list[str]):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert len(result.output) > 300


def test_help_waits_neither_for_faust_nor_for_numpy():
    code = (
        "import sys; from stream.cli import main; main(['dedup', '--help'], standalone_mode=False);"
        "sys.exit(','.join({'faust', 'numpy', 'pydantic', 'rich', 'aiokafka', 'rocksdict'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False, text=True
    )
    assert result.stderr.strip() == ""
    assert "--time-field" in result.stdout


def test_dedup_prints_the_law_and_writes_into_the_current_directory(tmp_path: Path):
    result = textsieve("dedup", "-", stdin=TEXTS, cwd=tmp_path)
    assert result.returncode == 0
    assert result.stdout.decode().splitlines()[0] == "raw 3 = unique 1 + duplicates 1 + rejected 1"
    assert b"nothing expires" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "unique.jsonl",
        "duplicates.jsonl",
        "rejected.jsonl",
        "verdicts.jsonl",
    }


def test_dedup_as_json_prints_one_object_and_nothing_else_on_standard_output(tmp_path: Path):
    result = textsieve("dedup", "-", "--json", stdin=gzip.compress(TEXTS), cwd=tmp_path)
    counts = json.loads(result.stdout)
    assert isinstance(counts.pop("seconds"), float)
    assert counts == {"raw": 3, "unique": 1, "duplicates": 1, "rejected": 1}


def test_dedup_says_how_many_times_it_could_not_use(tmp_path: Path):
    lines = b'{"text":"a","when":"soon"}\n{"text":"b"}\n{"text":"c","when":1}\n'
    result = textsieve("dedup", "-", "--time-field", "when", stdin=lines, cwd=tmp_path)
    assert b"Lines with an unreadable 'when': 1." in result.stderr
    assert b"Lines without 'when': 1." in result.stderr
    assert b"expires" not in result.stderr


def test_options_of_dedup_come_before_the_settings(tmp_path: Path, texts: str):
    output = str(tmp_path / "out")
    env = {"TEXTSIEVE_TEXT_FIELD": "body", "TEXTSIEVE_INPUT_FORMAT": "plain"}
    arguments = ("dedup", texts, "--output-dir", output, "--json", "--force")
    assert '"rejected": 0' in run(*arguments, env=env).output
    assert '"rejected": 3' in run(*arguments, "--format", "jsonl", env=env).output
    assert '"rejected": 1' in run(*arguments, "--format", "jsonl", "--text-field", "text", env=env).output
    assert '"rejected": 3' in run(*arguments, env={"TEXTSIEVE_TEXT_FIELD": "body"}).output


def test_fields_of_plain_lines_are_a_mistake_in_the_usage(tmp_path: Path, texts: str):
    result = run(
        "dedup", texts, "--format", "plain", "--time-field", "t", "--output-dir", str(tmp_path / "out")
    )
    assert result.exit_code == 2
    assert "no fields" in result.output
    assert not (tmp_path / "out").exists()


def test_an_error_is_a_sentence_and_exit_code_1(tmp_path: Path):
    missing = run("dedup", str(tmp_path / "nowhere"), "--output-dir", str(tmp_path / "out"))
    assert missing.exit_code == 1
    assert missing.output.strip() == f"Error: {tmp_path / 'nowhere'}: there is no such file."
    wrong = run("compare", "a", "b", env={"TEXTSIEVE_MAX_DISTANCE": "many"})
    assert wrong.exit_code == 1
    assert "TEXTSIEVE_MAX_DISTANCE=many" in wrong.output


def test_compare_prints_a_table_or_one_json_object(tmp_path: Path):
    shown = run("compare", "你妈妈喊你回家吃饭哦", "你妈妈叫你回家吃饭啦")
    assert shown.exit_code == 0
    assert "Hamming distance" in shown.output
    as_json = run("compare", "--json", "--", "-一", "-一")
    assert json.loads(as_json.output)["verdict"]["reason"] == "exact"


def test_idf_build_says_what_it_made_and_json_is_one_object(tmp_path: Path, texts: str):
    output = tmp_path / "idf.txt"
    shown = textsieve("idf", "build", texts, "--output", str(output), cwd=tmp_path)
    assert shown.stdout.decode().startswith(f"2 words of 2 texts; the table is {output}")
    assert b"left out: 1" in shown.stderr
    as_json = run("idf", "build", texts, "--output", str(output), "--json")
    assert json.loads(as_json.output) == {"documents": 2, "left_out": 1, "words": 2, "undercount": 0}


def test_a_damaged_idf_table_is_a_sentence_and_exit_code_1(tmp_path: Path):
    (tmp_path / "idf.txt").write_text("textsieve-idf 1 0 {}\n")
    result = run("compare", "a", "b", env={"TEXTSIEVE_IDF_TABLE": str(tmp_path / "idf.txt")})
    assert result.exit_code == 1
    assert "idf.txt, line 1" in result.output
