"""A data set as a careless team has it: items whose copies a script wrote once, and the truth of what was copied of what.

Invariant: the truth is computed in plain Python from records, and shares no line with the rules or with the search for
them. Fields of a record whose name begins with `_` say what its key is made of, and are not stored.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from sync_rules.extras.discover.propose.table_files import Gathered
from sync_rules.model.python_values import make_raw_value
from sync_rules.model.values import AttributeValue, Item
from tests.support.gathering import PlainTable, gathered

Record = dict[str, Any]
Wanted = Iterable[tuple[Record, Any]]  # each target, and what its attribute must hold; None: nothing
ABSENT: Final = None
GONE: Final = 0.15  # the share of drifted copies that are missing
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass
class Truth:
    """One attribute that is made of others. `into` and `reads` are an entity and a path, as in `order.user_name`.

    `reads` are sources; a right rule reads at least one of them. `make` gives what each target must hold by the
    data as they are. A `natural` truth came with the data: it may be proposed, and need not be.
    """

    kinds: frozenset[str]
    into: str
    reads: frozenset[str]
    make: Callable[[], Wanted]
    snapshot: bool = False
    natural: bool = False

    @property
    def place(self) -> tuple[str, str]:
        entity, _, path = self.into.partition(".")
        return entity, path


@dataclass
class Table:
    """A table: the names of its key, and of the key of each index."""

    key: tuple[str, ...]
    indexes: Mapping[str, tuple[str, ...]]


@dataclass
class DataSet:
    """Tables, the records of each entity, and the truths."""

    name: str
    tables: dict[str, Table] = field(default_factory=dict)
    table_of: dict[str, str] = field(default_factory=dict)
    entities: dict[str, list[Record]] = field(default_factory=dict)
    truths: list[Truth] = field(default_factory=list)
    clean: dict[int, dict[int, Any]] = field(default_factory=dict)  # by truth: by record: what was right

    # ------------------------------------------------------------ making it
    def table(self, name: str, *key: str, **indexes: tuple[str, ...]) -> None:
        self.tables[name] = Table(key, indexes)

    def entity(self, name: str, table: str, records: list[Record]) -> list[Record]:
        self.table_of[name], self.entities[name] = table, records
        return records

    def keep(self, truth: Truth) -> Truth:
        """Write what the truth says, as a script of the team did once."""
        self.truths.append(truth)
        for record, value in () if truth.snapshot else list(truth.make()):
            put(record, truth.place[1], value)
        return truth

    def natural(self, truth: Truth) -> Truth:
        """A truth that the data came with."""
        truth.natural = True
        self.truths.append(truth)
        return truth

    # ------------------------------------------------------------ drift
    def plant(self, share: float, seed: int = 0) -> None:
        """Note what is right, then make this share of the targets of each truth wrong."""
        rng = random.Random(f"{self.name} {seed}")
        self.clean = {number: {id(r): deepcopy(v) for r, v in truth.make()} for number, truth in enumerate(self.truths)}
        for truth in self.truths:
            if not truth.snapshot and not truth.natural:
                _plant(truth, share, rng)

    def differing(self, number: int, path: str = "") -> frozenset[int]:
        """The numbers of targets that differ: from what the items beside them say now, and from what was right. With a
        `path`, in that one of several.
        """
        truth = self.truths[number]
        names = truth.place[1]
        wanted = [(record, value, self.clean[number][id(record)]) for record, value in truth.make()]
        if path and path != names:
            wanted = [(record, (value or {}).get(path), (clean or {}).get(path)) for record, value, clean in wanted]
            names = path
        now = sum(not alike(get(record, names), value) for record, value, _ in wanted)
        ever = sum(not alike(get(record, names), clean) for record, _, clean in wanted)
        return frozenset({now, ever})

    # ------------------------------------------------------------ as DynamoDB has it
    def _type(self, table: str, attribute: str) -> Any:
        for entity, records in self.entities.items():
            if self.table_of[entity] == table:
                for record in records:
                    if attribute in record:
                        return next(iter(make_raw_value(record[attribute])))
        return "S"

    def records(self) -> Iterator[tuple[str, Record]]:
        """Each record with its entity."""
        for entity, records in self.entities.items():
            for record in records:
                yield entity, record

    def gathered(self, folder: Path) -> Gathered:
        """All tables, written as the data files of an export."""
        return gathered(folder, *map(self._resolve_branches, self.tables), files=3)

    def _resolve_branches(self, name: str) -> PlainTable:
        """A table with its items, shuffled as a scan has them."""

        def types(names: Iterable[str]) -> dict[str, str]:
            return {one: self._type(name, one) for one in names}

        items = [shown(record) for entity, record in self.records() if self.table_of[entity] == name]
        random.Random(f"{self.name} {name}").shuffle(items)
        table = self.tables[name]
        return PlainTable(name, types(table.key), items, {index: types(key) for index, key in table.indexes.items()})


# ---------------------------------------------------------------- records
def get(record: Mapping[str, Any], path: str) -> Any:
    """The value at a path of names; None where there is none. Several paths, joined by blanks, are a map."""
    if " " in path:
        return {one: get(record, one) for one in path.split()}
    found: Any = record
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return ABSENT
        found = found[name]
    return found


def put(record: Record, path: str, value: Any) -> None:
    """Write a value at a path, and make the maps on the way; remove it where there is none."""
    if " " in path:
        for one in path.split():
            put(record, one, value.get(one))
        return
    *way, last = path.split(".")
    at = record
    for name in way:
        at = at.setdefault(name, {})
    if value is ABSENT or value == set():
        at.pop(last, None)
    else:
        at[last] = deepcopy(value)


def alike(found: Any, wanted: Any) -> bool:
    """True for values that DynamoDB takes for equal; a set without elements is none."""
    found, wanted = (ABSENT if value == set() else value for value in (found, wanted))
    return stored(found) == stored(wanted)


def shown(record: Record) -> Record:
    """The attributes of a record that are stored."""
    return {name: value for name, value in record.items() if not name.startswith("_") and value is not None}


def item_of(record: Record) -> Item:
    """The record as DynamoDB's JSON."""
    return {name: stored(value) for name, value in shown(record).items()}


