"""Conditions under which children count: by the values of one of their columns, as `where` says it.

Invariant: `values` of a condition are just those which its `where` lets through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.value_texts import BOOLEAN, NUMBER, STRING

KINDS_MAX: Final = 12  # different values of a column by which children are left out
EITHER_OR: Final = 2  # different values, of which "not the one" says the same as "the other"
PAIRS_MIN: Final = 4  # different values, from which two may be meant: of three, two are all but one
PAIRS_MAX: Final = 6  # and up to which
JMESPATH_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Condition:
    """The values of a column that count, or those that do not, and how `where` says it."""

    column: Column
    values: frozenset[str | None]
    where: str

    @property
    def sql(self) -> str:
        """The condition on a child, which statements call `t`."""
        told = ", ".join("'" + value.replace("'", "''") + "'" for value in self.values if value is not None)
        parts = [f"t.{self.column.sql} IN ({told})"] if told else []
        parts += [f"t.{self.column.sql} IS NULL"] if None in self.values else []
        return " OR ".join(parts) or "false"


def may_decide(column: Column) -> bool:
    """True for a column by whose values some children may be left out: it has few."""
    profile = column.profile
    if column.in_identity or not profile.types <= {STRING, NUMBER, BOOLEAN, "z"}:
        return False
    return 1 <= profile.distinct <= KINDS_MAX and (profile.distinct > 1 or profile.count < column.frame.rows)


def conditions(column: Column, values: set[str | None]) -> Iterator[Condition]:
    """The conditions on one column that tell its values apart."""
    name = ".".join(part if JMESPATH_NAME.fullmatch(part) else f'"{part}"' for part in column.road)
    told = sorted(value for value in values if value is not None and value != "z" and "'" not in value)
    if column.profile.types <= {BOOLEAN, "z"}:
        yield Condition(column, frozenset({"b1"}), name)
        yield Condition(column, frozenset(values - {"b1"}), f"!{name}")
        return
    for value in told:
        yield Condition(column, frozenset({value}), f"{name} == {_literal(value)}")
    if len(values) > EITHER_OR or None in values:
        for value in told:
            yield Condition(column, frozenset(values - {value}), f"{name} != {_literal(value)}")
    if PAIRS_MIN <= len(told) <= PAIRS_MAX:
        for one, other in combinations(told, 2):
            where = f"{name} == {_literal(one)} || {name} == {_literal(other)}"
            yield Condition(column, frozenset({one, other}), where)
            both = f"{name} != {_literal(one)} && {name} != {_literal(other)}"
            yield Condition(column, frozenset(values - {one, other}), both)


def _literal(value: str) -> str:
    return f"`{value[1:]}`" if value[0] == NUMBER else f"'{value[1:]}'"
