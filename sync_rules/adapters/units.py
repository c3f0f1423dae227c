"""What requests cost, in DynamoDB's read and write units.

Law: the arithmetic is that of the Developer Guide, "DynamoDB read and write operations": a read unit is 4 KB strongly
consistent, or twice that eventually; a write unit is 1 KB of the larger of the item before and after; a transaction
costs twice. A refused write costs as much as one that holds. An index that shows what changed costs a write of its own,
and two where a key of it changed.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
"""

from __future__ import annotations

from typing import Final

from sync_rules.adapters.expressions import InvalidUpdateError, as_update, updated, whole
from sync_rules.model.entities import Index, Table
from sync_rules.model.items import Action, Check, Delete, Put
from sync_rules.model.sizes import item_bytes
from sync_rules.model.values import Item, same

READ_UNIT_BYTES: Final = 4096
WRITE_UNIT_BYTES: Final = 1024


def read_units(size_bytes: int, *, consistent: bool) -> float:
    """What is read in one piece: an item, or a page of a Query or Scan. Nothing found costs one unit, or half of it."""
    return max(1, -(-size_bytes // READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


def write_units(size_bytes: int) -> int:
    """An item written, by the larger of its sizes before and after."""
    return max(1, -(-size_bytes // WRITE_UNIT_BYTES))


def after(action: Action, before: Item | None) -> Item | None:
    """What an action makes of an item. What the service would reject is taken to change nothing."""
    if isinstance(action, Delete):
        return None
    if isinstance(action, Put):
        return whole(action)
    if isinstance(action, Check):
        return before
    try:
        return updated(before or action.key.attributes(), as_update(action))
    except InvalidUpdateError:
        return before


def action_units(table: Table, before: Item | None, now: Item | None) -> int:
    """One item written, with what its indexes cost. Twice that in a transaction, but for the indexes."""
    return base_units(before, now) + sum(index_units(table, index, before, now) for index in table.indexes)


def base_units(before: Item | None, now: Item | None) -> int:
    """One item written, without its indexes."""
    return write_units(max(item_bytes(before or {}), item_bytes(now or {})))


def index_units(table: Table, index: Index, before: Item | None, now: Item | None) -> int:
    """What one index costs when an item changes."""
    old, new = _row(table, index, before), _row(table, index, now)
    if old is None and new is None:
        return 0
    if old is None or new is None:
        return write_units(item_bytes(old or new or {}))
    if _same(old, new):
        return 0
    moved = any(not same(old[a.name], new[a.name]) for a in index.attributes)
    return write_units(item_bytes(old)) * moved + write_units(item_bytes(new))


def _row(table: Table, index: Index, item: Item | None) -> Item | None:
    """The row of an item in an index; None when an attribute of its key is missing."""
    if item is None or any(attribute.name not in item for attribute in index.attributes):
        return None
    return table.row(index, item)


def _same(old: Item, new: Item) -> bool:
    return old.keys() == new.keys() and all(same(value, new[name]) for name, value in old.items())
