"""Mutants of history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.model.items import Change
from sync_rules.model.writes import Put
from sync_rules.pipeline import parts
from sync_rules.rules.kinds.history import TAKEN, UNNUMBERED, HistoryRule
from sync_rules.rules.rule import Blocked
from tests.simulation.breaking import Mutant, Mutation, at_each_history, replacing
from tests.simulation.mutants_parts import ALWAYS, judged, parts_from
from tests.simulation.worlds import small

HISTORY = small("", "history")


def over_another(write: Any) -> Any:
    """A version is put whatever stands there by now."""
    return replace(write, guard=ALWAYS) if isinstance(write, Put) else write


@contextmanager
def unlucky() -> Iterator[None]:
    """Mutant: a version that is written for the second time is set aside, without its state."""
    written: set[str] = set()

    def may_write(look: Any, write: Any, _bounds: Any) -> bool:
        known, seen = repr(write) in written, look.part.seen is not None
        written.add(repr(write))
        return not (seen and known)

    with at_each_history(written.clear), patch.object(parts, "_may_write", may_write):
        yield


def without_states(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: a version is made of the source as it is when the record is processed."""
    return [replace(part, seen=None) for part in original(rule, change, entity)]


def not_as_it_was(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: the state before a change is not kept, unless the source was deleted."""
    return original(rule, change if change.new is None else replace(change, old=None), entity)


def only_last(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: the state after a change is kept only where there was none before."""
    return original(rule, change if change.old is None else replace(change, new=None), entity)


def let_all_in(rule: Any, change: Change, entity: Any, original: Any) -> Any:
    """Mutant: `where` is asked of the source as it is."""
    return original(replace(rule, where=None), change, entity)


def silent(reason: str) -> Mutant:
    """Mutant: what cannot be kept is not reported."""
    original = HistoryRule.write_for

    def write_for(rule: Any, part: Any, target: Any, source: Any) -> Any:
        wanted = original(rule, part, target, source)
        return None if isinstance(wanted, Blocked) and wanted.reason == reason else wanted

    return replacing(HistoryRule, "write_for", write_for)


MUTANTS: Mapping[str, Mutation] = {
    "a version put over another": Mutation(judged(HistoryRule, over_another), HISTORY),
    "a version of the source as it is now": Mutation(parts_from(HistoryRule, without_states), HISTORY),
    "the state before a change is not kept": Mutation(
        parts_from(HistoryRule, not_as_it_was), small("people", "history")
    ),
    "the state after a change is not kept": Mutation(parts_from(HistoryRule, only_last), HISTORY),
    "a version of what where leaves out": Mutation(parts_from(HistoryRule, let_all_in), HISTORY),
    "two states of one version unreported": Mutation(silent(TAKEN), HISTORY),
    "a state set aside that is nowhere else": Mutation(unlucky, HISTORY),
    "a state without a version unreported": Mutation(silent(UNNUMBERED), HISTORY),
}
