"""The few questions and orders that we have for the broker's administration, each within the deadline."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from stream.connection import confluent_options
from stream.errors import BrokerError
from stream.settings import PREFIX, Settings

T = TypeVar("T")


class Topic(NamedTuple):
    """A topic as the broker describes it."""

    name: str
    id: str
    """The broker's id of the topic: another one after it is deleted and made again."""
    partitions: int
    config: Mapping[str, str]


class Admin:
    """Asks and orders, and blocks meanwhile: call it through `asyncio.to_thread` where a loop runs.

    Every method raises `BrokerError` where the broker does not answer within the deadline, or refuses.
    """

    def __init__(self, settings: Settings) -> None:
        self._broker = settings.broker
        self._protocol = settings.security_protocol
        self._deadline = settings.deadline / 1000
        self._replication = settings.replication_factor
        self._client = AdminClient(confluent_options(settings), logger=None)

    def cluster_id(self) -> str:
        """The id of the cluster."""
        future = self._client.describe_cluster(request_timeout=self._deadline)
        return str(self._require(future, "The cluster cannot be described").cluster_id)

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics of these names that exist, with their ids, partitions and configuration."""
        topics = {}
        futures = self._client.describe_topics(TopicCollection(list(names)), request_timeout=self._deadline)
        for name, future in futures.items():
            try:
                topics[name] = self._answer(future)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise BrokerError(f"Topic {name} cannot be described: {error.args[0].str()}") from error
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        configs = (
            self._client.describe_configs(resources, request_timeout=self._deadline) if resources else {}
        )
        config = {
            resource.name: {
                key: str(entry.value)
                for key, entry in self._require(
                    future, f"The configuration of topic {resource.name} cannot be read"
                ).items()
            }
            for resource, future in configs.items()
        }
        return {
            name: Topic(name, str(topic.topic_id), len(topic.partitions), config[name])
            for name, topic in topics.items()
        }

    def create(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create topics, each with its partitions and configuration, and wait until the broker shows them.

        A topic that another worker creates at the same moment is taken as it is.
        """
        if not topics:
            return
        new = [
            NewTopic(
                name, num_partitions=partitions, replication_factor=self._replication, config=dict(config)
            )
            for name, (partitions, config) in topics.items()
        ]
        for name, future in self._client.create_topics(new, request_timeout=self._deadline).items():
            try:
                self._answer(future)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise BrokerError(f"Topic {name} cannot be created: {error.args[0].str()}") from error
        self._await(lambda: len(self.describe(topics)) == len(topics), f"topics {', '.join(topics)} appear")

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Let the broker delete the records of a partition before an offset."""
        wanted = TopicPartition(topic, partition, before)
        for future in self._client.delete_records([wanted], request_timeout=self._deadline).values():
            self._require(future, f"Records of {topic}:{partition} before {before} cannot be deleted")

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + self._deadline
        while not condition():
            if time.monotonic() > until:
                raise BrokerError(
                    f"Waited {self._deadline:.0f} s at {self._broker} until {what}; they have not"
                )
            time.sleep(
                0.05
            )  # the broker shows a new topic within moments; asking without a pause would hold it up

    def _require(self, future: "Future[T]", fault: str) -> T:
        try:
            return self._answer(future)
        except KafkaException as error:
            raise BrokerError(f"{fault}: {error.args[0].str()}") from error

    def _answer(self, future: "Future[T]") -> T:
        try:
            return future.result(self._deadline + 5)
        except TimeoutError as error:
            raise self._unreachable() from error
        except KafkaException as error:
            if error.args[0].code() in (
                KafkaError._TRANSPORT,
                KafkaError._TIMED_OUT,
                KafkaError._ALL_BROKERS_DOWN,
            ):
                raise self._unreachable() from error
            raise

    def _unreachable(self) -> BrokerError:
        return BrokerError(
            f"No broker answers at {self._broker} within {self._deadline:.0f} s. Is it running, is {PREFIX}BROKER "
            f"right, and does it speak {PREFIX}SECURITY_PROTOCOL={self._protocol}?"
        )
