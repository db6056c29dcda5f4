"""The `textsieve` command: parses, calls a tool, prints.

A command imports its tool when it is called: `textsieve --help` need not wait for Faust and numpy.
"""

# ruff: noqa: PLC0415 - for the reason above.

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from stream.errors import TextsieveError


class _Commands(click.Group):
    """Turns our errors into a sentence on standard error and exit code 1."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except TextsieveError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="textsieve")
def main() -> None:
    """Remove near-duplicate texts from a Kafka topic: in order, at once, with proof.

    Every setting is an environment variable, TEXTSIEVE_...; the README lists them.
    """


@main.command()
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much to say on standard error.",
)
def worker(log_level: str) -> None:
    """Judge the events of the raw topics until told to stop.

    Creates the topics that are missing and checks all of them. SIGTERM and SIGINT (Ctrl-C) finish the batch
    in flight and close the state. Exit code 0 after a signal, 1 after an error, with a sentence that says
    what to do.
    """
    from stream.settings import load
    from stream.tools import worker as tool

    failure = tool.run(load(), log_level)
    if isinstance(failure, TextsieveError):
        raise failure
    if failure is not None:
        raise click.ClickException(f"{type(failure).__name__}: {failure}")


@main.command()
@click.argument("input", type=click.Path(allow_dash=True, dir_okay=False))
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where the results go; made if it is missing.  [default: the current directory]",
)
@click.option("--text-field", metavar="F", help="The field of the text.  [default: text]")
@click.option("--id-field", metavar="F", help="The field of the producer's id.  [default: id]")
@click.option("--time-field", metavar="F", help="The field of the time. Without it nothing expires.")
@click.option(
    "--format",
    "input_format",
    type=click.Choice(["jsonl", "plain"]),
    help="jsonl: a JSON object on each line. plain: a text on each line.  [default: jsonl]",
)
@click.option("--force", is_flag=True, help="Replace the results of an earlier run.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object.")
def dedup(
    input: str,
    output_dir: Path,
    text_field: str | None,
    id_field: str | None,
    time_field: str | None,
    input_format: str | None,
    force: bool,
    as_json: bool,
) -> None:
    r"""Judge the lines of a file, in their order, without Kafka.

    INPUT is a file or - for standard input. xz and gzip are read directly. The verdicts are those of the
    worker under the same settings (TEXTSIEVE_RETENTION, TEXTSIEVE_MAX_DISTANCE, ...); options come before
    settings.

    \b
    Four files are written:
      unique.jsonl      the lines that are no near-duplicate of an earlier unique line, untouched
      duplicates.jsonl  the lines that are, untouched
      rejected.jsonl    the lines that cannot be judged, untouched
      verdicts.jsonl    for each duplicate, what it is a duplicate of and why; for each
                        rejected line, the reason. `source` is file:0:<line, counted from 0>
    They appear when the run is complete, all at once; a run that fails leaves nothing behind.

    A line ends with a newline only. An empty line is an event too: as jsonl it is rejected (it is not JSON),
    as plain it is an empty text.

    Times are epoch seconds or milliseconds, or ISO 8601 (2010-12-02 14:31:19, or a date alone; UTC unless it
    says otherwise). A line without a time, or with one that cannot be read, takes the stream time: the latest
    time before it. How many there were is said at the end.

    \b
    Examples:
      textsieve dedup comments.jsonl.xz --time-field time --output-dir result
      zcat texts.txt.gz | textsieve dedup - --format plain --json

    Exit code 0 when all lines were judged, 1 after an error.
    """
    from stream.settings import load
    from stream.text import Scheme
    from stream.tools import dedup as tool
    from stream.tools.files import LineReader
    from stream.tools.progress import shown

    chosen = {
        "text_field": text_field,
        "id_field": id_field,
        "input_format": None if input_format is None else input_format.replace("jsonl", "json"),
    }
    settings = load(**{name: value for name, value in chosen.items() if value is not None})
    if settings.input_format == "plain" and (text_field or id_field or time_field):
        raise click.UsageError("Plain lines have no fields: name no field, or take --format jsonl.")
    begun = time.perf_counter()
    reader = LineReader(input)
    with _terminable(), shown("Judging") as progress:
        report = tool.dedup(
            reader,
            output_dir,
            settings=settings,
            scheme=Scheme.build(settings.scheme_spec),
            time_field=time_field,
            replace=force,
            progress=lambda lines, position: progress(lines, position, reader.size),
        )
    seconds = round(time.perf_counter() - begun, 3)
    if time_field is None:
        click.echo("Without --time-field all lines are of one time: nothing expires.", err=True)
    else:
        for count, state in (
            (report.missing_times, "no time"),
            (report.unreadable_times, "a time that cannot be read"),
        ):
            if count:
                click.echo(
                    f"{count} lines have {state} in the field {time_field!r}: they took the stream time.",
                    err=True,
                )
    if as_json:
        click.echo(json.dumps({**report.tally._asdict(), "seconds": seconds}))
    else:
        click.echo(f"{report.tally}")
        click.echo(f"{seconds} s; results in {output_dir.absolute()}")


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that it can clean up."""
    import signal

    def terminate(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run() -> NoReturn:
    """The command as a module: `python -m stream`."""
    sys.exit(main(prog_name="textsieve"))
