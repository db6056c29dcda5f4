"""`textsieve dedup`: what comes out of a file of lines, and what does not when something goes wrong."""

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stream.errors import InputError
from stream.settings import Settings, load
from stream.text import Scheme
from stream.tools.dedup import DUPLICATES, REJECTED, RESULTS, UNIQUE, VERDICTS, Report, dedup
from stream.tools.files import MAX_LINE_BYTES, LineReader, OutputError
from stream.tools.times import parse_time

DAY = 86_400


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load()


@pytest.fixture(scope="module")
def scheme(settings: Settings) -> Scheme:
    return Scheme.build(settings.scheme_spec)


class Bench:
    """Runs `dedup` over bytes, and reads the results."""

    def __init__(self, directory: Path, settings: Settings, scheme: Scheme) -> None:
        self.input = directory / "input"
        self.output = directory / "output"
        self._settings = settings
        self._scheme = scheme

    def run(self, content: bytes, **options) -> Report:
        self.input.write_bytes(content)
        return self.run_file(self.input, **options)

    def run_file(self, path: Path, *, settings: dict | None = None, **options) -> Report:
        chosen = load(**settings) if settings else self._settings
        return dedup(
            LineReader(str(path)), self.output, settings=chosen, scheme=self._scheme, replace=True, **options
        )

    def lines(self, name: str) -> list[bytes]:
        content = (self.output / name).read_bytes()
        assert not content or content.endswith(b"\n")
        return content.split(b"\n")[:-1]

    def verdicts(self) -> list[dict]:
        return [json.loads(line) for line in self.lines(VERDICTS)]


@pytest.fixture
def bench(tmp_path: Path, settings: Settings, scheme: Scheme) -> Bench:
    return Bench(tmp_path, settings, scheme)


def jsonl(*documents: dict) -> bytes:
    return b"".join(json.dumps(document, ensure_ascii=False).encode() + b"\n" for document in documents)


def offset(verdict: dict) -> int:
    return int(verdict["source"].rpartition(":")[2])


# Verdicts


def test_of_two_equal_texts_one_is_unique_and_the_other_a_duplicate_that_names_it(bench: Bench):
    report = bench.run(
        jsonl({"id": "a", "text": "你妈妈喊你回家吃饭"}, {"id": 7, "text": "你妈妈喊你回家吃饭"})
    )
    assert report.tally == (2, 1, 1, 0)
    [verdict] = bench.verdicts()
    fingerprint = verdict.pop("fingerprint")
    assert len(fingerprint) == 16
    assert verdict == {
        "v": 1,
        "id": 7,
        "source": "file:0:1",
        "duplicate_of": {"id": "a", "source": "file:0:0", "time": 0},
        "reason": "exact",
        "measure": "content",
        "similarity": 1.0,
        "hamming_distance": 0,
        "capped": False,
    }


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_a_source_is_the_number_of_the_line_however_lines_are_batched(bench: Bench, batch_size: int):
    content = jsonl({"text": "一"}, {"text": "二"}, {"text": "二"}, {"text": "三"}, {"text": "一"})
    bench.run(content, batch_size=batch_size)
    pairs = [(verdict["source"], verdict["duplicate_of"]["source"]) for verdict in bench.verdicts()]
    assert pairs == [("file:0:2", "file:0:1"), ("file:0:4", "file:0:0")]


def test_a_text_that_comes_back_after_the_retention_is_unique_again(bench: Bench):
    content = jsonl(
        {"text": "转发微博", "time": 0},
        {"text": "转发微博", "time": 2 * DAY - 1},
        {"text": "转发微博", "time": 2 * DAY},
        {"text": "转发微博", "time": 2 * DAY + 1},
    )
    bench.run(content, time_field="time")
    assert [offset(verdict) for verdict in bench.verdicts()] == [1, 3]
    assert [verdict["duplicate_of"]["source"] for verdict in bench.verdicts()] == ["file:0:0", "file:0:2"]


def test_without_a_time_field_nothing_expires(bench: Bench):
    content = jsonl({"text": "转发微博", "time": 0}, {"text": "转发微博", "time": 400 * DAY})
    assert bench.run(content, settings={"retention": 1}, batch_size=1).tally == (2, 1, 1, 0)


def test_a_missing_and_an_unreadable_time_count_as_the_stream_time_and_are_counted(bench: Bench):
    content = jsonl(
        {"text": "一", "time": 10 * DAY},
        {"text": "二"},
        {"text": "三", "time": None},
        {"text": "四", "time": ""},
        {"text": "五", "time": "yesterday"},
        {"text": "六", "time": [1]},
        {"text": "二", "time": 11 * DAY},
        {"text": "五", "time": 11 * DAY},
    )
    report = bench.run(content, time_field="time")
    assert (report.missing_times, report.unreadable_times) == (3, 2)
    assert [verdict["duplicate_of"]["time"] for verdict in bench.verdicts()] == [10 * DAY * 1000] * 2


