"""Links: columns of one entity whose values name items of another entity, or of the same.

Invariant: a link is found by inclusion of values. Numbers include each other easily: such a link is `by_chance` until a
name or a copy along it supports it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Final

from sync_rules.extras.discover.imports.identifiers import make_singular, split_words
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.evidence import HALF_NAMED
from sync_rules.extras.discover.propose.frames import MOST, Column, Frame, is_linkable
from sync_rules.extras.discover.propose.value_texts import BINARY

HELD_MIN: Final = 0.7  # of the targets name an item that exists
VALUES_MAX: Final = 3_000_000  # of all columns together; beyond that a share of the values is compared, by hash
PAIRED: Final = 0.2  # of the combinations of its fields exist, at most, that to meet one is no chance
COMBINED_MAX: Final = 24  # ways to fill a key of several fields between two entities
PARENTS: Final = frozenset(
    {"parent", "manager", "reports", "supervisor", "boss", "above", "ancestor", "super", "reply"}
)
GENERIC: Final = frozenset({"id", "key", "pk", "sk", "code", "number", "no", "nr", "uuid", "guid"})


@dataclass(eq=False)
class Join:
    """A link from targets to their source. `pairs` are a field of the source and the target's column that holds it.
    `held` is the share of the targets with these columns whose source exists. `reached` is the share of the sources
    that are named. `each` is the mean number of targets of a named source.
    """

    source: Frame
    target: Frame
    pairs: tuple[tuple[Column, Column], ...]
    held: float
    reached: float
    each: float
    named: float
    dense: bool
    confirmed: bool = False  # by a copy along it

    @property
    def missing_fields(self) -> tuple[Column, ...]:
        """The fields that name the source and are not on the target: no rule can go along such a link."""
        held = {id(field) for field, _ in self.pairs}
        return tuple(one for one in self.source.identity if id(one) not in held)

    @property
    def by_chance(self) -> bool:
        """True if nothing but numbers that lie close together speaks for it."""
        return self.dense and not self.confirmed and self.named < HALF_NAMED

    @property
    def is_one_to_one(self) -> bool:
        """True if no source has two targets."""
        return self.each <= 1.0

    @property
    def link(self) -> dict[str, object]:
        """The option `link` of a rule: the fields that have another name on the target."""
        return {
            field.path: {"first": column.first, "of": column.path} if column.first else column.path
            for field, column in self.pairs
            if field.path != column.path or column.first
        }

    @property
    def is_of_periods(self) -> bool:
        """True if targets name their source by the day or month of a time: only numbers go along such a link."""
        return any(column.first for column in self.columns)

    def options(self, where: str = "") -> dict[str, object]:
        """Return the options of a rule along the link: `where` for a condition, and `link` if names differ."""
        return {**({"where": where} if where else {}), **({"link": self.link} if self.link else {})}

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for _, column in self.pairs)

    def on(self, target: str = "t", source: str = "s") -> str:
        return " AND ".join(make_equality(column, target, field, source) for field, column in self.pairs)

    def __repr__(self) -> str:
        return f"{self.target.name}({', '.join(c.path for c in self.columns)}) -> {self.source.name}"


def make_equality(one: Column, alias: str, other: Column, other_alias: str) -> str:
    """Return the SQL condition that two columns name the same item: text and number alike, as links do."""
    if one.profile.types == other.profile.types and len(one.profile.types) == 1:
        return f"{alias}.{one.sql} = {other_alias}.{other.sql}"
    return f"{one.bare(alias)} = {other.bare(other_alias)}"


def make_presence(columns: Iterable[Column], alias: str) -> str:
    """Return the SQL condition that an item has these columns."""
    return " AND ".join(f"{alias}.{one.sql} IS NOT NULL" for one in columns)


# ---------------------------------------------------------------- inclusion
@dataclass(frozen=True)
class Overlap:
    """The shares of a column's rows, and of its different values, that are values of another column too."""

    rows: float
    values: float


