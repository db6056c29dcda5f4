"""The jars of Apache Kafka: which ones, whether this machine can run them, and how they get into a cache."""

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections import deque
from pathlib import Path

from stream.broker.base import LOG_LINES, Progress, silent
from stream.errors import BrokerError

JAVA_VERSION = 17
"""The oldest Java that runs an Apache Kafka 4 broker."""

_PACKAGED = Path(__file__).parents[1] / "kafka-pom.xml"
_IN_THE_TREE = Path(__file__).parents[2] / "tests" / "kafka" / "pom.xml"


def pom() -> Path:
    """The Maven project that lists the jars: `tests/kafka/pom.xml`, of which the wheel has a copy."""
    return _PACKAGED if _PACKAGED.exists() else _IN_THE_TREE


@functools.cache
def kafka_version() -> str:
    """The version of Apache Kafka in the POM, such as `4.2.0`."""
    found = re.search(r"<kafka\.version>([^<]+)</kafka\.version>", pom().read_text())
    if found is None:
        raise BrokerError(f"{pom()} names no kafka.version. Install textsieve again.")
    return found[1]


def cache_directory() -> Path:
    """`$TEXTSIEVE_CACHE`, else `$XDG_CACHE_HOME/textsieve`, else `~/.cache/textsieve`; perhaps missing."""
    if own := os.environ.get("TEXTSIEVE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textsieve"


def jar_directory() -> Path:
    """Where the jars are, or will be: a directory for each content of the POM."""
    digest = hashlib.sha256(pom().read_bytes()).hexdigest()[:8]
    return cache_directory() / f"kafka-{kafka_version()}-{digest}"


def java() -> str:
    """The program that runs Java: of `$JAVA_HOME`, else of the path; perhaps missing."""
    if home := os.environ.get("JAVA_HOME"):
        return str(Path(home) / "bin" / "java")
    return "java"


def apache_kafka_unavailable() -> str | None:
    """Why Apache Kafka cannot run on this machine: a sentence with the cure, or None where it can.

    Maven is only asked for while the jars are not in the cache.
    """
    need = f"Apache Kafka {kafka_version()} needs Java {JAVA_VERSION} or newer"
    found = _java_version(java())
    if found is None:
        return f"{need}, and there is none: install it, for example openjdk-{JAVA_VERSION}-jre-headless."
    if found < JAVA_VERSION:
        return f"{need}, and `{java()}` is Java {found}: install a newer one, or name it in JAVA_HOME."
    if shutil.which("mvn") is None and not jar_directory().exists():
        return (
            "Apache Kafka's jars are fetched with Maven, and there is none: install it (the package `maven`)."
        )
    return None


@functools.cache
def _java_version(program: str) -> int | None:
    try:
        shown = subprocess.run([program, "-version"], capture_output=True, text=True, check=True)  # noqa: S603 - no shell
    except (OSError, subprocess.CalledProcessError):  # macOS has a `java` that only says where to get one
        return None
    found = re.search(r'version "(\d+)', shown.stderr)
    return int(found[1]) if found is not None else None


def resolve_jars(progress: Progress = silent) -> Path:
    """The directory with the jars, which are fetched with Maven (44 MB) if this is the first time.

    Any number of processes may ask at once: one fetches, the others wait. An interrupted fetch leaves nothing
    that looks complete.

    Raises:
        BrokerError: Maven is missing or could not fetch them. The message has the end of what it printed.
    """
    target = jar_directory()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = target.with_name(f"{target.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            _fetch(partial, progress)
            partial.rename(target)
    return target


def _fetch(directory: Path, progress: Progress) -> None:
    progress(f"Fetching Apache Kafka {kafka_version()} with Maven (44 MB, only this once)")
    # A copy: Maven writes nothing beside the original, and the cache shows what it was made from.
    directory.mkdir()
    shutil.copyfile(pom(), directory / "pom.xml")
    command = [
        *("mvn", "--batch-mode", "--file", str(directory / "pom.xml")),
        *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"),
    ]
    last: deque[str] = deque(maxlen=LOG_LINES)
    jars = 0
    try:
        maven = subprocess.Popen(  # noqa: S603 - our own command line, no shell
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except OSError as error:
        raise BrokerError("Maven (`mvn`) cannot be run. Install it: the package `maven`.") from error
    with maven:
        for line in maven.stdout or ():
            last.append(line.rstrip())
            if fetched := re.search(r"Downloaded from .*/([^/ ]+\.jar) ", line):
                jars += 1
                progress(f"Fetching Apache Kafka {kafka_version()} with Maven: {jars} files, {fetched[1]}")
    if maven.returncode != 0:
        raise BrokerError(
            f"Maven could not fetch Apache Kafka {kafka_version()} (exit code {maven.returncode}). Let it "
            "reach a Maven repository, and try again. It ended with:\n" + "\n".join(last)
        )
