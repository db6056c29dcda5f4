"""What the tests share: the real texts, a real Apache Kafka, and names that no other test uses."""

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from stream.broker import ApacheKafka, Noida, apache_kafka_unavailable, kafka_version, noida_binary

EXTERNAL = os.environ.get("TEXTSIEVE_TEST_BOOTSTRAP")
NEEDS = {
    "kafka": {"kafka", "broker", "java_and_maven"},
    "data": {"data_dir"},
}  # marker: the fixtures that imply it
LOGS = pytest.StashKey[list[Path]]()

# How long an example takes says nothing on a shared machine.
settings.register_profile("textsieve", deadline=None)
settings.load_profile("textsieve")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LOGS] = []


def pytest_report_header() -> str:
    if EXTERNAL:
        return f"kafka: the broker on {EXTERNAL} (TEXTSIEVE_TEST_BOOTSTRAP)"
    if reason := apache_kafka_unavailable():
        rest = "the rest runs on noida-db" if noida_binary() else "so is the rest, for want of noida-db"
        return f"kafka: none, so what needs Apache Kafka is skipped, and {rest}. {reason}"
    return f"kafka: Apache Kafka {kafka_version()}, started by the session when a test asks for it"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for marker, implied_by in NEEDS.items():
            if fixtures & implied_by:
                item.add_marker(marker)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if exitstatus == pytest.ExitCode.TESTS_FAILED:
        for log in config.stash[LOGS]:
            terminalreporter.write_line(f"Kafka's log: {log}")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of the real texts."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    directory = Path(os.environ.get("TEXTSIEVE_DATA", beside))
    if not directory.is_dir():
        pytest.skip(f"the real texts are not at {directory} (TEXTSIEVE_DATA)")
    return directory


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of an Apache Kafka that all tests share. Use `topic_prefix`; never stop it."""
    if EXTERNAL:
        yield EXTERNAL
        return
    with _apache_kafka(tmp_path_factory.mktemp("kafka"), pytestconfig) as broker:
        yield broker.bootstrap
    _keep_only_the_log(broker)


@pytest.fixture(scope="session")
def some_kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As `kafka`; where Apache Kafka cannot run, the address of a noida-db."""
    if EXTERNAL or apache_kafka_unavailable() is None:
        yield request.getfixturevalue("kafka")
        return
    if noida_binary() is None:
        pytest.skip(f"{apache_kafka_unavailable()} And noida-db is not installed for this platform.")
    with Noida(tmp_path_factory.mktemp("noida")) as broker:
        yield broker.bootstrap


@pytest.fixture
def broker(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[ApacheKafka]:
    """A started Apache Kafka of the test's own, which it may stop, kill and start again."""
    with _apache_kafka(tmp_path / "kafka", pytestconfig) as broker:
        yield broker
    _keep_only_the_log(broker)


@pytest.fixture
def topic_prefix() -> str:
    """The beginning of the topics, groups and transactional ids of this test, which no other one uses."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def java_and_maven() -> None:
    """Skips the test, with the reason, where Apache Kafka cannot run."""
    if reason := apache_kafka_unavailable():
        pytest.skip(reason)


def _apache_kafka(directory: Path, config: pytest.Config) -> ApacheKafka:
    if reason := apache_kafka_unavailable():
        pytest.skip(reason)
    broker = ApacheKafka(directory, progress=lambda sentence: _show(config, sentence))
    config.stash[LOGS].append(broker.log)
    return broker


def _keep_only_the_log(broker: ApacheKafka) -> None:
    # pytest keeps the temporary directories of three sessions, and a data directory may be large.
    shutil.rmtree(broker.directory / "data")


def _show(config: pytest.Config, sentence: str) -> None:
    capture = config.pluginmanager.getplugin("capturemanager")
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None:  # one of several processes of pytest-xdist
        return
    with capture.global_and_fixture_disabled():
        terminal.write_line(f"\n{sentence}")
