"""Traps for the search: what it proposes as a rule changes no value that the data do not show to be wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.discover.propose.proposal import Proposal
from sync_rules.extras.discover.propose.proposal_writer import write_proposal
from sync_rules.extras.discover.propose.search import propose
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Alteration
from tests.extras.discover.datasets.measure import backfill
from tests.extras.discover.propose.traps import RIGHT, TRAPS, Trap
from tests.support.builders import attribute_value
from tests.support.depth import spread_over_night
from tests.support.gathering import gathered

ALL = TRAPS | RIGHT


def find_rules(trap: Trap, folder: Path) -> tuple[Proposal, str]:
    found = propose(gathered(folder / "in", *trap.tables), folder / "work")
    return found, write_proposal(found)


def backfill_rules(trap: Trap, text: str) -> tuple[list[str], Counter[str]]:
    """The values that a backfill changes though the data do not show them to be wrong; by rule, those it overwrites."""
    rules = parse_rules(text, environ={})
    store = MemoryStore(rules.tables)
    items = []
    for table in trap.tables:
        ((own,),) = [rules.by_physical_name[table.name]]
        for one in table.items:
            item = {name: attribute_value(value) for name, value in one.items() if value != set()}
            key = own.key_of(item)
            assert key is not None
            store.put(key.table, item)
            items.append((one, item, key))
    run, failed = backfill(rules, store)
    changed = [*failed]
    for one, before, key in items:
        after = store.item(key) or {}
        names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        changed += [f"{key.table} {name}" for name in names - trap.wrong.get(id(one), set())]
    overwritten = Counter[str]()
    for (rule, each), count in run.totals.alterations.items():
        overwritten[rule.partition(".")[0]] += count * (each is not Alteration.SET)
    return changed, +overwritten


@pytest.mark.parametrize("name", spread_over_night(ALL, share=12))
def test_traps_change_no_value_that_may_be_right(tmp_path, name):
    """A backfill of the active rules repairs what the data show to be wrong, and leaves all else; right rules are active."""
    trap = ALL[name](name)
    found, text = find_rules(trap, tmp_path)
    changed, overwritten = backfill_rules(trap, text)
    assert not changed, text
    active = {(one.kind, str(one.rule.get("into", one.rule.get(one.kind)))) for one in found.rules if not one.held_back}
    assert trap.active <= active, text
    assert {one.name: one.overwrites for one in found.rules if not one.held_back and one.overwrites} == overwritten