def measure_overlaps(database: Database, frames: Sequence[Frame]) -> dict[tuple[Column, Column], Overlap]:
    """Measure how far each column's values are values of the fields that name items."""
    columns = [one for frame in frames for one in frame.columns if is_linkable(one) and not one.is_shadowed]
    columns += [one for frame in frames for one in frame.periods]
    wanted = {id(one) for frame in frames for one in frame.identity}
    every = 1 + sum(one.profile.distinct for one in columns) // VALUES_MAX
    database.run("CREATE OR REPLACE TABLE held (col INTEGER, v VARCHAR, k BIGINT)")
    for number, column in enumerate(columns):
        where = f"{column.sql} IS NOT NULL AND length({column.sql}) > 1"
        if every > 1:
            where += f" AND hash(substr({column.sql}, 2)) % {every} = 0"
        database.run(
            f"INSERT INTO held SELECT {number}, substr({column.sql}, 2), count(*) FROM {column.frame.sql} "
            f"WHERE {where} GROUP BY 2"
        )
    sums = {number: (k, n) for number, k, n in database.rows("SELECT col, sum(k), count(*) FROM held GROUP BY col")}
    fields = [number for number, column in enumerate(columns) if id(column) in wanted]
    if not fields:
        return {}
    found = database.rows(
        "SELECT a.col, b.col, sum(a.k), count(*) FROM held a JOIN held b ON a.v = b.v AND a.col <> b.col "
        f"WHERE b.col IN ({', '.join(map(str, fields))}) GROUP BY ALL"
    )
    database.run("DROP TABLE held")
    return {
        (columns[a], columns[b]): Overlap(float(rows) / float(sums[a][0]), values / sums[a][1])
        for a, b, rows, values in found
        if rows
    }


# ---------------------------------------------------------------- joins
def list_joins(database: Database, frames: Sequence[Frame], shares: dict[tuple[Column, Column], Overlap]) -> list[Join]:
    """List all links between entities, also those by chance."""
    by_field: dict[Column, list[Column]] = defaultdict(list)
    for (column, named), share in shares.items():
        if share.rows >= HELD_MIN and _may_name(column, named):
            by_field[named].append(column)
    found: list[Join] = []
    for source in frames:
        for target in frames:
            for pairs in _list_pairings(source, target, by_field):
                join = _measure(database, source, target, pairs)
                if join is not None:
                    found.append(join)
            if not any(one.source is source and one.target is target for one in found):
                for pair in _list_partial_pairings(source, target, by_field):
                    join = _measure(database, source, target, (pair,))
                    if join is not None and not join.by_chance:
                        found.append(join)
    _tell_kin(shares)
    return _drop_idle_joins(found)


def _tell_kin(shares: dict[tuple[Column, Column], Overlap]) -> None:
    """Note which fields of keys are also in keys of other items, each once: a line has the number of its order."""
    for (column, field), share in shares.items():
        once = field.profile.distinct == field.frame.rows and field.frame is not column.frame
        if column.in_identity and once and share.rows >= MOST and column.path == field.path:
            column.frame.kin.append((column, field))


def _drop_idle_joins(joins: Sequence[Join]) -> list[Join]:
    """The links, without those by chance whose column names items of another entity by its name, or its own items."""
    spoken = {id(column) for join in joins if join.named >= 1.0 and join.held >= MOST for column in join.columns}
    return [join for join in joins if not (join.by_chance and any(_is_idle(one, spoken) for one in join.pairs))]


def _is_idle(pair: tuple[Column, Column], spoken: Collection[int]) -> bool:
    field, column = pair
    own = column.in_identity and len(column.frame.identity) == 1 and column.path != field.path
    return column.frame is not field.frame and (id(column) in spoken or own)


def _may_name(column: Column, field: Column) -> bool:
    """False for what only looks like a name: the same value everywhere, truth values, a text beside a binary value."""
    if (BINARY in column.profile.types) != (BINARY in field.profile.types):
        return False
    if column.profile.is_constant or column.profile.types <= {"b", "z"}:
        return score_name(column, field) >= 1.0 or column.in_identity
    return True


