"""The argument of a user's function: a change as plain Python values, with an id.

Invariant: one change has one id, however often and by whatever way its record is delivered. Numbers stay exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sync_rules.model.items import Call, Change
from sync_rules.model.json_bytes import format_canonical_json
from sync_rules.model.python_values import make_plain_value
from sync_rules.model.values import Item

When = Literal["created", "changed", "deleted"]


@dataclass(frozen=True, kw_only=True)
class ItemChange:
    """The one argument of a function that a `call` rule names.

    `key`, `old` and `new` are plain dictionaries: numbers are Decimal, sets are sets, binaries are bytes. `old` is None
    when the item was created, `new` when it was deleted; `expired` says that Time to Live did that. `table` is its name
    in the rules file. `id` is the same whenever the same change is delivered again, and different for any other change
    or rule: the function can use it to act once per change.
    """

    rule: str
    table: str
    key: Mapping[str, Any]
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    expired: bool
    id: str

    @property
    def when(self) -> When:
        return "created" if self.old is None else "deleted" if self.new is None else "changed"


def make_item_change(call: Call) -> ItemChange:
    change = call.change
    return ItemChange(
        rule=call.rule,
        table=change.key.table,
        key=_make_plain_item(change.key.attributes()),
        old=None if change.old is None else _make_plain_item(change.old),
        new=None if change.new is None else _make_plain_item(change.new),
        expired=change.expired,
        id=f"{call.rule}:{change.key.table}:{make_change_id(change)}",
    )


def _make_plain_item(item: Item) -> dict[str, Any]:
    return {name: make_plain_value(value) for name, value in item.items()}


def make_change_id(change: Change) -> str:
    """Return a text that names one change of a table, and can be part of a file name.

    It is the sequence number of the record, with a digest of the item's key, because each shard numbers its own
    records. Without a number, or where a record may have two (Kinesis Data Streams), it is a hash of the record's
    content.
    """
    if change.position and change.in_order:
        return f"{change.position}-{change.key.digest()}"
    said = [change.key.attributes(), change.old, change.new, change.created_ms]
    return hashlib.sha256(format_canonical_json(said).encode()).hexdigest()
