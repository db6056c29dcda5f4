"""Where a demo takes place: on a broker of its own that is gone afterwards, or on one that runs already."""

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from stream.broker import ApacheKafka, Broker, Noida, embedded_broker
from stream.connection import confluent_options
from stream.errors import BrokerError
from stream.settings import Settings, load

BrokerKind = Literal["auto", "kafka", "noida"]

_DELETE_SECONDS: Final = 30.0


class Stage(NamedTuple):
    """A broker, names for topics on it, and a place for files."""

    settings: Mapping[str, object]
    """Of all clients, above those of the environment; None stands for a setting that is left out."""
    directory: Path
    """A temporary directory, empty but for what a broker of our own keeps there."""
    check: Callable[[], None]
    """Raises BrokerError when a broker of our own has ended."""


@contextmanager
def embedded(kind: BrokerKind, say: Callable[[str], None]) -> Iterator[Stage]:
    """A broker of our own in a temporary directory; neither is there afterwards.

    Parameters:
        kind: which one; `auto` takes Apache Kafka where it can run, else noida-db.
        say: told, in sentences, what takes long.

    Raises:
        BrokerError: it cannot run here. The message says what to install.
    """
    with _directory() as directory:
        broker = _broker(kind, directory / "broker", say)
        say(f"Starting {broker.name} ...")
        with broker:
            say(f"{broker.name} answers on {broker.bootstrap}.")
            # What the environment says of another broker holds for that one.
            security = {
                name: field.default
                for name, field in Settings.model_fields.items()
                if name.startswith(("sasl_", "tls_"))
            }
            settings = {
                **security,
                "security_protocol": "PLAINTEXT",
                "replication_factor": -1,
                **_names("textsieve", ""),
                "broker": broker.bootstrap,
            }
            yield Stage(settings, directory, broker.check)


@contextmanager
def running(bootstrap: str, say: Callable[[str], None]) -> Iterator[Stage]:
    """Topics and a group of new names on a broker that runs already; they are deleted afterwards.

    The settings of the environment say how to connect (TLS, SASL).
    """
    name = f"textsieve-demo-{secrets.token_hex(4)}"
    settings = {**_names(name, f"{name}."), "broker": bootstrap}
    say(f"The demo's topics and group on {bootstrap} begin with {name}; they are deleted at the end.")
    with _directory() as directory:
        try:
            yield Stage(settings, directory, lambda: None)
        finally:
            remaining = _delete(load(**settings))
            if remaining:
                say(f"These could not be deleted and stay on {bootstrap}: {', '.join(remaining)}.")


def _names(group: str, prefix: str) -> dict[str, str]:
    return {
        "group": group,
        "raw_topics": f"{prefix}texts.raw",
        "unique_topic": f"{prefix}texts.unique",
        "duplicates_topic": f"{prefix}texts.duplicates",
        "rejected_topic": f"{prefix}texts.rejected",
    }


def _broker(kind: BrokerKind, directory: Path, say: Callable[[str], None]) -> Broker:
    if kind == "kafka":
        return ApacheKafka(directory, progress=say)
    if kind == "noida":
        return Noida(directory)
    return embedded_broker(directory, progress=say)


@contextmanager
def _directory() -> Iterator[Path]:
    try:
        directory = tempfile.TemporaryDirectory(prefix="textsieve-demo-")
    except OSError as error:
        raise BrokerError(
            f"There is no place for temporary files ({error}). Name a directory in TMPDIR."
        ) from error
    with directory as name:
        yield Path(name)


def _delete(settings: Settings) -> Sequence[str]:
    """Delete every topic of the settings, and the group; returns the names of those that remain."""
    admin = AdminClient(confluent_options(settings), logger=None)
    changelogs = [settings.changelog_topic(topic) for topic in settings.raw_topics]
    topics = [*settings.raw_topics, *settings.topics, *changelogs, settings.rules_topic]
    pending = {
        **admin.delete_topics(topics, request_timeout=_DELETE_SECONDS),
        **admin.delete_consumer_groups([settings.group], request_timeout=_DELETE_SECONDS),
    }
    remaining = []
    for name, future in pending.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND):
                remaining.append(name)
    return remaining
