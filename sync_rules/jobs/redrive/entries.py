"""The entries of a redrive while it retries them, and their counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from sync_rules.pipeline.failed_entries import Failed, FailedEntry, FailureStore
from sync_rules.pipeline.messages import Message


@dataclass(frozen=True, slots=True)
class LeftEntry:
    """An entry that stays, and why. `unreadable`: a retry would not help."""

    where: str
    what: str
    reason: str
    unreadable: bool = False


@dataclass
class RedriveCounts:
    """Counts of entries. `kept` entries stay, because redrive retried only some of their rules. `skipped` entries
    concern other rules or another function. `records` are stream records, `written` writes to the tables, `acted`
    calls of functions by `call` rules, `parked` new failure records.
    """

    done: int = 0
    kept: int = 0
    skipped: int = 0
    again: int = 0
    unreadable: int = 0
    records: int = 0
    written: int = 0
    parked: int = 0
    acted: int = 0


@dataclass(eq=False)
class OpenEntry:
    """An entry that is being retried. `waiting` counts its messages for later."""

    entry: FailedEntry
    place: FailureStore
    body: Failed
    whole: bool = True
    reason: str = ""
    unreadable: bool = False
    waiting: int = 0
    closed: bool = False


@dataclass
class WaitingMessage:
    """A message that is handled later, at `due` (seconds), and the entries that wait for it. `looks` counts the earlier
    looks at the same item.
    """

    message: Message
    due: float
    looks: int = 0
    opens: list[OpenEntry] = field(default_factory=list)
