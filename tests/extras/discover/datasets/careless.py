"""Scripts of a careless team: what it does to its data once: each kind of copy, written by a script, with its truth.

Invariant: a function here writes what a rule of the same kind would write, and says so as a truth, by plain loops.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sync_rules.model.numbers import compute_mean
from tests.extras.discover.datasets.dataset import ABSENT, DataSet, Record, Truth, Wanted, get, put

Link = Mapping[str, str]  # from a field of the source to the field of the target that names it
Test = Callable[[Record], Any]
CHANGED = 0.4  # of the sources of snapshots, later


class Way:
    """The way from the items that name a source to it. A field is an attribute, or a `_field` that the key is made of."""

    def __init__(self, data: DataSet, source: str, target: str, link: Link) -> None:
        self.sources, self.targets = data.entities[source], data.entities[target]
        self._own, self._named = tuple(link), tuple(link.values())

    def pairs(self) -> Iterator[tuple[Record, Record]]:
        """Each target with its source."""
        known = {tuple(get(source, name) for name in self._own): source for source in self.sources}
        for target in self.targets:
            source = known.get(tuple(get(target, name) for name in self._named))
            if source is not None:
                yield target, source

    def families(self) -> Iterator[tuple[Record, list[Record]]]:
        """Each source with all items that name it."""
        members: dict[int, list[Record]] = defaultdict(list)
        for target, source in self.pairs():
            members[id(source)].append(target)
        for source in self.sources:
            yield source, members[id(source)]


def _entity(ref: str) -> str:
    return ref.partition(".")[0]


def _path(ref: str) -> str:
    return ref.partition(".")[2]


def copied(data: DataSet, source: str, into: str, link: Link) -> Truth:
    """An attribute of the source on each item that names it."""
    way = Way(data, _entity(source), _entity(into), link)
    path = _path(source)

    def make() -> Wanted:
        return [(target, get(found, path)) for target, found in way.pairs()]

    return Truth(frozenset({"copy"}), into, frozenset({source}), make)


def taken(data: DataSet, source: str, into: str, link: Link, at: str) -> Truth:
    """A snapshot: sources changed later, and items from before hold what it was then. `at` orders the items."""
    way = Way(data, _entity(source), _entity(into), link)
    path, rng = _path(source), random.Random(f"{data.name} {into} 0")

    def make() -> Wanted:
        return [(target, get(found, path)) for target, found in way.pairs()]

    truth = Truth(frozenset({"copy"}), into, frozenset({source}), make, snapshot=True)
    for target, value in make():
        put(target, _path(into), value)
    for found, targets in list(way.families()):
        value = get(found, path)
        if value is not ABSENT and targets and rng.random() < CHANGED:
            times = sorted(get(target, at) for target in targets)
            since = times[rng.randrange(len(times))]
            text = isinstance(value, str)
            put(
                found,
                path,
                f"{value} {rng.randrange(2, 9)}" if text else value + Decimal(rng.randrange(100, 900)) / 100,
            )
            for target in targets:
                if get(target, at) >= since:
                    put(target, _path(into), get(found, path))
    return truth


def derived(data: DataSet, into: str, reads: Collection[str], made: Test) -> Truth:
    """An attribute that is made of others of its item. `made` gives None where one of them is missing."""
    records, entity = data.entities[_entity(into)], _entity(into)
    kinds = frozenset({"derive", "copy"})
    return Truth(kinds, into, frozenset(f"{entity}.{name}" for name in reads), lambda: [(r, made(r)) for r in records])


def counted(data: DataSet, function: str, child: str, into: str, link: Link, *, where: Test | None = None) -> Truth:
    """count, sum, mean, min or max over the items that name a parent; `where` they satisfy a condition."""
    way = Way(data, _entity(into), _entity(child), link)
    path = _path(child)

    def make() -> Wanted:
        for parent, members in way.families():
            meant = [member for member in members if where is None or where(member)]
            amounts = [get(member, path) for member in meant] if path else []
            yield parent, _number(function, meant, [amount for amount in amounts if amount is not ABSENT])

    return Truth(frozenset({function}), into, frozenset({child}), make)


def _number(function: str, members: Sequence[Record], amounts: Sequence[Any]) -> Any:
    match function:
        case "count":
            return len(members)
        case "sum":
            return sum(amounts, Decimal(0))
        case "mean":
            return compute_mean(sum(amounts, Decimal(0)), Decimal(len(amounts)), 2) if amounts else ABSENT
        case "min":
            return min(amounts, default=ABSENT)
    return max(amounts, default=ABSENT)


def embedded(
    data: DataSet,
    child: str,
    into: str,
    link: Link,
    fields: Sequence[str],
    *,
    by: str = "",
    order: str = "",
    last: int = 0,
) -> Truth:
    """The children as a map, named `by` a field, or the `last` of them by `order` as a list."""
    way = Way(data, _entity(into), child, link)

    def entry(member: Record) -> Record:
        return {name: value for name in fields if (value := get(member, name)) is not ABSENT}

    def make() -> Wanted:
        for parent, members in way.families():
            if by:
                yield parent, {str(get(member, by)): entry(member) for member in members}
            else:
                ordered = sorted(members, key=lambda member: get(member, order), reverse=True)
                yield parent, [entry(member) for member in ordered[:last]]

    return Truth(frozenset({"embed"}), into, frozenset(f"{child}.{name}" for name in fields), make)


def collected(data: DataSet, child: str, into: str, link: Link) -> Truth:
    """The set of the values of an attribute of the children, or of their ids."""
    way = Way(data, _entity(into), _entity(child), link)
    path = _path(child)

    def make() -> Wanted:
        for parent, members in way.families():
            yield parent, {value for member in members if (value := get(member, path)) is not ABSENT}

    return Truth(frozenset({"collect"}), into, frozenset({child}), make)


def pathed(data: DataSet, into: str, own: str, parent: str, separator: str = "|", *, name: str = "") -> Truth:
    """The ids, or the names, from the root to the item."""
    records, path = data.entities[_entity(into)], _path(into)
    entity = _entity(into)

    def make() -> Wanted:
        known = {get(record, own): record for record in records}

        def steps(record: Record) -> Iterator[str]:
            above = known.get(get(record, parent))
            if above is not None:
                yield from steps(above)
            yield str(get(record, name or own))

        return [(record, separator.join(steps(record))) for record in records]

    reads = {f"{entity}.{one}" for one in (path, own, parent, name) if one}
    return Truth(frozenset({"path"}), into, frozenset(reads), make)


def depth(data: DataSet, into: str, own: str, parent: str) -> Truth:
    """The number of items above the item."""
    truth = pathed(data, into, own, parent, "|")
    paths = truth.make

    def make() -> Wanted:
        return [(record, text.count("|")) for record, text in paths()]

    return Truth(frozenset({"path"}), into, truth.reads, make)


def mirrored(
    data: DataSet, source: str, into: str, made: Callable[[Record], Record], *, attributes: Sequence[str], key: str
) -> Truth:
    """A second item for each item, `made` of it without the attributes. `key` is the `_field` that both share."""
    data.entities[into] = [made(record) for record in data.entities[source]]

    def make() -> Wanted:
        known = {get(record, key): record for record in data.entities[source]}
        for mirror in data.entities[into]:
            yield mirror, {name: get(known[get(mirror, key)], name) for name in attributes}

    reads = frozenset(f"{source}.{name}" for name in attributes)
    return Truth(frozenset({"mirror", "copy"}), f"{into}.{' '.join(attributes)}", reads, make)


def _rank(member: Record, order: str) -> tuple[bool, Any]:
    """The place of an item in an order: those without the field come first."""
    value = get(member, order)
    return value is not ABSENT, value


def newest(data: DataSet, child: str, into: str, link: Link, fields: Sequence[str] | str, *, order: str) -> Truth:
    """The fields of the newest item that names a parent, as a map; or one field, as its text."""
    way = Way(data, _entity(into), child, link)
    names = [fields] if isinstance(fields, str) else fields

    def make() -> Wanted:
        for parent, members in way.families():
            chosen = sorted(members, key=lambda member: _rank(member, order), reverse=True)[:1]
            shown = [{name: value for name in names if (value := get(one, name)) is not ABSENT} for one in chosen]
            plain = [one.get(fields) for one in shown] if isinstance(fields, str) else shown
            yield parent, plain[0] if plain else ABSENT

    return Truth(frozenset({"collect"}), into, frozenset(f"{child}.{name}" for name in names), make)


def formed(data: DataSet, child: str, into: str, link: Link, *fields: str) -> Truth:
    """A set with a text for each item that names a parent: some of its fields, joined."""
    way = Way(data, _entity(into), child, link)

    def make() -> Wanted:
        for parent, members in way.families():
            values = [[get(member, name) for name in fields] for member in members]
            yield parent, {"#".join(map(str, one)) for one in values if ABSENT not in one}

    return Truth(frozenset({"collect"}), into, frozenset({child}), make)


def rolled(data: DataSet, function: str, child: str, into: str, *, group: Test, named: Test) -> Truth:
    """A number of the items of one group, on an item of its own: `group` of an item, and of that item `named`."""
    parents, members, path = data.entities[_entity(into)], data.entities[_entity(child)], _path(child)

    def make() -> Wanted:
        for parent in parents:
            own = [one for one in members if group(one) == named(parent)]
            amounts = [value for one in own if path and (value := get(one, path)) is not ABSENT]
            yield parent, _number(function, own, amounts)

    return Truth(frozenset({function}), into, frozenset({child}), make)
