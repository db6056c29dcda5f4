"""What a state directory says of itself, and whether it is the one that is wanted."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from state.errors import StateCorruptError, StateMismatchError

FORMAT = 2
"""The format of everything in the directory. A change that older code would misread raises it."""


class Description(NamedTuple):
    """Whose state a directory holds, and how it is laid out."""

    scheme: str
    "The id of everything that shapes what is stored."

    origin: dict[str, str]
    "Where the originals come from: cluster, topic, partition."

    layout: str
    "The layout of the segment table."

    def encode(self) -> bytes:
        """The value under which it is kept."""
        return json.dumps({"format": FORMAT, **self._asdict()}).encode()

    @classmethod
    def decode(cls, path: Path, value: bytes) -> Self:
        """The description that `encode` made, of the state at `path`.

        Raises:
            StateMismatchError: The state has another format.
            StateCorruptError: It is no description.
        """
        try:
            fields = json.loads(value)
            format_ = fields.pop("format")
            if format_ == FORMAT:
                return cls(**fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateCorruptError(
                f"The state in {path} does not say what it is ({error}). Delete the directory: the changelog "
                "rebuilds it."
            ) from error
        raise StateMismatchError(
            f"The state in {path} has format {format_}, this version reads format {FORMAT}. Run the version "
            "that wrote it, or delete the directory: the changelog rebuilds it."
        )

    def require(self, path: Path, *, scheme: str, origin: Mapping[str, str]) -> None:
        """Check that the state at `path` is of `scheme` and from `origin`.

        Raises:
            StateMismatchError: It is not. The message names both.
        """
        if self.scheme != scheme:
            raise StateMismatchError(
                f"The state in {path} was made under scheme {self.scheme}, the settings now make scheme "
                f"{scheme}, and state of one scheme is never read under another. Restore the settings that "
                "it was made with, or give the new scheme a group of its own."
            )
        if self.origin != dict(origin):
            raise StateMismatchError(
                f"The state in {path} belongs to {_named(self.origin)}, not to {_named(origin)}. Give every "
                "scope a directory of its own: choose another TEXTSIEVE_DATA_DIR, or put this state back to where "
                "it belongs."
            )


def _named(origin: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in origin.items())
