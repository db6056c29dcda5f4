"""Every setting: its name, default, bounds and meaning. All come from the environment, as `TEXTSIEVE_*`."""

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from state.layout import Layout
from stream.errors import SettingsError
from stream.rules import ConfirmPolicy, InputFormat, Rules, TombstonePolicy
from stream.text import Normalization, Part, SchemeSpec

PREFIX: Final = "TEXTSIEVE_"

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER: Final = re.compile(r"[^\s,/]+:[0-9]{1,5}")

_NOT_SETTINGS: Final = re.compile(
    # Where the embedded broker keeps its jars; what the tests are told.
    r"CACHE|DATA|TEST_.*"
    # What Kubernetes puts into the environment for a service whose name begins with textsieve.
    r"|(.+_)?SERVICE_(HOST|PORT(_.+)?)|(.+_)?PORT_[0-9]+_(TCP|UDP|SCTP)(_.+)?"
)
_ADDRESS_OF_A_SERVICE: Final = re.compile(r"(tcp|udp|sctp)://.*")


def parse_duration(value: object) -> object:
    """A duration such as `2d`, `36h`, `90m`, `10s` or `250ms`, in milliseconds.

    Anything that is not a string is handed on as it is (a default, or a number of milliseconds).

    Raises:
        ValueError: the text is not a number followed by one of ms, s, m, h, d, w.
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h|d|w)\s*", value)
    if match is None:
        raise ValueError(
            f"{value!r} is not a duration: write a number and a unit, such as 2d, 36h, 90m, 10s, 250ms"
        )
    return round(float(match[1]) * _UNITS[match[2]])


def parse_share(value: object) -> object:
    """A share such as `0.8`, from 0 to 1 with up to three decimals, in thousandths.

    Anything that is not a string is handed on as it is (a default, or a number of thousandths).

    Raises:
        ValueError: the text is no such number.
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*([01])(?:\.([0-9]{1,3}))?\s*", value)
    if match is None:
        raise ValueError(
            f"{value!r} is no share: write a number from 0 to 1 with up to three decimals, such as 0.8"
        )
    return 1000 * int(match[1]) + int((match[2] or "").ljust(3, "0"))


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _retention(value: object) -> object:
    return -1 if value == "forever" else parse_duration(value)