def test_a_rejected_line_does_not_move_the_time(bench: Bench):
    content = jsonl({"text": "一", "time": 0}, {"text": None, "time": 400 * DAY}, {"text": "一", "time": 1})
    assert bench.run(content, time_field="time").tally == (3, 1, 1, 1)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1291300279", 1_291_300_279_000),
        ("1291300279.1239", 1_291_300_279_123),
        ("1291300279123", 1_291_300_279_123),
        ("1291300279123.9", 1_291_300_279_123),
        ("1.291300279e9", 1_291_300_279_000),
        ("0", 0),
        ('"1291300279"', 1_291_300_279_000),
        ('"2010-12-02 14:31:19"', 1_291_300_279_000),
        ('"2010-12-02T14:31:19Z"', 1_291_300_279_000),
        ('"2010-12-02T22:31:19.5+08:00"', 1_291_300_279_500),
        ('"2010-12-02"', 1_291_248_000_000),
        ('"20101202"', 1_291_248_000_000),
        ('"2020-3-30 9:37:00"', 1_585_561_020_000),
    ],
)
def test_times_are_epoch_seconds_or_milliseconds_or_iso_8601(bench: Bench, written: str, expected: int):
    line = b'{"text":"a","time":%s}\n' % written.encode()
    report = bench.run(line + line, time_field="time")
    assert report.unreadable_times == 0
    assert [verdict["duplicate_of"]["time"] for verdict in bench.verdicts()] == [expected]


@pytest.mark.parametrize(
    "written", ["-1", "1e300", "1e99999", "1291300279123456", "true", "{}", '"10:30"', '"-"']
)
def test_what_is_no_time_from_1970_to_9999_is_unreadable(bench: Bench, written: str):
    line = b'{"text":"a","time":%s}\n' % written.encode()
    report = bench.run(line, time_field="time")
    assert (report.tally, report.missing_times, report.unreadable_times) == ((1, 1, 0, 0), 0, 1)


def test_a_number_of_more_digits_than_an_integer_may_have_is_only_an_unreadable_time(bench: Bench):
    assert bench.run(b'{"text":"a","time":%s}' % (b"9" * 5000), time_field="time").unreadable_times == 1


def test_a_time_without_an_offset_is_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        assert parse_time("2010-12-02 14:31:19") == 1_291_300_279_000
    time.tzset()


def test_a_time_before_1970_is_no_time():
    with pytest.raises(ValueError, match="1970"):
        parse_time("1969-12-31")


# Lines


def test_lines_leave_untouched_whatever_their_spaces_escapes_and_unknown_fields(bench: Bench):
    lines = [
        b'  {"text" : "caf\\u00e9" , "b":1.10, "a":[ ] }\r',
        b'\xef\xbb\xbf{"text":"\xe4\xb8\x80"}',
        b'{"text":"CAF\xc3\x89"}',
        b'\xff{"text":"x"}',
        b"",
        b"[1]",
        b'{"text":"last, with no newline"}',
    ]
    report = bench.run(b"\n".join(lines))
    assert report.tally == (7, 3, 1, 3)
    assert bench.lines(UNIQUE) == [lines[0], lines[1], lines[6]]
    assert bench.lines(DUPLICATES) == [lines[2]]
    assert bench.lines(REJECTED) == [lines[3], lines[4], lines[5]]
    rejections = [verdict for verdict in bench.verdicts() if "error" in verdict]
    assert [(r["source"], r["reason"]) for r in rejections] == [
        ("file:0:3", "invalid-utf8"),
        ("file:0:4", "invalid-json"),
        ("file:0:5", "not-an-object"),
    ]
    assert all(set(r) == {"source", "reason", "error"} and r["error"] for r in rejections)


def test_plain_lines_are_texts_an_empty_one_too_and_a_carriage_return_is_not_part_of_the_text(bench: Bench):
    # Featureless texts are compared as they came, so the \r would tell these apart.
    report = bench.run(b"!!\r\n!!\n\n\n\xff\n", settings={"input_format": "plain"})
    assert report.tally == (5, 2, 2, 1)
    assert bench.lines(UNIQUE) == [b"!!\r", b""]
    assert bench.lines(DUPLICATES) == [b"!!", b""]
    assert bench.lines(REJECTED) == [b"\xff"]


def test_only_a_newline_ends_a_line(bench: Bench):
    line = "a\u2028b\x0bc\x0cd\x85e\rf".encode()
    bench.run(line + b"\n", settings={"input_format": "plain"})
    assert bench.lines(UNIQUE) == [line]


