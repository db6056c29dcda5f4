"""The topics of an application: created where missing, and checked at every start against what is promised.

Topics are created here and not by Faust or by the broker's own will, because their configuration carries
promises: what the raw topic takes, no output may refuse, and the changelog may forget nothing.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from state.changelog import MAX_RECORD_BYTES
from stream.admin import Admin, Topic
from stream.errors import TopicError
from stream.settings import PREFIX, Settings

log = logging.getLogger(__name__)

HEADROOM: Final = 64 * 1024
"""By how many bytes a record may grow between raw and output: our headers are far below it."""
FUTURE_BOUND: Final = 3_600_000
"""How far ahead of the broker's clock (ms) a raw record may be stamped. One record of the year 2099 would
otherwise end every retention; Kafka 4 has this default, older brokers have none."""
FOREVER: Final = 2**63 - 1
CHANGELOG_RECORD: Final = MAX_RECORD_BYTES + HEADROOM
"""What a changelog must take; a broker's default is a megabyte."""

_CLEANUP: Final = "cleanup.policy"
_SIZE: Final = "max.message.bytes"
_STAMP: Final = "message.timestamp.type"
_AFTER: Final = "message.timestamp.after.max.ms"
_BEFORE: Final = "message.timestamp.before.max.ms"


class Cluster(NamedTuple):
    """The cluster and the topics that a worker has found in order."""

    id: str
    topics: Mapping[str, Topic]


def prepare(settings: Settings) -> Cluster:
    """Create the topics that are missing, check all of them, and say what they are.

    Raises:
        BrokerError: the broker does not answer within the deadline, or refuses.
        TopicError: a topic is configured so that a promise could not be kept; every fault is named, each
            with its cure.
    """
    admin = Admin(settings)
    raw, found = _existing(settings, admin)
    faults = [
        *_raw_faults(settings, raw),
        *_output_faults(settings, raw, found),
        *_own_faults(settings, raw, found),
    ]
    if faults:
        raise TopicError("\n".join(faults))
    return Cluster(admin.cluster_id(), {**raw, **found})


def restore(settings: Settings) -> None:
    """Create the topics that are missing, and say so; those that are there are taken as they are.

    Raises:
        BrokerError: the broker does not answer within the deadline, or refuses.
    """
    admin = Admin(settings)
    names = [*settings.raw_topics, *settings.topics]
    there = admin.describe(names)
    _existing(settings, admin)
    for name in names:
        if name not in there:
            log.warning("Topic %s was gone. It has been made again; what it held is lost", name)


def _existing(settings: Settings, admin: Admin) -> tuple[dict[str, Topic], dict[str, Topic]]:
    """The raw topics and all others, each created where it was missing."""
    raw = admin.describe(settings.raw_topics)
    missing = [name for name in settings.raw_topics if name not in raw]
    admin.create({name: (settings.partitions, _raw_config(settings)) for name in missing})
    raw = admin.describe(settings.raw_topics) if missing else raw
    wanted = _wanted(settings, raw)
    found = admin.describe(wanted)
    missing = [name for name in wanted if name not in found]
    admin.create({name: wanted[name] for name in missing})
    found = admin.describe(wanted) if missing else found
    return raw, found


def _raw_config(settings: Settings) -> dict[str, str]:
    return {
        _CLEANUP: "delete",
        "retention.ms": str(settings.topic_retention),
        _AFTER: str(FUTURE_BOUND),
    }


def _wanted(settings: Settings, raw: Mapping[str, Topic]) -> dict[str, tuple[int, dict[str, str]]]:
    """Every topic but the raw ones: its partitions and configuration if it is to be created."""
    partitions = max(topic.partitions for topic in raw.values())
    size = max(int(topic.config[_SIZE]) for topic in raw.values())
    output = {
        _CLEANUP: "delete",
        "retention.ms": str(settings.topic_retention),
        _STAMP: "CreateTime",
        _BEFORE: str(FOREVER),
        _AFTER: str(FOREVER),
        _SIZE: str(size + HEADROOM),
    }
    wanted = dict.fromkeys(settings.topics, (partitions, output))
    for topic in raw.values():
        wanted[settings.changelog_topic(topic.name)] = (topic.partitions, dict(_CHANGELOG))
    wanted[settings.rules_topic] = (1, dict(_RULES))
    return wanted


