"""The tables of a replay: the application's writes, the rules' writes, and every change in order.

Invariant: the tables before the first record are the same under every delivery: the items that existed then had been
there for long, so they are played in order, without faults, until the rules are at rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.delivery import Delivery
from sync_rules.lab.recompute import Ending
from sync_rules.lab.rehearsal import Rehearsal, write
from sync_rules.lab.scenario import Action, show
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, is_same_value
from sync_rules.model.writes import Put
from sync_rules.rules.ruleset import Rules

By = Literal["data", "record", "rules"]


@dataclass(frozen=True)
class ReplayEvent:
    """One change of an item: by the initial data, by a record (its number), or by the rules."""

    by: By
    change: Change
    record: int = 0

    @property
    def name(self) -> str:
        """The event's name in a stream record."""
        return self.change.event_name

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that changed, without key attributes; none of a deleted item."""
        old, new = self.change.old or {}, self.change.new
        if new is None:
            return ()
        keys = {name for name, _, _ in self.change.key.values}
        changed = (name for name in dict.fromkeys((*old, *new)) if not is_same_value(old.get(name), new.get(name)))
        return tuple(name for name in changed if name not in keys)

    def text(self, *, values: bool = False) -> str:
        """Format the change: name, -title; with values name: "Ada" -> "Bea"."""
        old, new = self.change.old or {}, self.change.new or {}
        if values:
            return ", ".join(f"{name}: {show(old.get(name))} -> {show(new.get(name))}" for name in self.attributes)
        return ", ".join(name if name in new else f"-{name}" for name in self.attributes)


class ReplayTables:
    """The tables of a replay, and all changes in them. `applied`: a second set of tables, with the application's writes
    only.
    """

    def __init__(self, rules: Rules) -> None:
        self.stage: Rehearsal = Rehearsal(rules)
        self.events: list[ReplayEvent] = []
        self.applied: MemoryStore = MemoryStore(rules.tables)
        self._rules = rules
        self._by: By = "rules"
        self._record = 0
        self._follow()

    def begin(self, puts: Iterable[Put], delivery: Delivery) -> bool:
        """Put the items that existed, and let the rules do all their work. `delivery` applies from then on. Return
        False if the rules do not finish. Raises StoreError.
        """
        for put in puts:
            self.do(put, "data")
        rested = self.stage.rest()
        self.stage = Rehearsal(self._rules, delivery=delivery, start=self.stage)
        self._follow()
        return rested

    def _follow(self) -> None:
        """Note the changes of the stage's tables before its pipeline sees them."""
        self._on_change = self.stage.store.on_change
        self.stage.store.on_change = self._note

    def do(self, action: Action, by: By, record: int = 0) -> bool:
        """Make a write of the application. Return False if the table rejects it."""
        self._by, self._record = by, record
        try:
            self.stage.do(action)
        except StoreError:
            return False
        finally:
            self._by, self._record = "rules", 0
        write(self.applied, action)
        return True

    def make_ending(self) -> Ending:
        """Return the tables, changes and failures at the end."""
        changes, parked = [event.change for event in self.events], self.stage.list_failures()
        erased = frozenset(one.change.key for one in self.events if one.by == "record" and one.change.new is None)
        return Ending(self._rules, self.stage.store, self.applied, changes, parked, erased)

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        change = Change(key, old, new, str(len(self.events) + 1))
        self.events.append(ReplayEvent(self._by, change, self._record))
        if self._on_change is not None:
            self._on_change(key, old, new)