Duration = Annotated[int, BeforeValidator(parse_duration)]
"""Milliseconds, written as a number with a unit."""
Share = Annotated[int, BeforeValidator(parse_share), Field(ge=0, le=1000)]
"""Thousandths, written as a number from 0 to 1."""
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Names separated by commas."""
Distances = Annotated[
    tuple[Annotated[int, Field(ge=0, le=32)], ...],
    NoDecode,
    BeforeValidator(_split),
    Field(min_length=1, max_length=8),
]
"""Hamming distances separated by commas."""
Port = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """What a worker does. Read it with `load()`, which turns a mistake into a sentence that names the setting."""

    model_config = SettingsConfigDict(
        use_attribute_docstrings=True,
        env_prefix=PREFIX,
        frozen=True,
        env_ignore_empty=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    # Kafka
    broker: str = "127.0.0.1:9092"
    """Bootstrap servers, `host:port`, separated by commas."""
    group: str = Field("textsieve", pattern=r"^[A-Za-z0-9._-]{1,150}$")
    """The consumer group; also the first part of the names of changelogs, rules topic and transactional ids."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How to talk to the broker."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    """The SASL mechanism, where the protocol is one of the SASL ones."""
    sasl_username: str | None = None
    """The SASL user."""
    sasl_password: SecretStr | None = None
    """The SASL password; never logged."""
    tls_ca_file: Path | None = None
    """PEM file of the authorities to trust; the system's where absent."""
    tls_certificate_file: Path | None = None
    """PEM file of the client's certificate, for mutual TLS."""
    tls_key_file: Path | None = None
    """PEM file of the client's key."""
    tls_key_password: SecretStr | None = None
    """The password of the key file; never logged."""

    # Topics
    raw_topics: Names = ("texts.raw",)
    """The topics to read, separated by commas. Each partition of each is a scope of its own."""
    unique_topic: str = "texts.unique"
    """Where texts judged unique go."""
    duplicates_topic: str = "texts.duplicates"
    """Where duplicates go, each with its verdict."""
    rejected_topic: str = "texts.rejected"
    """Where events go that cannot be judged."""
    partitions: int = Field(1, ge=1, le=1000)
    """Partitions of the raw topics when they are created, and the most that an existing one may have: every
    partition is compared only with itself, so more of them must be a decision."""
    replication_factor: int = Field(-1, ge=-1, le=15)
    """Replicas of the topics that are created; -1 takes the broker's default."""
    topic_retention: Annotated[int, BeforeValidator(_retention)] = Field(7 * 86_400_000, ge=-1)
    """How long created raw and output topics keep their events, or `forever`. Kafka deletes by record time."""
    start_at: str = Field("earliest", pattern=r"^(earliest|latest|group:[A-Za-z0-9._-]{1,150})$")
    """Where a group that has no position yet begins: `earliest`, `latest`, or `group:NAME`, where another group
    stands, so that this one takes over from it without a gap."""

    # Input
    input_format: InputFormat = "json"
    """`json`: each value is an object with the text in a field. `plain`: each value is the text, in UTF-8."""
    text_field: str = Field("text", min_length=1, max_length=256)
    """The field that holds the text."""
    id_field: str = Field("id", min_length=1, max_length=256)
    """The field that holds the producer's id, a string of at most 256 bytes or a number; may be absent."""
    tombstones: TombstonePolicy = "reject"
    """What becomes of an event with a null value: `reject` it, or pass it on to `unique`."""
    max_text_chars: int = Field(1_000_000, ge=1, le=100_000_000)
    """A text of more characters is judged by its exact content only."""

    # The verdict
    retention: Duration = Field(2 * 86_400_000, ge=1, le=10 * 365 * 86_400_000)
    """How long an original is kept for comparison, by record time."""
    max_distance: int = Field(3, ge=0, le=16)
    """The largest Hamming distance between the fingerprints of candidates; with `confirm=none`, of near-duplicates."""
    confirm: ConfirmPolicy = "edit"
    """How candidates are looked at a second time: two short texts by `edit` similarity or by the `cosine` of their
    words, any others by the resemblance of their character 4-grams. `none`: the fingerprints alone decide."""
    min_edit_similarity: Share = 800
    """From which edit similarity on two short texts are near-duplicates."""
    min_cosine: Share = 800
    """From which cosine on two short texts are near-duplicates, with `confirm=cosine`."""
    min_resemblance: Share = 700
    """From which resemblance on two texts are near-duplicates, where one of them is not short."""
    max_profile_distances: Distances = (10, 14, 18)
    """In how many of 64 bits the profiles of two texts may differ for them to be compared, separated by commas: where
    they share one band, two, three or more."""
    max_crowd: int = Field(32, ge=8, le=100_000)
    """Where so many originals near a text share a band with it, or have a fingerprint near its own, it will not be
    found by that band, or by its fingerprint: texts of one template are found by what each has of its own. `capped`
    says that a text met such a crowd."""
    max_compared: int = Field(24, ge=1, le=1000)
    """How many originals that share a band with a text are compared with it, those of the nearest profiles."""

    # Text
    engine: Literal["rjieba", "jieba"] = "rjieba"
    """The segmenter; both give the same words, rjieba more than 20 times faster."""
    user_dictionary: Path | None = None
    """A dictionary of one's own in jieba's format, added to jieba's."""
    idf_table: Path | None = None
    """An IDF table of one's own, made by `textsieve idf build`, instead of jieba's."""
    html_entities: bool = True
    """Whether `&amp;` and its kin are read as the characters they stand for."""
    fold_script: bool = False
    """Whether traditional characters are compared as simplified ones."""
    html_tags: Part = "ignore"
    """Whether HTML tags count as text: `keep` or `ignore`."""
    urls: Part = "keep"
    """Whether URLs count. With `ignore`, texts that differ only in their links are the same."""
    mentions: Part = "keep"
    """Whether `@name` counts. With `ignore`, texts that differ only in whom they address are the same."""
    numbers_matter: bool = False
    """Whether texts with other numbers are never near-duplicates: episodes, bulletins of one template."""
    near_from: int = Field(10, ge=2, le=1000)
    """A text of fewer characters is a duplicate only of the same content (but with `confirm=none`)."""
    short_chars: int = Field(500, ge=1, le=4000)
    """A text of fewer characters is short: stored whole, and compared by edit similarity with other short ones."""
    bands: int = Field(12, ge=0, le=64)
    """How many bands of a MinHash are stored of each text, by which near-duplicates meet. 0: only fingerprints are."""
    rows: int = Field(3, ge=1, le=8)
    """How many values of the MinHash make a band: more of them meet less often by chance, and are missed more often."""

    # State
    data_dir: Path = Path("data")
    """Where the state of every scope lives, one directory for each group and in it one for each scope."""
    windows: int = Field(4, ge=1, le=16)
    """Into how many windows the retention is cut. More windows free the disk sooner; fewer make lookups faster."""
    layout: str = "16-16-16-16/1"
    """The segment table: the widths of the blocks in bits, and how many of them must match."""

    # Batches and transactions
    batch_size: int = Field(500, ge=1, le=10_000)
    """The most events in one transaction."""
    batch_wait: Duration = Field(100, ge=1, le=60_000)
    """How long an event may wait for others to share its transaction."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "zstd"
    """How outputs are compressed."""
    transaction_timeout: Duration = Field(10_000, ge=1_000, le=900_000)
    """After how long the broker aborts a transaction whose worker has vanished; not above the session."""
    session_timeout: Duration = Field(10_000, ge=6_000, le=1_800_000)
    """After how long without a heartbeat the group gives a worker's partitions away."""
    deadline: Duration = Field(30_000, ge=1_000, le=600_000)
    """How long any one call to Kafka may take before the attempt is given up and begun anew."""

    standby: bool = False
    """Whether the worker keeps a copy of the state of scopes that other workers hold, to take them over faster."""

    # Web
    web: bool = False
    """Whether the worker serves Faust's web pages."""
    web_host: str = "127.0.0.1"
    """The address that the web server binds; loopback unless told otherwise."""
    web_port: Port = 6066
    """The port of the web server."""

    @field_validator("broker")
    @classmethod
    def _servers(cls, value: str) -> str:
        servers = [part.strip() for part in value.split(",")]
        for server in servers:
            if _SERVER.fullmatch(server) is None:
                raise ValueError(
                    f"{server!r} is no server: write host:port, several of them separated by commas"
                )
        return ",".join(servers)

    @field_validator("replication_factor")
    @classmethod
    def _replicas(cls, value: int) -> int:
        if value == 0:
            raise ValueError("a topic has at least one replica; -1 takes the broker's default")
        return value

    @field_validator("unique_topic", "duplicates_topic", "rejected_topic")
    @classmethod
    def _topic_name(cls, value: str) -> str:
        if _TOPIC.fullmatch(value) is None or value in {".", ".."}:
            raise ValueError(
                f"{value!r} is no name of a topic: letters, digits, '.', '_' and '-', at most 249"
            )
        return value

    @field_validator("raw_topics")
    @classmethod
    def _topic_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one topic")
        if len(set(value)) < len(value):
            raise ValueError("a topic is named twice")
        return tuple(map(cls._topic_name, value))

    @field_validator("max_profile_distances")
    @classmethod
    def _rising(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if list(value) != sorted(value):
            raise ValueError("what shares more bands may not be allowed less: let the distances rise")
        return value

    @field_validator("layout")
    @classmethod
    def _layout(cls, value: str) -> str:
        return str(Layout.parse(value))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        layout = Layout.parse(self.layout)
        if layout.bits != 64:
            raise ValueError(f"{PREFIX}LAYOUT={self.layout} divides {layout.bits} bits; a fingerprint has 64")
        if self.max_distance > layout.max_distance:
            raise ValueError(
                f"{PREFIX}MAX_DISTANCE={self.max_distance} is more than {PREFIX}LAYOUT={self.layout} finds "
                f"({layout.max_distance}): lower the distance or choose a layout with more blocks"
            )
        changelogs = [self.changelog_topic(topic) for topic in self.raw_topics]
        if max(map(len, changelogs)) > 249:
            raise ValueError(
                f"{PREFIX}GROUP and {PREFIX}RAW_TOPICS are too long: the changelog {max(changelogs, key=len)} would "
                "have more than the 249 characters that Kafka takes"
            )
        topics = [*self.raw_topics, *self.topics, *changelogs, self.rules_topic]
        if twice := {topic for topic in topics if topics.count(topic) > 1}:
            raise ValueError(
                f"{PREFIX}RAW_TOPICS, _UNIQUE_TOPIC, _DUPLICATES_TOPIC and _REJECTED_TOPIC must all be different, and "
                f"none a topic of the group's own: {', '.join(sorted(twice))} would serve two purposes"
            )
        if -1 < self.topic_retention < 2 * self.retention:
            raise ValueError(
                f"{PREFIX}TOPIC_RETENTION must be at least twice {PREFIX}RETENTION, or `forever`: a replay takes its "
                "originals from the unique topic"
            )
        if self.transaction_timeout > self.session_timeout:
            raise ValueError(
                f"{PREFIX}TRANSACTION_TIMEOUT must not be above {PREFIX}SESSION_TIMEOUT: a worker that lost its "
                "partitions would hold its readers back"
            )
        if self.short_chars < self.near_from:
            raise ValueError(
                f"{PREFIX}SHORT_CHARS={self.short_chars} is below {PREFIX}NEAR_FROM={self.near_from}: raise it, or "
                "lower the other"
            )
        if self.text_field == self.id_field:
            raise ValueError(f"{PREFIX}TEXT_FIELD and {PREFIX}ID_FIELD are both {self.text_field!r}")
        self._require_consistent_security()
        return self

    def _require_consistent_security(self) -> None:
        protocol = f"{PREFIX}SECURITY_PROTOCOL={self.security_protocol}"
        user = (self.sasl_username, self.sasl_password)
        if self.uses_sasl and None in user:
            raise ValueError(f"{protocol} needs {PREFIX}SASL_USERNAME and {PREFIX}SASL_PASSWORD")
        if not self.uses_sasl and user != (None, None):
            raise ValueError(
                f"{protocol} would not use {PREFIX}SASL_USERNAME and {PREFIX}SASL_PASSWORD: choose SASL_SSL or "
                "SASL_PLAINTEXT, or leave them out"
            )
        files = (self.tls_ca_file, self.tls_certificate_file, self.tls_key_file)
        if not self.uses_tls and files != (None, None, None):
            raise ValueError(
                f"{protocol} would not use the files that {PREFIX}TLS_* name: choose SSL or SASL_SSL, or leave them out"
            )
        if (self.tls_certificate_file is None) != (self.tls_key_file is None):
            raise ValueError(f"{PREFIX}TLS_CERTIFICATE_FILE and {PREFIX}TLS_KEY_FILE go together")

    @property
    def uses_sasl(self) -> bool:
        """Whether the broker is shown a user and a password."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def rules(self) -> Rules:
        """The rules of a verdict under these settings."""
        return Rules(
            max_distance=self.max_distance,
            confirm=self.confirm,
            min_edit_similarity=self.min_edit_similarity,
            min_cosine=self.min_cosine,
            min_resemblance=self.min_resemblance,
            max_profile_distances=self.max_profile_distances,
            max_crowd=self.max_crowd,
            max_compared=self.max_compared,
            retention=self.retention,
            input_format=self.input_format,
            text_field=self.text_field,
            id_field=self.id_field,
            tombstones=self.tombstones,
            max_text_chars=self.max_text_chars,
        )

    @property
    def scheme_spec(self) -> SchemeSpec:
        """What the scheme is built from under these settings."""
        return SchemeSpec(
            engine=self.engine,
            user_dictionary=self.user_dictionary,
            idf_table=self.idf_table,
            normalization=Normalization(
                html_entities=self.html_entities,
                fold_script=self.fold_script,
                html_tags=self.html_tags,
                urls=self.urls,
                mentions=self.mentions,
            ),
            bands=self.bands,
            rows=self.rows,
            near_from=self.near_from,
            short_chars=self.short_chars,
            numbers_matter=self.numbers_matter,
        )

    @property
    def predecessor(self) -> str | None:
        """The group that this one takes over from; None where it begins by itself."""
        return self.start_at.removeprefix("group:") if self.start_at.startswith("group:") else None

    @property
    def window_span(self) -> int:
        """How much stream time one window covers, in ms."""
        return max(1, -(-self.retention // self.windows))

    @property
    def rules_topic(self) -> str:
        """The compacted topic that holds the canonical JSON of every set of rules, keyed by its id."""
        return f"{self.group}-rules"

    def changelog_topic(self, raw_topic: str) -> str:
        """The topic that holds the originals of a raw topic, partition by partition."""
        return f"{self.group}-{raw_topic}-changelog"

    @property
    def topics(self) -> tuple[str, str, str]:
        """The three output topics: unique, duplicates, rejected."""
        return self.unique_topic, self.duplicates_topic, self.rejected_topic


def load(**overrides: Any) -> Settings:
    """The settings of the environment, with some of them set here.

    Raises:
        SettingsError: a setting is malformed, contradicts another, or is none; the message names every one.
    """
    faults = list(_unknown())
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        faults += [_sentence(dict(item)) for item in error.errors()]
    if faults:
        raise SettingsError("\n".join(faults))
    return settings


def _unknown() -> Iterator[str]:
    """A sentence for each variable that looks like a setting and is none: one that is misspelt."""
    known = {name.upper() for name in Settings.model_fields}
    for name, value in sorted(os.environ.items()):
        setting = name.upper().removeprefix(PREFIX)
        if not name.upper().startswith(PREFIX) or setting in known:
            continue
        if _NOT_SETTINGS.fullmatch(setting) or _ADDRESS_OF_A_SERVICE.fullmatch(value):
            continue
        nearest = difflib.get_close_matches(setting, sorted(known), 1)
        hint = f"did you mean {PREFIX}{nearest[0]}?" if nearest else "the README lists all there are"
        yield f"{name}: there is no such setting; {hint}"


def _sentence(item: dict[str, Any]) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    if not item["loc"]:
        return message
    name = str(item["loc"][0])
    # Neither a password is shown, nor what may be one under a misspelt name.
    shown = (
        f"={_written(name, item['input'])}"
        if name in Settings.model_fields and "password" not in name
        else ""
    )
    context = item.get("ctx", {})
    if item["type"] == "greater_than_equal":
        message = f"at least {_in_its_unit(name, context['ge'])}"
    elif item["type"] == "less_than_equal":
        message = f"at most {_in_its_unit(name, context['le'])}"
    elif item["type"] == "string_pattern_mismatch":
        message = _FORMS[name]
    return f"{PREFIX}{name.upper()}{shown}: {message[0].lower()}{message[1:]}"


_FORMS: Final = {
    "group": "letters, digits, '.', '_' and '-', at most 150",
    "start_at": "earliest, latest, or group:NAME with the name of a group",
}
"""What settings with a pattern may be, in words."""


def _written(name: str, value: object) -> object:
    """A setting as it stands in the environment, or where it does not, as it was given."""
    written = (text for key, text in os.environ.items() if key.upper() == f"{PREFIX}{name.upper()}")
    return next(written, value)


def _in_its_unit(name: str, bound: int) -> str:
    """A bound as one would write it."""
    parsers = [getattr(entry, "func", None) for entry in Settings.model_fields[name].metadata]
    if parse_share in parsers:
        return str(bound / 1000)
    if parse_duration in parsers:
        unit, size = next((u, size) for u, size in reversed(_UNITS.items()) if bound % size == 0)
        return f"{bound // size}{unit}"
    return str(bound)
