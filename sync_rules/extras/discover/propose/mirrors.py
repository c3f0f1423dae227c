"""Mirrors: items with the content of another item, under a key that is made from its attributes.

Invariant: a mirror exists for each source that has the attributes of its key, and holds nothing of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

from sync_rules.extras.discover.propose.choice import EXAMPLES, Lead
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.differences import (
    FAULTS_MIN,
    is_unique,
    list_odd_values,
    list_other_values,
)
from sync_rules.extras.discover.propose.evidence import AGREE_MIN
from sync_rules.extras.discover.propose.frames import Column, Frame, Profile
from sync_rules.extras.discover.propose.link_search import Overlap, make_equality, make_presence
from sync_rules.extras.discover.propose.value_texts import TEXTS

HELD_MIN: Final = 0.75  # of the mirrors have a source, and of the sources a mirror
WAYS_MAX: Final = 12
ITEMS_MIN: Final = 3
Overlaps = dict[tuple[Column, Column], Overlap]


def find_mirrors(database: Database, frames: Sequence[Frame], overlaps: Overlaps) -> Iterator[Lead]:
    """Find the entities that mirror another one."""
    for mirror in frames:
        for source in frames:
            if mirror is not source and mirror.identity and mirror.rows >= ITEMS_MIN and source.rows >= ITEMS_MIN:
                best = _choose_best(database, source, mirror, overlaps)
                if best is not None:
                    yield best


@dataclass(frozen=True)
class MirrorSource:
    """The sources of mirrors: an entity's items, or with `each` a row for each element of one of their lists."""

    frame: Frame
    each: Column | None = None

    @property
    def sql(self) -> str:
        """The table in a statement, by the name s."""
        if self.each is None:
            return f"{self.frame.sql} s"
        return (
            f"(SELECT DISTINCT s.*, x.v AS {self.each.sql} FROM {self.frame.sql} s JOIN {self.frame.entries} x "
            f"ON x.rid = s.rid WHERE x.road = {self.frame.code(self.each.road)} AND x.field IS NULL "
            f"AND x.v[1] IN ('s', 'n')) s"
        )


def _choose_best(database: Database, source: Frame, mirror: Frame, overlaps: Overlaps) -> Lead | None:
    """The best way to fill the mirror's key from columns of the source, one of them perhaps the elements of a list."""
    choices = []
    for field in mirror.identity:
        there = [
            column
            for column in source.columns
            if not column.is_shadowed
            and (overlap := overlaps.get((column, field))) is not None
            and overlap.values >= HELD_MIN
        ]
        choices.append(there)
    told: list[tuple[MirrorSource, list[list[Column]]]] = [(MirrorSource(source), choices)]
    for number, field in enumerate(mirror.identity):
        if all(choices[:number] + choices[number + 1 :]):
            others = choices[:number], choices[number + 1 :]
            lists = _list_element_columns(database, source, field)
            told += [(MirrorSource(source, each), [*others[0], [each], *others[1]]) for each in lists]
    found = []
    for one, ways in told:
        for columns in islice(product(*ways), WAYS_MAX):
            if len(set(columns)) == len(columns):
                lead = _measure(database, one, mirror, columns)
                if lead is not None:
                    found.append(lead)
    return max(found, key=lambda one: (one.rate, one.named), default=None)


def _list_element_columns(database: Database, source: Frame, field: Column) -> Iterator[Column]:
    """The lists and sets of an entity whose elements are values of a field."""
    for road in source.roads:
        values, met = database.row(
            f"SELECT count(*), count(*) FILTER (EXISTS (SELECT 1 FROM {field.frame.sql} m "
            f"WHERE {field.bare('m')} = substr(x.v, 2))) FROM (SELECT DISTINCT v FROM {source.entries} "
            f"WHERE road = {source.code(road)} AND field IS NULL AND v[1] IN ('s', 'n') AND name = 's') x"
        )
        if values and met >= HELD_MIN * values:
            yield Column(source, road, "each_v", profile=Profile(types=frozenset(TEXTS)))


