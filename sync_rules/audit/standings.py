"""Explain what rules keep on one item, from which sources, and whether it is right.

Invariant: this module asks the rules the same questions as the pipeline, and writes nothing. It shows keys, paths and
attribute names, never a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sync_rules.audit.compare import Comparison, Drift, compare
from sync_rules.audit.stock import Stock
from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, Path, get, show_path
from sync_rules.pipeline.requests import Work
from sync_rules.pipeline.sources import Target
from sync_rules.rules.families import Part, PartRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

PULL_ONLY: Final = "if its source came later: a backfill or verify --repair fills it"
CopyState = Drift | Literal["right", "kept", "waiting", "nothing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """The copies of one rule on an item: paths, sources, right or not. `paths` are those that differ, or
    all of the rule when none does. `sources` is empty where a Query lists them.
    """

    rule: Rule
    paths: tuple[Path, ...]
    sources: tuple[ItemKey, ...]
    state: CopyState
    reason: str = ""
    element: str = ""


def list_standings(key: ItemKey, item: Item, rules: Rules) -> Work[list[Standing]]:
    """List the copies of each rule on an item, with their state. Raises StoreError if a source cannot be read."""
    entity = rules.entity_of(key)
    found: list[Standing] = []
    for rule in rules.into_target(entity) if entity is not None else ():
        if rule.copies:
            comparison = yield from compare(Stock(targets=[Target(key, item, (rule,))]))
            state, paths, reason = _choose_state(rule, comparison)
            if state == "right" and all(get(item, path) is None for path in rule.copies):
                state = "nothing"
            if state is Drift.MISSING and rule.pull_only:
                reason = PULL_ONLY
            if state in ("right", "kept"):
                reason = _describe_defaults(rule, item)
            found.append(Standing(rule, paths or rule.copies, rule.source_keys(item), state, reason))
    for part in list_parts_on(key, item, entity, rules):
        comparison = yield from compare(Stock(parts={part: True}))
        state, _, reason = _choose_state(part.rule, comparison)
        sources = () if part.source is None else (part.source,)
        found.append(Standing(part.rule, part.rule.copies, sources, state, reason, part.rule.label(part)))
    return found


def _describe_defaults(rule: Rule, item: Item) -> str:
    """The copies that have the value of `default`, in words; "" for none."""
    found = rule.list_defaults(item)
    return "by default" + ("" if found == rule.copies else f": {', '.join(map(show_path, found))}") if found else ""


def list_parts_on(key: ItemKey, item: Item, entity: Entity | None, rules: Rules) -> list[Part]:
    change = Change(key, None, item)
    of_entity: Iterable[PartRule] = rules.parts_of(entity) if entity is not None else ()
    return [
        part
        for rule in of_entity
        if rule.target is entity
        for part in rule.parts(change, rule.target)
        if part.target == key and part.source != key
    ]


def _choose_state(rule: Rule, comparison: Comparison) -> tuple[CopyState, tuple[Path, ...], str]:
    for difference in comparison.different:
        return difference.drift, difference.paths, difference.reason
    if comparison.waiting[rule.name]:
        return "waiting", (), ""
    return "kept" if comparison.kept[rule.name] else "right", (), ""
