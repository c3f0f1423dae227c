"""What of an item its application says, and what rules keep there: for telling the two apart in a recording.

Law: what a rule writes is the rule's, whoever wrote it. An item of a ledger is the pipeline's as a whole; so is a
mirror, unless it holds something that no rule writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import AttributeValue, Item, Path, overlaps, same
from sync_rules.rules.kinds.linked import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules


class Kept:
    """What the rules of one file keep."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    @cached_property
    def _ledgers(self) -> frozenset[str]:
        booked = [rule for rule in self._rules.rules.values() if isinstance(rule, TallyRule | RankRule)]
        totals = (rule.totals.name for rule in booked if isinstance(rule, TallyRule))
        return frozenset([*(rule.target.name for rule in booked), *totals])

    def in_ledger(self, key: ItemKey) -> bool:
        """Whether an item is one of a ledger."""
        entity = self._rules.entity_of(key)
        return entity is not None and self.is_ledger(entity)

    def is_ledger(self, entity: Entity) -> bool:
        """Whether the items of an entity are of a ledger."""
        return entity.name in self._ledgers

    def paths(self, entity: Entity) -> tuple[Path, ...]:
        """What rules write on items of an entity."""
        return tuple(path for rule in self.into(entity) for path in rule.copies)

    def into(self, entity: Entity) -> tuple[Rule, ...]:
        """The rules that write on items of an entity, of whatever kind."""
        return tuple(rule for rule in self._rules.rules.values() if rule.target is entity)

    def mirrors(self, entity: Entity) -> tuple[MirrorRule, ...]:
        """The rules that put items of an entity."""
        return tuple(r for r in self._rules.rules.values() if isinstance(r, MirrorRule) and r.target is entity)

    def mirrored_by(self, key: ItemKey, item: Item) -> MirrorRule | None:
        """The rule whose mirror an item is, and nothing else."""
        entity = self._rules.entity_of(key)
        names = {attribute.name for attribute in self._rules.tables[key.table].key}
        for rule in self.mirrors(entity) if entity is not None else ():
            if rule.pointer(item) is None:
                continue
            if rule.attributes is None or bare(item, rule.copies).keys() <= names:
                return rule
        return None

    def of_application(self, key: ItemKey, item: Item) -> Item:
        """An item without what rules write on it, and without the maps that are empty then."""
        entity = self._rules.entity_of(key)
        return bare(item, self.paths(entity)) if entity is not None else item

    def own_work(self, change: Change) -> bool:
        """Whether a record changes nothing but what rules keep: the work of the pipeline that was recorded."""
        old, new = change.old, change.new
        if old is not None and new is not None:
            left = ({"M": self.of_application(change.key, item)} for item in (old, new))
            return same(*left)
        item = new if old is None else old
        return item is not None and self.mirrored_by(change.key, item) is not None

    def deleting(self, key: ItemKey, item: Item) -> tuple[LinkedRule, ...]:
        """The rules that delete an item with its source."""
        entity = self._rules.entity_of(key)
        into = self._rules.into_target(entity) if entity is not None else ()
        return tuple(rule for rule in into if isinstance(rule, LinkedRule) and rule.deletes(item))


def bare(item: Item, paths: Iterable[Path], spare: Iterable[Path] = ()) -> Item:
    """An item without these paths, but for those that touch a spared one, and without the maps that are empty then."""
    spared = tuple(spare)
    for path in paths:
        if not any(overlaps(path, one) for one in spared):
            item = _without(item, path)
    return item


def _without(item: Item, path: Path) -> Item:
    name, rest = path[0], path[1:]
    value: AttributeValue | None = item.get(name)
    if value is None or (rest and "M" not in value):
        return item
    others = {one: inner for one, inner in item.items() if one != name}
    if not rest:
        return others
    inner = _without(value["M"], rest)
    return {**others, name: {"M": inner}} if inner else others
