"""The segment table in memory against a search of everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_model import LAYOUTS, fingerprints

from state import search, segments
from state.search import Queries
from state.segments import Segments


@pytest.fixture(autouse=True, scope="module")
def small_runs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "TAIL", 8)
        patch.setattr(segments, "MIDDLE", 32)
        # So that a common key is compared in several goes.
        patch.setattr(search, "CHUNK", 20)
        patch.setattr(segments, "CHUNK", 20)
        yield


def found(index, layout, queries, distance):
    pairs = set()
    for part in index.near(Queries(layout, np.array(queries, np.uint64)), distance):
        pairs |= set(zip(*(column.tolist() for column in part), strict=True))
    return pairs


def expected(stored, queries, distance):
    return {
        (row, number, (one ^ other).bit_count())
        for row, one in enumerate(queries)
        for number, other in stored
        if (one ^ other).bit_count() <= distance
    }


@given(
    layout=st.sampled_from(LAYOUTS),
    batches=st.lists(st.lists(fingerprints, max_size=30), max_size=6),
    queries=st.lists(fingerprints, min_size=1, max_size=5),
)
def test_an_index_finds_what_a_search_of_everything_finds(layout, batches, queries):
    index, stored = Segments(layout), []
    for batch in batches:
        ids = [2 * (len(stored) + i) for i in range(len(batch))]
        index.insert(np.array(batch, np.uint64), np.array(ids, np.uint32))
        stored += zip(ids, batch, strict=True)
        assert len(index) == len(stored)
    distance = layout.max_distance
    assert found(index, layout, queries, distance) == expected(stored, queries, distance)
    # The same as one run, which is what a merge takes.
    assert found(index.run(), layout, queries, distance) == expected(stored, queries, distance)


def test_a_run_lists_the_ids_of_a_key_in_ascending_order():
    layout = LAYOUTS[0]
    index = Segments(layout)
    index.insert(np.full(100, 7, np.uint64), np.arange(100, dtype=np.uint32))
    run = index.run()
    for order in run.order:
        assert run.ids[order].tolist() == list(range(100))
