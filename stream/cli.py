"""The `textsieve` command: parses, calls a tool, prints."""

import sys
from typing import NoReturn

import click

from stream.errors import TextsieveError
from stream.settings import load


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
    from stream.tools import worker as tool  # noqa: PLC0415 - Faust takes half a second that --help need not pay

    failure = tool.run(load(), log_level)
    if isinstance(failure, TextsieveError):
        raise failure
    if failure is not None:
        raise click.ClickException(f"{type(failure).__name__}: {failure}")


def run() -> NoReturn:
    """The command as a module: `python -m stream`."""
    sys.exit(main(prog_name="textsieve"))
