"""Break-even of copies: what the patterns that return a copy would read of its source instead, beside what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from sync_rules.costs.bill import Tariff
from sync_rules.costs.loads import Load, Place, total
from sync_rules.costs.sizes import Sizes
from sync_rules.model.units import read_units
from sync_rules.model.values import Path, show_path
from sync_rules.patterns.answers import Answer
from sync_rules.rules.effort import Occasion
from sync_rules.rules.patterns import GetPattern, WritePattern
from sync_rules.rules.rule import Rule


@dataclass(frozen=True)
class Saving:
    """The balance of one rule that copies. `reads` and `writes` are units per second; the money is of a month, on
    demand, functions included. `needed_by`: patterns that find items by the copy, which nothing else would serve.
    `even`: by how many times the writes that the rule follows may grow until it saves nothing. `known`: False where
    something is not stated that the rule takes.
    """

    rule: str
    reads: float
    writes: float
    saved: Decimal
    cost: Decimal
    read_by: tuple[str, ...]
    needed_by: tuple[str, ...]
    known: bool

    @property
    def less(self) -> Decimal:
        """The money that a month costs less with the rule."""
        return self.saved - self.cost

    @property
    def even(self) -> Decimal | None:
        """The factor; None where one side is nothing."""
        return self.saved / self.cost if self.cost and self.saved else None


def savings(
    sizes: Sizes,
    answers: Mapping[str, Answer],
    caused: Mapping[str, Mapping[str, Load]],
    tariff: Tariff,
) -> tuple[Saving, ...]:
    """The balance of each rule that copies from one source. `caused`: the loads of rules, by the pattern that writes,
    and by title.
    """
    found = []
    for rule in sizes.rules.rules.values():
        effort = rule.effort(Occasion.SOURCE)
        if effort is None or not effort.of_all or not rule.named_by or not rule.copies:
            continue
        reads, read_by, needed_by = 0.0, [], []
        for name, units in _readers(sizes, rule, answers):
            if units is None:
                needed_by.append(name)
            else:
                reads += units
                read_by.append(name)
        load = total(loads[rule.title] for loads in caused.values() if rule.title in loads)
        if not _followed(sizes, rule):
            with sizes.subject(rule.title):
                sizes.lack(
                    f"updates that rule {rule.title} follows: a pattern such as "
                    f"rename: {{update: {rule.source.name}, sets: [{_first(rule)}], rate: 1/h}}"
                )
        instead = Load()
        instead.read(Place(rule.source.table.name), reads)
        cost = tariff.on_demand(load) + (tariff.functions(load) or Decimal(0))
        saved = tariff.on_demand(instead)
        found.append(
            Saving(
                rule.title,
                reads,
                load.write_units,
                saved,
                cost,
                tuple(read_by),
                tuple(needed_by),
                rule.title not in sizes.unsure,
            )
        )
    return tuple(found)


def _followed(sizes: Sizes, rule: Rule) -> bool:
    """True if a pattern says how often sources of a rule are updated, in something that it reads."""
    patterns = sizes.rules.patterns.values()
    return any(
        isinstance(one, WritePattern) and one.operation == "update" and one.entity == rule.source.name
        for one in patterns
    )


def _first(rule: Rule) -> str:
    return next((show_path(path) for node in rule.nodes() for _, path in node.reads), "")


def _readers(sizes: Sizes, rule: Rule, answers: Mapping[str, Answer]) -> Iterator[tuple[str, float | None]]:
    """The patterns that return a copy of a rule, with the read units a second of the source that each would need
    instead; None for a pattern that finds its items by the copy.
    """
    for name, answer in answers.items():
        pattern = answer.pattern
        if not isinstance(pattern, GetPattern) or pattern.entity != rule.target.name or not answer.served:
            continue
        if _finds_by(rule, pattern):
            yield name, None
        elif _returns(rule, pattern) and pattern.rate is not None:
            items = _items(answer)
            size = sizes.size_of(rule.source)
            if items is None or size is None:
                continue
            one = set(rule.named_by) <= {*pattern.by, *(field for field, _ in pattern.fixed)}
            each = read_units(size, consistent=pattern.consistent)
            yield name, pattern.rate * (1 if one else items) * each


def _items(answer: Answer) -> int | None:
    """The items that one call returns: those of its last request on them."""
    counts = [step.items for step in answer.steps if step.items is not None]
    pattern = answer.pattern
    if isinstance(pattern, GetPattern) and pattern.items is not None:
        return min(pattern.items, pattern.page or pattern.items)
    return min(counts, default=None)


def _copied(rule: Rule) -> tuple[Path, ...]:
    return tuple(node.writes[1] for node in rule.nodes())


def _finds_by(rule: Rule, pattern: GetPattern) -> bool:
    """True if a pattern finds, sorts or filters by a copy."""
    used = [
        *pattern.by,
        *([pattern.within.attribute] if pattern.within else []),
        *([pattern.order] if pattern.order else []),
    ]
    paths = [rule.target.ref(name).path for name in used] + list(pattern.where.paths if pattern.where else ())
    return any(path[:1] == copy[:1] for path in paths for copy in _copied(rule))


def _returns(rule: Rule, pattern: GetPattern) -> bool:
    """True if a pattern returns a copy, by its own name or as the source's."""
    if pattern.returns is None:
        return True
    named = {show_path(copy) for copy in _copied(rule)} | {show_path(copy[:1]) for copy in _copied(rule)}
    named |= {f"{rule.source.name}.{show_path(path)}" for node in rule.nodes() for _, path in node.reads}
    return bool(named & set(pattern.returns))
