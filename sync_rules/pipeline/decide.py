"""Decides what to write on a target, given its image and its sources, and what a refused write means.

Invariant: no target gets the value of a source that it does not name. An update requires that the target exists, names
the same source, and holds what was read. A delete by `on_delete` compares only the link, a removal all that was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.model.semantics import apply_write
from sync_rules.model.values import AttributeValue, Item, Path, has_overlap
from sync_rules.model.writes import (
    Check,
    Condition,
    Delete,
    Put,
    Result,
    Transaction,
    Write,
    drop_repeated_conditions,
    expect_existence,
    expect_item,
    find_differences,
    make_update,
)
from sync_rules.pipeline.sources import Sources, Target, list_other_makers
from sync_rules.rules.families import TargetRule

Changes = Mapping[Path, AttributeValue | None]


@dataclass(slots=True)  # as a Change: made for every copy, and never changed
class Intent:
    """The write of one target, and the rules that want it. `wanted`: the changes of each rule."""

    target: Target
    rules: tuple[TargetRule, ...]
    changes: Changes
    write: Write
    deletes: bool = False
    wanted: Mapping[TargetRule, Changes] = field(default_factory=dict)


def list_rules_to_delay(wanted: Mapping[TargetRule, Changes]) -> list[TargetRule]:
    """List the rules whose link or `where` another rule is about to change. They must wait for the image after that
    write. Rules have no cycles, so at least one rule does not wait.
    """
    return [
        rule
        for rule in wanted
        if any(
            has_overlap(path, read)
            for other, changes in wanted.items()
            if other is not rule
            for path in changes
            for read in rule.deciding_paths
        )
    ]


def make_intent(target: Target, wanted: Mapping[TargetRule, Changes], sources: Sources) -> Intent:
    """Make one write for all rules of a target: an update, or a transaction if a rule is strict."""
    changes = {path: value for paths in wanted.values() for path, value in paths.items()}
    guard = [condition for rule in wanted for condition in rule.link_guard(target.image)]
    checks: dict[ItemKey, list[Condition]] = {}
    for rule in wanted:
        for key in rule.source_keys(target.image) if rule.strict else ():
            source = sources.items[key]
            assert not isinstance(source, StoreError), "a rule whose source was not read wants nothing"
            checks.setdefault(key, []).extend(rule.source_guard(source))
    guard += checks.pop(target.key, [])  # a transaction may name an item once: an item that is its own source
    update = make_update(target.key, target.image, changes, guard)
    sources_unchanged = tuple(Check(key, drop_repeated_conditions(still)) for key, still in checks.items())
    write = Transaction((*sources_unchanged, update)) if sources_unchanged else update
    return Intent(target, tuple(wanted), changes, write, wanted=wanted)


def list_deleting_rules(target: Target, sources: Sources) -> list[TargetRule]:
    """List the rules that must delete the target by `on_delete: delete`: a REMOVE record reported their source, and it
    is absent.
    """
    return [
        rule
        for rule in target.removed
        if find_lost_source(rule, target, sources) is not None and rule.deletes(target.image)
    ]


def make_delete_intent(rule: TargetRule, target: Target, sources: Sources) -> Intent:
    """Make the delete of a target that lost its source by a rule. The guard compares the link alone, because a late
    write of the copy must not save an orphan.
    """
    source = find_lost_source(rule, target, sources)
    assert source is not None, "one of the deleting rules"
    source_absent = Check(source, rule.source_guard(None))
    delete = Delete(target.key, (expect_existence(target.key), *rule.link_guard(target.image)))
    return Intent(target, (rule,), {}, Transaction((source_absent, delete)), deletes=True)


def make_put_intent(intent: Intent) -> Intent:
    """Make the put of a target that does not exist, with all that its rules want."""
    target = intent.target
    absent = expect_item(target.key.values[0][0], None, ())
    return replace(intent, write=Put(target.key, apply_write(intent.write, target.image) or {}, absent))


def make_removal_intent(target: Target) -> Intent:
    """Make the delete of a target without members. The guard compares every attribute of its image."""
    keys = target.key.attributes()
    seen = expect_item(target.key.values[0][0], target.image, [(name,) for name in target.image if name not in keys])
    makers = (*target.makers, *list_other_makers(target.makers))  # the item is all theirs
    wanted: dict[TargetRule, Changes] = {rule: dict.fromkeys(rule.copies) for rule in makers}
    return Intent(target, makers, {}, Delete(target.key, seen), deletes=True, wanted=wanted)


def find_lost_source(rule: TargetRule, target: Target, sources: Sources) -> ItemKey | None:
    """Find the source that a target names and that does not exist; None if all exist. An item that is its own source
    has not lost it.
    """
    for key in rule.source_keys(target.image):
        if key != target.key and sources.items[key] is None:
            return key
    return None


def has_source_changed(write: Write, result: Result) -> bool:
    """True if the guard of a source was refused, and the guard of the target was not."""
    target_action = len(write.actions) - 1 if isinstance(write, Transaction) else 0
    return bool(result.refused) and target_action not in result.refused


def explain_refusal(intent: Intent, item: Item | None) -> Outcome:
    """Choose the outcome of a refused write by the item that the refusal returned (None: no such item)."""
    if item is None:
        return Outcome.GONE
    if is_relinked(intent, item):
        return Outcome.RELINKED
    if intent.changes and not find_differences(item, intent.changes):
        return Outcome.RIGHT  # by another writer, or here if the first answer was lost
    return Outcome.SUPERSEDED


def is_relinked(intent: Intent, item: Item) -> bool:
    """True if the item names another source than the image did."""
    return any(rule.source_keys(item) != rule.source_keys(intent.target.image) for rule in intent.rules)
