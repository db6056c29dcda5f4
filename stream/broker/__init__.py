"""The embedded brokers of `textsieve demo`, of the tests and of `make kafka`."""

from pathlib import Path

from stream.broker.apache import ApacheKafka, server_properties
from stream.broker.base import Broker, Progress, silent
from stream.broker.jars import apache_kafka_unavailable, cache_directory, kafka_version, resolve_jars
from stream.broker.noida import Noida, noida_binary
from stream.errors import BrokerError

__all__ = [
    "ApacheKafka",
    "Broker",
    "Noida",
    "Progress",
    "apache_kafka_unavailable",
    "cache_directory",
    "embedded_broker",
    "kafka_version",
    "noida_binary",
    "resolve_jars",
    "server_properties",
]


def embedded_broker(directory: Path, *, progress: Progress = silent) -> Broker:
    """The best broker that this machine can run, not yet started: Apache Kafka, else noida-db.

    Args:
        directory: as for every broker.
        progress: is told what the first start fetches.

    Raises:
        BrokerError: it can run neither. The message says what to install.
    """
    reason = apache_kafka_unavailable()
    if reason is None:
        return ApacheKafka(directory, progress=progress)
    if noida_binary() is not None:
        return Noida(directory)
    raise BrokerError(f"{reason} Or do without Java: pip install 'textsieve[embedded]'.")
