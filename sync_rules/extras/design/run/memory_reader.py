"""A `Reader` of tables in memory: access patterns run on them as on the service, with no client."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.values import Item, Path
from sync_rules.pipeline.requests import List
from sync_rules.read.key_range import KeyRange
from sync_rules.read.reader import Reader


class MemoryReader(Reader):
    """Raw items of a store; every answer is complete, whole and consistent."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(SimpleNamespace(query=None, batch_get_item=None), raw=True)
        self._store = store

    def item(self, table: Table, key: ItemKey | None, **_: Any) -> Item | None:  # noqa: ARG002
        return None if key is None else self._store.item(key)

    def get(self, table: Table, keys: Sequence[ItemKey | None], **_: Any) -> tuple[Item | None, ...]:
        return tuple(self.item(table, key) for key in keys)

    def query(
        self,
        table: Table,
        index: str | None,
        conditions: KeyConditions,
        *,
        backward: bool = False,
        start: Item | None = None,  # noqa: ARG002 - each answer is the last
        limit: int | None = None,
        within: KeyRange | None = None,
        projects: Sequence[Path] | None = None,
        consistent: bool | None = None,  # noqa: ARG002
        whole: bool = False,
    ) -> tuple[list[Item], Item | None]:
        """The rows under a key condition, as an index shows them."""
        page = self._store.list(List(table.name, index, conditions, sys.maxsize, backward=backward))
        rows = [row for row in page.items if within is None or within.holds(row[within.name])]
        if whole or (index is not None and table.index(index).local and projects is not None):
            rows = [item for item in self.get(table, list(map(table.key_of, rows))) if item is not None]
        return rows[:limit], None
