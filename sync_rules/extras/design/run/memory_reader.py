"""A `Reader` of tables in memory: access patterns run on them as on the service, with no client."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.semantics import key_values
from sync_rules.model.values import Item, Path, same
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
        place = None if index is None else table.index(index)
        keys = table.key if place is None else place.attributes
        sorts = (*(table.key[1:] if place is None else place.sort), *table.key)
        rows = [
            item
            for item in self._store.items(table.name)
            if key_values(item, keys) is not None and _meets(item, conditions, within)
        ]
        rows.sort(key=lambda item: key_values(item, sorts) or (), reverse=backward)
        fetched = whole or (place is not None and place.local and projects is not None)
        shown = rows if place is None or fetched else [table.row(place, row) for row in rows]
        return shown[:limit], None


def _meets(item: Item, conditions: KeyConditions, within: KeyRange | None) -> bool:
    if not all(same(item.get(name), value) for name, value in conditions.equals):
        return False
    if conditions.begins_with is not None:
        name, prefix = conditions.begins_with
        if not item[name].get("S", "").startswith(prefix):
            return False
    return within is None or within.holds(item[within.name])
