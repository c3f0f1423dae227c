"""What follows from the key of an item alone: for a record that lacks an image, and for an item that is gone.

Law: what the key says is looked at, whatever the item was. What only its old image knew, such as the mirror that it
named, is never guessed: it is said which rules are concerned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Path
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.gathered import GatheredRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.rule import Part, PartRule, Rule
from sync_rules.rules.ruleset import Rules


def parts_by_key(key: ItemKey, rules: Rules) -> list[Part]:
    """The parts that the key of an item names, as what they are made from or written on, let in or not."""
    entity = rules.entity_of(key)
    found: dict[Part, None] = {}
    for rule in rules.parts_of(entity) if entity is not None else ():
        parts = _letting_all_in(rule).parts(Change(key, key.attributes(), None), entity) if entity is not None else ()
        found |= dict.fromkeys(replace(part, rule=rule) for part in parts)
    return [*found]


def unknown_by_key(key: ItemKey, rules: Rules) -> list[Rule]:
    """The rules for which an item may have named something else, as it was, than its key and the item as it is say."""
    entity = rules.entity_of(key)
    return [rule for rule in rules.rules.values() if entity is None or not _told_by_key(rule, entity)]


def _letting_all_in(rule: PartRule) -> PartRule:
    """The rule without what reads attributes to decide whether there is a part, not which."""
    if isinstance(rule, CollectRule):
        return replace(rule, where=None, omit=None)
    return replace(rule, where=None) if isinstance(rule, RankRule) else rule


def _told_by_key(rule: Rule, entity: Entity) -> bool:
    """Whether the key of an item of this entity, and the item as it is, are all that the rule need know of it. Where
    items are listed by their source, as the targets of a copy, they are.
    """
    source, target = entity is rule.source, entity is rule.target
    match rule:
        case GatheredRule():
            return not source or _in_key(entity, (ref.path for _, ref in rule.link))
        case RankRule():
            return not source or not replace(rule, where=None).source_paths
        case CollectRule():  # an element that went from a node is found among its edges, if those are listed
            known = not source or not replace(rule, where=None, omit=None).source_paths
            return known and not (target and rule.find is None)
        case MirrorRule():
            known = not source or (rule.each is None and _in_key(entity, (ref.path for _, ref in rule.fields)))
            return known and (not target or _in_key(entity, (ref.path for _, ref in rule.names)))
    return True


def _in_key(entity: Entity, paths: Iterable[Path]) -> bool:
    names = {attribute.name for attribute in entity.table.key}
    return all(path[0] in names for path in paths)
