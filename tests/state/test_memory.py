"""The index in memory against a search of everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_model import LAYOUTS, fingerprints

from state import memory, search
from state.memory import MemoryIndex
from state.search import Queries
from state.tables import Rows, Tables


@pytest.fixture(autouse=True, scope="module")
def small_runs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "TAIL", 8)
        patch.setattr(memory, "MIDDLE", 32)
        patch.setattr(memory, "_DIRECT", 20)
        # So that a common key is compared in several goes.
        patch.setattr(search, "CHUNK", 20)
        yield


def rows(layout, fingerprints, ids):
    values = np.array(fingerprints, np.uint64)
    keys = Tables.of_segments(layout).narrow(layout.keys(values))
    return Rows(np.array([values, values]), keys, np.array(ids, np.uint32))


def found(index, layout, queries, distance):
    values, pairs = np.array(queries, np.uint64), set()
    both = np.array([values, values])
    asked = Queries(Tables.of_segments(layout), both, (distance, 64), layout.keys(values))
    for part in index.near(asked):
        columns = (part.rows, part.ids, part.distances)
        pairs |= set(zip(*(column.tolist() for column in columns), strict=True))
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
    index, stored = MemoryIndex(Tables.of_segments(layout)), []
    for batch in batches:
        ids = [2 * (len(stored) + i) for i in range(len(batch))]
        index.insert(rows(layout, batch, ids))
        stored += zip(ids, batch, strict=True)
        assert len(index) == len(stored)
    distance = layout.max_distance
    assert found(index, layout, queries, distance) == expected(stored, queries, distance)
    # The same as one run, which is what a merge takes.
    assert found(index.run(), layout, queries, distance) == expected(stored, queries, distance)


def test_a_run_lists_the_ids_of_a_key_in_ascending_order():
    layout = LAYOUTS[0]
    index = MemoryIndex(Tables.of_segments(layout))
    for start in (0, 5, 50):
        ids = range(start, {0: 5, 5: 50, 50: 100}[start])
        index.insert(rows(layout, [7] * len(ids), list(ids)))
    run = index.run()
    for order in run.order:
        assert run.ids[order].tolist() == list(range(100))
