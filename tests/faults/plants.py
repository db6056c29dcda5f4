"""Faults to plant in a copy of the source: what each breaks, and the run that has to find it."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Edit(NamedTuple):
    """A passage of a file, which stands there once, and what takes its place."""

    file: str
    passage: str
    instead: str


class Programme(NamedTuple):
    """A run of the harness that is sound where nothing is planted."""

    events: int
    faults: Mapping[str, int]
    edits: tuple[Edit, ...] = ()
    """What is changed of the harness itself, so that the moment that matters comes often enough."""


class Plant(NamedTuple):
    """A fault in the source."""

    name: str
    programme: Programme
    edits: tuple[Edit, ...]


class PlantError(Exception):
    """The source has changed: a passage is not there, or more than once. Write the plant anew."""


TRANSACTOR = "stream/transactor.py"
WRITER = "stream/writer.py"
REPLICA = "stream/replica.py"
SCOPE = "stream/scope.py"
STAGE = "tests/faults/stage.py"

KILLS = Programme(6_000, {"kill": 8})
COLD = Programme(
    6_000,
    {"failover": 4},
    # A worker that does not follow comes back with the state that it had when it was killed.
    (Edit(STAGE, '"standby": self.two', '"standby": False'),),
)
PAIR = Programme(6_000, {"zombie": 4, "failover": 1})
REBALANCES = Programme(6_000, {"failover": 3, "stop": 2, "broker-stop": 1})
EXPIRY = Programme(
    12_000,
    {"kill": 10},
    (
        # A batch that outlasts several windows, each of which still has duplicates at the batch's begin.
        Edit(STAGE, '"batch_size": 200,', '"batch_size": 1000, "batch_wait": "300ms",'),
        Edit(STAGE, '"retention": "20000s"', '"retention": "1500s"'),
        Edit("tests/faults/worker.py", "WINDOW_FLOOR = 1_500", "WINDOW_FLOOR = 20"),
    ),
)

UNGUARDED = Edit(
    "stream/positions.py",
    "    if fault is not None:\n        raise ScopeError",
    "    if False:\n        raise ScopeError",
)
"""The scope's own comparison of positions is off: the harness must find it by what left."""

_BEFORE_COMMIT = Edit(
    TRANSACTOR,
    "                changelog = await self._transact(batch)\n",
    "                await self._replica.apply(batch.records, self.position.changelog)\n"
    "                changelog = await self._transact(batch)\n",
)
_TAIL_UNREAD = Edit(
    REPLICA,
    "        if position is not None:\n            await self._read(reader, position.changelog, end, _apply_read)\n",
    "        if position is not None:\n            pass\n",
)
_OFFSETS_APART = Edit(
    WRITER,
    "                await producer.send_offsets_to_transaction({raw: end}, self._settings.group)\n",
    "                await producer.commit_transaction()\n"
    "                await producer.begin_transaction()\n"
    "                await producer.send_offsets_to_transaction({raw: end}, self._settings.group)\n",
)

PLANTS = (
    Plant("RocksDB is written before the commit", KILLS, (_BEFORE_COMMIT,)),
    Plant(
        "RocksDB is written before the commit, and positions are not compared",
        KILLS,
        (_BEFORE_COMMIT, UNGUARDED),
    ),
    Plant(
        "a send is not awaited",
        KILLS,
        (
            Edit(
                WRITER,
                "                answers = await self._answers(producer, (*outputs, *state))\n",
                "                for output in outputs:\n"
                "                    sent = await self._send(producer, output)\n"
                "                    sent.add_done_callback(lambda done: done.cancelled() or done.exception())\n"
                "                answers = [None] * len(outputs) + await self._answers(producer, state)\n",
            ),
        ),
    ),
    Plant("offsets are committed outside the transaction", KILLS, (_OFFSETS_APART,)),
    Plant("the changelog's tail is not read", COLD, (_TAIL_UNREAD,)),
    Plant(
        "the changelog's tail is not read, and positions are not compared", COLD, (_TAIL_UNREAD, UNGUARDED)
    ),
    Plant(
        "a window is dropped before its expiry is committed",
        EXPIRY,
        (
            Edit(
                TRANSACTOR,
                "                changelog = await self._transact(batch)\n",
                "                expired = batch.records[-1].boundary\n"
                "                await self._replica.run(_drop_early, self._replica.table, expired)\n"
                "                changelog = await self._transact(batch)\n",
            ),
            Edit(
                TRANSACTOR,
                "class Transactor:\n",
                "def _drop_early(table, boundary):\n"
                "    for window in [one for one in table._windows if one.extent.last < boundary]:\n"
                "        batch = table._store.batch()\n"
                "        batch.delete('default', window.extent.key)\n"
                "        table._store.write(batch)\n"
                "        table._drop(window)\n"
                "        table._windows.remove(window)\n\n\n"
                "class Transactor:\n",
            ),
        ),
    ),
    Plant(
        "a merge has no watermark: what has begun counts as done",
        KILLS,
        (
            Edit(
                "state/merge.py",
                "            store.write(batch)\n            return True\n",
                "            begun = self.window.extent._replace(merged=int(self._run.ids[-1]) + 1)\n"
                "            batch.put(DEFAULT_FAMILY, begun.key, begun.encode())\n"
                "            store.write(batch)\n            return True\n",
            ),
        ),
    ),
    Plant(
        "events below the next offset are not dropped",
        REBALANCES,
        (
            Edit(SCOPE, "            if event.offset < expected:\n", "            if False:\n"),
            Edit(
                SCOPE,
                "            while left := [event for event in batch if event.offset >= self.position.next]:\n",
                "            for left in [batch]:\n",
            ),
            Edit(
                "stream/judge.py",
                "        if not inputs or inputs[0].offset < position.next:\n",
                "        if not inputs:\n",
            ),
        ),
    ),
    Plant(
        "the producer's id is random",
        PAIR,
        (
            Edit(
                WRITER,
                '    return f"{group}-{raw.topic}-{raw.partition}"\n',
                "    return f\"{group}-{raw.topic}-{raw.partition}-{__import__('uuid').uuid4().hex}\"\n",
            ),
        ),
    ),
)


def plant(root: Path, edits: tuple[Edit, ...]) -> None:
    """Make the edits in a copy of the source.

    Raises:
        PlantError: a passage is not there exactly once.
    """
    for edit in edits:
        path = root / edit.file
        source = path.read_text()
        if source.count(edit.passage) != 1:
            raise PlantError(f"{edit.file} has {source.count(edit.passage)} times, not once:\n{edit.passage}")
        path.write_text(source.replace(edit.passage, edit.instead))
