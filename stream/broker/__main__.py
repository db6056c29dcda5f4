"""`python -m stream.broker`: an Apache Kafka to play with, until Ctrl-C."""

import signal
import sys
import tempfile
from pathlib import Path

import click

from stream.broker.apache import ApacheKafka
from stream.errors import BrokerError


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=None, help="The port; a free one by default.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Keep the data here; a temporary directory, deleted at the end, by default.",
)
def main(port: int | None, directory: Path | None) -> None:
    """Run a single Apache Kafka node on 127.0.0.1 until Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # ends like Ctrl-C: nothing is left behind
    try:
        with tempfile.TemporaryDirectory(prefix="textsieve-kafka-") as temporary:
            _run(ApacheKafka(directory or Path(temporary), port=port, progress=_tell))
    except KeyboardInterrupt:
        _tell("Stopped.")
    except BrokerError as error:
        raise click.ClickException(str(error)) from error


def _run(broker: ApacheKafka) -> None:
    with broker:
        click.echo(broker.bootstrap)
        _tell(f"{broker.name} listens on {broker.bootstrap} and logs to {broker.log}. Ctrl-C ends it.")
        broker.wait()


def _tell(sentence: str) -> None:
    click.echo(sentence, err=True)


if __name__ == "__main__":
    sys.exit(main())
