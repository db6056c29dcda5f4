"""The segment table against a plain search of everything, whatever happens to it in between."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from state_model import (
    CENTRES,
    IN_MEMORY,
    LAYOUTS,
    Model,
    bands,
    content,
    fingerprints,
    finish_merging,
    near,
    open_table,
    profiles,
    record,
    similar,
)

from state import memory, merge
from state.changelog import decode, encode
from state.original import Original

batches = st.tuples(
    # Of each original: offset and time since the one before, fingerprint, salt, content, profile, bands,
    # whether it is one of a crowd.
    st.lists(
        st.tuples(
            st.integers(1, 3),
            st.integers(0, 20),
            st.none() | fingerprints,
            st.sampled_from((0, 0, 2**63 | 5)),
            st.integers(0, 9),
            profiles,
            bands,
            st.sampled_from((False, False, True)),
        ),
        max_size=20,
    ),
    # Events that are no originals, retention, slices of merging after it.
    st.integers(0, 2),
    st.sampled_from([400, 60, 1000]),
    st.integers(0, 12),
)


class TableMachine(RuleBasedStateMachine):
    """Applies, merges, expires, crashes, reopens, re-indexes and rebuilds in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="textsieve-", dir=IN_MEMORY))
        self.patch = pytest.MonkeyPatch()
        # Small enough that every place in memory is used, and a merge takes several slices.
        self.patch.setattr(memory, "TAIL", 4)
        self.patch.setattr(memory, "MIDDLE", 8)
        self.patch.setattr(memory, "_DIRECT", 6)
        self.patch.setattr(merge, "_READ_LISTS", 2)
        self.patch.setattr(merge, "_SLICE_LISTS", 5)
        self.copies = 0
        self.model = Model()
        self.log: list[bytes] = []
        self.next = self.time = 0

    @initialize(layout=st.sampled_from(LAYOUTS))
    def start(self, layout):
        self.path = self.directory / "state"
        self.table = open_table(self.path, layout)

    def teardown(self):
        self.table.close()
        self.patch.undo()
        shutil.rmtree(self.directory)

    def apply(self, table, first=0):
        table.apply([decode(value) for value in self.log[first:]], len(self.log))

    @rule(batches=st.lists(batches, min_size=1, max_size=3))
    def judge(self, batches):
        for batch in batches:
            self.judge_a_batch(*batch)

    def judge_a_batch(self, arrivals, others, retention, slices):
        begin, added = self.next, []
        offset = begin - 1
        for step, wait, fingerprint, salt, key, profile, keys, crowd in arrivals:
            offset += step
            self.time += wait
            packed = b"".join(band.to_bytes(2, "little") for band in keys or ())
            item = Original(
                offset, self.time, fingerprint, content(key), b"1", "\ud800", salt, profile, packed, b"s"
            )
            added.append(item._replace(by_fingerprint=fingerprint is None or not crowd))
        self.next = offset + 1 + others
        if self.next > begin:
            self.model.originals += added
            alive = [item.offset for item in self.model.originals if item.time > self.time - retention]
            self.model.boundary = max(self.model.boundary, min(alive, default=self.next))
        self.log.append(encode(record(added, begin, self.next, self.time, self.model.boundary)))
        self.apply(self.table, len(self.log) - 1)
        for _ in range(slices):
            self.table.merge_step()

    @rule()
    def merge_all(self):
        finish_merging(self.table)

    @rule()
    def reopen(self):
        self.table.close()
        self.table = open_table(self.path, self.table.layout)

    @rule(layout=st.sampled_from(LAYOUTS))
    def change_the_layout(self, layout):
        self.table.close()
        self.table = open_table(self.path, layout)

    @rule()
    def crash(self):
        # What is in memory is lost; what has been written is there.
        self.copies += 1
        copy = self.directory / f"copy-{self.copies}"
        self.table.checkpoint(copy)
        self.table.close()
        self.path = copy
        self.table = open_table(copy, self.table.layout)

    @rule(count=st.integers(0, 3))
    def apply_the_tail_again(self, count):
        self.apply(self.table, max(len(self.log) - count, 0))

    @rule()
    def rebuild(self):
        with open_table(self.directory / "rebuilt", self.table.layout) as rebuilt:
            self.apply(rebuilt)
            assert rebuilt.position == self.table.position
            assert list(rebuilt.contents()) == list(self.table.contents())
        rebuilt.destroy(self.directory / "rebuilt")

    @rule()
    def rebuild_from_what_the_changelog_must_keep(self):
        kept = [decode(value) for value in self.log[self.table.changelog_needed :]]
        with open_table(self.directory / "rebuilt", self.table.layout) as rebuilt:
            rebuilt.load(kept, len(self.log))
        with open_table(self.directory / "rebuilt", self.table.layout) as rebuilt:
            assert rebuilt.position == self.table.position
            assert list(rebuilt.contents()) == list(self.table.contents())
            alive = [
                item.fingerprint ^ item.salt for item in self.model.alive() if item.fingerprint is not None
            ]
            queries, boundaries = [*CENTRES, *alive], [self.model.boundary] * (len(CENTRES) + len(alive))
            distance = rebuilt.layout.max_distance
            assert near(rebuilt, queries, distance, boundaries) == self.model.near(
                queries, distance, boundaries
            )
        rebuilt.destroy(self.directory / "rebuilt")

    @invariant()
    def everything_near_is_found(self):
        alive = [item for item in self.model.alive() if item.fingerprint is not None]
        queries = [*CENTRES, *(item.fingerprint ^ item.salt for item in alive)]
        # Each with a boundary of its own, as within a batch.
        boundaries = [self.model.boundary] * len(CENTRES) + [item.offset for item in reversed(alive)]
        for distance in (self.table.layout.max_distance, 1):
            expected = self.model.near(queries, distance, boundaries)
            assert near(self.table, queries, distance, boundaries) == expected
            expected = self.model.near(queries, distance, boundaries, 1)
            assert near(self.table, queries, distance, boundaries, 1) == expected

    @invariant()
    def what_shares_a_band_is_found(self):
        offsets = [item.offset for item in self.model.originals[-3:]]
        queries = [(profile, keys) for profile in (0, 7) for keys in ((1, 1), (2, 1), (256, 2), (3, 3))]
        # Each with a boundary of its own, as within a batch.
        boundaries = [max(self.model.boundary, offset) for offset in [*offsets, *[0] * 8][: len(queries)]]
        for distance in (0, 2, 64):
            found = similar(self.table, queries, boundaries, distance)
            assert found == self.model.similar(queries, boundaries, distance)

    @invariant()
    def the_first_that_a_horizon_leaves_alive_is_found(self):
        times = {item.time for item in self.model.originals[-40:]}
        horizons = sorted({time + late for time in times for late in (-1, 0)})
        found = self.table.first_alive(np.array(horizons, np.int64)).tolist()
        assert found == self.model.first_alive(horizons)

    @invariant()
    def everything_alive_is_there(self):
        alive = self.model.alive()
        assert list(self.table.contents()) == alive
        assert self.table.originals([item.offset for item in reversed(alive)]) == alive[::-1]

    @invariant()
    def the_newest_original_of_a_content_is_found(self):
        keys = [content(number) for number in range(10)]
        for key, found in zip(keys, self.table.find_content(keys), strict=True):
            newest = self.model.newest(key)
            assert found == newest or (newest is None and found < self.model.boundary)

    @invariant()
    def only_windows_with_something_alive_are_kept(self):
        assert all(window.last >= self.model.boundary for window in self.table.windows())


TestTable = TableMachine.TestCase
TestTable.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
