"""Sizes and numbers of items as tables show them: what an estimate takes in place of what a rules file states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sync_rules.extras.design.costs.volumes import Measured, Rows
from sync_rules.model.entities import Table
from sync_rules.model.sizes import item_bytes
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules


class Measuring:
    """Counts and sizes of items by entity, and of their rows in indexes."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._items: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._rows: Counter[tuple[str, str]] = Counter()
        self._row_bytes: Counter[tuple[str, str]] = Counter()

    def look(self, table: Table, items: Iterable[Item]) -> None:
        """Look at some items of a table. Those of no entity do not count."""
        for item in items:
            key = table.key_of(item)
            entity = None if key is None else self._rules.entity_of(key)
            if entity is None:
                continue
            self._items[entity.name] += 1
            self._bytes[entity.name] += item_bytes(item)
            for index in table.indexes:
                if all(attribute.type in item.get(attribute.name, {}) for attribute in index.attributes):
                    self._rows[entity.name, index.name] += 1
                    self._row_bytes[entity.name, index.name] += item_bytes(table.row(index, item))

    def measured(self, factor: float = 1.0) -> Mapping[str, Measured]:
        """The entities that were seen. `factor`: the whole, in times of what was looked at."""
        return {
            name: Measured(
                round(count * factor),
                round(self._bytes[name] / count),
                {
                    index: Rows(round(rows * factor), round(self._row_bytes[name, index] / rows))
                    for (of, index), rows in self._rows.items()
                    if of == name
                },
            )
            for name, count in self._items.items()
        }
