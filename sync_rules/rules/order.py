"""In which order rules are verified and brought in line, each after those that feed it, and in which tables.

Law: no copy is judged, let alone mended, before what it is made from has been.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sync_rules.model.entities import Table
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.rule import PartRule, Rule, causes
from sync_rules.rules.ruleset import Rules

LEVELS_MAX: Final = 1_000  # of a hierarchy: the looks end with the first that mends nothing
KEYS_HELD_MAX: Final = 3  # a mirror that goes may free the key that another one waits for


@dataclass(frozen=True)
class Step:
    """Rules to be verified together. Where some feed each other, the look is repeated until it mends nothing."""

    names: frozenset[str]
    max_rounds: int = 1


def cascade(rules: Rules, names: frozenset[str]) -> Iterator[Step]:
    """These rules, each after those that feed it.

    No copy of sound rules feeds itself, but a rule, or two, may feed each other through different copies. Such rules
    (where it is several, with what comes after them) are one step: each round makes the next copies of every chain
    right, so as many rounds as there are copies are enough. A hierarchy takes a round per level.
    """
    waiting = [rule for rule in rules.rules.values() if rule.name in names]
    while waiting:
        ready = [rule for rule in waiting if not any(_feeds(one, rule) for one in waiting if one is not rule)]
        if not ready:
            copies = sum(len(rule.nodes()) for rule in waiting)
            yield Step(frozenset(rule.name for rule in waiting), max(copies, *map(_rounds, waiting)))
            return
        once = frozenset(rule.name for rule in ready if _rounds(rule) == 1)
        if once:
            yield Step(once)
        for rule in ready:
            if rule.name not in once:
                yield Step(frozenset([rule.name]), _rounds(rule))
        waiting = [rule for rule in waiting if rule not in ready]


def swept_tables(rules: Rules, only: frozenset[str]) -> tuple[Table, ...]:
    """The tables that hold what the rules in `only` keep, and for parts what they are made from too, each once."""
    tables: dict[str, Table] = {}
    for rule in rules.rules.values():
        if rule.name in only:
            sides = (rule.source, rule.target) if isinstance(rule, PartRule) else (rule.target,)
            tables |= {side.table.name: side.table for side in sides}
    return tuple(tables.values())


def _rounds(rule: Rule) -> int:
    """How many rounds make everything right that a rule feeds to itself."""
    if isinstance(rule, TreeRule):
        return LEVELS_MAX
    if isinstance(rule, MirrorRule):
        return KEYS_HELD_MAX
    return len(rule.nodes()) if _feeds(rule, rule) else 1


def _feeds(writer: Rule, rule: Rule) -> bool:
    """Whether something one rule writes decides what something of another must be."""
    return any(causes(written, node) for written in writer.nodes() for node in rule.nodes())
