"""The units of a first backfill of all rules, which follows the steps that `backfill` takes.

Invariant: rules that write the same targets in a step share the writes, since a backfill makes one update of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from sync_rules.extras.design.costs.bill import Tariff
from sync_rules.extras.design.costs.loads import Load, Place, total
from sync_rules.extras.design.costs.volumes import Sizes
from sync_rules.extras.design.costs.workload import note_taken, of_one
from sync_rules.model.units import READ_UNIT_BYTES, read_units
from sync_rules.rules.description import Effort, Occasion
from sync_rules.rules.families import ListingRule, TargetRule
from sync_rules.rules.order import Step, cascade, swept_tables
from sync_rules.rules.rule import Rule

BACKFILL: Final = "a first backfill"
PAGE_ITEMS: Final = 500  # of a scan
AGAIN_ROUNDS: Final = 2  # where a round may leave something to the next: the last one finds everything right


@dataclass(frozen=True, slots=True)
class Units:
    """Read and write units in all, and their price on demand."""

    reads: float
    writes: float
    money: Decimal


@dataclass(frozen=True)
class Backfill:
    """A first backfill: the units of each rule, those of the scans, and the price on demand."""

    rules: Mapping[str, Units]
    scanned: float
    money: Decimal
    known: bool


@dataclass(frozen=True)
class Swept:
    """The units of one rule, alone. `looks`: those of them that read sources, which rules of one source share."""

    rule: Rule
    load: Load
    looks: float


def backfill(sizes: Sizes, tariff: Tariff) -> Backfill:
    """A first backfill of all rules: each step reads its tables, and everything is written."""
    loads: dict[str, Load] = defaultdict(Load)
    scan = Load()
    with sizes.subject(BACKFILL):
        for step in cascade(sizes.rules, sizes.rules.kept):
            _scan(sizes, step, scan)
            swept = [_swept(sizes, sizes.rules.rules[name]) for name in sorted(step.names)]
            for rule, load in _shared([one for one in swept if one is not None]):
                loads[rule.title].add(load)
    units = {title: Units(load.read_units, load.write_units, tariff.once(load)) for title, load in loads.items()}
    money = tariff.once(total([scan, *loads.values()]))
    return Backfill(units, scan.read_units, money, BACKFILL not in sizes.unsure)


def _scan(sizes: Sizes, step: Step, scan: Load) -> None:
    """Add the scans of a step."""
    rounds = 1 if step.max_rounds == 1 else AGAIN_ROUNDS
    for table in swept_tables(sizes.rules, step.names):
        for entity in sizes.rules.entities.values():
            if entity.table is table and not sizes.is_made(entity):
                whole = (sizes.size_of(entity) or 0) * (sizes.items_of(entity) or 0)
                scan.read(Place(table.name), rounds * whole / READ_UNIT_BYTES)


def _swept(sizes: Sizes, rule: Rule) -> Swept | None:
    """The units of a rule alone. None where a backfill does nothing for it, or something is not known."""
    effort = rule.effort(Occasion.BACKFILL)
    if effort is None:
        return None
    targets, sources = _counts(sizes, rule, effort)
    size = sizes.size_of(rule.source)
    if targets is None or sources is None or size is None:
        return None
    checks = targets if isinstance(rule, TargetRule) else sources
    load = of_one(sizes, rule, replace(effort, source_reads=0), targets, checks)
    note_taken(sizes, rule, effort)
    looks = sources * effort.source_reads * read_units(size, consistent=True)
    return None if load is None else Swept(rule, load, looks)


def _counts(sizes: Sizes, rule: Rule, effort: Effort) -> tuple[float | None, float | None]:
    """The targets that are written, and the sources that are read for them."""
    if isinstance(rule, TargetRule):
        targets = sizes.items_of(rule.target)
        return targets, _sources(sizes, rule, targets) if effort.source_reads else 0
    sources = sizes.items_of(rule.source)
    if effort.each:
        return sizes.items_of(rule.target), sources
    if isinstance(rule, ListingRule):  # what points to one target goes in at once
        targets = sizes.items_of(rule.target)
        return None if targets is None or sources is None else min(targets, sources), sources
    return sources, sources


def _sources(sizes: Sizes, rule: Rule, targets: int | None) -> int | None:
    """The reads of sources by their targets: each once for every page of targets. Targets in the partition of their
    source come together.
    """
    if targets is None or rule.source is rule.target or sizes.is_made(rule.source):
        return targets
    partition = rule.target.table.partition.name
    made = [one.templates[partition].text if partition in one.templates else "" for one in (rule.source, rule.target)]
    together = rule.target.table is rule.source.table and made[0] == made[1]
    pages = 1 if together else math.ceil(targets / PAGE_ITEMS)
    sources = sizes.items_of(rule.source)
    return None if sources is None else min(pages * sources, targets)


def _shared(swept: list[Swept]) -> Iterable[tuple[Rule, Load]]:
    """The loads of the rules of a step, each with its share of what is done once for several."""
    writing: dict[object, list[Load]] = defaultdict(list)
    looking: dict[object, list[float]] = defaultdict(list)
    for one in swept:
        writing[_writes(one.rule)].append(one.load)
        looking[one.rule.source, isinstance(one.rule, TargetRule)].append(one.looks)
    for one in swept:
        load = _share(one.load, writing[_writes(one.rule)])
        looks = looking[one.rule.source, isinstance(one.rule, TargetRule)]
        if one.looks:
            load.read(Place(one.rule.source.table.name), one.looks * max(looks) / math.fsum(looks))
        yield one.rule, load


def _writes(rule: Rule) -> object:
    return rule.target if isinstance(rule, TargetRule) else rule


def _share(load: Load, loads: list[Load]) -> Load:
    """A share of the writes that are made for all of these loads at once."""
    found = Load()
    found.reads.update(load.reads)
    for place, units in load.writes.items():
        all_units = [one.writes.get(place, 0.0) for one in loads]
        found.write(place, units * max(all_units) / math.fsum(all_units))
    return found
