"""A position: up to where a scope's log is in its state, and whether a changelog record follows from it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from state.changelog import Record
from state.errors import ChangelogError
from state.original import Original


class Position(NamedTuple):
    """Up to where a scope's log is in the state."""

    next: int
    "The offset of the next raw event to judge."

    changelog: int
    "The offset of the next changelog record to apply."

    time: int
    "The stream time, in milliseconds."

    boundary: int
    "The offset below which nothing is a candidate any more."

    rules: str
    "The id of the rules that the last events were judged under."

    topic_id: str
    "The raw topic's id in the cluster."

    def encode(self) -> bytes:
        """The value under which it is kept."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """The position that `encode` made."""
        return cls(**json.loads(value))


def follow(
    path: Path, position: Position | None, records: Sequence[Record], changelog: int
) -> tuple[Position | None, list[Original]]:
    """Where `records` lead from `position`, and the originals that they add.

    A record that ends at or below the position has been applied and is ignored. So is one that covers nothing
    at the position: it judged nothing, and there is nothing in it that the position does not say.

    Args:
        path: The state's directory, for messages.
        position: Where the state stands, None where nothing has been applied.
        records: In the changelog's order.
        changelog: The offset of the changelog record after them.

    Raises:
        ChangelogError: A record leaves a gap, overlaps, lets time or boundary fall, or contradicts itself.
    """
    originals: list[Original] = []
    for record in records:
        if position is None:
            _require_ordered(record, None)
        elif record.next <= position.next:
            continue
        else:
            _require_following(path, position, record)
            _require_ordered(record, position.time)
        position = Position(
            record.next, changelog, record.time, record.boundary, record.rules, record.topic_id
        )
        originals += record.originals
    return position, originals


def _require_following(path: Path, position: Position, record: Record) -> None:
    if record.begin != position.next:
        raise ChangelogError(
            f"A changelog record covers the offsets from {record.begin} to before {record.next}, but the "
            f"state in {path} stands at offset {position.next}. Delete the directory: the changelog "
            "rebuilds it."
        )
    if record.time < position.time or record.boundary < position.boundary:
        raise ChangelogError(
            f"The changelog record from offset {record.begin} on has time {record.time} and boundary "
            f"{record.boundary}, but the state in {path} is already at time {position.time} and boundary "
            f"{position.boundary}, and neither ever falls. Two workers may write to this changelog: see that "
            "no other deployment uses the group's name."
        )


def _require_ordered(record: Record, time: int | None) -> None:
    """Check that a record's originals lie in its offsets, in order, and that no time falls from `time` on."""
    if record.next < record.begin:
        raise ChangelogError(
            f"A changelog record begins at {record.begin} and ends before, at {record.next}."
        )
    offset = record.begin - 1
    for original in record.originals:
        if not offset < original.offset < record.next or (time is not None and original.time < time):
            raise ChangelogError(
                f"The changelog record of the offsets from {record.begin} to before {record.next} holds an "
                f"original at offset {original.offset} of time {original.time}, after offset {offset} and "
                f"time {time}: offsets rise, and times never fall."
            )
        offset, time = original.offset, original.time
    if time is not None and record.time < time:
        raise ChangelogError(
            f"The changelog record from offset {record.begin} to before {record.next} has time {record.time}"
            f", below the time {time} of an original in it."
        )
