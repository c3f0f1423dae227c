"""Checks the end of a replay: with verify, against the application's own writes, and against a recompute.

Invariant: in the end the tables hold what the rules make of the application's items, whatever happened on the way. The
recompute takes all derived data away and lets a backfill write it again, which must give the same items. Values that a
rule leaves as they were (a snapshot, a copy of a deleted source, a stuck part) are history, and stay for the backfill.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import MemoryState
from sync_rules.audit.compare import Difference, Drift, can_be_late
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.lab.provenance import Provenance, drop_paths
from sync_rules.model.entities import Entity
from sync_rules.model.errors import StoreError
from sync_rules.model.items import NOT_IN_INDEX, Change, Failure, ItemKey
from sync_rules.model.values import Item, Path, get, has_overlap, is_same_value
from sync_rules.pipeline.requests import NULL_PORTS, Store, World
from sync_rules.rules.families import TargetRule
from sync_rules.rules.kinds.history import HistoryRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.rule import Blocked
from sync_rules.rules.ruleset import Rules

# ---------------------------------------------------------------- the end of a replay
REJECTED: Final = frozenset({"ItemTooLarge", "ValidationException"})  # reasons of parked writes that cannot succeed
Check = Literal["rules", "application", "recompute"]


@dataclass(frozen=True)
class Ending:
    """The end of a replay. `applied`: the tables with the application's writes alone. `changes`: all changes in order.
    `erased`: the items that a record deleted, and not the rules of this replay.
    """

    rules: Rules
    store: MemoryStore
    applied: MemoryStore
    changes: Sequence[Change] = ()
    parked: Collection[Failure] = ()
    erased: frozenset[ItemKey] = frozenset()

    @cached_property
    def images(self) -> Mapping[ItemKey, Sequence[Item]]:
        """The new images of each item, in the order of its changes. A delete has none."""
        found: dict[ItemKey, list[Item]] = {}
        for change in self.changes:
            if change.new is not None:
                found.setdefault(change.key, []).append(change.new)
        return found


@dataclass(frozen=True)
class Discrepancy:
    """A difference, and the check that found it. `rule` is empty for the application's own data."""

    rule: str
    drift: Drift
    key: ItemKey
    path: Path = ()
    source: ItemKey | None = None
    check: Check = "rules"


def list_discrepancies(ending: Ending) -> Iterator[Discrepancy]:
    """List all differences, in a fixed order. Raises StoreError if the backfill does not finish."""
    found = tuple(list_differences(ending.rules, ending.store))
    yield from _compare_with_rules(ending, found)
    yield from _compare_versions(ending)
    yield from _compare_with_application(ending)
    yield from _compare_with_recompute(ending, found)


def list_differences(rules: Rules, store: Store) -> Iterator[Difference]:
    """List the differences that verify finds while no work is pending."""
    if rules.keeper_names:
        verifier = Verifier(rules, World(store, NULL_PORTS, NULL_PORTS), rules.keeper_names, grace_seconds=0)
        yield from (finding.difference for finding in verifier.sweep())


# ---------------------------------------------------------------- against the rules
def _compare_with_rules(ending: Ending, found: Sequence[Difference]) -> Iterator[Discrepancy]:
    for one in found:
        if one.repairable:
            wrong = not (_is_impossible(ending, one) or can_be_late(one, ending.rules))
        else:
            wrong = one.drift is Drift.ORPHAN and _is_late_orphan(ending, one)
        if wrong:
            path = one.paths[0] if one.paths else one.part.rule.copies[0] if one.part and one.part.rule.copies else ()
            source = one.part.source if one.part else one.source
            yield Discrepancy(one.rule, one.drift, one.target, path, source)


def _is_impossible(ending: Ending, one: Difference) -> bool:
    """Tell whether the rules said of a difference that they cannot do it: the table has rejected the write, or the
    member is not in the index that the rule lists.
    """
    member = one.part.source if one.part else one.source
    told = {(failure.rule, failure.key): failure.reason for failure in ending.parked}
    return told.get((one.rule, one.target)) in REJECTED or told.get((one.rule, member)) == NOT_IN_INDEX


