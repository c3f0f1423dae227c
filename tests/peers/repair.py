"""The `repair` step of a scenario: the real verify and repair, and the attributes that were repaired."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sync_rules.audit.compare import Difference, Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.model.items import ItemKey
from sync_rules.model.values import AttributeValue, Path, get, is_same_value
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from tests.peers.bench import Bench, Failures, Meter, State
from tests.peers.builder import helps
from tests.peers.scenarios import key_text
from tests.peers.states import MismatchError, show, state_of


@dataclass(frozen=True)
class Fixed:
    """One attribute that a repair put right."""

    key: ItemKey
    path: Path
    wrong: AttributeValue | None
    right: AttributeValue | None

    def __str__(self) -> str:
        return f"{self.key.table} {key_text(self.key)} {'.'.join(self.path)}: {show(self.wrong)} -> {show(self.right)}"


def repair(bench: Bench, meter: Meter, rules: Sequence[Rule], keys: Collection[str] | None = None) -> list[Fixed]:
    """Verify and repair these rules once, down the cascade, as `sync-rules verify --repair` does.

    Returns each attribute that changed, helpers excepted. Raises MismatchError if a repairable difference is left or a
    failure was recorded.
    """
    before = state_of(bench)
    failures = Failures()
    names = frozenset(rule.name for rule in rules)
    verifier = Verifier(bench.rules, World(meter, NULL_PORTS, failures), names, repair=True, grace_seconds=0)
    findings = list(verifier.sweep() if keys is None else _verify_keys(verifier, bench.rules, before, keys))
    left = [one.difference for one in findings if not one.repaired and not _waits_for_its_source(one.difference)]
    if failures or left:
        raise MismatchError(f"a repair left failure records: {failures}, and drift: {left}")
    after = state_of(bench)
    copies = {(rule.target.table.name, copy): None for rule in rules for copy in rule.copies}
    return [
        Fixed(key, path, get(item, path), get(after.get(key), path))
        for key, item in before.items()
        for table, path in copies
        if table == key.table and not helps(meter.helpers, table, path)
        if not is_same_value(get(item, path), get(after.get(key), path))
    ]


def _waits_for_its_source(found: Difference) -> bool:
    """True for an orphan that the rule leaves to people."""
    return found.drift is Drift.ORPHAN and not found.repairable


def _verify_keys(verifier: Verifier, rules: Rules, state: State, keys: Collection[str]) -> Iterator[DriftFinding]:
    for key in state:
        entity = rules.entity_of(key)
        if key_text(key) in keys and entity is not None and rules.into_target(entity):
            yield from verifier.one(key)
