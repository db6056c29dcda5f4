"""Settings: every mistake is a sentence that names the setting."""

import os
import traceback
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import ValidationError

from stream.errors import SettingsError
from stream.rules import Rules
from stream.settings import PREFIX, Settings, load
from stream.text import Normalization, SchemeSpec

DAY = 86_400_000


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """An environment without settings; `environment(RETENTION="1d")` sets some."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)

    def set_some(**settings):
        for name, value in settings.items():
            monkeypatch.setenv(PREFIX + name, value)

    return set_some


def complaint(**overrides):
    """The sentences with which the settings are refused."""
    with pytest.raises(SettingsError) as refused:
        load(**overrides)
    return str(refused.value)


# Defaults


def test_the_defaults_are_consistent_and_are_those_of_the_rules():
    assert load().rules == Rules()


def test_the_defaults_are_those_of_the_scheme():
    assert load().scheme_spec == SchemeSpec()


def test_every_rule_and_every_policy_of_the_scheme_follows_its_setting(environment):
    environment(
        MAX_DISTANCE="2", RETENTION="1d", INPUT_FORMAT="plain", TEXT_FIELD="body", ID_FIELD="key",
        TOMBSTONES="unique", MAX_TEXT_CHARS="10", ENGINE="jieba", USER_DICTIONARY="words.txt",
        IDF_TABLE="idf.txt",
        HTML_ENTITIES="false", FOLD_SCRIPT="true", HTML_TAGS="keep", URLS="ignore", MENTIONS="ignore",
        CONFIRM="cosine", MIN_EDIT_SIMILARITY="0.75", MIN_COSINE="0.9", MIN_RESEMBLANCE="0.625",
        MAX_PROFILE_DISTANCES="8, 12", MAX_CROWD="512", MAX_COMPARED="20", NUMBERS_MATTER="true", NEAR_FROM="6",
        SHORT_CHARS="140", BANDS="16", ROWS="2",
    )  # fmt: skip
    settings = load()
    changed = {field.name for field in fields(Rules) if getattr(settings.rules, field.name) != field.default}
    assert changed == {field.name for field in fields(Rules)}
    assert settings.rules == Rules(
        max_distance=2,
        confirm="cosine",
        min_edit_similarity=750,
        min_cosine=900,
        min_resemblance=625,
        max_profile_distances=(8, 12),
        max_crowd=512,
        max_compared=20,
        retention=DAY,
        input_format="plain",
        text_field="body",
        id_field="key",
        tombstones="unique",
        max_text_chars=10,
    )
    changed = {
        field.name
        for field in fields(SchemeSpec)
        if getattr(settings.scheme_spec, field.name) != getattr(SchemeSpec(), field.name)
    }
    # The other two cannot be chosen: only so do both engines agree, and the state is made for 64 bits.
    assert changed == {field.name for field in fields(SchemeSpec)} - {"hmm", "bits"}
    assert settings.scheme_spec == SchemeSpec(
        engine="jieba",
        user_dictionary=Path("words.txt"),
        idf_table=Path("idf.txt"),
        normalization=Normalization(
            html_entities=False, fold_script=True, html_tags="keep", urls="ignore", mentions="ignore"
        ),
        bands=16,
        rows=2,
        near_from=6,
        short_chars=140,
        numbers_matter=True,
    )


@pytest.mark.parametrize(("written", "thousandths"), [("0.8", 800), ("1", 1000), ("0", 0), ("0.625", 625)])
def test_a_share_is_read_in_thousandths(environment, written, thousandths):
    environment(MIN_COSINE=written)
    assert load().min_cosine == thousandths


def test_the_topics_of_the_group_are_named_after_it(environment):
    environment(GROUP="g", RAW_TOPICS="a,b")
    settings = load()
    assert settings.rules_topic == "g-rules"
    assert [settings.changelog_topic(topic) for topic in settings.raw_topics] == [
        "g-a-changelog",
        "g-b-changelog",
    ]
    assert settings.topics == ("texts.unique", "texts.duplicates", "texts.rejected")


@pytest.mark.parametrize(
    ("retention", "windows", "span"), [(100, 4, 25), (101, 4, 26), (1, 4, 1), (100, 1, 100)]
)
def test_the_windows_cover_the_retention(retention, windows, span):
    assert load(retention=retention, windows=windows).window_span == span


# Reading


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("2d", 2 * DAY), ("36h", 36 * 3_600_000), ("90m", 5_400_000), ("10s", 10_000), ("250ms", 250),
        ("1w", 7 * DAY), ("1.5h", 5_400_000), (" 3 d ", 3 * DAY), ("0.5s", 500),
    ],
)  # fmt: skip
def test_durations_are_a_number_and_a_unit(environment, written, milliseconds):
    environment(RETENTION=written, TOPIC_RETENTION="forever")
    assert load().retention == milliseconds


@pytest.mark.parametrize(
    "junk", ["2", "d", "2 days", "2D", "-2d", "1d12h", "1e3s", "２d", ".5h", "2.d", "forever",
     "inf d", "NaNs", "9" * 400 + "d"]
)  # fmt: skip
def test_anything_else_is_no_duration(environment, junk):
    environment(RETENTION=junk)
    assert complaint().startswith(
        f"TEXTSIEVE_RETENTION={junk}: {junk!r} is not a duration: write a number and a unit"
    )


def test_only_topics_may_be_kept_forever(environment):
    environment(TOPIC_RETENTION="forever")
    assert load().topic_retention == -1


def test_names_are_separated_by_commas(environment):
    environment(RAW_TOPICS=" a, b ,c,", BROKER=" one:9092, two:9093 ")
    assert load().raw_topics == ("a", "b", "c")
    assert load().broker == "one:9092,two:9093"


def test_an_empty_variable_is_as_good_as_none(environment):
    environment(GROUP="", RETENTION="")
    assert load() == load(group="textsieve")


def test_case_does_not_matter_in_a_name(environment):
    environment(**{"max_Distance": "1"})
    assert load().max_distance == 1


def test_settings_given_in_the_program_win_over_the_environment(environment):
    environment(GROUP="a")
    assert load(group="b").group == "b"


# What is refused alone


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BROKER", "localhost"), ("BROKER", "kafka://localhost:9092"), ("BROKER", "a:1,,b:2"), ("BROKER", "a b:1"),
        ("BROKER", ","), ("GROUP", "a b"), ("GROUP", "gruppe/1"), ("GROUP", "g" * 151), ("GROUP", "好"),
        ("SECURITY_PROTOCOL", "TLS"), ("SECURITY_PROTOCOL", "ssl"), ("SASL_MECHANISM", "GSSAPI"),
        ("RAW_TOPICS", ","), ("RAW_TOPICS", "a,b,a"), ("RAW_TOPICS", "a,b c"), ("RAW_TOPICS", ".."),
        ("UNIQUE_TOPIC", "a/b"), ("UNIQUE_TOPIC", "."), ("DUPLICATES_TOPIC", "a" * 250), ("REJECTED_TOPIC", "a,b"),
        ("PARTITIONS", "0"), ("PARTITIONS", "1001"), ("PARTITIONS", "two"), ("REPLICATION_FACTOR", "0"),
        ("REPLICATION_FACTOR", "-2"), ("TOPIC_RETENTION", "-1"), ("TOPIC_RETENTION", "never"),
        ("START_AT", "first"), ("INPUT_FORMAT", "xml"), ("TOMBSTONES", "pass"), ("TEXT_FIELD", "x" * 257),
        ("ID_FIELD", "x" * 257), ("MAX_TEXT_CHARS", "0"), ("MAX_TEXT_CHARS", "1.5"), ("RETENTION", "0s"),
        ("RETENTION", "3651d"), ("MAX_DISTANCE", "-1"), ("MAX_DISTANCE", "17"), ("ENGINE", "mecab"),
        ("CONFIRM", "jaccard"), ("MIN_EDIT_SIMILARITY", "80%"), ("MIN_COSINE", "0.8000"), ("MIN_RESEMBLANCE", "1.5"),
        ("MAX_PROFILE_DISTANCES", "14,10"), ("MAX_PROFILE_DISTANCES", "ten"), ("MAX_CROWD", "7"),
        ("MAX_COMPARED", "0"),
        ("HTML_TAGS", "drop"), ("URLS", "no"), ("MENTIONS", "no"), ("NUMBERS_MATTER", "often"), ("NEAR_FROM", "1"),
        ("SHORT_CHARS", "4001"), ("BANDS", "65"), ("ROWS", "0"),
        ("HTML_ENTITIES", "maybe"), ("FOLD_SCRIPT", "2"), ("WINDOWS", "0"), ("WINDOWS", "17"),
        ("LAYOUT", "16-16-16-16"), ("LAYOUT", "16-16-16-16/5"), ("LAYOUT", "x"), ("BATCH_SIZE", "0"),
        ("BATCH_SIZE", "10001"), ("BATCH_WAIT", "0ms"), ("BATCH_WAIT", "61s"), ("COMPRESSION", "brotli"),
        ("TRANSACTION_TIMEOUT", "999ms"), ("TRANSACTION_TIMEOUT", "16m"), ("SESSION_TIMEOUT", "5s"),
        ("SESSION_TIMEOUT", "31m"), ("DEADLINE", "999ms"), ("DEADLINE", "11m"), ("STANDBY", "warm"),
        ("START_AT", "group:"), ("WEB", "perhaps"),
        ("WEB_PORT", "65536"), ("WEB_PORT", "-1"),
    ],
)  # fmt: skip
def test_a_malformed_setting_is_refused_by_name(environment, name, value):
    environment(**{name: value})
    assert complaint().startswith(f"TEXTSIEVE_{name}=")


def test_every_setting_with_bounds_or_a_form_has_a_case_above():
    cases = test_a_malformed_setting_is_refused_by_name.pytestmark[0].args[1]
    anything = {
        "SASL_USERNAME", "SASL_PASSWORD", "TLS_CA_FILE", "TLS_CERTIFICATE_FILE", "TLS_KEY_FILE", "TLS_KEY_PASSWORD",
        "USER_DICTIONARY", "IDF_TABLE", "DATA_DIR", "WEB_HOST",
    }  # fmt: skip
    assert {name for name, _ in cases} | anything == {name.upper() for name in Settings.model_fields}


def test_all_mistakes_are_named_at_once(environment):
    environment(GROUP="a b", WINDOWS="0", RETENTON="1d")
    sentences = complaint().splitlines()
    assert [sentence.split(":")[0].split("=")[0] for sentence in sentences] == [
        "TEXTSIEVE_RETENTON", "TEXTSIEVE_GROUP", "TEXTSIEVE_WINDOWS",
    ]  # fmt: skip


# What contradicts


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"max_distance": 4}, ["MAX_DISTANCE=4", "LAYOUT=16-16-16-16/1", "(3)"]),
        ({"short_chars": 9}, ["SHORT_CHARS=9", "NEAR_FROM=10"]),
        ({"max_distance": 3, "layout": "22-21-21/1"}, ["MAX_DISTANCE=3", "LAYOUT=22-21-21/1", "(2)"]),
        ({"layout": "16-16-16/1", "max_distance": 1}, ["LAYOUT=16-16-16/1", "48 bits"]),
        ({"transaction_timeout": 11_000}, ["TRANSACTION_TIMEOUT", "SESSION_TIMEOUT"]),
        ({"session_timeout": 9_000}, ["TRANSACTION_TIMEOUT", "SESSION_TIMEOUT"]),
        ({"topic_retention": 4 * DAY - 1}, ["TOPIC_RETENTION", "RETENTION", "forever"]),
        ({"topic_retention": 0}, ["TOPIC_RETENTION"]),
        ({"retention": 4 * DAY}, ["TOPIC_RETENTION", "RETENTION"]),
        ({"raw_topics": ("a", "texts.unique")}, ["RAW_TOPICS", "_UNIQUE_TOPIC", "texts.unique would"]),
        ({"unique_topic": "a", "rejected_topic": "a"}, ["a would serve two purposes"]),
        ({"duplicates_topic": "textsieve-rules"}, ["textsieve-rules would"]),
        ({"raw_topics": ("a", "textsieve-a-changelog")}, ["textsieve-a-changelog would"]),
        ({"group": "g" * 150, "raw_topics": ("t" * 100,)}, ["GROUP", "RAW_TOPICS", "249"]),
        ({"text_field": "id"}, ["TEXT_FIELD", "ID_FIELD", "'id'"]),
        ({"security_protocol": "SASL_SSL"}, ["SECURITY_PROTOCOL=SASL_SSL", "SASL_USERNAME", "SASL_PASSWORD"]),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_username": "u"}, ["SASL_PLAINTEXT", "SASL_PASSWORD"]),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_password": "p"}, ["SASL_PLAINTEXT", "SASL_USERNAME"]),
        ({"sasl_username": "u", "sasl_password": "p"}, ["PLAINTEXT", "SASL_USERNAME", "SASL_SSL"]),
        ({"security_protocol": "SSL", "sasl_password": "p"}, ["PROTOCOL=SSL", "SASL_PASSWORD"]),
        ({"tls_ca_file": "ca.pem"}, ["PLAINTEXT", "TLS_", "SSL"]),
        ({"security_protocol": "SSL", "tls_key_file": "k.pem"}, ["TLS_CERTIFICATE_FILE", "TLS_KEY_FILE"]),
        ({"security_protocol": "SSL", "tls_certificate_file": "c.pem"}, ["TLS_CERTIFICATE_FILE", "TLS_KEY_FILE"]),
    ],
)  # fmt: skip
def test_settings_that_contradict_each_other_are_refused_with_the_names_of_both(overrides, named):
    sentence = complaint(**overrides)
    assert all(name in sentence for name in named)
    assert "TEXTSIEVE_" in sentence


@pytest.mark.parametrize(
    "overrides",
    [
        {"topic_retention": 4 * DAY},
        {"topic_retention": -1, "retention": 3650 * DAY},
        {"max_distance": 6, "layout": "8-8-8-8-8-8-8-8/2"},
        {"transaction_timeout": 6_000, "session_timeout": 6_000},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "u", "sasl_password": "p"},
        {
            "security_protocol": "SSL",
            "tls_ca_file": "ca.pem",
            "tls_certificate_file": "c",
            "tls_key_file": "k",
        },
        {"group": "g" * 140, "raw_topics": ("t" * 98,)},
    ],
)
def test_what_just_fits_together_is_taken(overrides):
    assert load(**overrides)


# Secrets

SECRET = {"SASL_PASSWORD": "zebra-1", "TLS_KEY_PASSWORD": "zebra-2"}
USER = {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_USERNAME": "user"}


def test_passwords_are_in_no_text_about_the_settings(environment):
    environment(**USER, **SECRET)
    settings = load()
    assert settings.sasl_password.get_secret_value() == "zebra-1"
    assert "zebra" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    "overrides",
    [
        {"max_distance": 4},
        {"group": "a b"},
        {"security_protocol": "PLAINTEXT"},
        {"sasl_password": ["zebra"]},
        {"sasl_pasword": "zebra"},
    ],
)
def test_passwords_are_in_no_error(environment, overrides):
    environment(**USER, **SECRET)
    with pytest.raises(SettingsError) as refused:
        load(**overrides)
    assert "zebra" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(ValidationError) as error:
        Settings(**overrides)
    assert "zebra" not in str(error.value)


def test_a_misspelt_password_is_not_shown(environment):
    environment(SASL_PASWORD="zebra")  # noqa: S106 - it is the subject
    assert complaint().startswith("TEXTSIEVE_SASL_PASWORD: there is no such setting")
    assert "zebra" not in complaint()


# Misspelt


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RETENTON", "RETENTION"), ("RAW_TOPIC", "RAW_TOPICS"), ("BROKERS", "BROKER"),
        ("MAX_DISTANCES", "MAX_DISTANCE"),
        ("WEBPORT", "WEB_PORT"), ("sasl_pasword", "SASL_PASSWORD"),
    ],
)  # fmt: skip
def test_a_misspelt_setting_is_not_swallowed(environment, name, meant):
    environment(**{name: "5"})
    assert complaint() == f"TEXTSIEVE_{name}: there is no such setting; did you mean TEXTSIEVE_{meant}?"


def test_a_setting_like_no_other_is_not_swallowed_either(environment):
    environment(XYZZY="5")
    assert complaint() == "TEXTSIEVE_XYZZY: there is no such setting; the README lists all there are"


def test_an_unknown_setting_in_the_program_is_refused():
    assert "TEXTSIEVE_RETENTON" in complaint(retenton=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TEST_BOOTSTRAP", "localhost:9092"), ("DATA", "/texts"), ("CACHE", "/jars"),
        # What Kubernetes sets for services named textsieve and textsieve-web.
        ("SERVICE_HOST", "10.0.0.1"), ("SERVICE_PORT", "6066"), ("SERVICE_PORT_HTTP", "6066"),
        ("PORT", "tcp://10.0.0.1:6066"), ("PORT_6066_TCP", "tcp://10.0.0.1:6066"), ("PORT_6066_TCP_PROTO", "tcp"),
        ("PORT_6066_TCP_PORT", "6066"), ("PORT_6066_TCP_ADDR", "10.0.0.1"), ("UI_SERVICE_HOST", "10.0.0.1"),
        ("UI_PORT_80_TCP_ADDR", "10.0.0.1"), ("UI_PORT", "tcp://10.0.0.1:80"),
    ],
)  # fmt: skip
def test_variables_that_are_not_meant_for_us_do_not_stop_a_worker(environment, name, value):
    environment(**{name: value})
    assert load() == Settings()


def test_settings_cannot_be_changed_once_read():
    with pytest.raises(ValueError, match="frozen"):
        load().group = "other"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SESSION_TIMEOUT", "1s", "TEXTSIEVE_SESSION_TIMEOUT=1s: at least 6s"),
        ("SESSION_TIMEOUT", "2h", "TEXTSIEVE_SESSION_TIMEOUT=2h: at most 30m"),
        ("PARTITIONS", "0", "TEXTSIEVE_PARTITIONS=0: at least 1"),
        ("START_AT", "middle", "TEXTSIEVE_START_AT=middle: earliest, latest, or group:NAME"),
        ("GROUP", "a b", "TEXTSIEVE_GROUP=a b: letters, digits"),
    ],
)
def test_a_mistake_is_named_as_it_was_written_and_in_its_units(environment, name, value, said):
    environment(**{name: value})
    assert complaint().startswith(said)
