"""Mutants of parts, collect and mirror."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.model.items import Change
from sync_rules.model.writes import (
    Check,
    Condition,
    Delete,
    Put,
    Result,
    Status,
    Test,
    Transaction,
    Update,
    expect_existence,
)
from sync_rules.pipeline import joint_writes, parts
from sync_rules.pipeline.messages import PartMessage
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.rule import Blocked
from sync_rules.rules.ruleset import Rules
from tests.simulation.breaking import Mutant, Mutation, Work, replacing, results, unsent, wrapping
from tests.simulation.mutants_writes import failed_is_written
from tests.simulation.worlds import among, small

COLLECT, MIRROR = small("", "collect"), small("", "mirror")
STRICT = among("", "collect-strict")
PARTS = small("", "collect", "mirror", "count", "ranked")
ALWAYS = (Condition(Test.ABSENT, ("never there",)),)  # a guard that always holds


# ---------------------------------------------------------------- which parts
def parts_from(rule_type: Any, change: Callable[[Any, Change, Any, Any], Any]) -> Mutant:
    """The parts of a record become what a function of the rule, the record, its entity and the original says."""
    original = rule_type.parts
    return replacing(rule_type, "parts", lambda rule, record, entity: change(rule, record, entity, original))


def no_parts_of_target(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: another writer's change of a target is not looked at."""
    return [] if entity is rule.target and entity is not rule.source else original(rule, change, entity)


