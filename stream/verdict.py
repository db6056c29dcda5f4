"""The vocabulary of the judge: what it is given for an event, and what it answers."""

from typing import Final, Literal, NamedTuple

UNWRITABLE: Final = "unwritable"
"""The reason of a rejection that the broker is the cause of; the changelog names its offset."""


Measure = Literal["content", "hamming", "edit", "cosine", "resemblance"]
"""What the similarity of two texts is a figure of: `content`: they are equal; `hamming`: the share of their
fingerprints' bits that agree; `edit`: edit similarity; `cosine`: of their weighted words; `resemblance`: the
share of their character 4-grams that both have."""


class Text(NamedTuple):
    """An event whose text can be judged."""

    offset: int
    time: int | None
    """Its own timestamp in ms, never negative; None where it has none."""
    text: str
    id: str
    """The producer's id as JSON, to be echoed to the letter; empty where it has none."""


class Passed(NamedTuple):
    """An event without a text that is let through: it moves the time, is unique, and is never compared."""

    offset: int
    time: int | None


class Rejection(NamedTuple):
    """An event that cannot be judged. It does not move the time."""

    offset: int
    reason: str
    """A code for programs, such as `invalid-json`."""
    error: str
    """A sentence for people; it never quotes the event's content."""


Input = Text | Passed | Rejection


class Unique(NamedTuple):
    """No live original is a near-duplicate of this event."""

    offset: int
    time: int
    """The stream time at this event, in ms."""
    fingerprint: int | None
    """None where the text has no features, or was judged by its content only."""
    capped: bool = False
    """Whether it met a crowd, so that not all originals that are like it may have been compared."""


class Reference(NamedTuple):
    """The original that a duplicate is a duplicate of."""

    offset: int
    time: int
    """The stream time when it was judged, in ms."""
    id: str
    """Its producer's id as JSON; empty where it has none."""


class Duplicate(NamedTuple):
    """A live original has the same content, or is near enough."""

    offset: int
    time: int
    """The stream time at this event, in ms."""
    id: str
    fingerprint: int | None
    original: Reference
    reason: Literal["redelivered", "exact", "near"]
    """`redelivered`: the same content under the same id; `exact`: the same content; `near`: similar content."""
    measure: Measure
    """What the similarity is a figure of."""
    similarity: int
    """In thousandths: 1000 for the same content."""
    hamming_distance: int | None
    """None where a text has no fingerprint."""
    capped: bool = False
    """Whether it met a crowd, so that not all originals that are like it may have been compared."""


class Rejected(NamedTuple):
    """The event cannot be judged."""

    offset: int
    time: int
    """The stream time at this event, in ms."""
    reason: str
    error: str


Verdict = Unique | Duplicate | Rejected
