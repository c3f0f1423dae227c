"""Finds the rules that a place accepts: rules that a backfill applied there, or that an operator named.

A place is a state: that of a stack, or the checkpoint of a run. A rule that is not accepted does not replace or remove
values that it did not write (pipeline/acceptance.py).

Invariant: acceptance belongs to the fingerprint of a rule: a changed rule is a new one, a renamed one is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from sync_rules.adapters.state import State, applied
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.sizes import item_bytes
from sync_rules.model.units import read_units
from sync_rules.model.values import Item, get
from sync_rules.pipeline.requests import Scan, Store
from sync_rules.pipeline.telemetry import SERVICE
from sync_rules.rules import fingerprints
from sync_rules.rules.families import PartRule, TargetRule
from sync_rules.rules.ruleset import Rules

LOOK_EVERY_SECONDS: Final = 60.0  # at the state, while a rule is not accepted
SCAN_MAX_READ_UNITS: Final = 500.0  # of one table, to find whether a rule could alter something there


def applied_so_far(documents: State, rules: Rules, waiting: Collection[str] = ()) -> dict[str, str]:
    """The fingerprints of the applied rules, by the names of now: a rule that was renamed, and else is as it was, is
    applied. `waiting` rules, by name, do not: their books lack something, whatever was applied. Raises UserError,
    StoreError.
    """
    found = _rename_titles(applied(documents), rules)
    return {title: digest for title, digest in found.items() if title not in waiting}


def _rename_titles(found: Mapping[str, str], rules: Rules) -> dict[str, str]:
    """Fingerprints by the titles of now. A rule that was renamed, and else is as it was, keeps its entry."""
    renamed, prints = dict(found), fingerprints.of_each(rules)
    for title, (former, digest) in fingerprints.before_renaming(rules).items():
        if renamed.pop(former, None) == digest:
            renamed.setdefault(title, prints[title])
    return renamed


def match_fingerprints(found: Mapping[str, str], rules: Rules) -> frozenset[str]:
    """The titles of the rules whose fingerprints are among those found."""
    prints = fingerprints.of_each(rules)
    return frozenset(title for title, digest in _rename_titles(found, rules).items() if prints.get(title) == digest)


class Acceptance:
    """The rules that are not accepted, by name, each with the way to accept it: the `unaccepted` of a Consumer.

    `accepted` reads the titles of the accepted rules, again each minute while one is missing; it may raise StoreError.
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
            for rule in list_guarded(self._rules)
            if rule.title not in titles
        }
        self._look_at = self._clock() + LOOK_EVERY_SECONDS


def list_guarded(rules: Rules) -> tuple[TargetRule | PartRule, ...]:
    """The rules that could alter values of others before a backfill. One that reads or keeps books waits for it."""
    kept = (rule for rule in rules.rules.values() if isinstance(rule, TargetRule | PartRule))
    return tuple(rule for rule in kept if rule.books is None)


# ---------------------------------------------------------------- a stack
def make_for_stack(rules: Rules, state: State, stack_name: str = SERVICE) -> Acceptance:
    """The acceptance of a deployed stack. Raises UserError, StoreError: without it a function processes nothing."""
    way = f"run `{set_stack(stack_name)}sync-rules backfill --remote --rule {{}}`"
    return Acceptance(rules, lambda: read_accepted(rules, state), way)


def set_stack(stack_name: str) -> str:
    """The beginning of a command line with --remote: it names the stack, unless that has the usual name."""
    return "" if stack_name == SERVICE else f"SYNC_RULES_STACK={stack_name} "


def read_accepted(rules: Rules, state: State) -> frozenset[str]:
    """The titles of the rules that a state accepts: a backfill applied them. Raises UserError, StoreError."""
    return match_fingerprints(applied(state), rules)


# ---------------------------------------------------------------- a run
class RunAcceptance:
    """The acceptance of `sync-rules run`: its checkpoint, the backfills of the same state, and `named`, titles that the
    operator accepts. A rule is accepted too if there is nothing that it could alter when the run starts. `open_state`
    reads the state again: another process may write it. `options` are those of a backfill with this state.
    """

    def __init__(
        self, rules: Rules, open_state: Callable[[], State], named: Iterable[str], store: Store, options: str = ""
    ) -> None:
        self._rules, self._open_state, self._store, self._options = rules, open_state, store, options
        self._named = frozenset(named)
        self._own: frozenset[str] = frozenset()
        self.unaccepted: Callable[[], Mapping[str, str]] = dict

    def begin(self, before: Mapping[str, str] | None) -> dict[str, str]:
        """Begin with the fingerprints that a checkpoint holds, None for an unchanged project of an earlier version.
        Returns those to keep. Raises UserError, StoreError.
        """
        prints = fingerprints.of_each(self._rules)
        accepted = frozenset(prints) if before is None else match_fingerprints(before, self._rules) | self._named
        missing = [rule for rule in list_guarded(self._rules) if rule.title not in accepted | self._applied()]
        filled = _find_altering(missing, self._store)
        self._own = accepted | {rule.title for rule in missing if rule.title not in filled}
        way = f"run `sync-rules backfill{self._options} --rule {{}}`"
        self.unaccepted = Acceptance(self._rules, lambda: self._own | self._applied(), way)
        return {title: prints[title] for title in sorted(self._own) if title in prints}

    def _applied(self) -> frozenset[str]:
        """The titles that the state accepts; none if it does not answer, because a run needs no right to read it."""
        try:
            return read_accepted(self._rules, self._open_state())
        except StoreError:
            return frozenset()


def _find_altering(rules: Iterable[TargetRule | PartRule], store: Store) -> set[str]:
    """The titles of rules that could alter what is there: a bounded scan finds such an item, or does not reach the end
    of a table. Each table is scanned once.
    """
    found: set[str] = set()
    for table, some in _group_by_table(rules).items():
        cursor, units = None, 0.0
        while True:
            try:
                page = store.scan(Scan(table.name, 1_000, cursor, consistent=True))
            except StoreError:  # a run needs no right to scan
                found |= {rule.title for rule in some}
                break
            for item in page.items:
                key = table.key_of(item)
                found |= {rule.title for rule in some if key is not None and _may_alter(rule, key, item)}
            units += read_units(sum(map(item_bytes, page.items)), consistent=True)
            cursor = page.cursor
            if cursor is None or found.issuperset(rule.title for rule in some):
                break
            if units > SCAN_MAX_READ_UNITS:
                found |= {rule.title for rule in some}
                break
    return found


def _group_by_table(rules: Iterable[TargetRule | PartRule]) -> dict[Table, list[TargetRule | PartRule]]:
    found: dict[Table, list[TargetRule | PartRule]] = {}
    for rule in rules:
        for table in {
            (rule.source if rule.moves else rule.target).table,
            *(node.writes[0].table for node in rule.nodes()),
        }:
            found.setdefault(table, []).append(rule)
    return found


def _may_alter(rule: TargetRule | PartRule, key: ItemKey, item: Item) -> bool:
    """True if a rule could replace, remove, delete or move something of an item."""
    if rule.moves:
        return rule.source.has(key)
    if isinstance(rule, TargetRule) and rule.target.has(key) and rule.deletes(item):
        return True
    return any(
        entity.has(key) and get(item, path) is not None for entity, path in (node.writes for node in rule.nodes())
    )
