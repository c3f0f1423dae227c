"""The tables of a replay: the application's writes, the rules' writes, and every change in order.

Invariant: the tables before the first record are the same under every delivery: the items that existed then had been
there for long, so they are played in order, without faults, until the rules are at rest.

A rule with `mode: move` changes only the key of an item. After a move, the application's attributes are expected
unchanged under the new key. Without such a rule, one item is missing and another one is extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.delivery import Delivery
from sync_rules.lab.provenance import Provenance
from sync_rules.lab.recompute import Ending
from sync_rules.lab.recording import Recorded
from sync_rules.lab.rehearsal import Rehearsal, write
from sync_rules.lab.scenario import Action, show
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.values import Item, same
from sync_rules.model.writes import Put
from sync_rules.rules.kinds.move import LATE, MoveRule, attributes_in
from sync_rules.rules.rule import let_in
from sync_rules.rules.ruleset import Rules


@dataclass
class Moves:
    """The moves of a replay. `applied` holds the application's writes, `going` what the rules have just removed."""

    rules: Rules
    provenance: Provenance
    applied: MemoryStore
    going: dict[ItemKey, Item] = field(default_factory=dict)

    def find_moves(self, records: Iterable[Recorded]) -> frozenset[int]:
        """The numbers of the records that the recorded pipeline wrote to move items: a delete, and a put of the same
        item under the key that a rule names.
        """
        went: dict[ItemKey, list[Recorded]] = {}
        came: list[Recorded] = []
        for one in records:
            if one.change.new is None and not one.change.expired:
                went.setdefault(one.change.key, []).append(one)
            elif one.change.old is None:
                came.append(one)
        found: set[int] = set()
        for put in came:
            rule, source = self._from(put.change.key, put.change.new)
            for delete in went.get(source, ()) if rule and source else ():
                if rule and _is_whole(rule, put.change, delete.change):
                    found |= {put.number, delete.number}
                    went[delete.change.key].remove(delete)
                    break
        return frozenset(found)

    def note(self, change: Change, past: Iterable[Change]) -> None:
        """Note a write of the rules: after a move, the application's item has another key. `past` has all changes."""
        if change.new is None and change.old is not None:
            self.going[change.key] = change.old
            return
        rule, source = self._from(change.key, change.new) if change.old is None else (None, None)
        gone = self.going.pop(source, None) if source else None
        wrote = self.applied.item(source) if source else None
        if rule is None or source is None or gone is None or wrote is None or not _asks(rule, change.key, gone):
            return
        images = [one.new for one in past if one.key == source and one.new is not None]
        item = self._carry_attributes(source, gone, wrote, images)
        made = {ref.path[0]: rule.source.ref(name).read(gone) for name, ref in rule.names}
        made |= {name: (change.new or {}).get(name) for name in rule.index_keys}
        made |= change.key.attributes()
        self.applied.delete(source)
        self.applied.put(change.key.table, {name: value for name, value in {**item, **made}.items() if value})

    def excuse(self, parked: Iterable[Failure], store: MemoryStore, changes: Sequence[Change]) -> None:
        """Forget attributes of the application that a move left behind, as the rule has reported: those that the item
        did not always have, so that a look may have missed them.
        """
        for failure in parked:
            if failure.key is None or not failure.reason.startswith(LATE) or self.applied.item(failure.key) is None:
                continue
            there = store.item(failure.key) or {}
            images = [one.new for one in changes if one.key == failure.member and one.new is not None]
            names = [name for name in attributes_in(failure.element or "[]") if name not in there]
            late = [(name,) for name in names if any(name not in image for image in images)]
            self.applied.update(failure.key, (), late)

    def _from(self, key: ItemKey, item: Item | None) -> tuple[MoveRule | None, ItemKey | None]:
        """The rule that may have moved an item to this key, and the key under which it was before."""
        entity = self.rules.entity_of(key)
        for rule in self.rules.rules.values():
            if isinstance(rule, MoveRule) and rule.target is entity and item is not None:
                source = rule.pointer(item)
                if source is not None:
                    return rule, source
        return None, None

    def _carry_attributes(self, key: ItemKey, gone: Item, wrote: Item, images: Sequence[Item]) -> Item:
        """Return the attributes that a moved item must have: the application's as it wrote them, and those that rules
        kept on the item.
        """
        theirs, ours = (self.provenance.strip_derived_paths(key, item, at_times=images) for item in (gone, wrote))
        names = (name for name in {**gone, **wrote} if name not in key.attributes())
        right = {name: (gone if same(theirs.get(name), ours.get(name)) else wrote).get(name) for name in names}
        return {name: value for name, value in right.items() if value is not None}


def _asks(rule: MoveRule, to: ItemKey, item: Item) -> bool:
    return let_in(rule.where, item, rule.source) is True and to in rule.mirrors(item)


def _is_whole(rule: MoveRule, put: Change, delete: Change) -> bool:
    """True if a put and a delete look like a move: the new item has nothing that the old one had not."""
    old, new = delete.old or {}, put.new or {}
    made = {*put.key.attributes(), *(path[0] for path in rule.identity_paths), *rule.index_keys}
    return _asks(rule, put.key, old) and all(same(new[name], old.get(name)) for name in new if name not in made)


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
        changed = (name for name in dict.fromkeys((*old, *new)) if not same(old.get(name), new.get(name)))
        return tuple(name for name in changed if name not in keys)

    def text(self, *, values: bool = False) -> str:
        """The change in words: name, -title; with values name: "Ada" -> "Bea"."""
        old, new = self.change.old or {}, self.change.new or {}
        if values:
            return ", ".join(f"{name}: {show(old.get(name))} -> {show(new.get(name))}" for name in self.attributes)
        return ", ".join(name if name in new else f"-{name}" for name in self.attributes)


class ReplayTables:
    """The tables, and all changes in them. `applied` has only the writes of the application."""

    def __init__(self, rules: Rules) -> None:
        self.stage: Rehearsal = Rehearsal(rules)
        self.events: list[ReplayEvent] = []
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
        rested = self.stage.rest()
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

    def make_ending(self) -> Ending:
        """The tables as they are in the end."""
        changes, parked = [event.change for event in self.events], self.stage.list_failures()
        self.moves.excuse(parked, self.stage.store, changes)
        erased = frozenset(one.change.key for one in self.events if one.by == "record" and one.change.new is None)
        return Ending(self._rules, self.stage.store, self.applied, changes, parked, erased)

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        change = Change(key, old, new, str(len(self.events) + 1))
        self.events.append(ReplayEvent(self._by, change, self._record))
        if self._by == "rules":
            self.moves.note(change, (event.change for event in self.events))
        if self._on_change is not None:
            self._on_change(key, old, new)
