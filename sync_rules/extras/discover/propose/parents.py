"""Parents read with their children and with the entries of one attribute, a part of them at a time.

Invariant: a parent has all of its children, so that what it should hold can be made of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sync_rules.extras.discover.propose.child_conditions import Condition
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.link_search import Join

Row = tuple[Any, ...]  # of a child: a typed text for each column


@dataclass
class Entry:
    """An element, or an entry of a map: its name, its value, and the fields of a map."""

    name: str
    value: str
    fields: dict[str, str]


@dataclass
class Parent:
    """A parent with its own value as it is, its entries and its children."""

    key: str
    held: str | None
    entries: list[Entry]
    children: list[Row]


@dataclass(frozen=True)
class Families:
    """The parents and children of one link, of which children some columns are read."""

    database: Database
    join: Join
    columns: Sequence[Column]

    def children(self, parts: int, part: int = 0) -> dict[int, list[Row]]:
        """The children of each parent in one of so many parts."""
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
        """The parents in one of so many parts, with what they hold in a column, and these children."""
        source = self.join.source
        found = {
            rid: Parent(key, held, [], children.get(rid, []))
            for rid, key, held in self.database.each(
                f"SELECT s.rid, {source.key_shown('s')}, s.{column.sql} FROM {source.sql} s "
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
                parent.entries.append(Entry(name[1:], "", {}))
                last = rid, place
            if inner is None:
                parent.entries[-1].value = value
            else:
                parent.entries[-1].fields[inner] = value
        return found


def left(sample: Sequence[Parent], condition: Condition | None, places: Mapping[int, int]) -> list[Parent]:
    """The parents with the children that a condition leaves."""
    if condition is None:
        return list(sample)
    place = places[id(condition.column)]
    return [
        Parent(one.key, one.held, one.entries, [row for row in one.children if row[place] in condition.values])
        for one in sample
    ]
