"""The start of a run: the rules that it accepts, and the time since which its rules call functions.

Invariant: a rule that is not accepted does not replace or remove values that it did not write (pipeline/acceptance.py).
A run accepts three sorts of rules: those that its checkpoint lists, that a backfill applied, or that the operator
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.acceptance import Acceptance, list_guarded_rules, match_fingerprints, read_accepted_titles
from sync_rules.adapters.beginnings import (
    NOT_KNOWN_MS,
    Beginnings,
    complete_beginnings,
    describe_beginnings,
    note_in_table,
)
from sync_rules.adapters.state import State
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.sizes import count_item_bytes, count_read_units
from sync_rules.model.values import Item, get
from sync_rules.pipeline.requests import Scan, Store
from sync_rules.rules import fingerprints
from sync_rules.rules.families import PartRule, TargetRule
from sync_rules.rules.ruleset import Rules

SCAN_MAX_READ_UNITS: Final = 500.0  # of one table, to find whether a rule could alter something there


# ---------------------------------------------------------------- accepted rules
class RunAcceptance:
    """The acceptance of `sync-rules run`: its checkpoint, the backfills of the same state, and `named`, titles that the
    operator accepts. The run also accepts a rule that could alter nothing when the run starts. `open_state` reads
    the state again, because another process may write it. `options` are those of a backfill with this state.
    """

    def __init__(
        self, rules: Rules, open_state: Callable[[], State], named: Iterable[str], store: Store, options: str = ""
    ) -> None:
        self._rules, self._open_state, self._store, self._options = rules, open_state, store, options
        self._named = frozenset(named)
        self._own: frozenset[str] = frozenset()
        self.unaccepted: Callable[[], Mapping[str, str]] = dict

    def begin(self, before: Mapping[str, str] | None) -> dict[str, str]:
        """Begin with the fingerprints in a checkpoint; None if an earlier version wrote it for the same rules. Return
        the fingerprints to keep. Raises UserError and StoreError.
        """
        prints = fingerprints.compute_rule_fingerprints(self._rules)
        accepted = frozenset(prints) if before is None else match_fingerprints(before, self._rules) | self._named
        missing = [
            rule
            for rule in list_guarded_rules(self._rules)
            if rule.title not in accepted | self._read_accepted_titles()
        ]
        filled = _find_altering_rules(missing, self._store)
        self._own = accepted | {rule.title for rule in missing if rule.title not in filled}
        way = f"run `sync-rules backfill{self._options} --rule {{}}`"
        self.unaccepted = Acceptance(self._rules, lambda: self._own | self._read_accepted_titles(), way)
        return {title: prints[title] for title in sorted(self._own) if title in prints}

    def _read_accepted_titles(self) -> frozenset[str]:
        """Return the rule titles that the state accepts; none if the state does not answer: `run` may lack access."""
        try:
            return read_accepted_titles(self._rules, self._open_state())
        except StoreError:
            return frozenset()


def _find_altering_rules(rules: Iterable[TargetRule | PartRule], store: Store) -> set[str]:
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
            units += count_read_units(sum(map(count_item_bytes, page.items)), consistent=True)
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
            rule.target.table,
            *(node.writes[0].table for node in rule.nodes()),
        }:
            found.setdefault(table, []).append(rule)
    return found


def _may_alter(rule: TargetRule | PartRule, key: ItemKey, item: Item) -> bool:
    """True if a rule could replace, remove or delete something of an item."""
    if isinstance(rule, TargetRule) and rule.target.has(key) and rule.deletes(item):
        return True
    return any(
        entity.has(key) and get(item, path) is not None for entity, path in (node.writes for node in rule.nodes())
    )


# ---------------------------------------------------------------- calls
@dataclass(frozen=True)
class RunBeginnings:
    """The beginnings for a process that resumes from a checkpoint. The table of calls stores them, or else the
    checkpoint.
    """

    rules: Rules
    client: Any
    calls_table: str | None

    def of(self, began: Beginnings | None, *, resumes: bool, started_ms: int) -> dict[str, int]:
        """The beginnings of all rules that call. `began` are those of the checkpoint, None where it has none; `resumes`
        says that there was a checkpoint. Raises like `note_in_table`.
        """
        if not self.rules.functions:
            return {}
        upgraded = resumes and began is None
        if self.calls_table:
            return note_in_table(self.client, self.rules, self.calls_table, lambda: started_ms, upgraded=upgraded)
        return complete_beginnings(self.rules, began or {}, lambda: NOT_KNOWN_MS if upgraded else started_ms)

    def notices(self, began: Beginnings) -> list[str]:
        """List a sentence for each rule that calls a function, with the changes that it calls for."""
        functions = self.rules.functions
        return [
            f"{name} calls {functions[name]} for {words}"
            for name, words in describe_beginnings(self.rules, began).items()
        ]
