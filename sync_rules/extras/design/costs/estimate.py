"""An estimate of a rules file for a month: each pattern, each rule, storage, and alarms.

Invariant: an unknown number is a gap and is left out of every sum. Rates are assumed to be steady.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sync_rules.extras.design.costs.bill import TABLE_MAX_UNITS, Money, Provision, Tariff
from sync_rules.extras.design.costs.efforts import Occasion, find_effort, follows
from sync_rules.extras.design.costs.loads import Load, Place, share_invocations, sum_loads
from sync_rules.extras.design.costs.volumes import MeasuredEntity, Sizes, replace_volumes
from sync_rules.extras.design.costs.workload import apply_write, follow_rules
from sync_rules.extras.design.patterns.answers import PatternAnswer
from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, WritePattern, find_design
from sync_rules.extras.design.patterns.graphs import AROUND
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.jobs.dryrun.money import compute_gigabytes
from sync_rules.jobs.dryrun.prices import Region
from sync_rules.model.values import show_path
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Limits.html
# https://aws.amazon.com/dynamodb/pricing/on-demand/
ITEM_MORE_BYTES = 100  # AWS bills this beside each item's names and values, in tables and indexes


@dataclass(frozen=True)
class CostLine:
    """A pattern or a rule: its load, and the price of that load for a month. `rate`: calls per second, None for a rule.
    `known` is False if a needed number is not stated.
    """

    name: str
    does: str
    load: Load
    money: Money
    rate: float | None = None
    known: bool = True


@dataclass(frozen=True)
class TableStorage:
    """The storage of a table and its indexes, in GB, and its price for a month, without and for point-in-time
    recovery.
    """

    table: str
    table_gb: Decimal
    indexes_gb: Decimal
    storage: Decimal | None
    recovery: Decimal | None
    known: bool


@dataclass(frozen=True)
class Estimate:
    """A whole estimate. `alarms` is the price of the template's alarms."""

    patterns: tuple[CostLine, ...]
    rules: tuple[CostLine, ...]
    whole: CostLine
    provisions: tuple[Provision, ...]
    stored: tuple[TableStorage, ...]
    alarms: Decimal | None
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EstimateOptions:
    """Choices for an estimate: the prices, and the template's number of alarms."""

    region: Region
    alarms: int = 0


def estimate(rules: Rules, asked: EstimateOptions, measured: Mapping[str, MeasuredEntity] | None = None) -> Estimate:
    """Estimate a rules file. Raises UserError for a number that no table can have."""
    measured = measured or {}
    sized = replace_volumes(rules, measured)
    answers = prove(sized).answers
    sizes = Sizes(sized, measured, frozenset(_list_index_reads(sized, answers.values())))
    caused: dict[str, Mapping[str, Load]] = {}
    of_patterns = {name: _compute_pattern_load(sizes, answer, caused) for name, answer in answers.items()}
    kinds = {rule.title: rule.kind for rule in rules.rules.values()}
    by_rule = {title: sum_loads(loads[title] for loads in caused.values() if title in loads) for title in kinds}
    for title in kinds:
        if not any(title in loads for loads in caused.values()):
            _ask_writes(sizes, title)
    whole = sum_loads([*of_patterns.values(), *by_rule.values()])
    region = asked.region
    tariff = Tariff(region, share_invocations(whole.records), rules.tables)
    if not find_design(rules).patterns:
        sizes.note_gap(
            "access patterns: the section `patterns:` of the rules file states reads and writes with their rates"
        )
    _note_limits(sizes, tariff, whole)
    sizes.note_vectors()
    for rule in rules.rules.values():
        if _is_copy_rule(rule) and rule.title not in sizes.followed:
            _ask_updates(sizes, rule)
    stored = tuple(_estimate_storage(sizes, tariff))
    units_known = not sizes.gaps
    _ask_prices(sizes, region, whole)

    def line(name: str, does: str, load: Load, rate: float | None = None) -> CostLine:
        return CostLine(name, does, load, tariff.share(load), rate, name not in sizes.unsure)

    return Estimate(
        tuple(
            line(name, _describe_requests(answers[name]), load, answers[name].pattern.rate)
            for name, load in of_patterns.items()
        ),
        tuple(line(title, kinds[title], load) for title, load in by_rule.items()),
        CostLine("all", "", whole, tariff.whole(whole), None, units_known),
        tariff.provisions(whole),
        stored,
        None if region.watch is None else asked.alarms * region.watch.alarm_month,
        tuple(sizes.gaps),
        tuple(sizes.notes),
    )