def _measure(database: Database, source: MirrorSource, mirror: Frame, columns: Sequence[Column]) -> Lead | None:
    pairs = list(zip(mirror.identity, columns, strict=True))
    on = " AND ".join(make_equality(column, "s", field, "m") for field, column in pairs)
    there = make_presence(columns, "s")
    wanted, distinct, both = database.row(
        f"SELECT (SELECT count(*) FROM {source.sql} WHERE {there}), "
        f"(SELECT count(DISTINCT m.rid) FROM {source.sql} JOIN {mirror.sql} m ON {on}), "
        f"(SELECT count(*) FROM {source.sql} JOIN {mirror.sql} m ON {on})"
    )
    if not both or distinct < both or both < HELD_MIN * wanted or distinct < HELD_MIN * mirror.rows:
        return None
    attributes = _match_attributes(database, source, mirror, on)
    if attributes is None or (not attributes and len(columns) == 1 and columns[0].in_identity):
        return None
    lacking = _list_missing_fields(source.frame, columns, attributes)
    if lacking and any(other.in_identity for _, other in attributes):
        return None  # an attribute of another name says whose it is: copies go along it
    lead = _make_lead(database, source, mirror, pairs, on, attributes=attributes, wanted=wanted)
    rows = f"FROM {source.sql} JOIN {mirror.sql} m ON {on}"
    odd = [(list_odd_values(database, rows, one, other, "m"), is_unique(other)) for one, other in attributes]
    left = sum(len(list_other_values(each, unique=unique)) for each, unique in odd)
    if lead.is_likely and left > (1 - FAULTS_MIN) * sum(len(each) for each, _ in odd):
        lead.hold_back(f"it would overwrite {lead.overwrites:,} items of {mirror.name} that may be history")
    if lacking and lead.grade == "sure":
        lead.grade = "weak"
        names = " and ".join(one.path for one in lacking)
        lead.spoke_against.append(f"{mirror.name} does not hold {names}, which names its source: add it first")
    return lead


def _list_missing_fields(
    source: Frame, columns: Sequence[Column], attributes: Sequence[tuple[Column, Column]]
) -> list[Column]:
    """The fields that name a source and that its mirror has neither in its key nor under the name of the field."""
    held = {id(one) for one in columns} | {id(other) for one, other in attributes if one.path == other.path}
    return [one for one in source.identity if id(one) not in held]


def _match_attributes(
    database: Database, source: MirrorSource, mirror: Frame, on: str
) -> list[tuple[Column, Column]] | None:
    """The attributes of the mirror with those of the source that they equal; None if it has some of its own."""
    own = [
        one
        for one in mirror.columns
        if not (one.is_field or one.is_shadowed or one.in_index) and len(one.road) == 1 and one.profile.count
    ]
    theirs = [one for one in source.frame.columns if not one.is_shadowed and one.profile.count]
    found = []
    for column in own:
        parts = [f"count(*) FILTER (m.{column.sql} IS NOT DISTINCT FROM s.{one.sql})" for one in theirs]
        if not parts:
            return None
        total, *counts = database.row(
            f"SELECT count(*), {', '.join(parts)} FROM {source.sql} JOIN {mirror.sql} m ON {on}"
        )
        ranked = sorted(zip(counts, theirs, strict=True), key=lambda one: (-one[0], one[1].path != column.path))
        count, best = ranked[0]
        if count >= AGREE_MIN * total and not (column.profile.is_constant and best.path != column.path):
            found.append((column, best))
        elif not column.profile.is_constant:
            return None
    return found


def _make_lead(
    database: Database, source: MirrorSource, mirror: Frame, pairs: list[tuple[Column, Column]], on: str,
    *, attributes: list[tuple[Column, Column]], wanted: int,
) -> Lead:  # fmt: skip
    kept = [(one, other) for one, other in attributes if not other.in_identity or one.path != other.path]
    alike = " AND ".join(f"m.{one.sql} IS NOT DISTINCT FROM s.{other.sql}" for one, other in kept) or "true"
    there = make_presence((column for _, column in pairs), "s")
    agree, both = database.row(
        f"SELECT count(*) FILTER ({alike}), count(*) FROM {source.sql} JOIN {mirror.sql} m ON {on}"
    )
    (strangers,) = database.row(
        f"SELECT count(*) FROM {mirror.sql} m WHERE NOT EXISTS (SELECT 1 FROM {source.sql} WHERE {on})"
    )
    rows = database.rows(
        f"SELECT {source.frame.make_key_sql('s')} k FROM {source.sql} LEFT JOIN {mirror.sql} m ON {on} "
        f"WHERE {there} AND (m.rid IS NULL OR NOT ({alike})) ORDER BY k LIMIT {EXAMPLES}"
    )
    rule: dict[str, Any] = {"mirror": source.frame.name, "into": mirror.name}
    link = {
        field.path: column.path for field, column in pairs if field.path != column.path and column is not source.each
    }
    if link:
        rule["link"] = link
    if source.each is not None:
        rule["each"] = {field.path: column.path for field, column in pairs if column is source.each}
    if kept:
        plain = all(one.path == other.path for one, other in kept)
        rule["attributes"] = [one.path for one, _ in kept] if plain else {o.path: one.path for one, o in kept}
    reads = (*(column for _, column in pairs), *(other for _, other in kept))
    return Lead(
        "mirror", source.frame, mirror, tuple(one for one, _ in attributes), reads, rule,
        "sure" if agree >= AGREE_MIN * wanted else "none", wanted, agree, strangers, plainness=6, sources=wanted,
        named=0.5, examples=tuple(key for (key,) in rows), overwrites=both - agree,
        spoke_for=[f"{agree} of {wanted} have an item of the same content under the other key"],
    )  # fmt: skip
