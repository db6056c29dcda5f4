"""`textsieve dedup`: the worker's judge over the lines of a file, without Kafka."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from stream.events import RawEvent, decode, source, verdict_json
from stream.rules import Rules
from stream.settings import Settings
from stream.text import Scheme
from stream.tools.files import LineReader, results
from stream.tools.offline import TOPIC, judging
from stream.tools.tally import Tally
from stream.tools.times import TimeField
from stream.verdict import Duplicate, Input, Rejected, Text, Unique, Verdict

UNIQUE: Final = "unique.jsonl"
DUPLICATES: Final = "duplicates.jsonl"
REJECTED: Final = "rejected.jsonl"
VERDICTS: Final = "verdicts.jsonl"
RESULTS: Final = (UNIQUE, DUPLICATES, REJECTED, VERDICTS)

BATCH: Final = 1000
"""Lines that are judged together. Fewer cost more writes to the state; more cost comparisons, since every text
of a batch is compared with every other. The verdicts are the same."""

BATCH_BYTES: Final = 8 * 1024 * 1024
"""A batch of long lines ends here, so that memory does not depend on the length of lines."""

_NO_TIME: Final = -1

Progress = Callable[[int, int], None]
"""Called after every batch: how many lines are judged, how many bytes of the input are read."""


class Report(NamedTuple):
    """What a run did."""

    tally: Tally
    missing_times: int
    """Lines without a time, which count as the stream time."""
    unreadable_times: int
    """Lines with a time that cannot be read, which count as the stream time too."""


def dedup(
    reader: LineReader,
    output_dir: Path,
    *,
    settings: Settings,
    scheme: Scheme,
    time_field: str | None = None,
    replace: bool = False,
    batch_size: int = BATCH,
    progress: Progress = lambda lines, position: None,
) -> Report:
    """Judge every line and write the four files of `RESULTS`.

    Parameters:
        reader: the input.
        output_dir: where the results go. The state is kept there too while the run lasts.
        settings: the rules, the layout of the table, the number of windows.
        scheme: how a text becomes a fingerprint.
        time_field: the field with a line's time. Without it all lines are of one time, and nothing expires.
        replace: whether results of an earlier run may be replaced.
        batch_size: how many lines are judged together, which changes nothing but the speed.
        progress: told how far it is.

    Raises:
        InputError: the input cannot be read.
        OutputError: the results cannot be written, or are there already.
        StateError: the state cannot be written.
    """
    times = None if time_field is None else TimeField(time_field)
    counts = dict.fromkeys(RESULTS, 0)
    raw = 0
    with results(output_dir, RESULTS, replace=replace, source=reader.path) as files:
        for batch in judged(reader, files.scratch / "state", settings, scheme, times, batch_size):
            for line, verdict in batch:
                name = _file(verdict)
                files.write(name, line)
                counts[name] += 1
                if not isinstance(verdict, Unique):
                    files.write(VERDICTS, describe(verdict))
            raw += len(batch)
            progress(raw, reader.position)
        tally = Tally(raw, counts[UNIQUE], counts[DUPLICATES], counts[REJECTED])
    return Report(tally, times.missing if times else 0, times.unreadable if times else 0)


def judged(
    lines: Iterable[bytes],
    state: Path,
    settings: Settings,
    scheme: Scheme,
    times: TimeField | None = None,
    batch_size: int = BATCH,
) -> Iterator[list[tuple[bytes, Verdict]]]:
    """Judge lines in their order, as one scope; yields each batch of lines with their verdicts.

    The offset of a line is its number from 0. `state` is the directory of the table, which is made.
    """
    rules = settings.rules
    with judging(state, settings, scheme) as judge_next:
        offset = 0
        for batch in _batches(lines, batch_size):
            inputs = [_input(offset + index, line, rules, times) for index, line in enumerate(batch)]
            yield list(zip(batch, judge_next(inputs), strict=True))
            offset += len(batch)


def describe(verdict: Duplicate | Rejected) -> bytes:
    """The line of a verdict: a duplicate's verdict object, or the source, reason and error of a rejection."""
    if isinstance(verdict, Duplicate):
        return verdict_json(verdict, TOPIC, 0)
    rejection = {
        "source": source(TOPIC, 0, verdict.offset),
        "reason": verdict.reason,
        "error": verdict.error,
    }
    return json.dumps(rejection, separators=(",", ":")).encode()


def _batches(lines: Iterable[bytes], batch_size: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) == batch_size or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _input(offset: int, line: bytes, rules: Rules, times: TimeField | None) -> Input:
    # A line of a Windows file ends with \r\n; JSON takes the \r for white space.
    value = line.removesuffix(b"\r") if rules.input_format == "plain" else line
    event = decode(RawEvent(TOPIC, 0, offset, _NO_TIME, None, value, ()), rules)
    if times is None or not isinstance(event, Text):
        return event
    return event._replace(time=times.read(line))


def _file(verdict: Verdict) -> str:
    if isinstance(verdict, Unique):
        return UNIQUE
    return DUPLICATES if isinstance(verdict, Duplicate) else REJECTED
