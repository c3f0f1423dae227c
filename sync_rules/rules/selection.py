"""A selection for a job: its rules, each after the rules that feed it, the tables to scan, and the share of each.

Invariant: no copy is checked or repaired before everything that the copy is made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.rules.rule import Rule, list_causes
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Share:
    """The part of each table that a job reads: `numbers` of the `segments` of a parallel scan."""

    segments: int = 1
    numbers: tuple[int, ...] = (0,)

    @property
    def is_sample(self) -> bool:
        """True if the job reads only some segments of each table."""
        return len(self.numbers) < self.segments

    @property
    def percent(self) -> float:
        """The percentage of the whole table, if segments are equally large."""
        return 100 * len(self.numbers) / self.segments


WHOLE: Final = Share()


def select_rules(rules: Rules, names: list[str]) -> frozenset[str]:
    """Select the rules that keep something in a table: all, or those with these names, given as the rule's own name or
    that of a part. Raises UserError for an unknown name, or a rule with effects only.
    """
    kept = {name: rule.title for name, rule in rules.rules.items() if rule.swept_entities}
    asked: set[str] = set()
    for name in names:
        title = rules.rules[name].title if name in rules.rules else name
        if name in rules.rules and title not in kept.values():
            raise UserError(f"rule {name} keeps nothing in a table: name another rule")
        if title not in kept.values():
            raise UserError(explain_unknown_name("rule", name, dict.fromkeys(kept.values())))
        asked.add(title)
    return frozenset(name for name, title in kept.items() if not names or title in asked)


@dataclass(frozen=True)
class Step:
    """Rules that a job processes together. If some of them feed each other, it repeats rounds until a round writes
    nothing.
    """

    names: frozenset[str]
    max_rounds: int = 1


def cascade(rules: Rules, names: frozenset[str]) -> Iterator[Step]:
    """Order these rules into steps, each rule after the rules that feed it.

    Rules that feed each other through different copies, and all rules after them, are one step. Each round makes the
    next copies of every chain right, so one round per copy suffices. A hierarchy takes a round per level.
    """
    waiting = [rule for rule in rules.rules.values() if rule.name in names]
    place = {rule: number for number, rule in enumerate(waiting)}
    sorter = TopologicalSorter(_list_feeders(waiting))
    with suppress(CycleError):  # what is not in a cycle, or after one, comes in order all the same
        sorter.prepare()
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=place.__getitem__)
        once = frozenset(rule.name for rule in ready if rule.rounds_max == 1)
        if once:
            yield Step(once)
        for rule in ready:
            if rule.name not in once:
                yield Step(frozenset([rule.name]), rule.rounds_max)
            del place[rule]
        sorter.done(*ready)
    if place:
        copies = sum(len(rule.nodes()) for rule in place)
        yield Step(frozenset(rule.name for rule in place), max(copies, *(rule.rounds_max for rule in place)))


def _list_feeders(rules: Iterable[Rule]) -> dict[Rule, set[Rule]]:
    """The other rules that feed each of these rules: by what they write, or by making the items that it is about."""
    found: dict[Rule, set[Rule]] = {rule: set() for rule in rules}
    makers = {entity: rule for rule in found for entity in rule.owned_entities}
    for rule, feeders in found.items():
        feeders.update({makers.get(side, rule) for side in (rule.source, rule.target)} - {rule})
    for node, writers in list_causes(node for rule in found for node in rule.nodes()).items():
        found[node.rule].update(writer.rule for writer in writers if writer.rule is not node.rule)
    return found


def list_swept_tables(rules: Rules, only: frozenset[str]) -> tuple[Table, ...]:
    """Return the tables to scan to check everything that the rules in `only` keep, each once."""
    tables: dict[str, Table] = {}
    for rule in rules.rules.values():
        if rule.name in only:
            tables |= {side.table.name: side.table for side in rule.swept_entities}
    return tuple(tables.values())
