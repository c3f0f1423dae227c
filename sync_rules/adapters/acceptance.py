"""Finds the rules that a state accepts: rules that a backfill applied. A rule that is not accepted does not replace or
remove values that it did not write (pipeline/acceptance.py).

Invariant: acceptance belongs to the fingerprint of a rule: a changed rule is a new one, a renamed one is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from sync_rules.adapters.state import State, read_applied_fingerprints
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.telemetry import SERVICE
from sync_rules.rules import fingerprints
from sync_rules.rules.families import PartRule, TargetRule
from sync_rules.rules.ruleset import Rules

LOOK_EVERY_SECONDS: Final = 60.0  # at the state, while a rule is not accepted


def find_applied_rules(documents: State, rules: Rules, waiting: Collection[str] = ()) -> dict[str, str]:
    """Return the fingerprints of the applied rules, by their present names. A renamed rule counts as applied if nothing
    else changed. `waiting`: names of rules that do not count, because their books lack something. Raises UserError,
    StoreError.
    """
    found = _rename_titles(read_applied_fingerprints(documents), rules)
    return {title: digest for title, digest in found.items() if title not in waiting}


def _rename_titles(found: Mapping[str, str], rules: Rules) -> dict[str, str]:
    """Fingerprints by the titles of now. A rule that was renamed, and else is as it was, keeps its entry."""
    renamed, prints = dict(found), fingerprints.compute_rule_fingerprints(rules)
    for title, (former, digest) in fingerprints.map_former_titles(rules).items():
        if renamed.pop(former, None) == digest:
            renamed.setdefault(title, prints[title])
    return renamed


def match_fingerprints(found: Mapping[str, str], rules: Rules) -> frozenset[str]:
    """Return the titles of the rules whose fingerprints are among those found."""
    prints = fingerprints.compute_rule_fingerprints(rules)
    return frozenset(title for title, digest in _rename_titles(found, rules).items() if prints.get(title) == digest)


class Acceptance:
    """The rules that are not accepted, by name, each with the way to accept it: the `unaccepted` of a Consumer.

    `accepted` reads the titles of the accepted rules. It is called again each minute while a rule is not accepted, and
    may raise StoreError.
    """

    def __init__(
        self,
        rules: Rules,
        accepted: Callable[[], Collection[str]],
        way: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules, self._accepted, self._way, self._clock = rules, accepted, way, clock
        self._look_at = 0.0
        self._unaccepted: Mapping[str, str] = {}
        self._look()

    def __call__(self) -> Mapping[str, str]:
        if self._unaccepted and self._clock() >= self._look_at:
            try:
                self._look()
            except (StoreError, UserError):  # the rules stay unaccepted until the next look
                self._look_at = self._clock() + LOOK_EVERY_SECONDS
        return self._unaccepted

    def _look(self) -> None:
        titles = self._accepted()
        self._unaccepted = {
            rule.name: self._way.replace("{}", rule.title)
            for rule in list_guarded_rules(self._rules)
            if rule.title not in titles
        }
        self._look_at = self._clock() + LOOK_EVERY_SECONDS


def list_guarded_rules(rules: Rules) -> tuple[TargetRule | PartRule, ...]:
    """Return the rules that could alter values of the application before a backfill. Rules with books are not
    listed: they wait for the backfill.
    """
    kept = (rule for rule in rules.rules.values() if isinstance(rule, TargetRule | PartRule))
    return tuple(rule for rule in kept if rule.books is None)


def make_stack_acceptance(rules: Rules, state: State, stack_name: str = SERVICE) -> Acceptance:
    """Make the acceptance of a deployed stack. Raises UserError, StoreError: a function without it processes
    nothing.
    """
    way = f"run `{format_stack_variable(stack_name)}sync-rules backfill --remote --rule {{}}`"
    return Acceptance(rules, lambda: read_accepted_titles(rules, state), way)


def format_stack_variable(stack_name: str) -> str:
    """Format the beginning of a command line with --remote: the variable that names the stack; "" for the usual
    name.
    """
    return "" if stack_name == SERVICE else f"SYNC_RULES_STACK={stack_name} "


def read_accepted_titles(rules: Rules, state: State) -> frozenset[str]:
    """Read the titles of the rules that a state accepts, because a backfill applied them. Raises UserError,
    StoreError.
    """
    return match_fingerprints(read_applied_fingerprints(state), rules)