def _list_index_reads(rules: Rules, answers: Iterable[PatternAnswer]) -> Iterator[tuple[str, str]]:
    """Yield the names of each entity and its index, if a rule or a pattern reads the entity through the index."""
    for rule in rules.rules.values():
        if rule.find is not None and rule.find.index is not None:
            yield rule.listed_entity.name, rule.find.index
    for answer in answers:
        beside = answer.pattern.beside if isinstance(answer.pattern, GetPattern) else ()
        for step in answer.steps:
            if step.index is not None:
                yield from ((name, step.index.name) for name in (step.entity.name, *beside))


def _compute_pattern_load(sizes: Sizes, answer: PatternAnswer, caused: dict[str, Mapping[str, Load]]) -> Load:
    """The load of a pattern; what its writes cause is noted beside, by rule."""
    pattern = answer.pattern
    with sizes.subject(pattern.name):
        if not isinstance(pattern, WritePattern):
            return _compute_read_load(sizes, answer)
        rate = _read_rate(sizes, answer)
        load, event = apply_write(sizes, pattern, rate or 1.0)
    loads = follow_rules(sizes, event)
    if pattern.rate is None:  # whatever follows it is not known either
        sizes.unsure.update(loads)
        return Load()
    caused[pattern.name] = loads if rate else {title: Load() for title in loads}
    return load if rate else Load()


def _ask_writes(sizes: Sizes, title: str) -> None:
    """Note that no pattern says how often a rule has something to do, where none does."""
    rules = [rule for rule in sizes.rules.rules.values() if rule.title == title]
    own = [rule for rule in rules if not sizes.is_made(rule.source)]
    of_sources = {rule: find_effort(rule, Occasion.SOURCE) for rule in own}
    efforts = [(rule.source, effort) for rule, effort in of_sources.items()]
    efforts += [(rule.target, find_effort(rule, Occasion.TARGET)) for rule in own if of_sources[rule] is None]
    sources = [entity for entity, effort in efforts if effort is not None and not effort.of_all]
    if not sources or title in sizes.unsure:
        return
    write = "put" if any(follows(rule, "created") for rule in rules) else "delete"
    if write == "delete" and any(follows(rule, "changed") for rule in rules):
        write = "update"
    with sizes.subject(title):
        sizes.note_gap(
            f"writes that rule {title} follows: a pattern such as new: {{{write}: {sources[0].name}, rate: 1/s}}"
        )


def _is_copy_rule(rule: Rule) -> bool:
    """True for a rule that copies from one source, which its targets name."""
    effort = find_effort(rule, Occasion.SOURCE)
    return effort is not None and effort.of_all and isinstance(rule, LinkedRule) and bool(rule.link and rule.copies)


def _ask_updates(sizes: Sizes, rule: Rule) -> None:
    """Note that no pattern says how often the source of a copy is updated in what the rule reads. In a chain of copies
    this is the first source.
    """
    first = _find_origin(sizes, rule, {rule.name})
    read = next((show_path(path) for node in first.nodes() for _, path in node.reads), "")
    with sizes.subject(rule.title):
        sizes.note_gap(
            f"updates that rule {rule.title} follows: a pattern such as "
            f"rename: {{update: {first.source.name}, sets: [{read}], rate: 1/h}}"
        )


def _find_origin(sizes: Sizes, rule: Rule, seen: set[str]) -> Rule:
    for other in sizes.rules.rules.values():
        if other.name not in seen and other.feeds(rule) and other.target is rule.source and _is_copy_rule(other):
            return _find_origin(sizes, other, {*seen, other.name})
    return rule


