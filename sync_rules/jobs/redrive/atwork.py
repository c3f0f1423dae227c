"""What a redrive is at: the entries that are open, the messages that wait, what became of those that are done.

Law: what fails again stays where it is recorded already; only what is new is recorded anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure
from sync_rules.pipeline.failed_entries import Entry, Failed, Place
from sync_rules.pipeline.messages import Message
from sync_rules.pipeline.requests import Failures
from sync_rules.rules.rule import EffectRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True, slots=True)
class Left:
    """An entry that stays where it is, and why. `unreadable`: trying again as things are will do no better."""

    where: str
    what: str
    reason: str
    unreadable: bool = False


@dataclass
class Tally:
    """What came of entries, in counts. `kept` were put through for some of their rules only, and so are not removed;
    `skipped` are of other rules. `records` are stream records, `parked` failure records that are new.
    """

    done: int = 0
    kept: int = 0
    skipped: int = 0
    again: int = 0
    unreadable: int = 0
    records: int = 0
    written: int = 0
    parked: int = 0


@dataclass(eq=False)
class Open:
    """An entry at work. `waiting` counts the messages it left for later."""

    entry: Entry
    place: Place
    body: Failed
    whole: bool = True
    reason: str = ""
    unreadable: bool = False
    waiting: int = 0
    settled: bool = False


@dataclass
class Waiting:
    """A message for later, when it is due (seconds), and the entries that wait for it. `looks`: how many looks at the
    same, each after a wait, it comes after.
    """

    message: Message
    due: float
    looks: int = 0
    opens: list[Open] = field(default_factory=list)


class Strict:
    """Failures where what is looked at has failed before: it fails again, and stays where it is recorded already."""

    def park(self, failure: Failure) -> None:
        raise StoreError(failure.reason)


class Recorder:
    """Failures that are new are recorded. What a function is told of is only in its entry, which therefore stays."""

    def __init__(self, behind: Failures, rules: Rules, tally: Tally) -> None:
        self._behind, self._rules, self._tally = behind, rules, tally

    def park(self, failure: Failure) -> None:
        if isinstance(self._rules.rules.get(failure.rule), EffectRule):
            raise StoreError(failure.reason)
        self._behind.park(failure)
        self._tally.parked += 1