def test_the_end_of_the_last_line_makes_no_line_and_an_empty_file_has_none(bench: Bench):
    assert bench.run(b'{"text":"a"}\n').tally.raw == bench.run(b'{"text":"a"}').tally.raw == 1
    assert bench.run(b"").tally == (0, 0, 0, 0)
    assert all((bench.output / name).read_bytes() == b"" for name in RESULTS)


def test_fields_have_the_names_of_the_settings(bench: Bench):
    content = jsonl({"body": "一", "key": "k"}, {"body": "一", "key": "k"}, {"text": "一"})
    report = bench.run(content, settings={"text_field": "body", "id_field": "key"})
    assert report.tally == (3, 1, 1, 1)
    assert bench.verdicts()[0]["reason"] == "redelivered"


# Files


CONTENT = jsonl(*({"text": f"text number {number}"} for number in range(2000)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain", CONTENT),
        ("a.xz", lzma.compress(CONTENT)),
        ("a.gz", gzip.compress(CONTENT)),
        ("a_name_that_does_not_say_it", lzma.compress(CONTENT)),
        ("two_streams.xz", lzma.compress(CONTENT[:1001]) + b"\0" * 8 + lzma.compress(CONTENT[1001:])),
        ("two_streams.gz", gzip.compress(CONTENT[:1001]) + gzip.compress(CONTENT[1001:])),
    ],
)
def test_compressed_files_are_read_as_what_they_hold(tmp_path: Path, name: str, content: bytes):
    (tmp_path / name).write_bytes(content)
    reader = LineReader(str(tmp_path / name))
    assert list(reader) == CONTENT.split(b"\n")[:-1]
    assert list(reader) == CONTENT.split(b"\n")[:-1], "it can be read again"
    assert reader.position == reader.size == len(content)


def flipped(content: bytes, index: int) -> bytes:
    return content[:index] + bytes([content[index] ^ 0xFF]) + content[index + 1 :]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut_off.xz", lzma.compress(CONTENT)[:-1]),
        ("cut_off.gz", gzip.compress(CONTENT)[:-1]),
        ("empty.xz", b""),
        ("checksum.gz", flipped(gzip.compress(CONTENT), -6)),
        ("content.xz", flipped(lzma.compress(CONTENT), 100)),
        ("not_compressed.gz", CONTENT),
        ("garbage_behind.gz", gzip.compress(CONTENT) + b"garbage"),
        ("damaged_second_stream.xz", lzma.compress(CONTENT) + flipped(lzma.compress(CONTENT), 0)),
    ],
)
def test_a_damaged_compressed_file_is_an_error_that_names_it_and_leaves_no_results(
    bench: Bench, tmp_path: Path, name: str, content: bytes
):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=name):
        bench.run_file(path)
    assert list(bench.output.iterdir()) == []


def test_a_missing_file_and_a_directory_are_errors_that_name_them(bench: Bench, tmp_path: Path):
    with pytest.raises(InputError, match=r"nowhere.*no such file"):
        bench.run_file(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be read"):
        bench.run_file(tmp_path)


def test_a_line_longer_than_any_event_is_an_error_with_its_number(bench: Bench):
    content = b'{"text":"a"}\n' + b"x" * (MAX_LINE_BYTES + 1)
    with pytest.raises(InputError, match=r"input, line 1 .*longer than 64 MiB"):
        bench.run(content)
    assert list(bench.output.iterdir()) == []


def test_a_long_line_within_the_bound_is_a_line(bench: Bench):
    line = json.dumps({"text": "长" * 300_000}, ensure_ascii=False).encode()
    assert bench.run(line + b"\n" + line).tally == (2, 1, 1, 0)
    assert bench.lines(UNIQUE) == bench.lines(DUPLICATES) == [line]


def test_results_that_are_there_already_are_neither_replaced_nor_touched_unless_told(
    tmp_path: Path, settings: Settings, scheme: Scheme
):
    (tmp_path / "input").write_bytes(b'{"text":"new"}\n')
    (tmp_path / REJECTED).write_bytes(b"of an earlier run\n")
    reader = LineReader(str(tmp_path / "input"))
    with pytest.raises(OutputError, match=r"rejected.jsonl exists.*--force"):
        dedup(reader, tmp_path, settings=settings, scheme=scheme)
    assert (tmp_path / REJECTED).read_bytes() == b"of an earlier run\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", REJECTED]
    dedup(reader, tmp_path, settings=settings, scheme=scheme, replace=True)
    assert (tmp_path / REJECTED).read_bytes() == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["input", *RESULTS])


