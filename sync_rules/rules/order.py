"""The order in which rules are verified and applied, each after those that feed it, and the tables to scan for them.

Invariant: no copy is checked or repaired before everything that the copy is made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sync_rules.model.entities import Table
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Step:
    """Rules to process together. Where some feed each other, rounds are repeated until one writes nothing."""

    names: frozenset[str]
    max_rounds: int = 1


def cascade(rules: Rules, names: frozenset[str]) -> Iterator[Step]:
    """Order these rules, each after those that feed it.

    No copy of sound rules feeds itself, but a rule, or two, may feed each other through different copies. Such rules,
    with all that come after them, are one step: each round makes the next copies of every chain right, so as many
    rounds as there are copies are enough. A hierarchy takes a round per level.
    """
    waiting = [rule for rule in rules.rules.values() if rule.name in names]
    while waiting:
        ready = [rule for rule in waiting if not any(one.feeds(rule) for one in waiting if one is not rule)]
        if not ready:
            copies = sum(len(rule.nodes()) for rule in waiting)
            yield Step(frozenset(rule.name for rule in waiting), max(copies, *(rule.rounds_max for rule in waiting)))
            return
        once = frozenset(rule.name for rule in ready if rule.rounds_max == 1)
        if once:
            yield Step(once)
        for rule in ready:
            if rule.name not in once:
                yield Step(frozenset([rule.name]), rule.rounds_max)
        waiting = [rule for rule in waiting if rule not in ready]


def swept_tables(rules: Rules, only: frozenset[str]) -> tuple[Table, ...]:
    """The tables to scan for all that the rules in `only` keep, each once."""
    tables: dict[str, Table] = {}
    for rule in rules.rules.values():
        if rule.name in only:
            tables |= {side.table.name: side.table for side in rule.swept}
    return tuple(tables.values())
