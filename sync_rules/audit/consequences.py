"""Explain what one stream record triggers, and what rules keep on one item, from which sources, right or wrong.

Invariant: the rules are asked what the pipeline asks them, and nothing is written. Keys, paths and names of attributes
are shown, never a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from sync_rules.audit.compare import Comparison, Drift, compare
from sync_rules.model.entities import Entity
from sync_rules.model.items import Call, Change, ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.values import Item, Path, get, same, show_path
from sync_rules.pipeline.requests import Work
from sync_rules.pipeline.sources import Target
from sync_rules.pipeline.stock import Stock
from sync_rules.pipeline.tasks import tasks_of
from sync_rules.rules.families import EffectRule, Part, PartRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

Does = Literal["push", "pull", "part", "effect"]
PULL_ONLY: Final = "if its source came later: a backfill or verify --repair fills it"
CopyState = Drift | Literal["right", "kept", "waiting", "nothing"]


# ---------------------------------------------------------------- a record
@dataclass(frozen=True, slots=True)
class PushQuery:
    table: str
    index: str | None
    conditions: KeyConditions


@dataclass(frozen=True, slots=True)
class Consequence:
    """One thing that a record triggers by one rule: a look at all targets that its item lists (`listing`, None when it
    can list nothing), at one target, at a part, or an effect. `because` are the attributes whose change is the reason,
    or "it came" or "it went". `unsure`: why it is not known whether an effect is due.
    """

    rule: Rule
    does: Does
    subject: ItemKey
    because: tuple[str, ...]
    listing: PushQuery | None = None
    part: Part | None = None
    unsure: str = ""


def list_consequences(change: Change, rules: Rules) -> list[Consequence]:
    """The consequences of a record; none when nothing that any rule reads has changed."""
    return [
        Consequence(
            rule,
            does,
            subject,
            _because(change, rules, (rule.name, does, subject)),
            _query(rule, subject) if does == "push" else None,
            part,
            call.unsure if call else "",
        )
        for rule, does, subject, part, call in _list_tasks(change, rules)
    ]


def _list_tasks(change: Change, rules: Rules) -> Iterator[tuple[Rule, Does, ItemKey, Part | None, Call | None]]:
    plan = tasks_of([change], rules)
    for push in plan.pushes:
        yield from ((rule, "push", push.source, None, None) for rule in push.rules)
    for pull in plan.pulls:
        yield from ((rule, "pull", pull.key, None, None) for rule in pull.rules)
    for look in plan.parts:
        yield look.part.rule, "part", look.part.target, look.part, None
    entity = rules.entity_of(change.key)
    for rule in rules.from_source(entity) if entity is not None else ():
        if isinstance(rule, EffectRule) and (call := rule.effect(change)) is not None:
            yield rule, "effect", change.key, None, call


def _because(change: Change, rules: Rules, ask: tuple[str, str, ItemKey]) -> tuple[str, ...]:
    """The attributes that trigger the same if they alone change; all that changed if only several do so together."""
    if change.old is None or change.new is None:
        return ("it came" if change.new is not None else "it went",)
    different = list_changed_names(change.old, change.new)
    alone = tuple(
        name
        for name in different
        if any(
            (rule.name, does, subject) == ask
            for rule, does, subject, *_ in _list_tasks(Change(change.key, change.old, _with(change, name)), rules)
        )
    )
    return alone or different


def list_changed_names(old: Item, new: Item) -> tuple[str, ...]:
    """The attributes that differ between two images."""
    return tuple(name for name in dict.fromkeys([*old, *new]) if not same(old.get(name), new.get(name)))


def _with(change: Change, name: str) -> Item:
    item = {at: value for at, value in (change.old or {}).items() if at != name}
    now = (change.new or {}).get(name)
    return item if now is None else {**item, name: now}


def _query(rule: Rule, anchor: ItemKey) -> PushQuery | None:
    conditions = rule.conditions(anchor)
    if conditions is None or rule.find is None:
        return None
    return PushQuery(rule.listed_entity.table.name, rule.find.index, conditions)


# ---------------------------------------------------------------- an item
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
    """The copies of each rule on an item. Raises StoreError when a source cannot be read."""
    entity = rules.entity_of(key)
    found: list[Standing] = []
    for rule in rules.into_target(entity) if entity is not None else ():
        if rule.copies:
            comparison = yield from compare(Stock(targets=[Target(key, item, (rule,))]))
            state, paths, reason = _state(rule, comparison)
            if state == "right" and all(get(item, path) is None for path in rule.copies):
                state = "nothing"
            if state is Drift.MISSING and rule.pull_only:
                reason = PULL_ONLY
            if state in ("right", "kept"):
                reason = _by_default(rule, item)
            found.append(Standing(rule, paths or rule.copies, rule.source_keys(item), state, reason))
    for part in parts_on(key, item, entity, rules):
        comparison = yield from compare(Stock(parts={part: True}))
        state, _, reason = _state(part.rule, comparison)
        sources = () if part.source is None else (part.source,)
        found.append(Standing(part.rule, part.rule.copies, sources, state, reason, part.rule.label(part)))
    return found


def _by_default(rule: Rule, item: Item) -> str:
    """The copies that have the value of `default`, in words; "" for none."""
    found = rule.list_defaults(item)
    return "by default" + ("" if found == rule.copies else f": {', '.join(map(show_path, found))}") if found else ""


def parts_on(key: ItemKey, item: Item, entity: Entity | None, rules: Rules) -> list[Part]:
    change = Change(key, None, item)
    of_entity: Iterable[PartRule] = rules.parts_of(entity) if entity is not None else ()
    return [
        part
        for rule in of_entity
        if rule.target is entity
        for part in rule.parts(change, rule.target)
        if part.target == key and part.source != key
    ]


def _state(rule: Rule, comparison: Comparison) -> tuple[CopyState, tuple[Path, ...], str]:
    for difference in comparison.different:
        return difference.drift, difference.paths, difference.reason
    if comparison.waiting[rule.name]:
        return "waiting", (), ""
    return "kept" if comparison.kept[rule.name] else "right", (), ""
