"""The values that travel through the pipeline: keys, changes, outcomes, alterations, failures, calls.

Invariant: a value is never changed; progress is a new value. A `Change` is a stream record as read, an `Outcome` the
result of reconciling one rule on one target.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, Literal, NamedTuple

from sync_rules.model.numbers import read_number
from sync_rules.model.values import AttributeValue, Item


class ItemKey(NamedTuple):  # a tuple, for fast dictionaries
    """The primary key of an item: its table in the rules, then (attribute, type, value), partition key first."""

    table: str
    values: tuple[tuple[str, str, str | bytes], ...]

    def attributes(self) -> dict[str, AttributeValue]:
        return {name: {kind: value} for name, kind, value in self.values}

    def __str__(self) -> str:
        parts = (value.hex() if isinstance(value, bytes) else value for _, _, value in self.values)
        return f"{self.table}[{', '.join(parts)}]"

    def digest(self) -> str:
        """Return twelve hexadecimal digits that represent the key in logs. They can confirm a guess of the key."""
        return hashlib.sha256(str(self).encode("utf-8", "surrogatepass")).hexdigest()[:12]


EventName = Literal["INSERT", "MODIFY", "REMOVE"]  # as DynamoDB names what happened to an item


@dataclass(slots=True)  # never changed all the same: a frozen one takes three times as long to make, for every record
class Change:
    """One stream record: an item before and after. It is only a hint about where to look.

    `position` is the sequence number that a failure of this record reports. `created_ms` is the time of the change by
    DynamoDB (milliseconds since the epoch; the service rounds it down to the second). `in_order` is False where records
    of one item may overtake each other (Kinesis Data Streams), so that the image may be an old one. `expired`: Time to
    Live deleted the item. `shrank_from`: the former size in bytes of a large item that became smaller, else 0. A copy
    that had no room may fit now.
    """

    key: ItemKey
    old: Item | None
    new: Item | None
    position: str = ""
    created_ms: int | None = None
    in_order: bool = True
    expired: bool = False
    shrank_from: int = field(default=0, compare=False)

    @property
    def event_name(self) -> EventName:
        return "REMOVE" if self.new is None else "INSERT" if self.old is None else "MODIFY"


class Outcome(Enum):
    """The result of reconciling one rule on one target."""

    __hash__ = object.__hash__  # faster than Enum's own, and called at every count

    COPIED = "copied"
    DELETED = "deleted"  # on_delete: delete
    DONE = "done"  # the function was called
    RIGHT = "right"  # the copy was right already
    KEPT = "kept"  # the rule says nothing: no source, or `where` does not hold
    WAITING = "waiting"  # its books are not known to be complete: left as it is until a backfill of the rule is done
    SUPERSEDED = "superseded"  # the copy changed since it was read
    RELINKED = "relinked"  # the target names another source now
    GONE = "gone"  # the target no longer exists
    FAILED = "failed"  # its record is delivered again
    PARKED = "parked"  # cannot succeed now; a failure record says why


REFUSALS: Final = frozenset({Outcome.SUPERSEDED, Outcome.RELINKED, Outcome.GONE})


UNKNOWN_RULE: Final = "UnknownRule"  # the reason of a message for a rule that this version of the rules does not have
NOT_IN_INDEX: Final = "NotInIndex"  # the reason of an item that lacks a key attribute of the index that must list it


@dataclass(frozen=True, slots=True)
class Failure:
    """The content of a failure record: rule, item and reason, and never a value of the item.

    `member`: the member that did not fit, or the source of a part. `apart`: each member has its own failure. `element`:
    the element that a part is. `source`: the source of a target, for logs only. `call`: the place that keeps the change
    of a failed call; each change of an item has its own failure.
    """

    rule: str
    key: ItemKey | None
    reason: str
    position: str = ""
    member: ItemKey | None = None
    apart: bool = field(default=False, compare=False)
    element: str | None = field(default=None, compare=False)
    source: ItemKey | None = field(default=None, compare=False)
    call: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A request to call a user's function with a change, once per change and rule. `attempt`: the number of failed
    calls. `kept`: the place where the call is stored. `unsure`: why the rule's condition failed, so that the call is
    reported instead. `former`: the former name of a renamed rule.
    """

    rule: str
    function: str  # module.function
    change: Change
    attempt: int = 0
    kept: str = field(default="", compare=False)
    unsure: str = ""
    former: str = field(default="", compare=False)


class Alteration(StrEnum):
    """The effect of a write on the value at one path."""

    SET = "set"  # nothing was there
    REPLACED = "replaced"  # another value was there
    ZEROED = "zeroed"  # the number 0 takes the place of another value
    REMOVED = "removed"  # a value was there, and nothing is there now


def classify_alteration(before: AttributeValue | None, after: AttributeValue | None) -> Alteration:
    """Classify a write that turns `before` into `after` (None: no value). The two values must differ."""
    assert before is not None or after is not None, "a write changes something"
    if before is None:
        return Alteration.SET
    if after is None:
        return Alteration.REMOVED
    return Alteration.ZEROED if read_number(after) == 0 else Alteration.REPLACED
