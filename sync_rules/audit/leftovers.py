"""Prune: find and remove what deleted rules have written.

Invariant: a leftover was written by a rule of the old file, and no current rule writes it. It is removed item by item,
only if it is as it was read: a concurrent writer wins. Snapshots are left alone unless named: they are meant to outlive
their source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item, Path, get, has_overlap
from sync_rules.model.writes import Delete, Result, Status, Transaction, Update, expect_existence, expect_values
from sync_rules.pipeline.requests import Apply, Scan, Work
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

PAGE_MAX_ITEMS: Final = 500


@dataclass(frozen=True)
class Leftover:
    """The leftover of one rule on one item: some paths or, if `paths` is empty, the whole item. `write` removes it."""

    rule: str
    key: ItemKey
    paths: tuple[Path, ...]
    write: Update | Transaction


@dataclass(frozen=True)
class PrunePage:
    """The leftovers on one page of a scan, and the cursor of the next page."""

    leftovers: tuple[Leftover, ...]
    items: int
    cursor: Item | None


def prune_page(table: Table, past: FormerRules, cursor: Item | None) -> Work[PrunePage]:
    """Scan one page of a table for leftovers."""
    page = yield Scan(table.name, PAGE_MAX_ITEMS, cursor)
    found = tuple(leftover for item in page.items for leftover in past.leftovers(table, item))
    return PrunePage(found, len(page.items), page.cursor)


def remove(leftovers: tuple[Leftover, ...]) -> Work[tuple[Leftover, ...]]:
    """Remove leftovers. Return those that changed meanwhile, or that could not be written."""
    results: tuple[Result, ...] = (yield Apply(tuple(one.write for one in leftovers))) if leftovers else ()
    pairs = zip(leftovers, results, strict=True)
    return tuple(one for one, result in pairs if result.status is not Status.WRITTEN)


class FormerRules:
    """The old rules, compared with the current rules. `only` names the rules to prune; empty: all except snapshots."""

    def __init__(self, before: Rules, now: Rules, only: frozenset[str] = frozenset()) -> None:
        self._before = before
        self._now = now
        asked = [rule for rule in before.rules.values() if not only or rule.title in only]
        self._rules = tuple(rule for rule in asked if only or not rule.snapshot)
        self._titles = frozenset(rule.title for rule in asked)
        self._names = {table.physical_name: table.name for table in now.tables.values()}

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that could hold leftovers, as the old file names them."""
        written = ((*rule.owned_entities, *((rule.target,) if rule.copies else ())) for rule in self._rules)
        return tuple({entity.table.name: entity.table for some in written for entity in some}.values())

    @property
    def deleted_rules(self) -> frozenset[str]:
        """The names of rules in the old rules file that the new file lacks. Includes snapshots, whose copies stay."""
        return self._titles - {rule.title for rule in self._now.rules.values()}

    def is_deleted(self, table: Table) -> bool:
        """Return True if the current rules have no such table."""
        return table.physical_name not in self._names

    def leftovers(self, table: Table, item: Item) -> tuple[Leftover, ...]:
        """Return the leftovers on one item. If the whole item is a leftover, return only that."""
        found = tuple(self._find_leftovers(table, item))
        return next(((one,) for one in found if not one.paths), found)

    def _find_leftovers(self, table: Table, item: Item) -> Iterator[Leftover]:
        key = table.key_of(item)
        entity = self._before.entity_of(key) if key is not None else None
        if key is None or entity is None:
            return
        here = key._replace(table=self._names.get(self._before.tables[key.table].physical_name, ""))
        today, now = self._now.entity_of(here), self._now.rules.values()
        for rule in self._rules:
            owned = entity in rule.owned_entities and rule.owns(item)
            if owned and not _has_more(rule, entity, item) and not any(_can_own(one, today, item) for one in now):
                yield _make_whole_leftover(rule, key, item)
            elif rule.target is entity and (rule.makes or entity not in rule.owned_entities):
                kept = () if today is None else self._written_paths.get(today, ())
                yield from _find_leftover_paths(rule, key, item, kept)

    @cached_property
    def _written_paths(self) -> Mapping[Entity, tuple[Path, ...]]:
        """The paths that current rules write, by entity. The empty path means a whole mirror."""
        found: dict[Entity, tuple[Path, ...]] = {}
        for entity, path in (node.writes for rule in self._now.rules.values() for node in rule.nodes()):
            found[entity] = (*found.get(entity, ()), path)
        return found


def _has_more(rule: Rule, entity: Entity, item: Item) -> bool:
    """True if an item that a rule made holds something that no rule made."""
    return isinstance(rule, TargetRule) and rule.target is entity and rule.find_unexpected_attribute(item) is not None


def _can_own(rule: Rule, today: Entity | None, item: Item) -> bool:
    """True if an item may be a rule's."""
    return today in rule.owned_entities and rule.owns(item)


def _find_leftover_paths(rule: Rule, key: ItemKey, item: Item, kept: tuple[Path, ...]) -> Iterator[Leftover]:
    paths = tuple(
        path
        for path in rule.list_own_copies(key, item)
        if get(item, path) is not None and not any(has_overlap(path, other) for other in kept)
    )
    if paths:
        guard = (expect_existence(key), *expect_values(item, paths))
        yield Leftover(rule.title, key, paths, Update(key, (), paths, guard))


def _make_whole_leftover(rule: Rule, key: ItemKey, item: Item) -> Leftover:
    guard = (expect_existence(key), *expect_values(item, [(name,) for name in item if name not in key.attributes()]))
    return Leftover(rule.title, key, (), Transaction((Delete(key, guard),)))
