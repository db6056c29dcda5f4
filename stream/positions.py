"""Whether a scope's state, its group's committed offset and the raw log agree, and what to say where they do not.

State and offset commit in one transaction, so they only part where somebody or something moved one of them. Going
on from there would lose, double or mismatch events without a word.
"""

from typing import NamedTuple

from state.table import Position
from stream.errors import ScopeError


class Place(NamedTuple):
    """What is known of a scope when it is opened."""

    scope: str
    """`topic:partition`."""
    group: str
    changelog: str
    topic_id: str | None
    """The broker's id of the raw topic as it is now; None where there is no such topic."""
    position: Position | None
    """Up to where the state goes, its changelog read to the end; None where there is neither."""
    committed: int | None
    """The group's committed offset; None where it has none, or none any more."""
    begin: int
    """The first offset that the broker still has."""
    end: int
    """The offset after the last one."""


def agree(place: Place) -> bool:
    """Whether the scope goes on from its position; False where it has none yet, and may begin.

    Raises:
        ScopeError: the positions differ so that an event could be lost, doubled or mismatched. The message names
            them, and what resolves it.
    """
    position, committed = place.position, place.committed
    if position is None and committed is None:
        return False
    fault = _without_state(place) if position is None else _with_state(place, position)
    if fault is not None:
        raise ScopeError(f"Scope {place.scope}, group {place.group}: {fault}")
    return True


def overtaken(scope: str, next: int, begin: int) -> str:
    """What to say where the broker no longer has events that were to be judged."""
    return (
        f"the broker has deleted offsets {next} to {begin - 1} before they were judged (retention, or DeleteRecords). "
        "Raise the topic's retention.ms. If these events may be left out, stop every worker and move the scope over "
        "them: "
        f"textsieve position skip {scope}"
    )


def _without_state(place: Place) -> str:
    return (
        f"the group has committed offset {place.committed}, but {place.changelog} holds no record, so the originals "
        "before it are lost. Restore the changelog, or choose another TEXTSIEVE_GROUP, with "
        f"TEXTSIEVE_START_AT=group:{place.group} to go on from here without them."
    )


def _with_state(place: Place, position: Position) -> str | None:
    committed = place.committed
    restore = f"Stop every worker and put it back: textsieve position restore {place.scope}"
    if place.topic_id is None:
        return "there is no such topic any more. Choose another TEXTSIEVE_GROUP when it is made again."
    if position.topic_id != place.topic_id:
        return (
            f"the state is of a topic with id {position.topic_id}, the broker's has id {place.topic_id}: it was "
            "deleted and made again. Choose another TEXTSIEVE_GROUP for it: it is judged from its start, without the "
            "old originals."
        )
    if committed is None:
        return (
            f"the state ends at offset {position.next}, the group has no committed offset any more (they expire "
            f"after an idle week). {restore}"
        )
    if committed != position.next:
        return (
            f"the state ends at offset {position.next}, the group's committed offset is {committed}: somebody moved "
            f"it. Events would be lost or judged twice. {restore}"
        )
    if place.begin > committed:
        return overtaken(place.scope, committed, place.begin)
    if place.end < committed:
        return (
            f"the committed offset {committed} is beyond the end of the topic ({place.end}): it was cut, or restored "
            "from an older copy. Choose another TEXTSIEVE_GROUP for it."
        )
    return None
