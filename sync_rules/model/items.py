"""The frozen values that travel through the pipeline: keys, changes, conditions, writes, outcomes, failures.

Law: a value here is never changed; progress is a new value. A `Change` is what a stream record says; a `Write` is what
reconcile wants; a `Result` is what the store answered; an `Outcome` is what that means for one rule and one target.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from sync_rules.model.values import AttributeValue, Item


class ItemKey(NamedTuple):  # a tuple, because dictionaries of keys are looked into all the time
    """The primary key of an item: its table in the rules, then (attribute, type, value), partition key first."""

    table: str
    values: tuple[tuple[str, str, str | bytes], ...]

    def attributes(self) -> dict[str, AttributeValue]:
        """The key as DynamoDB's Key parameter."""
        return {name: {kind: value} for name, kind, value in self.values}

    def __str__(self) -> str:
        parts = (value.hex() if isinstance(value, bytes) else value for _, _, value in self.values)
        return f"{self.table}[{', '.join(parts)}]"

    def digest(self) -> str:
        """Twelve hexadecimal digits that stand for the key in logs, where keys are not written unless asked for."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Change:
    """One stream record: an item as it was and as it is. The only thing taken from it is where to look.

    `position` is the sequence number by which a failure of this record is reported; `created_ms` is when DynamoDB
    says the change was made (milliseconds since the epoch; the service rounds it down to the second). `in_order` is
    False where records of one item may overtake each other (Kinesis Data Streams): its image may not be the newest.
    `expired`: DynamoDB itself deleted the item, by Time to Live.
    """

    key: ItemKey
    old: Item | None
    new: Item | None
    position: str = ""
    created_ms: int | None = None
    in_order: bool = True
    expired: bool = False


class Outcome(Enum):
    """What one reconcile of one rule on one target came to."""

    __hash__ = object.__hash__  # each is one object; Enum's own is asked for at every count

    COPIED = "copied"
    DELETED = "deleted"  # on_delete: delete
    DONE = "done"  # archived, or called
    RIGHT = "right"  # the copy already was what the rule says
    KEPT = "kept"  # the rule says nothing: no source, or `where` does not hold
    SUPERSEDED = "superseded"  # the copy changed since it was seen
    RELINKED = "relinked"  # the target points to another source now
    GONE = "gone"  # the target no longer exists
    FAILED = "failed"  # comes again
    PARKED = "parked"  # cannot succeed now; a failure record says why


REFUSALS: Final = frozenset({Outcome.SUPERSEDED, Outcome.RELINKED, Outcome.GONE})


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failure record says: which rule, which item, why. Never a value of an item.

    `member` is, where an item is made of several, the one that did not fit. `apart`: the failures of several members
    are several, not one and the same failure of the item. `element` is given for a part, whose source is then `member`.
    `source` is the one that a target names, for who follows it through the log; it is not kept.
    """

    rule: str
    key: ItemKey | None
    reason: str
    position: str = ""
    member: ItemKey | None = None
    apart: bool = field(default=False, compare=False)
    element: str | None = field(default=None, compare=False)
    source: ItemKey | None = field(default=None, compare=False)


# ---------------------------------------------------------------- effects: what leaves the tables
@dataclass(frozen=True, slots=True)
class Keep:
    """Put an object into a bucket, under a name of its own, so that twice is once."""

    rule: str
    bucket: str
    name: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """Call a user's function with a change, once per change and rule. `attempt` counts how often it failed."""

    rule: str
    function: str  # module.function
    change: Change
    attempt: int = 0


Effect = Keep | Call