def only_new(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: a source's former part is not looked at, unless the source was deleted."""
    if entity is rule.source and change.new is not None:
        change = replace(change, old=None)
    return original(rule, change, entity)


def only_old(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: a source's present part is not looked at, unless the source is new."""
    if entity is rule.source and change.old is not None:
        change = replace(change, new=None)
    return original(rule, change, entity)


def only_what_came(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: only the elements added to a set are looked at."""
    found = original(rule, change, entity)
    if entity is not rule.target or change.new is None:
        return found
    now = rule._elements(change.new)
    return [part for part in found if part.target != change.key or part.element in now]


# ---------------------------------------------------------------- what is written
def judged(rule_type: Any, change: Callable[[Any], Any]) -> Mutant:
    """Every write that a rule wants goes through a function first."""
    original = rule_type.write_for

    def write_for(rule: Any, part: Any, target: Any, source: Any) -> Any:
        wanted = original(rule, part, target, source)
        return wanted if wanted is None or isinstance(wanted, Blocked) else change(wanted)

    return replacing(rule_type, "write_for", write_for)


def upsert(write: Any) -> Any:
    """Elements are added whether the node is there or not."""
    return replace(write, guard=ALWAYS) if isinstance(write, Update) else write


def without_check(write: Any) -> Any:
    """No transaction: the source may have changed since it was read."""
    return Transaction(write.actions[1:]) if isinstance(write, Transaction) else write


def checked_for_being_there(write: Any) -> Any:
    """The source is only checked for being there, or not."""
    if not isinstance(write, Transaction):
        return write
    actions = tuple(replace(one, guard=one.guard[:1]) if isinstance(one, Check) else one for one in write.actions)
    return Transaction(actions)


def kept(write: Any) -> Any:
    """Mutant: a part that should be gone is not deleted."""
    return None if any(isinstance(one, Delete) for one in write.actions) else write


def over_others(write: Any) -> Any:
    """A mirror is put whatever stands there by now."""
    actions = (replace(one, guard=ALWAYS) if isinstance(one, Put) else one for one in write.actions)
    return Transaction(tuple(actions))


def of_anybody(write: Any) -> Any:
    """A mirror is changed and deleted whose ever it is by now."""
    of_one = (Update, Delete)
    actions = (
        replace(one, guard=(expect_existence(one.key), *_seen(one))) if isinstance(one, of_one) else one
        for one in write.actions
    )
    return Transaction(tuple(actions))


def _seen(one: Any) -> tuple[Condition, ...]:
    return tuple(condition for condition in one.guard[1:] if condition.path != ("user",))


def taken_as_own() -> Any:
    """Mutant: a mirror's key is taken over from another source's mirror."""
    original = MirrorRule.write_for

    def write_for(rule: Any, part: Any, target: Any, source: Any) -> Any:
        wanted = original(rule, part, target, source)
        if isinstance(wanted, Blocked) and wanted.reason == "KeyTaken":
            return over_others(original(rule, part, None, source))
        return wanted

    return patch.object(MirrorRule, "write_for", write_for)


# ---------------------------------------------------------------- what becomes of a write
@contextmanager
def taken(change: Callable[[Any, Any, Result], Any]) -> Iterator[None]:
    """Patch the work left after a write: `change` gets the original answer, the joint write and its result."""
    original = parts._take

    def _take(joint: Any, result: Result, bounds: Any, report: Any) -> Work:
        again = yield from original(joint, result, bounds, report)
        return change(again, joint, result)

    with patch.object(parts, "_take", _take):
        yield


def refused_dropped(_again: Any, _joint: Any, _result: Result) -> Any:
    return ()


@contextmanager
def one_of_each_join() -> Iterator[None]:
    """Mutant: the second of two joined writes is lost."""
    original = joint_writes._join
    with patch.object(joint_writes, "_join", lambda one, two: None if original(one, two) is None else one):
        yield


def rejected_together() -> Any:
    """A joint write that is rejected parks its first part only."""
    original = parts._take

    def _take(joint: Any, result: Result, bounds: Any, report: Any) -> Work:
        if result.status is Status.REJECTED:
            joint = replace(joint, looks=joint.looks[:1])
        return (yield from original(joint, result, bounds, report))

    return patch.object(parts, "_take", _take)


def not_pushed(_rule: Any, _change: Change) -> bool:
    """The edges of a node that came are not listed."""
    return False


MUTANTS: Mapping[str, Mutation] = {
    # the road of parts
    "refused part dropped": Mutation(lambda: taken(refused_dropped), PARTS),
    "joined write loses a part": Mutation(one_of_each_join, PARTS),
    "parked part forgotten": Mutation(
        wrapping(parts, "retry_parked_items", unsent(lambda message: isinstance(message, PartMessage))), PARTS
    ),
    "failed part taken for done": Mutation(wrapping(parts, "_apply", results(failed_is_written)), among("", "mirror")),
    "joint write that does not fit parked as one": Mutation(rejected_together, among("", "collect-numbers")),
    # collect
    "collect: edges of a new node not listed": Mutation(replacing(CollectRule, "pushes", not_pushed), COLLECT),
    "entry into an index ignored": Mutation(replacing(Rules, "list_rules_in_reach", lambda *_: ()), COLLECT),
    "collect: only the new node": Mutation(parts_from(CollectRule, only_new), COLLECT),
    "collect: only the old node": Mutation(parts_from(CollectRule, only_old), COLLECT),
    "collect: node created": Mutation(judged(CollectRule, upsert), COLLECT),
    "collect: sets not looked at again": Mutation(parts_from(CollectRule, no_parts_of_target), COLLECT),
    "collect: what went from a set ignored": Mutation(parts_from(CollectRule, only_what_came), COLLECT),
    "collect: strict without check": Mutation(judged(CollectRule, without_check), STRICT),
    "collect: strict check of existence only": Mutation(judged(CollectRule, checked_for_being_there), STRICT),
    # mirror
    "mirror: no check of the source": Mutation(judged(MirrorRule, without_check), among("", "mirror")),
    "mirror: source checked for existence only": Mutation(judged(MirrorRule, checked_for_being_there), MIRROR),
    "mirror: old key stays": Mutation(judged(MirrorRule, kept), MIRROR),
    "mirror: only the new key": Mutation(parts_from(MirrorRule, only_new), MIRROR),
    "mirror: mirrors not looked at again": Mutation(parts_from(MirrorRule, no_parts_of_target), MIRROR),
    "mirror: put over what came meanwhile": Mutation(judged(MirrorRule, over_others), MIRROR),
    "mirror: what is somebody else's taken": Mutation(taken_as_own, MIRROR),
    "mirror: whose it is not guarded": Mutation(judged(MirrorRule, of_anybody), among("", "mirror-taken")),
}
