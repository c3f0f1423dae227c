"""The tables of a replay: what the application wrote, what the rules made of it, and every change in order.

Invariant: the tables before the first record are the same under every delivery. The items that existed had been there
for long, so the rules had come to rest. The tables play that in order and without faults, whatever the delivery.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.delivery import Delivery
from sync_rules.lab.moves import Moves
from sync_rules.lab.provenance import Provenance
from sync_rules.lab.recompute import Ending
from sync_rules.lab.rehearsal import Rehearsal, write
from sync_rules.lab.scenario import Action, show
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, same
from sync_rules.model.writes import Put
from sync_rules.rules.ruleset import Rules

By = Literal["data", "record", "rules"]


@dataclass(frozen=True)
class Event:
    """One change of an item: by the initial data, by a record (its number), or by the rules."""

    by: By
    change: Change
    record: int = 0

    @property
    def name(self) -> str:
        """The event's name in a stream record."""
        return "REMOVE" if self.change.new is None else "INSERT" if self.change.old is None else "MODIFY"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that changed, without key attributes; none of a deleted item."""
        old, new = self.change.old or {}, self.change.new
        if new is None:
            return ()
        keys = {name for name, _, _ in self.change.key.values}
        changed = (name for name in dict.fromkeys((*old, *new)) if not same(old.get(name), new.get(name)))
        return tuple(name for name in changed if name not in keys)

    def text(self, *, values: bool = False) -> str:
        """The change in words: name, -title; with values name: "Ada" -> "Bea"."""
        old, new = self.change.old or {}, self.change.new or {}
        if values:
            return ", ".join(f"{name}: {show(old.get(name))} -> {show(new.get(name))}" for name in self.attributes)
        return ", ".join(name if name in new else f"-{name}" for name in self.attributes)


class ReplayTables:
    """The tables, and all changes in them. `applied` has what the application wrote alone."""

    def __init__(self, rules: Rules) -> None:
        self.stage: Rehearsal = Rehearsal(rules)
        self.events: list[Event] = []
        self.applied: MemoryStore = MemoryStore(rules.tables)
        self.moves: Moves = Moves(rules, Provenance(rules), self.applied)
        self._rules = rules
        self._by: By = "rules"
        self._record = 0
        self._follow()

    def begin(self, puts: Iterable[Put], delivery: Delivery) -> bool:
        """Put the items that existed, and let the rules do all their work; `delivery` holds from then on. False when
        the rules do not come to rest. Raises StoreError.
        """
        for put in puts:
            self.do(put, "data")
        rested = self.rest()
        self.stage = Rehearsal(self._rules, delivery=delivery, start=self.stage)
        self._follow()
        return rested

    def _follow(self) -> None:
        """Note the changes of the stage's tables before its pipeline sees them."""
        self._on_change = self.stage.store.on_change
        self.stage.store.on_change = self._note

    def do(self, action: Action, by: By, record: int = 0) -> bool:
        """Make a write of the application; False when the table rejects it."""
        self._by, self._record = by, record
        try:
            self.stage.do(action)
        except StoreError:
            return False
        finally:
            self._by, self._record = "rules", 0
        write(self.applied, action)
        return True

    def work(self) -> None:
        """Let the rules do one piece of work."""
        self.stage.work()

    def rest(self) -> bool:
        """Let the rules do all their work. False when there is no end. Raises StoreError."""
        return self.stage.rest()

    def ending(self) -> Ending:
        """The tables as they are in the end."""
        changes, parked = self.changes(), self.stage.parked()
        self.moves.excuse(parked, self.stage.store, changes)
        erased = frozenset(one.change.key for one in self.events if one.by == "record" and one.change.new is None)
        return Ending(self._rules, self.stage.store, self.applied, changes, parked, erased)

    def changes(self) -> tuple[Change, ...]:
        """All changes, in order."""
        return tuple(event.change for event in self.events)

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        change = Change(key, old, new, str(len(self.events) + 1))
        self.events.append(Event(self._by, change, self._record))
        if self._by == "rules":
            self.moves.note(change, (event.change for event in self.events))
        if self._on_change is not None:
            self._on_change(key, old, new)
