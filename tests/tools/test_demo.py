"""The demo: from nothing to the law in one command, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stream.broker import noida_binary
from stream.events import SOURCE, VERDICT
from stream.tools.demo.outcomes import Match, Outcomes
from stream.tools.demo.pairs import interesting, pairs
from stream.tools.demo.reviews import reviews, texts_of

SECONDS = 150


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "stream", "demo", *arguments]


def environment(tmp_path: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TEXTSIEVE_")}
    cache = {name: os.environ[name] for name in ("TEXTSIEVE_CACHE",) if name in os.environ}
    return {**inherited, **cache, "TMPDIR": str(tmp_path)}


def run(tmp_path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*arguments), env=environment(tmp_path), capture_output=True, text=True, timeout=SECONDS
    )


def assert_lawful(result: "subprocess.CompletedProcess[str]", tmp_path: Path, raw: int) -> None:
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].startswith(f"raw {raw} = unique ")
    assert not list(tmp_path.glob("textsieve-*")), "the demo leaves nothing behind"
    assert not processes_in(tmp_path)


def processes_in(directory: Path) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(directory) in line]


def test_it_judges_reviews_on_apache_kafka_and_leaves_nothing_behind(
    java_and_maven: None, tmp_path: Path
) -> None:
    result = run(tmp_path, "--broker", "kafka", "--limit", "2000")
    assert_lawful(result, tmp_path, 2000)
    assert "Apache Kafka" in result.stderr
    assert "original" in result.stdout
    assert "duplicate" in result.stdout


@pytest.mark.skipif(noida_binary() is None, reason="noida-db is not installed for this platform")
def test_it_judges_a_file_on_noida_without_java(tmp_path: Path) -> None:
    source = tmp_path / "texts.jsonl"
    lines = [{"text": f"第{number % 40}句话，说的是第{number % 40 * 7919}件事"} for number in range(60)]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines) + "no json\n")
    result = run(tmp_path, "--broker", "noida", "--input", str(source))
    assert_lawful(result, tmp_path, 61)
    assert result.stdout.splitlines()[-1].endswith("rejected 1")


def test_topics_on_a_broker_of_ones_own_are_gone_afterwards(kafka: str, tmp_path: Path) -> None:
    result = run(tmp_path, "--bootstrap", kafka, "--limit", "300")
    assert_lawful(result, tmp_path, 300)
    assert "could not be deleted" not in result.stderr


@pytest.mark.skipif(noida_binary() is None, reason="noida-db is not installed for this platform")
def test_an_interrupt_removes_everything_and_is_told_by_the_exit_code(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("--broker", "noida"), env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Writing"):
            break
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(SECONDS) == 130, said
    assert not list(tmp_path.glob("textsieve-*"))
    assert not processes_in(tmp_path)


def leave(outcomes: Outcomes, offset: int, kind: str, original: int | None = None) -> None:
    headers: list[tuple[str, bytes | None]] = [(SOURCE, f"t:0:{offset}".encode())]
    if original is not None:
        verdict = {"duplicate_of": {"source": f"t:0:{original}"}, "reason": "near", "hamming_distance": 2}
        headers.append((VERDICT, json.dumps(verdict).encode()))
    outcomes.add(kind, headers)  # type: ignore[arg-type]


def test_the_law_holds_where_each_event_left_once() -> None:
    outcomes = Outcomes()
    leave(outcomes, 0, "unique")
    leave(outcomes, 1, "duplicates", 0)
    leave(outcomes, 2, "rejected")
    assert outcomes.faults(3) == []
    assert str(outcomes.tally(3)) == "raw 3 = unique 1 + duplicates 1 + rejected 1"
    assert outcomes.matches == [Match(1, 0, "near", 2)]


def test_a_missing_event_and_one_that_left_twice_are_seen_though_the_counts_add_up() -> None:
    outcomes = Outcomes()
    leave(outcomes, 0, "unique")
    leave(outcomes, 0, "unique")
    faults = " ".join(outcomes.faults(2))
    assert "1 events have not left; the first has offset 1" in faults
    assert "1 events have left more than once; the first has offset 0" in faults


def test_near_pairs_with_the_smallest_differences_come_first_then_an_exact_one() -> None:
    texts = {
        0: "这家酒店的服务很好，下次还会再来",
        1: "这家酒店的服务非常好，下次还会再来住",
        2: "这家饭店的服务很好，下次还会再来",
        3: "这家酒店的服务很好，下次还会再来",
        4: "另一家店里卖的东西一直都很便宜",
        5: "另一家店里卖的东西一向都很便宜",
    }
    matches = [
        Match(1, 0, "near", 3),
        Match(2, 0, "near", 2),
        Match(3, 0, "exact", 0),
        Match(5, 4, "near", 1),
    ]
    chosen = interesting(pairs(matches, texts))
    assert [pair.match.duplicate for pair in chosen] == [2, 5, 3]


def test_the_reviews_are_those_of_the_installed_package() -> None:
    values = list(reviews().values)
    assert len(values) > 35_000
    assert json.loads(values[0])["id"] == "neg:1"


def test_a_file_of_plain_texts_is_read_as_such(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_bytes("第一行\r\n第二行\n".encode())
    texts = texts_of(str(file))
    assert texts.settings == {"input_format": "plain"}
    assert list(texts.values) == ["第一行".encode(), "第二行".encode()]
