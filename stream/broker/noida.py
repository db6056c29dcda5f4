"""noida-db: a broker in one small binary from PyPI, for a first run with nothing but Python."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from stream.broker.base import Broker
from stream.errors import BrokerError


def noida_binary() -> Path | None:
    """The program inside the installed `noida-db` package, or None where the package is not installed."""
    spec = importlib.util.find_spec("noida_db")
    if spec is None or spec.origin is None:
        return None
    # Not the console script: it would run this as a child of its own, which a signal to the script misses.
    binary = Path(spec.origin).with_name("noida-db")
    return binary if binary.is_file() else None


class Noida(Broker):
    """noida-db's Kafka. It is young: for one worker and a demo, never for data that matters.

    A `kill` loses what was written in the last half second, and a consumer's start can fail or find nothing.
    """

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        super().__init__(directory, port=port)
        self.name = "noida-db"
        self._binary = Path()

    def _prepare(self) -> None:
        binary = noida_binary()
        if binary is None:
            raise BrokerError("noida-db is not installed: pip install 'textsieve[embedded]'.")
        if not os.access(binary, os.X_OK):  # an archive may lose the bit; its own entry point restores it
            binary.chmod(0o755)
        self._binary = binary

    def _command(self) -> Sequence[str]:
        return [
            *(str(self._binary), "start", "--only", "kafka", "--host", "127.0.0.1"),
            *("--kafka-port", str(self.port), "--data-dir", str(self.directory / "data")),
        ]