def _compare_versions(ending: Ending) -> Iterator[Discrepancy]:
    """Versions that are missing, of all states that an item had: verify knows only of the last."""
    told = {(failure.rule, failure.key) for failure in ending.parked}
    for rule in (one for one in ending.rules.rules.values() if isinstance(one, HistoryRule)):
        mine = (change for change in ending.changes if ending.rules.entity_of(change.key) is rule.source)
        states = (part for change in mine for part in rule.parts(change, rule.source))
        yield from (
            Discrepancy(rule.name, Drift.MISSING, part.target, (), part.source)
            for part in dict.fromkeys(replace(part, seen=None) for part in states if part.target != part.source)
            if ending.store.item(part.target) is None
            and (rule.name, part.target) not in told
            and part.target not in ending.erased
        )


def _is_late_orphan(ending: Ending, one: Difference) -> bool:
    """True if a rule had to delete this orphan: it existed before its source was deleted. Later ones stay."""
    rule = ending.rules.rules[one.rule]
    assert isinstance(rule, TargetRule), "only a target can be an orphan"
    went = max((n for n, c in enumerate(ending.changes) if c.key == one.source and c.new is None), default=-1)
    since = len(ending.changes)
    for number, change in reversed(list(enumerate(ending.changes))):
        if change.key != one.target:
            continue
        if change.new is None or one.source not in rule.source_keys(change.new) or not rule.deletes(change.new):
            break
        since = number
    return since < went


# ---------------------------------------------------------------- against the application
def _compare_with_application(ending: Ending) -> Iterator[Discrepancy]:
    """Missing writes of the application, and data without a writer."""
    provenance = Provenance(ending.rules)
    for key in _list_keys(ending.rules, ending.applied, ending.store):
        if not _is_derived_item(provenance, key, ending.rules):
            wrote, found = ending.applied.item(key), ending.store.item(key)
            yield from _compare_with_writes(provenance, key, wrote, found, ending.images.get(key, ()))


def _is_derived_item(provenance: Provenance, key: ItemKey, rules: Rules) -> bool:
    """True for an item that the rules made, whole."""
    entity = rules.entity_of(key)
    return provenance.is_in_ledger(key) or (entity is not None and bool(provenance.list_mirror_rules(entity)))


def _list_keys(rules: Rules, *stores: MemoryStore) -> Iterator[ItemKey]:
    for table in rules.tables.values():
        keys = (table.key_of(item) for store in stores for item in store.items(table.name))
        yield from (key for key in dict.fromkeys(keys) if key is not None)


def _compare_with_writes(
    provenance: Provenance, key: ItemKey, wrote: Item | None, found: Item | None, images: Sequence[Item]
) -> Iterator[Discrepancy]:
    if wrote is None or found is None:
        if wrote is None:
            yield Discrepancy("", Drift.EXTRA, key, check="application")
        elif not any(
            provenance.list_deleting_rules(key, image) for image in (wrote, *images[-1:])
        ):  # the last one has copies too
            yield Discrepancy("", Drift.MISSING, key, check="application")
        return
    wrote, found = (provenance.strip_derived_paths(key, item, at_times=images) for item in (wrote, found))
    for name in dict.fromkeys((*wrote, *found)):
        if not is_same_value(wrote.get(name), found.get(name)):
            yield Discrepancy("", _classify_drift(found.get(name), wrote.get(name)), key, (name,), check="application")


def _classify_drift(found: object, wanted: object) -> Drift:
    return Drift.MISSING if found is None else Drift.EXTRA if wanted is None else Drift.WRONG


# ---------------------------------------------------------------- against a recompute
@dataclass
class _History:
    """Data that the recompute keeps: paths of items, and whole items."""

    paths: dict[ItemKey, set[Path]] = field(default_factory=dict)
    items: set[ItemKey] = field(default_factory=set)

    def has(self, key: ItemKey, path: Path) -> bool:
        return any(has_overlap(path, one) for one in self.paths.get(key, ()))


def _compare_with_recompute(ending: Ending, found: Sequence[Difference]) -> Iterator[Discrepancy]:
    history = _collect_history(ending, found)
    made = _backfill(ending.rules, _strip(ending, history))
    provenance, behind = Provenance(ending.rules), _list_late_rules(ending, found)
    for key in _list_keys(ending.rules, ending.store, made):
        entity = ending.rules.entity_of(key)
        if entity is not None and key not in history.items and not provenance.is_in_ledger(key):
            wrong = _compare_images(provenance, key, entity, (ending.store.item(key), made.item(key)), history)
            yield from (one for one in wrong if one.rule not in behind)


