"""`textsieve worker`: what it refuses before it talks to a broker."""

from pathlib import Path

import pytest

from state.errors import StateError
from stream.settings import load
from stream.tools.worker import run


def test_a_second_worker_of_a_group_is_refused_the_same_data_directory(tmp_path: Path):
    fcntl = pytest.importorskip("fcntl", reason="there are no such locks on this system")
    settings = load(data_dir=tmp_path, group="g", broker="127.0.0.1:1")
    with (tmp_path / "g.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(StateError, match=r"Another worker .* TEXTSIEVE_DATA_DIR"):
            run(settings)
