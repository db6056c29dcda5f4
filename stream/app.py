"""The Faust application: topics, scopes, agent and web, wired in one place.

`faust -A stream.app worker` finds `app` here, made from the environment when it is first asked for.
"""

import asyncio
import logging
import uuid
from typing import Any, Final

import faust
from aiokafka import TopicPartition

from stream.agents import sieve
from stream.connection import faust_credentials
from stream.errors import TextsieveError
from stream.group import describe_group
from stream.replica import Replica
from stream.scope import Scope
from stream.scopes import Scopes
from stream.settings import Settings, load
from stream.text import Scheme
from stream.topics import Cluster, prepare
from stream.transport import ReadCommittedTransport

log = logging.getLogger(__name__)

REBUILD_SECONDS: Final = 3600.0
"""How long the agent may be away from the consumer (`max.poll.interval`): a state of 50 million originals that
is built anew from its changelog takes minutes, and a worker that does so must not lose its partitions."""
METADATA_MS: Final = 5_000
"""How often the consumer asks anew which partitions there are."""
HEARTBEATS_A_SESSION: Final = 3
"""Kafka's own rule: a session outlives two lost heartbeats."""


class Application(faust.App):
    """The application of one worker.

    Attributes:
        failure: the error that ended the worker; None while it runs, and where it was told to stop.
    """

    def __init__(self, settings: Settings) -> None:
        # By it the group's coordinator tells this worker from the others that may hold a scope.
        client_id = f"textsieve-{uuid.uuid4().hex}"
        super().__init__(
            settings.group,
            broker=[f"kafka://{server.strip()}" for server in settings.broker.split(",")],
            broker_client_id=client_id,
            broker_credentials=faust_credentials(settings),
            broker_session_timeout=settings.session_timeout / 1000,
            broker_heartbeat_interval=settings.session_timeout / 1000 / HEARTBEATS_A_SESSION,
            # Faust's default of 90 s would let one answer that never comes hold the consumer, and its heartbeats.
            broker_request_timeout=max(settings.deadline, settings.session_timeout) / 1000 + 1,
            broker_max_poll_interval=REBUILD_SECONDS,
            # A broker that has just come back may not know the topics yet: Faust's five minutes would be a stall.
            consumer_metadata_max_age_ms=METADATA_MS,
            broker_commit_interval=REBUILD_SECONDS,
            broker_commit_every=2**31,
            # Only asked where the group has no offset yet. A scope begins where `start_at` says all the same, and
            # reads by itself what lies between there and the first event that comes.
            consumer_auto_offset_reset="earliest" if settings.start_at == "earliest" else "latest",
            # The transaction commits; Faust must not wait for acknowledgements that never come.
            stream_wait_empty=False,
            # Topics are made by `topics.prepare`, with the configuration that the promises need.
            topic_allow_declare=False,
            topic_disable_leader=True,
            store="memory://",
            datadir=str(settings.data_dir),
            web_enabled=settings.web,
            web_bind=settings.web_host,
            web_host=settings.web_host,
            web_port=settings.web_port,
        )
        self.failure: BaseException | None = None
        self._client_id = client_id
        self._settings = settings
        self._scheme: Scheme | None = None
        self._cluster: Cluster | None = None
        self.transport = ReadCommittedTransport(self.conf.broker_consumer, self)

    async def on_first_start(self) -> None:
        """Create and check the topics, and build the scheme, before anything is consumed."""
        await super().on_first_start()
        try:
            self._cluster = await asyncio.to_thread(prepare, self._settings)
            self._scheme = await asyncio.to_thread(Scheme.build, self._settings.scheme_spec)
        except Exception as error:
            self.failure = error
            raise
        log.info(
            "Group %s at %s judges %s under scheme %s and rules %s",
            self._settings.group,
            self._settings.broker,
            ", ".join(self._settings.raw_topics),
            self._scheme.id,
            self._settings.rules.id,
        )

    def make_replica(self, partition: TopicPartition) -> Replica:
        """The state of a partition; not open yet."""
        scheme, cluster = self._prepared()
        return Replica(self._settings, scheme.id, cluster, partition.topic, partition.partition)

    def make_scope(self, replica: Replica) -> Scope:
        """The scope of a partition that was assigned; not open yet."""
        scheme, _ = self._prepared()
        return Scope(self._settings, scheme, replica, self._client_id)

    def followed(self) -> list[TopicPartition]:
        """The partitions whose state this worker keeps up while others hold them."""
        if not self._settings.standby:
            return []
        _, cluster = self._prepared()
        return [
            TopicPartition(topic, partition)
            for topic in self._settings.raw_topics
            for partition in range(cluster.topics[topic].partitions)
        ]

    async def claim(self) -> None:
        """Join the group anew where it is settled, and has given a partition to nobody.

        Faust's assignor passes over a topic that its member's metadata lacks, as it does for a moment after a broker
        came back (0.15.3, faust/assignor/partition_assignor.py, `_get_copartitioned_groups`), and nobody would ever
        ask again: the events would wait for a restart.
        """
        _, cluster = self._prepared()
        group = await describe_group(self._settings)
        partitions = {
            (topic, partition)
            for topic in self._settings.raw_topics
            for partition in range(cluster.topics[topic].partitions)
        }
        if group.settled and group.members and (orphans := partitions - group.holders.keys()):
            log.warning("Nobody holds %s: joining the group anew", sorted(orphans))
            await self.consumer.subscribe(self._settings.raw_topics)

    def _prepared(self) -> tuple[Scheme, Cluster]:
        if self._scheme is None or self._cluster is None:
            raise RuntimeError("partitions are assigned after the start")
        return self._scheme, self._cluster

    def fail(self, error: BaseException) -> None:
        """End the worker because of this error."""
        if self.failure is None:
            self.failure = error
            if not isinstance(error, TextsieveError):
                log.error("An error that nobody foresaw", exc_info=error)
            self.add_future(self.crash(error))


def create_app(settings: Settings) -> Application:
    """The application of these settings. Topics are created and checked when the worker starts.

    Raises:
        SettingsError: a file that a setting names cannot be used.
    """
    app = Application(settings)
    scopes = Scopes(app.make_replica, app.make_scope, app.followed, app.claim, app.fail)
    app.service(scopes)  # type: ignore[arg-type] # an instance serves too: faust/app/base.py, _prepare_subservice

    @app.on_partitions_assigned.connect
    async def assigned(sender: object, /, *args: Any, **kwargs: Any) -> None:
        await scopes.assign(args[0])

    @app.on_partitions_revoked.connect
    async def revoked(sender: object, /, *args: Any, **kwargs: Any) -> None:
        await scopes.revoke(args[0])

    raw = app.topic(
        *settings.raw_topics, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )

    @app.agent(raw, name="sieve")
    async def agent(events: faust.StreamT[bytes]) -> None:
        await sieve(
            events,
            scopes,
            batch_size=settings.batch_size,
            batch_wait=settings.batch_wait / 1000,
            on_error=app.fail,
        )

    return app


def __getattr__(name: str) -> Application:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    app = create_app(load())
    globals()["app"] = app
    return app
