"""Mutants of derive and path: what an item says of itself, and of its parent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from sync_rules.model.numbers import text_of
from sync_rules.model.values import changed, get
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.path import CYCLE, TreeRule
from sync_rules.rules.rule import Blocked
from tests.simulation.breaking import Mutation, among


def inputs_not_guarded() -> Any:
    return patch.object(DeriveRule, "link_guard", lambda _rule, _image: ())


def derived_on_insert_only() -> Any:
    return patch.object(DeriveRule, "pulls", lambda _rule, change: change.old is None)


def no_cycle_rule() -> Any:
    """A segment is appended whatever stands in the path already."""
    original = TreeRule.desired

    def desired(rule: TreeRule, sources: Any, target: Any) -> Any:
        verdict = original(rule, sources, target)
        above = get(sources[0], rule.path) if sources else None
        if not isinstance(verdict, Blocked) or verdict.reason != CYCLE or above is None:
            return verdict
        own = text_of(rule.own.read(target)) or ""
        return rule._made((*above["S"].split(rule.separator), own), own)

    return patch.object(TreeRule, "desired", desired)


def substring_test() -> Any:
    """An id is found inside another one."""
    original = TreeRule.desired

    def desired(rule: TreeRule, sources: Any, target: Any) -> Any:
        above = get(sources[0], rule.path) if sources else None
        if above is not None and (text_of(rule.own.read(target)) or "") in above["S"]:
            return Blocked(CYCLE, patient=True)
        return original(rule, sources, target)

    return patch.object(TreeRule, "desired", desired)


def path_not_rechecked() -> Any:
    """A record of a node is a reason to look at it only if it came, or hangs elsewhere."""

    def pulls(rule: TreeRule, change: Any) -> bool:
        return change.new is not None and (change.old is None or changed(change.old, change.new, rule.link_paths))

    return patch.object(TreeRule, "pulls", pulls)


def children_of_a_new_parent_forgotten() -> Any:
    original = TreeRule.pushes
    return patch.object(TreeRule, "pushes", lambda rule, change: change.old is not None and original(rule, change))


PATHS = (*among("O1", "path", "path-keep", "path-delete"), *among("O4", "path", "path-keep"))

MUTANTS: Mapping[str, Mutation] = {
    "inputs of a derived attribute not guarded": Mutation(inputs_not_guarded, among("O1", "derive")),
    "derived on insert only": Mutation(derived_on_insert_only, among("O1", "derive")),
    "path without the cycle rule": Mutation(no_cycle_rule, PATHS),
    "cycle found by a substring": Mutation(substring_test, PATHS),
    "path of an own record not re-checked": Mutation(path_not_rechecked, PATHS),
    "children of a new parent forgotten": Mutation(children_of_a_new_parent_forgotten, PATHS),
}
