"""Find what the parents of a hierarchy will hold, once each rule has repaired their ancestors.

Invariant: only a sweep follows ancestors: backfill, plan, verify and its repair. A child that is right by the links of
its ancestors stays as it is while its parent is wrong; a wrong child is written once. Stream records compare a child
with the values that its parent holds: a move of an ancestor, undone before its record, would leave other values.
Memory is bounded: beyond `ANCESTORS_MAX_ITEMS` a parent counts as it is, and later rounds of the sweep decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.model.writes import find_differences
from sync_rules.pipeline.requests import Found, Work, read_all
from sync_rules.pipeline.sources import Sources, Target, read_sources
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import Blocked

ANCESTORS_MAX_ITEMS: Final = 2_000  # held for one rule of a round: a chain of 1,000 levels fits


def read_expected_sources(targets: Sequence[Target], bounds: Bounds) -> Work[Sources]:
    """Read the sources of these targets. In a sweep, a wrong parent is read with the values that it will get."""
    sources = yield from read_sources(targets, bounds)
    rules = dict.fromkeys(rule for some in {target.rules for target in targets} for rule in some if rule.hierarchical)
    for rule in rules if bounds.follows_ancestors else ():
        mine = (target for target in targets if rule in target.rules)
        parents = dict.fromkeys(key for target in mine for key in _list_parents(rule, target, sources))
        if parents:
            found = yield from _read_ancestors(rule, parents, sources)
            sources.expected[rule] = {**sources.items, **_expect(rule, parents, found)}
    return sources


def _list_parents(rule: TargetRule, target: Target, sources: Sources) -> Iterable[ItemKey]:
    """Return the parent keys of a target that differs from its rule; none if the parent has no path yet."""
    found = sources.of(rule, target)
    if not isinstance(found, tuple) or not found or found[0] is None or not rule.levels(found[0]):
        return ()
    desired = rule.compute_values(found, target.image)
    differs = isinstance(desired, Blocked) or (desired is not None and find_differences(target.image, desired))
    return rule.source_keys(target.image) if differs else ()


def _read_ancestors(rule: TargetRule, parents: Iterable[ItemKey], sources: Sources) -> Work[dict[ItemKey, Found]]:
    """Read the ancestors of these parents, level by level."""
    found = {key: sources.items[key] for key in parents}
    level: Iterable[ItemKey] = found
    while True:
        above = dict.fromkeys(
            key
            for item in map(found.__getitem__, level)
            if item is not None and not isinstance(item, StoreError)
            for key in rule.source_keys(item)
            if key not in found
        )
        level = tuple(above)[: max(0, ANCESTORS_MAX_ITEMS - len(found))]
        if not level:
            return found
        found |= yield from read_all(level, sources.attributes)


def _expect(
    rule: TargetRule, parents: Iterable[ItemKey], found: Mapping[ItemKey, Found]
) -> Mapping[ItemKey, Item | None]:
    """Compute what each parent will be, from the root down. It stays as it is in a ring, or below an unread item."""
    expected: dict[ItemKey, Item | None] = {key: None for key, item in found.items() if item is None}
    for parent in parents:
        chain: dict[ItemKey, Item] = {}
        key: ItemKey | None = parent
        while key is not None and key not in expected and key not in chain:
            item = found.get(key)
            if item is None or isinstance(item, StoreError):
                break
            chain[key] = item
            key = next(iter(rule.source_keys(item)), None)
        known, above = key is None or key in expected, expected.get(key) if key is not None else None
        for below, item in reversed(chain.items()):
            above = expected[below] = rule.apply_to(item, () if above is None else (above,)) if known else item
            known = known or key not in chain
    return expected
