"""Rules of parts on a store in memory, step by step: any record at any time, again and again, late writes included.

Invariant: this world does what `pipeline/parts.py` promises and no more. It reads the target first, then the source,
and judges a refused write anew from fresh reads; between any two requests of one look anything else may happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import Status, Write
from sync_rules.pipeline.requests import Apply, List
from sync_rules.rules.families import Part, PartRule
from sync_rules.rules.rule import Blocked
from sync_rules.rules.ruleset import Rules

# Looks advance more often than they begin; much only goes wrong after a rest, when no other record can help.
ROAD = ("deliver", "advance", "advance", "advance", "again", "late", "rest", "rest")
STEPS_MAX = 5_000  # more steps than any of these small worlds needs to come to rest


def rules_of(*rules: PartRule) -> Rules:
    entities = {e.name: e for rule in rules for e in (rule.target, rule.source)}
    return Rules({e.table.name: e.table for e in entities.values()}, entities, {rule.name: rule for rule in rules})


@dataclass
class PartWorld:
    """`records` are not delivered yet, `works` are looks in progress; `writes` and `past` may come once more."""

    rules: Rules
    records: list[Change] = field(default_factory=list)
    past: list[Change] = field(default_factory=list)
    works: list[Iterator[None]] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    parked: list[tuple[Part, Blocked]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.rules.tables, lambda *change: self.records.append(Change(*change)))

    # ------------------------------------------------------------ steps
    def step(self, name: str, number: int) -> None:
        """One step of the pipeline by its name in ROAD."""
        match name:
            case "deliver" | "again":
                self.deliver(number, again=name == "again")
            case "advance":
                self.advance(number)
            case "late":
                self.late(number)
            case "rest":
                self.rest()

    def deliver(self, number: int = 0, *, again: bool = False) -> None:
        """Hand over a record, one that was delivered before if `again`."""
        records = self.past if again else self.records
        if records:
            change = records.pop(number % len(records))
            self.past.append(change)
            self.see(change)

    def advance(self, number: int = 0) -> None:
        """Move one look to its next request."""
        if self.works:
            work = self.works.pop(number % len(self.works))
            if next(work, "done") is None:
                self.works.append(work)

    def late(self, number: int = 0) -> None:
        """A write arrives whose worker died long ago."""
        if self.writes:
            self.store.apply(Apply((self.writes[number % len(self.writes)],)))

    def rest(self) -> None:
        """Until nothing is left to do, and what was parked is as it was before."""
        parked: set[Part] | None = None
        for _ in range(STEPS_MAX):
            if self.works:
                self.advance()
            elif self.records:
                self.deliver()
            elif parked == {part for part, _ in self.parked}:
                return
            else:
                parked = {part for part, _ in self.parked}
                self.parked.clear()
                self.works += map(self._look, parked)
        pytest.fail("the rules do not come to rest")

    # ------------------------------------------------------------ work
    def see(self, change: Change) -> None:
        entity = self.rules.entity_of(change.key)
        if entity is not None:
            self.works += map(self._look, self.parts(change, entity))
            for rule in self.rules.concern(entity).anchored:
                if rule.pushes(change):
                    self.works.append(self._list(rule, change.key))

    def parts(self, change: Change, entity: Entity) -> list[Part]:
        return [part for rule in self.rules.parts_of(entity) for part in rule.parts(change, entity)]

    def _list(self, rule: PartRule, anchor: ItemKey) -> Iterator[None]:
        conditions = rule.conditions(anchor)
        if conditions is None:
            return
        page = self.store.list(List(rule.listed_entity.table.name, rule.find.index, conditions, 1_000))
        for row in page.items:
            yield
            key = rule.listed_entity.table.key_of(row)
            if self.rules.entity_of(key) is rule.listed_entity:
                self.works += map(self._look, rule.parts(Change(key, None, self.store.item(key)), rule.listed_entity))

    def _look(self, part: Part) -> Iterator[None]:
        while True:
            target = self.store.item(part.target)
            yield
            source = None if part.source is None else self.store.item(part.source)
            yield
            write = part.rule.write_for(part, target, source)
            if write is None:
                return
            if isinstance(write, Blocked):
                self.parked.append((part, write))
                return
            (result,) = self.store.apply(Apply((write,)))
            self.writes.append(write)
            if result.status is Status.REJECTED:
                self.parked.append((part, Blocked(result.reason)))
            if result.status is not Status.REFUSED:
                return
            yield

    def item(self, key: ItemKey) -> Item:
        item = self.store.item(key)
        assert item is not None
        return item