def test_the_input_is_never_replaced_by_a_result(tmp_path: Path, settings: Settings, scheme: Scheme):
    content = b'{"text":"a"}\n{"text":"a"}\n'
    (tmp_path / UNIQUE).write_bytes(content)
    reader = LineReader(str(tmp_path / UNIQUE))
    with pytest.raises(OutputError, match="is the input itself"):
        dedup(reader, tmp_path, settings=settings, scheme=scheme, replace=True)
    assert (tmp_path / UNIQUE).read_bytes() == content


def test_an_output_directory_that_is_a_file_is_an_error(tmp_path: Path, settings: Settings, scheme: Scheme):
    (tmp_path / "input").write_bytes(b'{"text":"a"}\n')
    with pytest.raises(OutputError, match="cannot be written"):
        dedup(LineReader(str(tmp_path / "input")), tmp_path / "input", settings=settings, scheme=scheme)


def test_a_run_that_fails_leaves_the_results_of_the_earlier_one(bench: Bench):
    bench.run(b'{"text":"a"}\n')
    with pytest.raises(InputError):
        bench.run(lzma.compress(CONTENT)[:-1])
    assert bench.lines(UNIQUE) == [b'{"text":"a"}']
    assert sorted(path.name for path in bench.output.iterdir()) == sorted(RESULTS)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, code: int):
    command = [sys.executable, "-m", "stream", "dedup", "-", "--output-dir", str(tmp_path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: it is written when the run is reading, and so in its midst.
        process.stdin.write(b'{"text":"a"}\n' * 50_000)
        process.stdin.flush()
        assert [path.name[:11] for path in tmp_path.iterdir()] == [".textsieve-"]
        process.send_signal(number)
        assert process.wait(60) == code
    assert list(tmp_path.iterdir()) == []


# Real texts


@pytest.fixture(scope="session")
def comments(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few thousand comments, with some lines among them that cannot be judged."""
    path = tmp_path_factory.mktemp("comments") / "comments.jsonl"
    with lzma.open(data_dir / "weibo-comments.jsonl.xz") as file, path.open("wb") as out:
        for number in range(4000):
            out.write(file.readline())
            if number % 500 == 0:
                out.write(b'{"text": nothing}\n')
    return path


def test_every_real_line_leaves_exactly_once_untouched_and_in_order(bench: Bench, comments: Path):
    report = bench.run_file(comments, time_field="time")
    lines = comments.read_bytes().split(b"\n")[:-1]
    tally = report.tally
    assert tally.raw == len(lines) == 4008
    assert tally.raw == tally.unique + tally.duplicates + tally.rejected
    assert tally.rejected == 8
    assert tally.duplicates > 400
    # Put back together by the verdicts, the three files are the input.
    others = {"duplicates": iter(bench.lines(DUPLICATES)), "rejected": iter(bench.lines(REJECTED))}
    unique = iter(bench.lines(UNIQUE))
    kinds = {offset(v): "rejected" if "error" in v else "duplicates" for v in bench.verdicts()}
    assert len(kinds) == tally.duplicates + tally.rejected
    restored = [next(others[kinds[n]]) if n in kinds else next(unique) for n in range(len(lines))]
    assert restored == lines


def test_every_real_duplicate_names_an_original_that_is_unique_earlier_and_alive(
    bench: Bench, comments: Path
):
    bench.run_file(comments, time_field="time")
    lines = comments.read_bytes().split(b"\n")
    verdicts = {offset(verdict): verdict for verdict in bench.verdicts()}
    stream_time = latest = 0
    times = []
    for number, line in enumerate(lines[:-1]):
        if "error" not in verdicts.get(number, {}):
            latest = parse_time(json.loads(line)["time"])
        stream_time = max(stream_time, latest)
        times.append(stream_time)
    for number, verdict in verdicts.items():
        if "error" in verdict:
            continue
        original = offset(verdict["duplicate_of"])
        assert original < number
        assert original not in verdicts
        assert verdict["duplicate_of"]["time"] == times[original] > times[number] - 2 * DAY * 1000


def test_results_are_the_same_bytes_under_another_hash_seed_and_batch_size(bench: Bench, comments: Path):
    def results() -> dict[str, bytes]:
        return {name: (bench.output / name).read_bytes() for name in RESULTS}

    bench.run_file(comments, time_field="time", batch_size=7)
    expected = results()
    for seed in ("1", "2"):
        command = [
            "dedup",
            str(comments),
            "--time-field",
            "time",
            "--output-dir",
            str(bench.output),
            "--force",
        ]
        subprocess.run(
            [sys.executable, "-m", "stream", *command],
            check=True,
            capture_output=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert results() == expected
