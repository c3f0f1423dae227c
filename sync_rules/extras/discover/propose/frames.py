"""Entities as tables of DuckDB, and statistics of their columns.

Invariant: the name of a column is the path that a rule would read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sync_rules.extras.discover.imports.identifiers import split_words
from sync_rules.extras.discover.imports.normalization import SettledEntity
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.row_staging import compute_road_code
from sync_rules.extras.discover.propose.value_texts import BINARY, BOOLEAN, NULL, NUMBER, STRING, TEXTS
from sync_rules.model.values import Path as Road
from sync_rules.model.values import show_path

YES_AND_NO: Final = 2  # different values
FEW: Final = 24  # different values of an enumeration, at most
DATE: Final = r"s\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?"
MOMENT: Final = r"s\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z"
PERIODS: Final = frozenset({7, 10, 13, 16})  # letters of a time: its month, day, hour or minute
EPOCHS: Final = ((900_000_000, 2_200_000_000), (900_000_000_000, 2_200_000_000_000))  # seconds, milliseconds
MOST: Final = 0.95  # of the values: the rest may be faults


@dataclass(frozen=True)
class Profile:
    """The values of a column in figures. `alike` is the chance that two of them, drawn at random, are equal."""

    count: int = 0
    distinct: int = 0
    alike: float = 0.0
    types: frozenset[str] = frozenset()
    dates: int = 0
    whole: int = 0  # whole numbers, also those that are written as text
    least: int = 0
    most: int = 0
    empty: int = 0  # empty texts and nulls
    longest: int = 0

    @property
    def is_constant(self) -> bool:
        """True if all values are the same."""
        return self.distinct <= 1

    @property
    def is_boolean(self) -> bool:
        """True for truth values, in any spelling: nothing but two different values."""
        return self.types <= {BOOLEAN, NULL} or self.distinct <= YES_AND_NO

    @property
    def is_date(self) -> bool:
        """True for dates and moments, as texts or as seconds."""
        if self.count and self.dates >= MOST * self.count:
            return True
        return self.is_whole and any(first <= self.least and self.most <= last for first, last in EPOCHS)

    @property
    def is_whole(self) -> bool:
        return self.count > 0 and self.whole == self.count

    @property
    def is_number(self) -> bool:
        """True for numbers of DynamoDB's type."""
        return NUMBER in self.types and self.types <= {NUMBER, NULL}

    @property
    def is_text(self) -> bool:
        return STRING in self.types and self.types <= {STRING, NULL}

    @property
    def is_small(self) -> bool:
        """True for an enumeration: few values, and each value occurs at least twice on average."""
        return self.distinct <= FEW and self.count >= 2 * self.distinct

    @property
    def is_sequence(self) -> bool:
        """True for whole numbers that lie close together, as ids that are given one after the other."""
        return self.is_whole and self.distinct > FEW // 2 and (self.most - self.least + 1) <= 2 * self.distinct

    @property
    def is_dense(self) -> bool:
        """True for small whole numbers of any number: they are found among each other's by chance."""
        return self.is_whole and (self.most - self.least + 1) <= max(4 * self.distinct, 100)


@dataclass(eq=False)
class Column:
    """A field of an entity's keys, or an attribute, at any depth. `sql` is its name in DuckDB."""

    frame: Frame
    road: Road
    sql: str
    is_field: bool = False
    in_identity: bool = False
    is_shadowed: bool = False  # a field of the same name is read in its place
    first: int = 0  # letters of a time that name a period; 0 for the whole value
    profile: Profile = field(default_factory=Profile)

    @property
    def path(self) -> str:
        return show_path(self.road)

    @property
    def column_name(self) -> str:
        return f"{self.frame.name}.{self.path}"

    @property
    def in_key(self) -> bool:
        """True for an attribute of the key of the table."""
        return not self.is_field and self.road[0] in self.frame.key_names

    @property
    def in_index(self) -> bool:
        """True for an attribute of the key of an index."""
        return not self.is_field and len(self.road) == 1 and self.road[0] in self.frame.index_names

    @property
    def writable(self) -> bool:
        """True for what a rule may write: no field and no part of the table's key."""
        return not self.is_field and not self.in_key and not self.is_shadowed

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word for part in self.road for word in split_words(part))

    def bare(self, alias: str) -> str:
        """Return the SQL expression of the value without its type letter."""
        return f"substr({alias}.{self.sql}, 2)"

    def __repr__(self) -> str:
        return self.column_name