def _list_late_rules(ending: Ending, found: Sequence[Difference]) -> frozenset[str]:
    """The rules that follow from what may be late, which only a backfill brings."""
    rules = ending.rules.rules
    late = [rules[one.rule] for one in found if can_be_late(one, ending.rules)]
    behind = {rule.name for rule in late}
    while late:
        rule = late.pop()
        more = [other for other in rules.values() if other.name not in behind and rule.feeds(other)]
        behind |= {other.name for other in more}
        late += more
    return frozenset(behind)


def _compare_images(
    provenance: Provenance, key: ItemKey, entity: Entity, images: tuple[Item | None, Item | None], history: _History
) -> Iterator[Discrepancy]:
    """The derived paths at which the found and the recomputed image of an item differ."""
    if None in images:
        mirrors = provenance.list_mirror_rules(entity)
        yield Discrepancy(mirrors[0].name if mirrors else "", _classify_drift(*images), key, check="recompute")
        return
    for rule in provenance.list_rules_into(entity):
        for path in rule.copies:
            value, wanted = (get(image, path) for image in images)
            if not is_same_value(value, wanted) and not history.has(key, path):
                yield Discrepancy(rule.name, _classify_drift(value, wanted), key, path, check="recompute")


def _collect_history(ending: Ending, found: Sequence[Difference]) -> _History:
    history, provenance = _History(), Provenance(ending.rules)
    for one in found:
        rule = one.part.rule if one.part else ending.rules.rules[one.rule]
        if isinstance(rule, MirrorRule) and rule.owned_entities:
            history.items.add(one.target)
        else:
            history.paths.setdefault(one.target, set()).update(rule.copies)
    for key in _list_keys(ending.rules, ending.store):
        item, entity = ending.store.item(key), ending.rules.entity_of(key)
        assert item is not None, "the key of an item in the store"
        history.items |= {key} if entity is not None and provenance.list_history_rules(entity) else set()
        for rule in ending.rules.into_target(entity) if entity is not None else ():
            history.paths.setdefault(key, set()).update(_list_left_copies(ending.store, rule, item))
    return history


def _list_left_copies(store: MemoryStore, rule: TargetRule, item: Item) -> Iterable[Path]:
    if not isinstance(rule, LinkedRule):
        return ()
    desired = rule.compute_values([store.item(key) for key in rule.source_keys(item)], item)
    if desired is None or isinstance(desired, Blocked):
        return rule.copies
    return (copy for copy in rule.copies if copy not in desired)


def recompute(rules: Rules, store: MemoryStore) -> MemoryStore:
    """Return new tables with the application's items, and with all that the rules make of them now. Values that a rule
    would leave as they were are kept.

    Raises:
        StoreError: if the backfill does not finish.
    """
    ending = Ending(rules, store, store)
    return _backfill(rules, _strip(ending, _collect_history(ending, ())))


def _strip(ending: Ending, history: _History) -> MemoryStore:
    """The application's items and history. Maps that become empty stay: no rule removes the map that it wrote into,
    and other rules may read it.
    """
    provenance = Provenance(ending.rules)
    made = MemoryStore(ending.rules.tables)
    for key in _list_keys(ending.rules, ending.store):
        item, entity = ending.store.item(key), ending.rules.entity_of(key)
        assert item is not None, "the key of an item in the store"
        if key in history.items or entity is None:
            made.put(key.table, item)
        elif not provenance.is_in_ledger(key) and provenance.find_mirror_rule(key, item) is None:
            identity = (path for rule in provenance.list_mirror_rules(entity) for path in rule.identity_paths)
            spare = (*identity, *history.paths.get(key, ()))
            made.put(key.table, drop_paths(item, provenance.list_derived_paths(key, item), spare, emptied=True))
    return made


def _backfill(rules: Rules, made: MemoryStore) -> MemoryStore:
    """These tables, after a backfill of all rules. Raises StoreError when it does not finish."""
    run = BackfillRun(
        Selection(rules, rules.keeper_names),
        made,
        NULL_PORTS,
        MemoryState(),
        {},
        supplies=make_supplies(rules, 1),
        completes=rules.keeper_names,
        sleep=lambda _seconds: None,
    )
    if not run.run():
        raise StoreError(next(iter(run.left.values())), "the recompute was not finished")
    return made