def stored(value: Any) -> AttributeValue:
    """A value as DynamoDB's JSON, with sets in order, so that equal data sets have equal files."""
    raw = make_raw_value(value)
    return {kind: sorted(content) if kind in ("SS", "NS") else content for kind, content in raw.items()}


# ---------------------------------------------------------------- what is wrong
def _plant(truth: Truth, share: float, rng: random.Random) -> None:
    path = truth.place[1]
    held = [record for record, _ in truth.make() if get(record, path) is not ABSENT]
    values = [get(record, path) for record in held]
    chosen = rng.sample(range(len(held)), round(share * len(held)))
    for at in chosen:
        wrong = stale(values[at], values, rng)
        gone = rng.random() < GONE and truth.kinds == {"copy"}
        put(held[at], path, ABSENT if gone else wrong)


def stale(value: Any, others: Sequence[Any], rng: random.Random) -> Any:
    """Another value than this one, such as the script of a careless team leaves: a former one, or one of another item."""
    other = rng.choice(others)
    if (
        rng.random() < 0.5
        and not alike(other, value)
        and other is not None
        and not isinstance(value, set | dict | list)
    ):
        return other
    match value:
        case bool():
            return not value
        case int() | Decimal():
            return value + rng.choice([-3, -1, 1, 2, 5])
        case str() if DATE.match(value):
            return f"{int(value[:4]) - 1}{value[4:]}" if value[5:10] != "02-29" else f"{value[:8]}28{value[10:]}"
        case str():
            return f"{value} {rng.choice(['old', 'II', 'ltd', 'x'])}{rng.randrange(100)}"
        case set():
            return (
                _less(sorted(value, key=str), rng, set) if len(value) > 1 else value | {type(next(iter(value)))(99991)}
            )
        case list():
            return _less(value, rng, list) if value else [*value, "x"]
        case dict() if None in value.values() or (value and all(isinstance(v, str) for v in value.values())):
            name = rng.choice([name for name, inner in value.items() if inner is not None])
            return {**value, name: stale(value[name], [value[name]], rng)}
        case dict():
            return dict(_less(list(value.items()), rng, list)) if value else {"x": 1}
    raise AssertionError(f"no other value than {value!r}")


def _less(entries: Sequence[Any], rng: random.Random, made: Callable[[Iterable[Any]], Any]) -> Any:
    left = list(entries)
    left.pop(rng.randrange(len(left)))
    return made(left)
