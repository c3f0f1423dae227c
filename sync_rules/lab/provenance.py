"""Distinguishes the data that rules keep from the application's own, in an item and in a change."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, Path, drop_path, has_overlap, is_same_value
from sync_rules.rules.families import TargetRule
from sync_rules.rules.kinds.history import HistoryRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules


class Provenance:
    """The origin of data: which items and attributes rules keep, and which the application writes."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    @cached_property
    def _ledgers(self) -> frozenset[str]:
        rules = (rule for rule in self._rules.rules.values() if not isinstance(rule, MirrorRule))
        return frozenset(entity.name for rule in rules for entity in rule.owned_entities)

    def is_in_ledger(self, key: ItemKey) -> bool:
        entity = self._rules.entity_of(key)
        return entity is not None and self.is_ledger(entity)

    def is_ledger(self, entity: Entity) -> bool:
        """True if the items of an entity belong to a ledger."""
        return entity.name in self._ledgers

    def list_derived_paths(self, key: ItemKey, item: Item) -> tuple[Path, ...]:
        """List the paths of an item that rules write, and not the application."""
        entity = self._rules.entity_of(key)
        into = self.list_rules_into(entity) if entity is not None else ()
        return tuple(path for rule in into for path in rule.list_own_copies(key, item))

    def list_rules_into(self, entity: Entity) -> tuple[Rule, ...]:
        """List the rules of any kind that write on items of an entity."""
        return tuple(rule for rule in self._rules.rules.values() if rule.target is entity)

    def list_mirror_rules(self, entity: Entity) -> tuple[MirrorRule, ...]:
        """List the mirror rules that put items of an entity."""
        return tuple(r for r in self._rules.rules.values() if isinstance(r, MirrorRule) and entity in r.owned_entities)

    def list_history_rules(self, entity: Entity) -> tuple[HistoryRule, ...]:
        """List the history rules that put items of an entity."""
        return tuple(rule for rule in self.list_mirror_rules(entity) if isinstance(rule, HistoryRule))

    def find_mirror_rule(self, key: ItemKey, item: Item) -> MirrorRule | None:
        """Find the rule that keeps an item as a mirror without attributes of the application; None if there is none."""
        entity = self._rules.entity_of(key)
        names = {attribute.name for attribute in self._rules.tables[key.table].key}
        for rule in self.list_mirror_rules(entity) if entity is not None else ():
            if rule.pointer(item) is None:
                continue
            if rule.attributes is None or drop_paths(item, rule.copies).keys() <= names:
                return rule
        return None

    def strip_derived_paths(self, key: ItemKey, item: Item, *, at_times: Iterable[Item] = ()) -> Item:
        """Return the application's attributes of an item, without maps that become empty. `at_times`: images of the
        item. What was derived in any of them is left out too, because a root keeps what it took as a child.
        """
        return drop_paths(item, {path for image in (item, *at_times) for path in self.list_derived_paths(key, image)})

    def is_pipeline_write(self, change: Change) -> bool:
        """True if a record changes derived data alone, so that the recorded pipeline wrote it."""
        old, new = change.old, change.new
        if old is not None and new is not None:
            return is_same_value(*({"M": self.strip_derived_paths(change.key, item)} for item in (old, new)))
        item = new if old is None else old
        return item is not None and self.find_mirror_rule(change.key, item) is not None

    def list_deleting_rules(self, key: ItemKey, item: Item) -> tuple[TargetRule, ...]:
        """List the rules that delete an item with its source."""
        entity = self._rules.entity_of(key)
        into = self._rules.into_target(entity) if entity is not None else ()
        return tuple(rule for rule in into if rule.deletes(item))


def drop_paths(item: Item, paths: Iterable[Path], spare: Iterable[Path] = (), *, emptied: bool = False) -> Item:
    """Return an item without these paths, except paths that overlap a path in `spare`. Maps that become empty are
    dropped too, unless `emptied` keeps them.
    """
    spared = tuple(spare)
    for path in paths:
        if not any(has_overlap(path, one) for one in spared):
            item = drop_path(item, path, emptied=emptied)
    return item
