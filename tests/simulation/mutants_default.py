"""Mutants of defaults: where one stands, and where it must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.model.values import get
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.path import TreeRule
from tests.simulation.breaking import Mutant, Mutation
from tests.simulation.worlds import among, small


def lacking_is_absent() -> Any:
    """An attribute that the source lacks is removed from its copies."""
    original = CopyRule.values

    def values(rule: CopyRule, source: Any) -> Any:
        found = original(rule, source)
        return {to: get(source, path) and found[to] for path, to in rule.mapping}

    return patch.object(CopyRule, "values", values)


def named_sources_only() -> Any:
    """A target that names no source is left as it is."""
    original = CopyRule.compute_values
    return patch.object(
        CopyRule, "compute_values", lambda rule, sources, target: original(rule, sources, target) if sources else None
    )


def over_what_is_kept() -> Any:
    return patch.object(
        LinkedRule,
        "compute_values_without_source",
        lambda rule, _target: {copy: rule.defaults.get(copy) for copy in rule.copies},
    )


def only_what_is_missing() -> Any:
    """A value of a source that is gone stays where there is a default."""

    def without_source(rule: LinkedRule, target: Any) -> Any:
        missing = {copy: value for copy, value in rule.defaults.items() if get(target, copy) is None}
        cleared = dict.fromkeys(copy for copy in rule.copies if copy not in rule.defaults)
        return missing | (cleared if rule.on_delete == "clear" else {}) or None

    return patch.object(LinkedRule, "compute_values_without_source", without_source)


def restored_by_the_record_alone() -> Any:
    """The record of a source that went is no reason to look at its targets."""
    original = CopyRule.pushes
    return patch.object(CopyRule, "pushes", lambda rule, change: change.new is not None and original(rule, change))


def none_made(kind: Any, answer: str, **without: Any) -> Mutant:
    """A kind answers as if it had no default."""
    original = getattr(kind, answer)
    return lambda: patch.object(kind, answer, lambda rule, *args: original(replace(rule, **without), *args))


COPIES = small("", "copy", "copy-derive")

MUTANTS: Mapping[str, Mutation] = {
    "default: none for what the source lacks": Mutation(lacking_is_absent, COPIES),
    "default: none where no source is named": Mutation(named_sources_only, among("", "default-keep")),
    "default: over what is kept": Mutation(over_what_is_kept, small("", "copy")),
    "default: not brought back": Mutation(only_what_is_missing, COPIES),
    "default: not brought back by a REMOVE": Mutation(restored_by_the_record_alone, COPIES),
    "default: none where a formula makes nothing": Mutation(
        none_made(DeriveRule, "compute_values", default=None), small("", "derive")
    ),
    "default: none for what a child lacks": Mutation(
        none_made(EmbedRule, "_list_attributes", defaults={}), among("", "embed-default")
    ),
    "default: nothing carried down": Mutation(none_made(TreeRule, "compute_values", defaults={}), small("", "path")),
}
