"""Apache Kafka on one node, started from plain jars."""

import base64
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from stream.broker.base import Broker, Progress, free_ports, log_tail, silent
from stream.broker.jars import apache_kafka_unavailable, java, kafka_version, resolve_jars
from stream.errors import BrokerError

_JVM = (
    "-Xms64m",
    "-Xmx512m",
    # A start takes 2.1 s instead of 2.8 s, and 285 MB instead of 360 MB. The optimising compiler would only
    # pay after minutes of full load.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dlog4j2.configurationFile=log4j2.properties",
)

_LOG4J = """\
status=error
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""


class ApacheKafka(Broker):
    """Apache Kafka 4 (KRaft), one node that is broker and controller.

    Topics are created only when they are asked for: a misspelt name is an error and not a new topic.

    Args:
        directory: as for every broker.
        port: as for every broker.
        proxy_port: a port on which a proxy listens that forwards to `proxied_port`. Clients that come that way are
            told to come back that way; everybody else uses `bootstrap`. None for no such listener.
        overrides: broker properties that differ from `server_properties`.
        progress: is told what the first start fetches.

    Attributes:
        proxied_port: the port behind the proxy; None where there is none.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        proxy_port: int | None = None,
        overrides: Mapping[str, str] | None = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(directory, port=port)
        self.name = f"Apache Kafka {kafka_version()}"
        properties = server_properties(self.port, self._second_port)
        self.proxied_port: int | None = None
        if proxy_port is not None:
            (self.proxied_port,) = free_ports(1)
            properties = _with_proxy(properties, self.proxied_port, proxy_port)
        self._properties = properties | dict(overrides or {})
        self._progress = progress
        self._jars = Path()

    def _prepare(self) -> None:
        if reason := apache_kafka_unavailable():
            raise BrokerError(reason)
        self._jars = resolve_jars(self._progress)
        (self.directory / "log4j2.properties").write_text(_LOG4J)
        (self.directory / "server.properties").write_text(
            "".join(f"{key}={value}\n" for key, value in self._properties.items())
        )
        if not (self.directory / "data" / "meta.properties").exists():
            self._format()

    def _format(self) -> None:
        arguments = ["format", "--cluster-id", _cluster_id(), "--config", "server.properties"]
        with self.log.open("ab") as out:
            done = subprocess.run(  # noqa: S603 - our own command line, no shell
                self._java("kafka.tools.StorageTool", *arguments),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            raise BrokerError(
                f"{self.name} could not format {self.directory / 'data'} (exit code {done.returncode}). "
                + log_tail(self.log)
            )

    def _command(self) -> Sequence[str]:
        return self._java("kafka.Kafka", "server.properties")

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        return [java(), *_JVM, "-cp", str(self._jars / "*"), main_class, *arguments]


def server_properties(port: int, controller_port: int) -> dict[str, str]:
    """The properties of a single node on loopback, with its data in `data` beneath the working directory."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        # Never the controller's: the coordinator would send its transaction markers there, for ever in vain.
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": "data",
        "num.partitions": "1",
        "auto.create.topics.enable": "false",
        # With the default of three replicas a producer's start() would wait for ever on one node.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # One node needs no spread, and each partition costs a file handle and a moment at the first use.
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "5",
        # A group of one or two members has nobody to wait for.
        "group.initial.rebalance.delay.ms": "0",
        # After a kill the node registers again only once its former session has run out: with the default
        # of 9 s that start takes 12 s, with 3 s 5 s. With much less a stalled machine loses its leaders.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "log.segment.bytes": "16777216",
    }


def _with_proxy(properties: Mapping[str, str], port: int, advertised: int) -> dict[str, str]:
    return {
        **properties,
        "listeners": f"{properties['listeners']},PROXIED://127.0.0.1:{port}",
        "advertised.listeners": f"{properties['advertised.listeners']},PROXIED://127.0.0.1:{advertised}",
        "listener.security.protocol.map": f"{properties['listener.security.protocol.map']},PROXIED:PLAINTEXT",
    }


def _cluster_id() -> str:
    # 16 bytes in URL-safe base64; the fixed beginning keeps it from starting with a dash, like an option.
    return base64.urlsafe_b64encode(b"textsieve" + secrets.token_bytes(7)).rstrip(b"=").decode()
