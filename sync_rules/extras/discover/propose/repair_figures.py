"""The figures of a repair: what a backfill of proposed rules would write, planned on the gathered items in memory.

Invariant: the figures are those of `plan`, by the same planner. Tables that are too large for that have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.discover.propose.table_files import Gathered, GatheredTable, read_items
from sync_rules.jobs.dryrun.figures import Plan, RuleFigures
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.records import read_image
from sync_rules.rules.families import PartRule
from sync_rules.rules.ruleset import Rules

PLANNED_MAX_ITEMS: Final = 100_000  # half a minute
BOOKED_MAX_ITEMS: Final = 20_000  # as long, where each is booked
PLANNED_MAX_BYTES: Final = 64 << 20  # compressed, in the files


@dataclass(frozen=True)
class Repair:
    """A plan of all rules, and the figures of each rule of the file: those of the rules that it compiles into."""

    plan: Plan
    rules: Mapping[str, RuleFigures]


def repair_of(rules: Rules, gathered: Gathered) -> Repair | None:
    """The repair of the gathered items by these rules; None for more than can be planned here, or without a rule."""
    items, size = (sum(getattr(table, name) for table in gathered.tables) for name in ("items", "bytes"))
    books = any(isinstance(rule, PartRule) and rule.books is not None for rule in rules.rules.values())
    most = BOOKED_MAX_ITEMS if books else PLANNED_MAX_ITEMS
    if not rules.kept or items > most or size > PLANNED_MAX_BYTES:
        return None
    store = MemoryStore(rules.tables)
    try:
        for table in gathered.tables:
            _fill(store, table, rules)
        plan = Planner(rules, rules.kept, store).run()
    except StoreError:  # something here is none that a table could hold: `plan` says it of a table
        return None
    by_title: dict[str, RuleFigures] = {}
    for name, figures in plan.rules.items():
        title = rules.rules[name].title
        by_title[title] = _sum(by_title[title], figures) if title in by_title else figures
    return Repair(plan, by_title)


def _fill(store: MemoryStore, table: GatheredTable, rules: Rules) -> None:
    names = [name for name, one in rules.tables.items() if one.physical_name == table.found.physical]
    for name in names:
        for item in read_items(table.files):
            store.put(name, read_image(item))


def _sum(one: RuleFigures, other: RuleFigures) -> RuleFigures:
    counts: dict[str, Any] = {
        name: {**value, **getattr(other, name)} if isinstance(value, Mapping) else value + getattr(other, name)
        for name, value in vars(one).items()
    }
    return RuleFigures(**counts)
