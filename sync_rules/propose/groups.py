"""Maps, lists and sets of parents that their children make: embed, collect, and counts by a value.

Invariant: what a parent should hold is made of its children as the rule would make it, and compared as a whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from sync_rules.imports.names import singular
from sync_rules.propose.copies import EXAMPLES
from sync_rules.propose.database import Database
from sync_rules.propose.evidence import AGREE_MIN, BITS_ALONE, BITS_NAMED, KAPPA_MIN, VALUES_ALONE, Agreement, chance_of
from sync_rules.propose.findings import Finding, Grade
from sync_rules.propose.frames import Column
from sync_rules.propose.links import Join
from sync_rules.propose.numbers import Condition, conditions, may_decide
from sync_rules.propose.proposal import Example
from sync_rules.propose.values import LIST, MAP, NUMBER, STRING, TEXTS, unescaped

PARENTS: Final = 1_500  # in the sample, each with all of its children
PART: Final = 20_000  # parents that are counted together
PROBE: Final = 40
PROBE_MIN: Final = 0.4
CHILDREN_MAX: Final = 500  # of a parent in the sample, on average
ORDERS_MAX: Final = 12
MOST: Final = 0.7  # of the entries: the others may be faults
HALF: Final = 0.5  # agree at least: each of several children may be wrong
FEW: Final = 0.2  # agree at least where most of their entries do
RARE: Final = 0.1
SEVERAL: Final = 3
LONG_MIN: Final = 6  # letters of a text that several values may be joined in
LIMIT_MIN: Final = 20
Row = tuple[Any, ...]  # of a child: a typed text for each column
Expected = Callable[[Sequence[Row]], Any]


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
class Shape:
    """A way to make what a parent holds: the rule, the columns that it reads, and what is expected of some children."""

    kind: str
    rule: Mapping[str, Any]
    reads: tuple[Column, ...]
    expected: Expected
    found: Callable[[Parent], Any]
    plainness: int = 0


def groups(database: Database, join: Join) -> list[Finding]:
    """Find the maps, lists and sets of the items that a link points to which hold the items that point."""
    source = join.source
    columns = {column.road: column for column in source.columns if column.writable}
    roads = [columns[road] for road in source.roads if road in columns]
    roads += [one for one in columns.values() if one.profile.is_text and one.profile.longest > LONG_MIN]
    if not roads or (join.by_chance and join.source is join.target) or join.each > CHILDREN_MAX:
        return []
    search = _Search(database, join)
    return [finding for column in roads for finding in search.of(column)]


class _Search:
    """The search along one link."""

    def __init__(self, database: Database, join: Join) -> None:
        self.database, self.join = database, join
        self.columns = [one for one in join.target.columns if not one.is_shadowed and one.profile.count]
        self.places = {id(column): place for place, column in enumerate(self.columns)}
        linked = {id(column) for column in join.columns}
        self.own = [one for one in join.target.identity if id(one) not in linked]
        parts = max(1, join.source.rows // PARENTS)
        self.children = self._children(parts)
        self.parts = parts

    def of(self, column: Column) -> Iterator[Finding]:
        """The best finding for one attribute of the parents."""
        sample = [one for one in self._parents(column, self.parts, self.children).values() if one.held or one.children]
        there = [one for one in sample if one.held]
        if len(there) < 2:  # noqa: PLR2004 - one parent shows nothing
            return
        best: tuple[Shape, Agreement, Condition | None] | None = None
        for condition in [None, *self._conditions(column, sample)]:
            shown = _left(sample, condition, self.places)
            for shape in self._shapes(column, shown):
                agreement = _agreement(shape, shown)
                if agreement is not None and (
                    best is None or agreement.rate > best[1].rate + (0.02 if condition else 0.0005)
                ):
                    best = shape, agreement, condition
            if best is not None and best[1].rate >= AGREE_MIN and condition is None:
                break
        if best is not None:
            yield self._counted(column, *best)

    # ------------------------------------------------------------ reading
    def _children(self, parts: int, part: int = 0) -> dict[int, list[Row]]:
        names = ", ".join(f"t.{one.sql}" for one in self.columns)
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self.database.each(
            f"SELECT s.rid, {names} FROM "
            f"(SELECT * FROM {self.join.source.sql} s WHERE hash(s.rid) % {parts} = {part}) s "
            f"JOIN {self.join.target.sql} t ON {self.join.on()}"
        ):
            found[row[0]].append(row[1:])
        return found

    def _parents(
        self, column: Column, parts: int, children: Mapping[int, list[Row]], part: int = 0
    ) -> dict[int, Parent]:
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

    # ------------------------------------------------------------ shapes
    def _conditions(self, column: Column, sample: Sequence[Parent]) -> Iterator[Condition]:
        """Conditions under which as many children are left as the parents have entries."""
        probe = [one for one in sample if one.entries][:PROBE]
        if column.profile.types <= {"S", "N"}:
            probe = probe[: PROBE // 2]
        for decider in self.columns:
            if not may_decide(decider):
                continue
            place = self.places[id(decider)]
            values = {row[place] for parent in sample for row in parent.children}
            for condition in conditions(decider, values):
                counts = [sum(row[place] in condition.values for row in one.children) for one in probe]
                hits = sum(count >= len(one.entries) for count, one in zip(counts, probe, strict=True))
                exact = sum(count == len(one.entries) for count, one in zip(counts, probe, strict=True))
                is_set = column.profile.types <= {"S", "N", "z"}
                if hits >= PROBE_MIN * len(probe) and (is_set or exact >= PROBE_MIN * len(probe)):
                    yield condition

    def _shapes(self, column: Column, sample: Sequence[Parent]) -> Iterator[Shape]:
        types = column.profile.types - {"z"}
        if types == {STRING}:
            yield from self._joined(column, sample)
            return
        entries = [entry for parent in sample for entry in parent.entries]
        if not entries:
            return
        most = MOST * len(entries)
        inner = Counter(entry.value[:1] for entry in entries)
        if types <= {"S", "N"} or (LIST in types and inner[STRING] + inner[NUMBER] >= most):
            yield from self._values(column, sample)
        elif MAP in types and inner[NUMBER] >= most:
            yield from self._by_value(column)
        elif types & {MAP, LIST} and inner[MAP] >= most:
            yield from self._embedded(column, sample)

    def _values(self, column: Column, sample: Sequence[Parent]) -> Iterator[Shape]:
        """Sets and lists of a column's values, or of the children's ids."""
        is_list = LIST in column.profile.types
        letter = NUMBER if "N" in column.profile.types else ""
        child = self.join.target.name
        held = _most_overlapping(sample, self.columns, self.places)
        for one in held:
            place = self.places[id(one)]
            options: dict[str, Any] = {}
            if letter:
                options["numbers"] = True
            if not is_list:
                as_id = self.own == [one]
                rule = {"collect": child if as_id else one.shown, "into": column.shown}
                rule |= {"as": f"{{{one.path}}}"} if as_id else {}
                yield self._shape("collect", {**rule, **options}, (one,), _set_of(place, letter), _held_set)
                continue
            for order, key, reverse in self._orders(one):
                rule = {"collect": one.shown, "into": column.shown, "as": "list"}
                rule |= {"order": order} if order else {}
                for limit in _limits(sample):
                    for distinct in (False, True):
                        told = {
                            **rule,
                            **({"distinct": True} if distinct else {}),
                            **({"limit": limit} if limit else {}),
                        }
                        made = _list_of(place, key, reverse=reverse, distinct=distinct, limit=limit)
                        yield self._shape("collect", told, (one,), made, _held_list)

    def _joined(self, column: Column, sample: Sequence[Parent]) -> Iterator[Shape]:
        """One text of the values of all children."""
        several = [one for one in sample if one.held and len(one.children) > 1][:PROBE]
        if len(several) < 3:  # noqa: PLR2004 - too few to tell
            return
        for one in self.columns:
            place = self.places[id(one)]
            if not one.profile.types <= {*TEXTS, "z"} or one.profile.is_constant:
                continue
            between = Counter(
                _between(parent.held or "", [row[place] for row in parent.children]) for parent in several
            )
            between.pop(None, None)
            (separator, count), *_ = between.most_common(1) or [(None, 0)]
            if separator is None or count < PROBE_MIN * len(several):
                continue
            for order, key, reverse in self._orders(one):
                for distinct in (False, True):
                    rule = {"collect": one.shown, "into": column.shown, "join": unescaped(separator)}
                    rule |= {"order": order} if order else {}
                    told = {**rule, **({"distinct": True} if distinct else {})}
                    listed = _list_of(place, key, reverse=reverse, distinct=distinct, limit=0)
                    yield self._shape("collect", told, (one,), _text_of(listed, separator), _held_text)

    def _by_value(self, column: Column) -> Iterator[Shape]:
        """A map with a number for each value of a column: a count, or a sum."""
        for one in self.columns:
            if one.in_identity or not one.profile.types <= {*TEXTS, "z"} or one.profile.distinct > LIMIT_MIN * 10:
                continue
            place = self.places[id(one)]
            rule = {"count": self.join.target.name, "into": column.shown, "per": one.path}
            yield self._shape("count", rule, (one,), _counts_of(place), _held_numbers)
            for amount in self.columns:
                if amount is not one and amount.profile.is_number and not amount.in_identity:
                    told = {"sum": amount.shown, "into": column.shown, "per": one.path}
                    made = _sums_of(place, self.places[id(amount)])
                    yield self._shape("sum", told, (one, amount), made, _held_numbers)

    def _embedded(self, column: Column, sample: Sequence[Parent]) -> Iterator[Shape]:
        """Maps and lists of maps, whose fields are columns of the children."""
        names = Counter(name for parent in sample for entry in parent.entries for name in entry.fields)
        total = sum(len(parent.entries) for parent in sample)
        fields: dict[str, Column] = {}
        for name, count in names.items():
            best = self._field(name, sample)
            if best is not None:
                fields[name] = best
            elif count > 0.05 * total:
                return
        if not fields:
            return
        cells = [(name, self.places[id(one)]) for name, one in fields.items()]
        plain = all(name == one.path for name, one in fields.items())
        shown: Any = list(fields) if plain else {one.path: name for name, one in fields.items()}
        rule = {"embed": self.join.target.name, "into": column.shown}
        reads = tuple(fields.values())
        most = max(len(parent.entries) for parent in sample)
        if MAP in column.profile.types:
            for by, made in self._namings(sample):
                told = {**rule, **({"by": by} if by else {}), "fields": shown}
                told |= {"limit": {"items": max(LIMIT_MIN, 2 * most)}}
                yield self._shape("embed", told, reads, _map_of(made, cells), _held_map)
            return
        for order, key, reverse in self._orders(None):
            for limit in _limits(sample):
                told = {**rule, "fields": shown, "as": "list"}
                told |= {"order": order} if order else {}
                told |= {"limit": {"items": limit or max(LIMIT_MIN, 2 * most)}}
                told |= {"on_overflow": "oldest"} if limit else {}
                yield self._shape("embed", told, reads, _maps_of(cells, key, reverse=reverse, limit=limit), _held_maps)

    def _field(self, name: str, sample: Sequence[Parent]) -> Column | None:
        """The column of the children that fills a field of the entries."""
        hits: Counter[int] = Counter()
        total = 0
        for parent in sample[: 10 * PROBE]:
            there = Counter(entry.fields[name] for entry in parent.entries if name in entry.fields)
            total += sum(there.values())
            for place in range(len(self.columns)):
                own = Counter(row[place] for row in parent.children)
                hits[place] += sum(min(count, own[value]) for value, count in there.items())
        good = [place for place, count in hits.items() if count >= AGREE_MIN * total]
        named = [place for place in good if self.columns[place].path == name]
        best = named or sorted(good, key=lambda place: (-hits[place], -self.columns[place].profile.distinct))
        return self.columns[best[0]] if best else None

    def _namings(self, sample: Sequence[Parent]) -> Iterator[tuple[str, Callable[[Row], str]]]:
        """The names of the entries: the ids of the children, or one of their columns."""
        places = [self.places[id(one)] for one in self.own]

        def by_id(row: Row) -> str:
            return "#".join((row[place] or " ")[1:] for place in places)

        if places and _names_overlap(sample, by_id):
            yield "", by_id
            return
        for one in self.columns:
            place = self.places[id(one)]

            def by_column(row: Row, place: int = place) -> str:
                return (row[place] or " ")[1:]

            if one.profile.types <= {*TEXTS, "z"} and _names_overlap(sample, by_column):
                yield f"{{{one.path}}}", by_column

    def _orders(self, own: Column | None) -> Iterator[tuple[str, Callable[[Row], Any], bool]]:
        """The orders that lists may have: by value or by name, then by each column, both ways."""
        places = [self.places[id(one)] for one in self.own]

        def by_names(row: Row) -> Any:
            return "#".join((row[place] or " ")[1:] for place in places)

        yield "", (by_names if own is None else lambda row: _rank(row[self.places[id(own)]])), False
        candidates = [one for one in self.columns if one.profile.types <= {*TEXTS, "z"} and one.profile.distinct > 1]
        candidates.sort(key=lambda one: (not one.profile.is_date, not one.in_identity, -one.profile.distinct))
        for one in candidates[:ORDERS_MAX]:
            place = self.places[id(one)]

            def by_column(row: Row, place: int = place) -> Any:
                return _rank(row[place]), by_names(row)

            yield one.path, by_column, False
            yield f"-{one.path}", by_column, True

    def _shape(
        self,
        kind: str,
        rule: Mapping[str, Any],
        reads: tuple[Column, ...],
        made: Expected,
        held: Callable[[Parent], Any],
    ) -> Shape:
        return Shape(kind, rule, reads, made, held)

    # ------------------------------------------------------------ counting
    def _counted(self, column: Column, shape: Shape, sample: Agreement, condition: Condition | None) -> Finding:
        agree = checked = sources = 0
        differing: list[Example] = []
        parts = 1 + self.join.source.rows // PART
        for part in range(parts):
            parents = self._parents(column, parts, self._children(parts, part), part).values()
            for parent in _left(list(parents), condition, self.places):
                checked += 1
                sources += bool(parent.children)
                if _same(shape.expected(parent.children), shape.found(parent)):
                    agree += 1
                else:
                    differing.append(Example(parent.key, "what its children make", parent.held or "nothing"))
            differing = sorted(differing, key=lambda one: one.key)[:EXAMPLES]
        named = _named(column, self.join, shape)
        grade, contra = _judged(self.join, sample, agree / checked if checked else 0.0, named)
        rule = dict(shape.rule)
        if condition is not None:
            rule["where"] = condition.where
        if self.join.link:
            rule["link"] = self.join.link
        reads = (*shape.reads, *((condition.column,) if condition else ()))
        inside = tuple(
            one for one in self.join.source.columns if one.road[: len(column.road)] == column.road and one is not column
        )
        finding = Finding(
            shape.kind, self.join.target, self.join.source, (column, *inside), reads, rule, grade, checked, agree
        )
        finding.join, finding.sources, finding.examples, finding.named = self.join, sources, tuple(differing), named
        finding.plainness = 12 + 2 * bool(condition)
        finding.spoke_for = [f"{agree} of {checked} agree, {sample.chance:.1%} would by chance"]
        finding.spoke_against = contra
        finding.figures = {
            "rate": finding.rate,
            "chance": sample.chance,
            "kappa": sample.kappa,
            "values": sample.values,
        }
        return finding


# ---------------------------------------------------------------- what a parent should hold, and holds
def _rank(text: str | None) -> tuple[int, Any]:
    """The place of a value among others: nothing first, then numbers, then texts."""
    if text is None or text == STRING:
        return 0, 0
    return (1, Decimal(text[1:])) if text[0] == NUMBER else (2, text[1:])


def _set_of(place: int, letter: str) -> Expected:
    def made(rows: Sequence[Row]) -> Any:
        kind = letter or STRING
        values = (row[place] for row in rows if row[place] and row[place][0] in TEXTS and len(row[place]) > 1)
        return frozenset(kind + value[1:] for value in values) or None

    return made


def _list_of(place: int, key: Callable[[Row], Any], *, reverse: bool, distinct: bool, limit: int) -> Expected:
    def made(rows: Sequence[Row]) -> Any:
        usable = [row for row in rows if row[place] and row[place][0] in TEXTS and len(row[place]) > 1]
        values = [row[place] for row in sorted(usable, key=key, reverse=reverse)]
        values = list(dict.fromkeys(values)) if distinct else values
        return values[:limit] if limit else values

    return made


def _text_of(listed: Expected, separator: str) -> Expected:
    def made(rows: Sequence[Row]) -> Any:
        return separator.join(value[1:] for value in listed(rows)) or None

    return made


def _between(text: str, values: Sequence[str | None]) -> str | None:
    """The text between two values of a text that is made of all of them; None for any other text."""
    told = sorted({value[1:] for value in values if value and len(value) > 1}, key=len, reverse=True)
    places = sorted((at, len(one)) for one in told if (at := text.find(one, 1)) > 0)
    if len(told) < 2 or len(places) < len(told) or places[0][0] != 1:  # noqa: PLR2004 - two values have a text between
        return None
    (first, length), (second, _), *_ = places
    between = text[first + length : second]
    return between if 0 < len(between) <= LONG_MIN else None


def _counts_of(place: int) -> Expected:
    def made(rows: Sequence[Row]) -> Any:
        counts = Counter(row[place][1:] for row in rows if row[place] and len(row[place]) > 1)
        return {value: Decimal(count) for value, count in counts.items()}

    return made


def _sums_of(place: int, amount: int) -> Expected:
    def made(rows: Sequence[Row]) -> Any:
        found: dict[str, Decimal] = defaultdict(Decimal)
        for row in rows:
            if row[place] and len(row[place]) > 1 and row[amount]:
                found[row[place][1:]] += Decimal(row[amount][1:])
        return dict(found)

    return made


def _fields_of(row: Row, cells: Sequence[tuple[str, int]]) -> dict[str, str]:
    return {name: row[place] for name, place in cells if row[place] is not None}


def _map_of(name: Callable[[Row], str], cells: Sequence[tuple[str, int]]) -> Expected:
    def made(rows: Sequence[Row]) -> Any:
        return {name(row): _fields_of(row, cells) for row in rows}

    return made


def _maps_of(cells: Sequence[tuple[str, int]], key: Callable[[Row], Any], *, reverse: bool, limit: int) -> Expected:
    def made(rows: Sequence[Row]) -> Any:
        ordered = sorted(rows, key=key)
        ordered = ordered[-limit:] if limit else ordered
        return [_fields_of(row, cells) for row in (reversed(ordered) if reverse else ordered)]

    return made


def _held_set(parent: Parent) -> Any:
    return frozenset(entry.value for entry in parent.entries) or None


def _held_text(parent: Parent) -> Any:
    return parent.held[1:] if parent.held else None


def _held_list(parent: Parent) -> Any:
    return [entry.value for entry in parent.entries] if parent.held else None


def _held_numbers(parent: Parent) -> Any:
    return {entry.name: Decimal(entry.value[1:]) for entry in parent.entries} if parent.held else None


def _held_map(parent: Parent) -> Any:
    return {entry.name: entry.fields for entry in parent.entries} if parent.held else None


def _held_maps(parent: Parent) -> Any:
    return [entry.fields for entry in parent.entries] if parent.held else None


def _same(expected: Any, held: Any) -> bool:
    return bool(expected == held)


def _near(expected: Any, held: Any) -> float:
    """The share of the entries that agree, of sets and of maps; of lists all or nothing."""
    if expected == held:
        return 1.0
    if isinstance(expected, frozenset) and isinstance(held, frozenset):
        return len(expected & held) / len(expected | held)
    if isinstance(expected, dict) and isinstance(held, dict):
        alike = [name for name, one in held.items() if expected.get(name) == one]
        return len(alike) / max(len(expected.keys() | held.keys()), 1)
    return 0.0


# ---------------------------------------------------------------- helpers of the search
def _left(sample: Sequence[Parent], condition: Condition | None, places: Mapping[int, int]) -> list[Parent]:
    """The parents with the children that a condition leaves."""
    if condition is None:
        return list(sample)
    place = places[id(condition.column)]
    return [
        Parent(one.key, one.held, one.entries, [row for row in one.children if row[place] in condition.values])
        for one in sample
    ]


def _limits(sample: Sequence[Parent]) -> list[int]:
    """No limit; or the length that no list exceeds, if parents of more children have it."""
    most = max(len(one.entries) for one in sample)
    full = sum(len(one.entries) == most for one in sample if len(one.children) > most)
    beyond = sum(len(one.children) > most for one in sample)
    return [most] if beyond and full >= AGREE_MIN * beyond else [0]


def _most_overlapping(sample: Sequence[Parent], columns: Sequence[Column], places: Mapping[int, int]) -> list[Column]:
    """The columns in which most entries occur, the plainest first."""
    scores: dict[int, int] = {}
    total = 0
    probe = [one for one in sample if one.entries][: 4 * PROBE]
    for parent in probe:
        total += len(parent.entries)
    for column in columns:
        place = places[id(column)]
        hits = 0
        for parent in probe:
            own = {row[place][1:] for row in parent.children if row[place] and row[place][0] in TEXTS}
            hits += sum(entry.value[1:] in own for entry in parent.entries)
        scores[id(column)] = hits
    good = [one for one in columns if scores[id(one)] >= AGREE_MIN * total]
    return sorted(good, key=lambda one: (-scores[id(one)], not one.in_identity))[:6]


def _names_overlap(sample: Sequence[Parent], name: Callable[[Row], str]) -> bool:
    total = hits = 0
    for parent in [one for one in sample if one.entries][: 4 * PROBE]:
        own = {name(row) for row in parent.children}
        total += len(parent.entries)
        hits += sum(entry.name in own for entry in parent.entries)
    return hits >= AGREE_MIN * total


def _agreement(shape: Shape, sample: Sequence[Parent]) -> Agreement | None:
    """The agreement of the parents that hold something, or should; after a probe of a few."""
    there = [one for one in sample if one.held or one.children]
    probe = [one for one in there if one.held][:PROBE]
    if sum(_near(shape.expected(one.children), shape.found(one)) for one in probe) < PROBE_MIN * len(probe):
        return None
    mine: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    agree = several = 0
    near = 0.0
    values = set()
    for parent in there:
        expected, held = shape.expected(parent.children), shape.found(parent)
        shown = _shown(held)
        mine[shown] += 1
        theirs[_shown(expected)] += 1
        near += _near(expected, held)
        if _same(expected, held):
            agree += 1
            values.add(shown)
            several += len(parent.children) > 1
    chance = chance_of(mine, theirs, len(there))
    groups = several or agree // 2
    return Agreement(len(there), agree, chance, len(values), groups, chance, near / len(there))


def _shown(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)


def _named(column: Column, join: Join, shape: Shape) -> float:
    mine = {singular(word) for word in column.words}
    child = {singular(word) for word in join.target.words}
    read = {singular(word) for one in shape.reads for word in one.words}
    return min(1.0, 0.6 * bool(mine & child) + 0.6 * bool(mine & read))


def _judged(join: Join, sample: Agreement, rate: float, named: float) -> tuple[Grade, list[str]]:
    if min(sample.rate, sample.kappa, rate) < (FEW if sample.near >= AGREE_MIN else HALF):
        return "none", ["too few agree"]
    if min(sample.rate, rate) < AGREE_MIN or sample.kappa < KAPPA_MIN:
        thin = sample.chance > RARE or sample.bits < SEVERAL * BITS_ALONE
        return ("weak" if thin else "likely"), ["too few agree: the children may be wrong themselves"]
    if sample.values < 2:  # noqa: PLR2004 - one value is no evidence
        return "none", ["only one value agrees"]
    if join.by_chance and (sample.values < VALUES_ALONE or sample.bits < 2 * BITS_ALONE):
        return "none", ["the link may be by chance: both sides count from a small number"]
    if sample.values >= 4 and sample.bits >= BITS_ALONE:  # noqa: PLR2004 - several different ones
        return "sure", []
    if named >= 0.5 and sample.bits >= BITS_NAMED:  # noqa: PLR2004 - half a name
        return "likely", ["few parents"]
    return "weak", [f"only {sample.sources} parents agree, in {sample.values} values"]
