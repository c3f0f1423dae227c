"""Parents read with their children and with the entries of one attribute, a part of them at a time.

Invariant: a parent has all of its children, so that its value can be computed from them. The `values` of a condition on
children are exactly those that its `where` selects.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import split_words
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.value_texts import BOOLEAN, NUMBER, STRING

KINDS_MAX: Final = 12  # different values of a column in a condition
EITHER_OR: Final = 2  # different values: "not the one" means the same as "the other"
IDS: Final = frozenset({"id", "ids", "key", "uuid", "guid", "ref", "by"})  # the last word of a name of ids
JMESPATH_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
IDLE_MAX: Final = 0.2  # of the parents without children have a value: more own it
DIFFER_MAX: Final = {  # of the parents: more may be meant
    "count": 0.12, "sum": 0.06, "mean": 0.06, "min": 0.06, "max": 0.06,
}  # fmt: skip
Row = tuple[Any, ...]  # of a child: a typed text for each column


@dataclass
class GroupElement:
    """An element, or an entry of a map: its name, its value, and the fields of a map."""

    name: str
    value: str
    fields: dict[str, str]


@dataclass
class Parent:
    """A parent with its own value as it is, its entries and its children."""

    key: str
    held: str | None
    entries: list[GroupElement]
    children: list[Row]


@dataclass(frozen=True)
class Families:
    """The parents of one link, and some columns of their children."""

    database: Database
    join: Join
    columns: Sequence[Column]

    def children(self, parts: int, part: int = 0) -> dict[int, list[Row]]:
        """Read the children of each parent in part number `part` of `parts`."""
        names = ", ".join(f"t.{one.sql}" for one in self.columns)
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self.database.each(
            f"SELECT s.rid, {names} FROM "
            f"(SELECT * FROM {self.join.source.sql} s WHERE hash(s.rid) % {parts} = {part}) s "
            f"JOIN {self.join.target.sql} t ON {self.join.on()}"
        ):
            found[row[0]].append(row[1:])
        return found

    def parents(
        self, column: Column, parts: int, children: Mapping[int, list[Row]], part: int = 0
    ) -> dict[int, Parent]:
        """Read the parents in part number `part` of `parts`, with their entries in a column and these children."""
        source = self.join.source
        found = {
            rid: Parent(key, held, [], children.get(rid, []))
            for rid, key, held in self.database.each(
                f"SELECT s.rid, {source.make_key_sql('s')}, s.{column.sql} FROM {source.sql} s "
                f"WHERE hash(s.rid) % {parts} = {part}"
            )
        }
        last: tuple[int, int] | None = None
        for rid, place, name, inner, value in self.database.each(
            f"SELECT x.rid, x.place, x.name, x.field, x.v FROM {source.entries} x WHERE hash(x.rid) % {parts} = {part} "
            f"AND x.road = {source.code(column.road)} ORDER BY x.rid, x.place, x.field NULLS FIRST"
        ):
            parent = found.get(rid)
            if parent is None:
                continue
            if (rid, place) != last:
                parent.entries.append(GroupElement(name[1:], "", {}))
                last = rid, place
            if inner is None:
                parent.entries[-1].value = value
            else:
                parent.entries[-1].fields[inner] = value
        return found


def filter_children(
    sample: Sequence[Parent], condition: ChildCondition | None, places: Mapping[int, int]
) -> list[Parent]:
    """Return the parents with only the children that meet a condition."""
    if condition is None:
        return list(sample)
    place = places[id(condition.column)]
    return [
        Parent(one.key, one.held, one.entries, [row for row in one.children if row[place] in condition.values])
        for one in sample
    ]


def ask_if_own(column: Column, join: Join, why: str) -> str:
    """Return the question whether a parent owns a value, as the reason for a comment."""
    return f"{column.path} may be {join.source.name}'s own value, for {why}: is it made of {join.target.name} items?"


# ---------------------------------------------------------------- conditions
@dataclass(frozen=True)
class ChildCondition:
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
    """True for a column by whose values some children may be left out: it has few, and they are no dates and no ids."""
    profile = column.profile
    named = split_words(column.road[-1])
    if (
        column.in_identity
        or profile.is_date
        or (named and named[-1] in IDS)
        or not profile.types <= {STRING, NUMBER, BOOLEAN, "z"}
    ):
        return False
    return 1 <= profile.distinct <= KINDS_MAX and (profile.distinct > 1 or profile.count < column.frame.rows)


def list_conditions(column: Column, values: set[str | None]) -> Iterator[ChildCondition]:
    """The conditions on one column that tell its values apart."""
    name = ".".join(part if JMESPATH_NAME.fullmatch(part) else f'"{part}"' for part in column.road)
    told = sorted(value for value in values if value is not None and value != "z" and "'" not in value)
    if column.profile.types <= {BOOLEAN, "z"}:
        yield ChildCondition(column, frozenset({"b1"}), name)
        yield ChildCondition(column, frozenset(values - {"b1"}), f"!{name}")
        return
    for value in told:
        yield ChildCondition(column, frozenset({value}), f"{name} == {_format_literal(value)}")
    if len(values) > EITHER_OR or None in values:
        for value in told:
            yield ChildCondition(column, frozenset(values - {value}), f"{name} != {_format_literal(value)}")


def _format_literal(value: str) -> str:
    return f"`{value[1:]}`" if value[0] == NUMBER else f"'{value[1:]}'"
