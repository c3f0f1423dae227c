"""Break-even of copies: what the patterns that return a copy would read of its source instead, beside what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from sync_rules.extras.design.costs.bill import Tariff
from sync_rules.extras.design.costs.loads import Load, Place, total
from sync_rules.extras.design.costs.volumes import Sizes
from sync_rules.extras.design.patterns.answers import Answer
from sync_rules.extras.design.patterns.declarations import GetPattern
from sync_rules.model.units import read_units
from sync_rules.model.values import Path, show_path
from sync_rules.rules.description import Occasion
from sync_rules.rules.rule import Rule


@dataclass(frozen=True)
class Saving:
    """The balance of one rule that copies. `reads` and `writes` are units per second; the money is of a month, on
    demand, functions included. `needed_by`: patterns that find items by the copy, which nothing else would serve.
    `even`: by how many times the writes that the rule follows may grow until it saves nothing. `known`: False where
    something is not stated that the rule takes; `functions`: False where the cost is without Lambda and SQS.
    """

    rule: str
    reads: float
    writes: float
    saved: Decimal
    cost: Decimal
    read_by: tuple[str, ...]
    needed_by: tuple[str, ...]
    known: bool
    functions: bool = True

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
    rules = [rule for rule in sizes.rules.rules.values() if _copies(rule)]
    readers = {rule.name: list(_readers(sizes, rule, answers)) for rule in rules}
    shares = Counter((name, *_one_read(rule)) for rule in rules for name, units in readers[rule.name] if units)
    found = []
    for rule in rules:
        reads, read_by, needed_by = 0.0, [], []
        for name, units in readers[rule.name]:
            if units is None:
                needed_by.append(name)
                continue
            rules_of_read = shares[(name, *_one_read(rule))]
            if rules_of_read > 1:
                sizes.note(
                    f"pattern {name} returns several copies of one {rule.source.name}: each has its share of a read"
                )
            reads += units / max(rules_of_read, 1)
            read_by.append(name)
        if rule.title not in sizes.followed:
            _ask_updates(sizes, rule)
        load = total(loads[rule.title] for loads in caused.values() if rule.title in loads)
        functions = tariff.functions(load)
        instead = Load()
        instead.read(Place(rule.source.table.name), reads)
        found.append(
            Saving(
                rule.title,
                reads,
                load.write_units,
                tariff.on_demand(instead),
                tariff.on_demand(load) + (functions or Decimal(0)),
                tuple(read_by),
                tuple(needed_by),
                rule.title not in sizes.unsure,
                functions is not None,
            )
        )
    return tuple(found)


def _copies(rule: Rule) -> bool:
    """True for a rule that copies from one source, which its targets name."""
    effort = rule.effort(Occasion.SOURCE)
    return effort is not None and effort.of_all and bool(rule.source_fields) and bool(rule.copies)


def _one_read(rule: Rule) -> tuple[object, ...]:
    """The sources that a rule's targets would read: rules of equal ones would share the read."""
    return rule.source.name, rule.target.name, rule.source_fields


def _ask_updates(sizes: Sizes, rule: Rule) -> None:
    """Note that no pattern says how often sources of a rule are updated in what it reads. Of what other rules write
    there, it is the first source of all that is asked for.
    """
    first = _origin(sizes, rule, {rule.name})
    with sizes.subject(rule.title):
        sizes.lack(
            f"updates that rule {rule.title} follows: a pattern such as "
            f"rename: {{update: {first.source.name}, sets: [{_first(first)}], rate: 1/h}}"
        )


def _origin(sizes: Sizes, rule: Rule, seen: set[str]) -> Rule:
    """The rule at the beginning of a chain of copies."""
    for other in sizes.rules.rules.values():
        if other.name not in seen and other.feeds(rule) and other.target is rule.source and _copies(other):
            return _origin(sizes, other, {*seen, other.name})
    return rule


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
            given = {*pattern.by, *(field for field, _ in pattern.fixed)}
            one = set(rule.source_fields) <= given and pattern.keys is None  # several keys may name as many sources
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
