"""Which attributes rules look at: what is asked for of an item, and read of a record.

Law: what a rule watches is all that it reads, beside keys: else a change of the rest would be missed.
"""

from __future__ import annotations

from collections.abc import Iterable

from sync_rules.model.entities import Entity
from sync_rules.model.values import Names
from sync_rules.rules.rule import Rule


def attributes_read(asked: Iterable[tuple[Rule, Entity]]) -> dict[str, Names]:
    """The attributes that rules look at of items of an entity, by table: together, for one item may concern several."""
    found: dict[str, Names] = {}
    for rule, entity in dict.fromkeys(asked):
        table, paths = entity.table.name, rule.watches(entity)
        before = found.get(table, frozenset())
        found[table] = None if paths is None or before is None else before.union(path[0] for path in paths)
    return found
