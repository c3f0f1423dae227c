"""Mutants of derive and path: what an item says of itself, and of its parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.model.numbers import read_text
from sync_rules.model.values import get, has_changed
from sync_rules.rules.kinds import derive
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.path import CYCLE, Breadcrumb, TreeRule
from sync_rules.rules.rule import Blocked
from tests.simulation.breaking import Mutation, replacing
from tests.simulation.worlds import among, small


def inputs_not_guarded() -> Any:
    return patch.object(DeriveRule, "link_guard", lambda _rule, _image: ())


def cases_not_watched() -> Any:
    """The attributes in conditions of cases are no reason to look, and are not guarded."""

    def inputs(rule: DeriveRule) -> Any:
        return tuple(rule._read_as.locate_field(path) for path in rule._field_paths.values())

    return patch.object(DeriveRule, "inputs", property(inputs))


def derived_on_insert_only() -> Any:
    return patch.object(DeriveRule, "pulls", lambda _rule, change: change.old is None)


def no_cycle_rule() -> Any:
    """A segment is appended whatever stands in the path already."""
    original = TreeRule.compute_values

    def compute_values(rule: TreeRule, sources: Any, target: Any) -> Any:
        verdict = original(rule, sources, target)
        above = get(sources[0], rule.path) if sources else None
        if not isinstance(verdict, Blocked) or verdict.reason != CYCLE or above is None:
            return verdict
        own = read_text(rule.own.read(target)) or ""
        return rule._make_values((*above["S"].split(rule.separator), own), own)

    return patch.object(TreeRule, "compute_values", compute_values)


def substring_test() -> Any:
    """An id is found inside another one."""
    original = TreeRule.compute_values

    def compute_values(rule: TreeRule, sources: Any, target: Any) -> Any:
        above = get(sources[0], rule.path) if sources else None
        if above is not None and (read_text(rule.own.read(target)) or "") in above["S"]:
            return Blocked(CYCLE, patient=True)
        return original(rule, sources, target)

    return patch.object(TreeRule, "compute_values", compute_values)


def path_not_rechecked() -> Any:
    """A record of a node is a reason to look at it only if it came, or hangs elsewhere."""

    def pulls(rule: TreeRule, change: Any) -> bool:
        return change.new is not None and (change.old is None or has_changed(change.old, change.new, rule.link_paths))

    return patch.object(TreeRule, "pulls", pulls)


def own_name_not_looked_at() -> Any:
    """A rename alone is no reason to look at an item."""
    original = TreeRule.pulls

    def pulls(rule: TreeRule, change: Any) -> bool:
        if change.old is None or change.new is None or not rule.name_paths:
            return original(rule, change)
        return original(rule, replace(change, old={**change.old, "name": change.new.get("name", {"S": ""})}))

    return patch.object(TreeRule, "pulls", pulls)


def nameless_stop_the_line() -> Any:
    """Start over below an item without a name."""
    original = Breadcrumb.make_values

    def made(crumb: Breadcrumb, parent: Any, item: Any) -> Any:
        return original(crumb, parent if parent is None or crumb.own(parent) else {}, item)

    return patch.object(Breadcrumb, "make_values", made)


def ring_of_names() -> Any:
    """A breadcrumb follows its parent's where the ids are in a ring."""
    original = TreeRule.compute_values

    def compute_values(rule: TreeRule, sources: Any, target: Any) -> Any:
        verdict = original(rule, sources, target)
        if rule.crumb is None or not isinstance(verdict, Blocked) or verdict.reason != CYCLE or not sources:
            return verdict
        return rule.crumb.make_values(sources[0], target)

    return patch.object(TreeRule, "compute_values", compute_values)


NAMES = among("", "path-names")
PATHS = small("", "path")

MUTANTS: Mapping[str, Mutation] = {
    "inputs of a derived attribute not guarded": Mutation(inputs_not_guarded, small("", "derive")),
    "derived without its condition": Mutation(replacing(derive, "let_in", lambda *_: True), among("", "derive-cases")),
    "conditions of cases not watched": Mutation(cases_not_watched, among("", "derive-cases")),
    "derived on insert only": Mutation(derived_on_insert_only, small("", "derive")),
    "path without the cycle rule": Mutation(no_cycle_rule, PATHS),
    "cycle found by a substring": Mutation(substring_test, PATHS),
    "path of an own record not re-checked": Mutation(path_not_rechecked, PATHS),
    "breadcrumb: own name not looked at": Mutation(own_name_not_looked_at, NAMES),
    "breadcrumb: the nameless stop the line": Mutation(nameless_stop_the_line, PATHS),
    "breadcrumb: a ring of names": Mutation(ring_of_names, PATHS),
}
