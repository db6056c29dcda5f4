"""The compose file and the image keep their promises, as far as that shows without a container engine."""

import re
import tomllib
from pathlib import Path

import yaml

from stream.broker import kafka_version
from stream.settings import PREFIX, Settings

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
KAFKA, WORKER = COMPOSE["services"]["kafka"], COMPOSE["services"]["worker"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_broker_is_the_one_that_the_tests_run_on() -> None:
    assert KAFKA["image"] == f"apache/kafka:{kafka_version()}"


def test_the_worker_waits_for_a_healthy_broker() -> None:
    assert "kafka:19092" in KAFKA["healthcheck"]["test"][-1]
    assert WORKER["depends_on"]["kafka"]["condition"] == "service_healthy"
    assert WORKER["environment"][f"{PREFIX}BROKER"] == "kafka:19092"


def test_ports_are_published_on_loopback_only() -> None:
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_state_is_on_a_named_volume_and_nothing_else_can_be_written() -> None:
    (volume,) = WORKER["volumes"]
    name, path = volume.split(":")
    assert name in COMPOSE["volumes"]
    assert f"{PREFIX}DATA_DIR={path}" in DOCKERFILE
    assert WORKER["read_only"] is True
    assert WORKER["cap_drop"] == ["ALL"]


def test_the_image_runs_as_a_user_without_rights_and_stops_cleanly() -> None:
    user = re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE)[-1]
    assert user not in {"root", "0"}
    assert "STOPSIGNAL SIGTERM" in DOCKERFILE
    grace = int(WORKER["stop_grace_period"].removesuffix("s"))
    assert grace * 1000 > Settings.model_fields["deadline"].default


def test_every_setting_that_is_named_exists_and_the_python_is_one_that_is_allowed() -> None:
    text = DOCKERFILE + (ROOT / "docker-compose.yml").read_text()
    assert {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)", text)} <= set(Settings.model_fields)
    version = re.findall(r"^FROM python:3\.(\d+)-slim", DOCKERFILE, re.MULTILINE)
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert allowed == ">=3.11,<3.14"
    assert {11 <= int(minor) < 14 for minor in version} == {True}