_CHANGELOG: Final = {
    _CLEANUP: "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    _STAMP: "LogAppendTime",
}
_RULES: Final = {_CLEANUP: "compact"}


def _raw_faults(settings: Settings, raw: Mapping[str, Topic]) -> Iterable[str]:
    for topic in raw.values():
        if topic.partitions > settings.partitions:
            yield (
                f"Topic {topic.name} has {topic.partitions} partitions, {PREFIX}PARTITIONS allows "
                f"{settings.partitions}. Each partition would be a scope of its own: a text is only compared with "
                f"texts of its partition. If that is what you want, set {PREFIX}PARTITIONS={topic.partitions}; "
                "otherwise write the texts to a topic of one partition."
            )
        if topic.config[_STAMP] == "CreateTime" and int(topic.config.get(_AFTER, FOREVER)) > FUTURE_BOUND:
            yield (
                f"Topic {topic.name} takes records of any future time ({_AFTER}={topic.config.get(_AFTER)}): one "
                "record of the year 2099 would end every retention. Bound it: "
                + _alter(settings.broker, topic.name, {_AFTER: str(FUTURE_BOUND)})
            )


def _output_faults(settings: Settings, raw: Mapping[str, Topic], found: Mapping[str, Topic]) -> Iterable[str]:
    for topic in (found[name] for name in settings.topics):
        for source in raw.values():
            if topic.partitions < source.partitions:
                yield (
                    f"Topic {topic.name} has {topic.partitions} partitions, {source.name} has {source.partitions}; an "
                    f"event keeps its partition. Run: kafka-topics.sh --bootstrap-server {settings.broker} --alter "
                    f"--topic {topic.name} --partitions {source.partitions}"
                )
            wrong = {}
            if "compact" in topic.config[_CLEANUP]:
                wrong[_CLEANUP] = "delete"
            if int(topic.config[_SIZE]) < int(source.config[_SIZE]) + HEADROOM:
                wrong[_SIZE] = str(int(source.config[_SIZE]) + HEADROOM)
            if topic.config[_STAMP] != "CreateTime":
                wrong[_STAMP] = "CreateTime"
            for bound in (_BEFORE, _AFTER):
                if int(topic.config.get(bound, FOREVER)) < int(source.config.get(bound, FOREVER)):
                    wrong[bound] = source.config.get(bound, str(FOREVER))
            if wrong:
                yield (
                    f"Topic {topic.name} would refuse or change events that {source.name} takes "
                    f"({', '.join(f'{key} is {topic.config.get(key)}' for key in wrong)}). Run: "
                    + _alter(settings.broker, topic.name, wrong)
                )


def _own_faults(settings: Settings, raw: Mapping[str, Topic], found: Mapping[str, Topic]) -> Iterable[str]:
    for source in raw.values():
        changelog = found[settings.changelog_topic(source.name)]
        if changelog.partitions != source.partitions:
            yield (
                f"Changelog {changelog.name} has {changelog.partitions} partitions, {source.name} has "
                f"{source.partitions}. Run: kafka-topics.sh --bootstrap-server {settings.broker} --alter "
                f"--topic {changelog.name} --partitions {source.partitions}"
            )
        if int(changelog.config[_SIZE]) < CHANGELOG_RECORD:
            yield (
                f"Topic {changelog.name} refuses records that the worker writes "
                f"({_SIZE} is {changelog.config[_SIZE]}). Run: "
                + _alter(settings.broker, changelog.name, {_SIZE: str(2 * CHANGELOG_RECORD)})
            )
        yield from _config_fault(
            settings, changelog, _CHANGELOG, "could forget originals that are still compared"
        )
    yield from _config_fault(
        settings, found[settings.rules_topic], _RULES, "could forget rules that verdicts were made under"
    )


def _config_fault(
    settings: Settings, topic: Topic, config: Mapping[str, str], consequence: str
) -> Iterable[str]:
    wrong = {key: value for key, value in config.items() if topic.config.get(key) != value}
    if wrong:
        shown = ", ".join(f"{key} is {topic.config.get(key)}" for key in wrong)
        yield f"Topic {topic.name} {consequence} ({shown}). Run: " + _alter(
            settings.broker, topic.name, wrong
        )


def _alter(broker: str, topic: str, config: Mapping[str, str]) -> str:
    entries = ",".join(f"{key}={value}" for key, value in config.items())
    return (
        f"kafka-configs.sh --bootstrap-server {broker} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {entries}"
    )
