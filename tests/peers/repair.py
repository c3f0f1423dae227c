"""What a scenario's `repair` step does: the real verify and repair, and what it put right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sync_rules.attributes import AttributeValue, Path, get, same
from sync_rules.compare import Drift
from sync_rules.model import ItemKey
from sync_rules.rules import Rule, Rules
from sync_rules.store import World
from sync_rules.verify import Finding, Verifier
from tests.peers.bench import Bench, Failures, Meter, Nowhere, State
from tests.peers.scenarios import key_text
from tests.peers.states import MismatchError, show, state_of

REPAIR_MAX_ROUNDS: Final = 20


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
    """Verify and repair these rules, as `sync-rules verify --repair` does, until it finds no more than orphans.

    A rule may feed another, so once is not enough. Gives each attribute that is another now; helpers are not told.
    """
    before = state_of(bench)
    failures = Failures()
    only = replace(bench.rules, rules={rule.name: rule for rule in rules})  # else a repair mends all rules of an item
    for _ in range(REPAIR_MAX_ROUNDS):
        world = World(meter, Nowhere(), failures)
        verifier = Verifier(only, world, frozenset(only.rules), repair=True, grace_seconds=0)
        findings = list(verifier.sweep() if keys is None else _verify_keys(verifier, only, before, keys))
        if failures:
            raise MismatchError(f"a repair left failure records: {failures}")
        if all(finding.difference.drift is Drift.ORPHAN for finding in findings):
            break
    else:
        raise MismatchError(f"a repair still finds something after {REPAIR_MAX_ROUNDS} rounds")
    after = state_of(bench)
    copies = {(rule.target.table.name, copy): None for rule in rules for copy in rule.copies}
    return [
        Fixed(key, path, get(item, path), get(after.get(key), path))
        for key, item in before.items()
        for table, path in copies
        if table == key.table and (table, path) not in meter.helpers
        if not same(get(item, path), get(after.get(key), path))
    ]


def _verify_keys(verifier: Verifier, rules: Rules, state: State, keys: Collection[str]) -> Iterator[Finding]:
    for key in state:
        entity = rules.entity_of(key)
        if key_text(key) in keys and entity is not None and rules.into_target(entity):
            yield from verifier.one(key)