def _list_pairings(
    source: Frame, target: Frame, by_field: dict[Column, list[Column]]
) -> Iterator[tuple[tuple[Column, Column], ...]]:
    identity = source.identity
    if not identity:
        return
    choices: list[list[Column]] = []
    for field in identity:
        there = [one for one in by_field.get(field, []) if one.frame is target and not (one.first and source is target)]
        if source is target:
            there.append(field)
        there.sort(key=lambda one: -score_name(one, field))
        if not there:
            return
        choices.append(there)
    found = []
    for columns in islice(product(*choices), COMBINED_MAX * 8):
        if len(set(columns)) < len(columns) or columns == identity:
            continue
        found.append(tuple(zip(identity, columns, strict=True)))
    found.sort(key=lambda pairs: -sum(score_name(column, field) for field, column in pairs))
    yield from found[:COMBINED_MAX]


def _list_partial_pairings(
    source: Frame, target: Frame, by_field: dict[Column, list[Column]]
) -> Iterator[tuple[Column, Column]]:
    """Columns that name an item by one field of several, which alone tells its items apart."""
    if len(source.identity) > 1 and source is not target:
        for field in source.identity:
            if field.profile.distinct == source.rows:
                yield from ((field, one) for one in by_field.get(field, []) if one.frame is target)


def _measure(database: Database, source: Frame, target: Frame, pairs: tuple[tuple[Column, Column], ...]) -> Join | None:
    there = make_presence((column for _, column in pairs), "t")
    on = " AND ".join(make_equality(column, "t", field, "s") for field, column in pairs)
    names = ", ".join(f"t.{column.sql}" for _, column in pairs)
    total, held, sources = database.row(
        f"WITH named AS (SELECT {names}, count(*) k FROM {target.sql} t WHERE {there} GROUP BY ALL) "
        f"SELECT coalesce(sum(t.k), 0)::BIGINT, coalesce(sum(t.k) FILTER (s.rid IS NOT NULL), 0)::BIGINT, "
        f"count(s.rid) FROM named t LEFT JOIN {source.sql} s ON {on}"
    )
    if not held or held < HELD_MIN * total or sources < min(2, source.rows):
        return None
    if source is target and _is_self_link(database, source, pairs):
        return None
    varying = [(field, column) for field, column in pairs if not (field.profile.is_constant and len(pairs) > 1)]
    names_fit = min((score_name(column, field) for field, column in varying), default=0.0)
    dense = any(
        column.profile.is_dense and field.profile.is_dense for field, column in varying if column is not field
    ) and all(column is field or column.profile.is_whole or column.profile.is_small for field, column in varying)
    spread = math.prod(max(field.profile.distinct, 1) for field, _ in varying)
    if len(varying) > 1 and source.rows <= PAIRED * spread and held >= MOST * total:
        dense = False  # each field may be met by chance, all of them together hardly
    return Join(source, target, pairs, held / total, sources / max(source.rows, 1), held / sources, names_fit, dense)


def _is_self_link(database: Database, frame: Frame, pairs: Sequence[tuple[Column, Column]]) -> bool:
    """True if most items name themselves, by a second attribute with their id."""
    own = " AND ".join(make_equality(column, "t", field, "t") for field, column in pairs)
    there = make_presence((column for _, column in pairs), "t")
    total, same = database.row(f"SELECT count(*), count(*) FILTER ({own}) FROM {frame.sql} t WHERE {there}")
    return bool(2 * same >= total)


def score_name(column: Column, field: Column) -> float:
    """Return how well the name of a column says that it names items of the field's entity: 0 to 1."""
    mine = frozenset(split_words(column.road[-1]))
    theirs = frozenset(split_words(field.road[-1]))
    spoken = [make_singular(word) for word in split_words(field.frame.name)]
    entity, head = frozenset({*field.frame.words, *spoken}), spoken[-1] if spoken else ""
    own = theirs - GENERIC
    if mine == theirs and own:
        return 1.0
    kept = frozenset(make_singular(word) for word in mine - GENERIC)
    if head in kept and kept <= entity | own:
        return 1.0
    if own and own <= mine:
        return 0.9
    if head in kept:
        return 0.8 if mine & GENERIC or not own else 0.6
    if column.frame is field.frame and mine & PARENTS:
        return 0.8
    outer = frozenset(make_singular(word) for part in column.road[:-1] for word in split_words(part))
    if head in outer and mine & (GENERIC | theirs):
        return 0.9
    return 0.0
