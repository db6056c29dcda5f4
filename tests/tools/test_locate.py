"""Finding an output by bisection: the same as reading all of them, in a few probes."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.tools.locate import Place, Search, locate


class Log:
    """Outputs of a scope at some of a topic's offsets; what else stands there is not seen.

    Parameters:
        batch: how many offsets the broker looks through for one answer.
    """

    def __init__(self, places: Sequence[Place], batch: int = 10) -> None:
        self.places = places
        self.batch = batch
        self.probes = 0

    async def probe(self, start: int, end: int) -> list[Place]:
        self.probes += 1
        assert start < end
        following = [place for place in self.places if start <= place.offset < end]
        return [place for place in following if place.offset < following[0].offset + self.batch]

    def search(self, begin: int, end: int, wanted: int) -> Search:
        return asyncio.run(locate(self.probe, begin, end, wanted))


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Place], int, int]:
    """Outputs in the order of their raw events, with gaps of any size between both; the log's begin and end."""
    gaps = st.just(1) | st.integers(1, 3000)
    steps = draw(st.lists(st.tuples(gaps, st.integers(1, 4)), max_size=30))
    begin, source = draw(st.integers(0, 5000)), draw(st.integers(0, 20))
    places, offset = [], begin - 1
    for gap, step in steps:
        offset, source = offset + gap, source + step
        places.append(Place(offset, source))
    return places, begin, offset + draw(gaps)


@given(logs(), st.integers(0, 60), st.just(1) | st.integers(1, 5000))
def test_an_output_is_found_where_reading_everything_finds_it(log, wanted, batch):
    places, begin, end = log
    search = Log(places, batch).search(begin, end, wanted)
    assert search.place == next((place for place in places if place.source == wanted), None)
    if search.place is None:
        sources = {place.source for place in places}
        assert search.below in {None} | {source for source in sources if source < wanted}
        assert search.above in {None} | {source for source in sources if source > wanted}
        # Nothing on one side is only said where there is nothing.
        assert (search.below is None) == (min(sources, default=wanted) >= wanted)
        assert (search.above is None) == (max(sources, default=wanted) <= wanted)


@pytest.mark.parametrize(
    ("wanted", "most"),
    [(3 * 999_999, 1), (3 * 999_000, 1), (0, 25), (3 * 500_000, 25), (3 * 123_456 + 1, 25)],
)
def test_of_a_million_outputs_few_are_looked_at(wanted: int, most: int):
    probes = 0

    async def probe(start: int, end: int) -> list[Place]:
        nonlocal probes
        probes += 1
        # An output at every second offset, of every third event.
        first = -(-start // 2)
        return [Place(2 * n, 3 * n) for n in range(first, min(first + 1000, -(-end // 2)))]

    found = asyncio.run(locate(probe, 0, 2_000_000, wanted)).place
    assert (found and found.source) == (None if wanted % 3 else wanted)
    assert probes <= most


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_no_output_slips_between_two_probes(batch: int):
    log = Log([Place(3 + n, 2 * n) for n in range(120)], batch)
    for wanted in range(240):
        found = log.search(3, 123, wanted).place
        assert (found and found.source) == (None if wanted % 2 else wanted)


def test_an_empty_log_holds_nothing():
    assert Log([]).search(7, 7, 1) == Search(None)
    assert Log([]).search(0, 100_000, 1) == Search(None)


@pytest.mark.parametrize("wanted", range(0, 900, 37))
def test_of_two_runs_over_the_same_events_one_is_found(wanted: int):
    runs = [Place(n, n) for n in range(900)] + [Place(900 + n, n) for n in range(900)]
    found = Log(runs, batch=50).search(0, 1800, wanted).place
    assert found is not None
    assert found.source == wanted