def _ask_prices(sizes: Sizes, region: Region, whole: Load) -> None:
    """Note the groups of prices that are needed and not there."""
    needed: dict[str, object] = {"storage": region.storage, "cloudwatch": region.watch}
    if whole.records or whole.busy or whole.requests:
        needed |= {"lambda": region.functions, "sqs": region.queues}
    missing = [f"`{name}`" for name, prices in needed.items() if prices is None]
    if missing:
        sizes.note_gap(f"prices of this Region: {', '.join(missing)} in a price file, for --prices")


def _note_limits(sizes: Sizes, tariff: Tariff, whole: Load) -> None:
    """Note capacity that AWS gives on request only."""
    for one in tariff.provisions(whole):
        for word, kept in (("read", one.read_units), ("write", one.write_units)):
            if kept > TABLE_MAX_UNITS:
                sizes.note(
                    f"{one.place.place_name} needs a capacity of {kept:,} {word} units a second; "
                    f"AWS's default quota is {TABLE_MAX_UNITS:,}"
                )


def _describe_requests(answer: PatternAnswer) -> str:
    if not answer.is_served:
        return "not served"
    return " + ".join(f"{step.request} {step.place}" for step in answer.steps)


# ---------------------------------------------------------------- patterns
def _compute_read_load(sizes: Sizes, answer: PatternAnswer) -> Load:
    pattern, load = answer.pattern, Load()
    if not answer.is_served:
        sizes.note_gap(f"pattern {pattern.name} is not served: `sync-rules patterns` says why, and the cure")
        return load
    rate = _read_rate(sizes, answer)
    if isinstance(pattern, GraphPattern) and pattern.neighbours:
        sizes.note(f"pattern {pattern.name}: a node is taken to have {AROUND} neighbours")
    for step in (step for step in answer.steps if step.request != "SearchVectors"):  # `note_vectors` says so
        rows = sizes.measured[step.entity.name].rows if step.entity.name in sizes.measured else {}
        if step.index is not None and step.index.name in rows:
            step = replace(step, size_bytes=rows[step.index.name].size_bytes)  # noqa: PLW2901 - the same, measured
        elif step.index is not None:
            sizes.find_row_bytes(step.entity, step.index)
        units = step.units
        if units is None:
            if sizes.find_size(step.entity) is not None:
                sizes.note_gap(
                    f"pattern {pattern.name} does not say how many items one call finds: `items: 40`, or `page: 25`"
                )
            continue
        load.read(Place(step.entity.table.name, step.index.name if step.index else ""), rate * units)
    return load


def _read_rate(sizes: Sizes, answer: PatternAnswer) -> float:
    rate = answer.pattern.rate
    if rate is None:
        sizes.note_gap(f"pattern {answer.pattern.name} does not say how often: `rate: 20/s`")
    return rate or 0.0


# ---------------------------------------------------------------- storage
def _estimate_storage(sizes: Sizes, tariff: Tariff) -> list[TableStorage]:
    found = []
    for table in sizes.rules.tables.values():
        entities = [one for one in sizes.rules.entities.values() if one.table is table and not sizes.is_made(one)]
        if not entities:
            continue
        own = rows = local = 0
        known = True
        for entity in entities:
            size, items = sizes.find_size(entity), sizes.find_item_count(entity)
            if size is None or items is None:
                known = False
                continue
            own += (size + ITEM_MORE_BYTES) * items
            for index in table.indexes:
                if sizes.is_in(entity, index):
                    row = (sizes.find_row_bytes(entity, index) or size) + ITEM_MORE_BYTES
                    more = row * (sizes.find_row_count(entity, index) or 0)
                    rows, local = rows + more, local + more * index.local
        prices = tariff.region.storage
        storage = None if prices is None else prices.gb_month * compute_gigabytes(own + rows)
        recovery = None if prices is None else prices.recovery_gb_month * compute_gigabytes(own + local)
        found.append(
            TableStorage(table.name, compute_gigabytes(own), compute_gigabytes(rows), storage, recovery, known)
        )
    return found
