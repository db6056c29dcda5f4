"""The index of a window over one set of tables: posting lists on disk, and in memory what they lack."""

from collections.abc import Iterator

from state import search
from state.memory import MemoryIndex, Run
from state.search import Found, Queries
from state.store import Store
from state.tables import Rows, Tables


class Index:
    """An open index.

    Args:
        store: Where the posting lists are.
        family: The window's column family.
        tables: What keys there are.

    Attributes:
        tables: The same.
        frozen: Those originals in memory that are being merged, if any are.
    """

    def __init__(self, store: Store, family: str, tables: Tables) -> None:
        self.tables = tables
        self.frozen: Run | None = None
        self._store = store
        self._family = family
        self._fresh = MemoryIndex(tables)

    @property
    def unmerged(self) -> int:
        """How many originals are indexed in memory."""
        return len(self._fresh) + (len(self.frozen.ids) if self.frozen else 0)

    def insert(self, rows: Rows) -> None:
        """Index originals in memory; their ids lie above all that were inserted before."""
        self._fresh.insert(rows)

    def freeze(self) -> Run:
        """Set what is in memory apart, to be merged; it answers lookups until `thaw`."""
        self.frozen = self._fresh.run()
        self._fresh = MemoryIndex(self.tables)
        return self.frozen

    def thaw(self) -> None:
        """Take on that the frozen part has been merged: from now on the posting lists answer for it."""
        self.frozen = None

    def near(self, queries: Queries, merged: int) -> Iterator[Found]:
        """The originals near each query, in no order.

        Args:
            queries: What is looked up.
            merged: The local id below which originals are in the posting lists.
        """
        yield from self._fresh.near(queries)
        if self.frozen:
            yield from self.frozen.near(queries)
        if merged:
            lists = self._store.get(self._family, queries.lists)
            yield from search.near(queries, lists, merged)
