"""What a user's function is told of a change: plain Python values, and a name that is the same whenever it comes again.

Law: one change has one identity, however often and by whatever road its record is delivered. Numbers stay exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sync_rules.model.items import Call, Change
from sync_rules.model.json_bytes import canonical
from sync_rules.model.python_values import plain_of
from sync_rules.model.values import Item

When = Literal["created", "changed", "deleted"]


@dataclass(frozen=True, kw_only=True)
class ItemChange:
    """The one argument of a function that a `call` rule names.

    `key`, `old` and `new` are plain dictionaries: numbers are Decimal, sets are sets, binaries are bytes. `old` is None
    when the item was created, `new` when it was deleted; `expired` says that Time to Live did that. `table` is its name
    in the rules file. `id` is the same whenever the same change comes again, and another for any other change or rule:
    whatever the function does elsewhere can be made to happen once by it.
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
        """What happened to the item, in the words of the rules file."""
        return "created" if self.old is None else "deleted" if self.new is None else "changed"


def item_change(call: Call) -> ItemChange:
    """What the function of a call is told."""
    change = call.change
    return ItemChange(
        rule=call.rule,
        table=change.key.table,
        key=_plain(change.key.attributes()),
        old=None if change.old is None else _plain(change.old),
        new=None if change.new is None else _plain(change.new),
        expired=change.expired,
        id=f"{call.rule}:{change.key.table}:{identity(change)}",
    )


def _plain(item: Item) -> dict[str, Any]:
    return {name: plain_of(value) for name, value in item.items()}


def identity(change: Change) -> str:
    """What tells one change from all others of its table, as text that may stand in a file name.

    The sequence number of its record, with a digest of the item's key, since each shard gives out its own numbers.
    Where there is none, or a record may come under two numbers (Kinesis Data Streams), it is what the record says.
    """
    if change.position and change.in_order:
        return f"{change.position}-{change.key.digest()}"
    said = [change.key.attributes(), change.old, change.new, change.created_ms]
    return hashlib.sha256(canonical(said).encode()).hexdigest()