@dataclass(eq=False)
class Frame:
    """An entity with its rows and columns. `sql` and `entries` are its tables in DuckDB."""

    entity: SettledEntity
    sql: str
    entries: str
    rows: int
    columns: list[Column] = field(default_factory=list)
    roads: list[Road] = field(default_factory=list)  # of the entries
    periods: list[Column] = field(default_factory=list)  # the beginnings of times, such as days
    kin: list[tuple[Column, Column]] = field(default_factory=list)  # own fields, and those of others that have the same

    @property
    def name(self) -> str:
        return self.entity.name

    @cached_property
    def key_names(self) -> frozenset[str]:
        return frozenset(one.name for one in self.entity.table.found.key)

    @cached_property
    def index_names(self) -> frozenset[str]:
        """The attributes of the keys of indexes, without those of the table's key."""
        return frozenset(self.entity.table.found.types) - self.key_names

    @cached_property
    def identity(self) -> tuple[Column, ...]:
        return tuple(one for one in self.columns if one.in_identity)

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(split_words(self.name))

    def make_key_sql(self, alias: str = "t") -> str:
        """The expression of an item's key for people: the name of the entity and its fields."""
        parts = " || ' ' || ".join(f"coalesce({one.bare(alias)}, '?')" for one in self.identity)
        return f"'{self.name} ' || {parts}" if parts else f"'{self.name}'"

    def code(self, road: Road) -> int:
        """Return the number of a road in the table of entries."""
        return compute_road_code(road)


# ---------------------------------------------------------------- profiles
def profile_all(database: Database, frames: Iterable[Frame]) -> None:
    """Find the figures of all columns."""
    for frame in frames:
        for column in frame.columns:
            column.profile = _profile(database, column)


def _profile(database: Database, column: Column) -> Profile:
    name = column.sql
    figures = database.row(
        f"WITH counted AS (SELECT {name} v, count(*) k FROM {column.frame.sql} WHERE {name} IS NOT NULL GROUP BY 1) "
        "SELECT coalesce(sum(k), 0)::BIGINT, count(*), coalesce(sum(k::DOUBLE * k), 0), "
        "coalesce(string_agg(DISTINCT v[1], ''), ''), "
        f"coalesce(sum(k) FILTER (regexp_full_match(v, '{DATE}')), 0)::BIGINT, "
        "coalesce(sum(k) FILTER (i IS NOT NULL AND regexp_full_match(v, '[sn]-?\\d+')), 0)::BIGINT, min(i), max(i), "
        "coalesce(sum(k) FILTER (length(v) = 1), 0)::BIGINT, coalesce(max(length(v)), 0) "
        "FROM (SELECT *, try_cast(substr(v, 2) AS BIGINT) i FROM counted)"
    )
    count, distinct, squares, types, dates, whole, least, most, empty, longest = figures
    alike = squares / (count * count) if count else 0.0
    return Profile(count, distinct, alike, frozenset(types), dates, whole, least or 0, most or 0, empty, longest)


def add_periods(database: Database, frames: Sequence[Frame]) -> None:
    """Add the beginnings of times that may name items of other entities: the day or month of a moment."""
    fields = [one for frame in frames for one in frame.identity if one.profile.is_text]
    lengths = {one.profile.longest - 1 for one in fields if one.profile.is_date} & PERIODS
    times = [one for frame in frames for one in frame.columns if one.profile.is_text and one.profile.is_date]
    for column in times if lengths else ():
        frame, name = column.frame, column.sql
        (odd,) = database.row(f"SELECT count(*) FROM {frame.sql} WHERE NOT regexp_full_match({name}, '{MOMENT}')")
        for length in sorted(lengths) if not odd and not column.is_shadowed else ():
            period = Column(frame, column.road, f"{name}_{length}", first=length)
            database.run(f"ALTER TABLE {frame.sql} ADD COLUMN {period.sql} VARCHAR")
            database.run(f"UPDATE {frame.sql} SET {period.sql} = left({name}, {length + 1})")
            period.profile = _profile(database, period)
            frame.periods.append(period)


def is_linkable(column: Column) -> bool:
    """Return True if a column may name an item: texts and numbers, or binary values, not all the same."""
    profile = column.profile
    types = profile.types - {NULL}
    return profile.count > profile.empty and (types == {BINARY} or (bool(types) and types <= {*TEXTS}))
