"""Finds the output of a raw event among millions: by bisection, as outputs keep the order of their raw events."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

_FIRST_STEP: Final = 2000
"""How many offsets before its end a topic is first looked into: what is asked about has mostly just happened."""


class Place(NamedTuple):
    """Where the output of a raw event of the scope stands."""

    offset: int
    """The output's own."""
    source: int
    """The raw event's."""
    record: Any = None


class Search(NamedTuple):
    """How a search for the output of a raw event ended."""

    place: Place | None
    """None where it is not there."""
    below: int | None = None
    """Where it is not there, the nearest raw offset below that was seen to have an output; None where none was."""
    above: int | None = None
    """The same above."""


Probe = Callable[[int, int], Awaitable[Sequence[Place]]]
"""Given a range of output offsets, gives some outputs of the scope that follow its beginning, without a gap and at
least one; none only if there are none in the range. What is not the scope's (another raw topic shares the partition),
aborted records and markers are left out."""


async def locate(probe: Probe, begin: int, end: int, wanted: int) -> Search:
    """Find the output of the raw event at offset `wanted` among the outputs in [begin, end).

    It is looked for from the end in steps that double, then by bisection. That takes the outputs to be in the order
    of their raw events, as one group of workers writes them. Where a second group has judged the same events again
    into the same topics, its outputs are mostly the ones that are found.
    """
    step = _FIRST_STEP
    low, high = begin, end
    below: int | None = None
    above: int | None = None
    while low < high:
        start = (low + high) // 2 if below is not None else max(low, high - step)
        places = await probe(start, high)
        found = next((place for place in reversed(places) if place.source == wanted), None)
        if found is not None:
            return Search(found)
        if places and places[-1].source < wanted:
            low, below = places[-1].offset + 1, places[-1].source
        elif not places or places[0].source > wanted:
            high, step = start, 2 * step
            above = places[0].source if places else above
        else:
            below = max(place.source for place in places if place.source < wanted)
            above = min((place.source for place in places if place.source > wanted), default=above)
            break
    return Search(None, below, above)
