"""Prune: what rules that are gone have left behind, found by what they wrote, and removed.

Law: only what the rules as they were wrote and no rule of today writes is a leftover. Nothing is removed but as it was
seen, item by item; whoever writes meanwhile wins. Snapshots are left alone unless asked for: they are meant to outlive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, Path, get, overlaps
from sync_rules.model.writes import Delete, Result, Status, Transaction, Update, as_seen, target_exists
from sync_rules.pipeline.requests import Apply, Scan, Work
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

PAGE_MAX_ITEMS: Final = 500


@dataclass(frozen=True)
class Leftover:
    """What one rule left on one item: some paths, or, without any, the whole item. `write` removes it."""

    rule: str
    key: ItemKey
    paths: tuple[Path, ...]
    write: Update | Transaction


@dataclass(frozen=True)
class PrunePage:
    """The leftovers on one page of a scan, and where it goes on."""

    leftovers: tuple[Leftover, ...]
    items: int
    cursor: Item | None


def prune_page(table: Table, past: Past, cursor: Item | None) -> Work[PrunePage]:
    """Scan one page of a table for leftovers."""
    page = yield Scan(table.name, PAGE_MAX_ITEMS, cursor)
    found = tuple(leftover for item in page.items for leftover in past.leftovers(table, item))
    return PrunePage(found, len(page.items), page.cursor)


def remove(leftovers: tuple[Leftover, ...]) -> Work[tuple[Leftover, ...]]:
    """Remove them. Returns those that somebody changed meanwhile, or that could not be written."""
    results: tuple[Result, ...] = (yield Apply(tuple(one.write for one in leftovers))) if leftovers else ()
    pairs = zip(leftovers, results, strict=True)
    return tuple(one for one, result in pairs if result.status is not Status.WRITTEN)


class Past:
    """The rules as they were, seen from the rules of today. `only`: names of rules; empty: all but snapshots."""

    def __init__(self, before: Rules, now: Rules, only: frozenset[str] = frozenset()) -> None:
        self._before = before
        self._now = now
        kept = [rule for rule in before.rules.values() if (rule.title in only if only else not _snapshot(rule))]
        self._rules = tuple(kept)
        self._names = {table.physical_name: table.name for table in now.tables.values()}

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that could hold leftovers, as the old file names them."""
        tables = {entity.table.name: entity.table for rule in self._rules for entity in _written(rule)}
        return tuple(tables.values())

    def leftovers(self, table: Table, item: Item) -> tuple[Leftover, ...]:
        """What is left on one item. If all of it is, that is all that is said."""
        found = tuple(self._found(table, item))
        return next(((one,) for one in found if not one.paths), found)

    def _found(self, table: Table, item: Item) -> Iterator[Leftover]:
        key = table.key_of(item)
        entity = self._before.entity_of(key) if key is not None else None
        if key is None or entity is None:
            return
        here = self._here(key)
        today = self._now.entity_of(here)
        for rule in self._rules:
            if entity in _owned(rule):
                if not any(_is_its(other, here, item, today) for other in self._now.rules.values()):
                    yield from _whole(rule, entity, key, item)
            elif rule.target is entity:
                yield from _paths(rule, key, item, self._kept(today))

    def _here(self, key: ItemKey) -> ItemKey:
        """The key as the rules of today have it, who may know the table by another name, or not at all."""
        physical = self._before.tables[key.table].physical_name
        return key._replace(table=self._names.get(physical, ""))

    def _kept(self, today: Entity | None) -> tuple[Path, ...]:
        """What rules of today write on items of an entity. The empty path is a whole mirror: all others lie in it."""
        written = [node.writes for rule in self._now.rules.values() for node in rule.nodes()]
        return tuple(path for entity, path in written if entity is today)


def _snapshot(rule: Rule) -> bool:
    return isinstance(rule, CopyRule) and rule.mode == "snapshot"


def _owned(rule: Rule) -> tuple[Entity, ...]:
    """The entities whose items belong to the pipeline as a whole."""
    if isinstance(rule, MirrorRule | RankRule | TallyRule):
        return (rule.target,)
    return (rule.source,) if isinstance(rule, TotalRule) else ()


def _written(rule: Rule) -> tuple[Entity, ...]:
    return (*_owned(rule), *((rule.target,) if rule.copies else ()))


def _paths(rule: Rule, key: ItemKey, item: Item, kept: tuple[Path, ...]) -> Iterator[Leftover]:
    paths = tuple(
        path
        for path in _made(rule, key, item)
        if get(item, path) is not None and not any(overlaps(path, other) for other in kept)
    )
    if paths:
        guard = (target_exists(key), *as_seen(item, paths))
        yield Leftover(rule.title, key, paths, Update(key, (), paths, guard))


def _made(rule: Rule, key: ItemKey, item: Item) -> tuple[Path, ...]:
    """What a rule wrote on an item. What the items of a hierarchy carry is a root's own."""
    if isinstance(rule, TreeRule) and rule.source_key(item) in (None, key):
        return tuple(path for path in rule.copies if path not in rule.carry)
    return rule.copies


def _is_its(rule: Rule, key: ItemKey, item: Item, entity: Entity | None) -> bool:
    """Whether an item as a whole is a rule's. A mirror is one only if it names a source where the rule has it."""
    if entity is None or entity not in _owned(rule):
        return False
    return not isinstance(rule, MirrorRule) or any(
        part.target == key for part in rule.parts(Change(key, None, item), entity)
    )


def _whole(rule: Rule, entity: Entity, key: ItemKey, item: Item) -> Iterator[Leftover]:
    """An item of the pipeline. A mirror is one only if it names its source as the rule has it."""
    guard = (target_exists(key), *as_seen(item, [(name,) for name in item if name not in key.attributes()]))
    if isinstance(rule, MirrorRule):
        named = {part for part in rule.parts(Change(key, None, item), entity) if part.target == key}
        if not any(_is_removal(rule.judge(part, item, None)) for part in named):
            return
    yield Leftover(rule.title, key, (), Transaction((Delete(key, guard),)))


def _is_removal(write: object) -> bool:
    return isinstance(write, Transaction) and isinstance(write.actions[-1], Delete)
