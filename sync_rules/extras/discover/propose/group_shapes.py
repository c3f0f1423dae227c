"""Ways to make a parent's map, list, set or text from its children: the rules that are worth a comparison.

Invariant: some parents suggest a shape. Another module counts how many parents agree with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any, Final

from sync_rules.extras.discover.propose import expectation
from sync_rules.extras.discover.propose.evidence import AGREE_MIN, CASES_MIN
from sync_rules.extras.discover.propose.first_children import FirstChildren
from sync_rules.extras.discover.propose.formula_search import Guess, list_guesses
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.parents import Parent, Row
from sync_rules.extras.discover.propose.value_texts import LIST, MAP, NUMBER, STRING, TEXTS, parse_value, unescape

PROBE: Final = 40  # parents on which something is tried first
JOIN_TRIES: Final = 10  # if none of the first parents shows a joined text, the others are not read
PROBE_MIN: Final = 0.4  # of them agree, that it is worth a comparison with all
MOST: Final = 0.7  # of the entries: the others may be faults
STRAY_MAX: Final = 0.05  # of the entries have a field that no column fills
OVERLAPPING_MAX: Final = 6  # columns of whose values a set may consist
ORDERS_MAX: Final = 12  # columns that may order a list
LIMIT_MIN: Final = 20  # items of an embed rule's limit, at least
KINDS_MAX: Final = 200  # different values, each with a count
SHORT_MAX: Final = 3  # letters of a value, with its type, that any text may have
KEPT: Final = 3  # formulas of elements that are compared


@dataclass(frozen=True)
class GroupShape:
    """A way to make what a parent holds: the rule, the columns that it reads, and what is expected of some children."""

    kind: str
    rule: Mapping[str, Any]
    reads: tuple[Column, ...]
    expected: expectation.Expected
    found: Callable[[Parent], Any]

    @property
    def adds_elements(self) -> bool:
        """True if the rule adds and removes each element on its own: the ids of children."""
        return self.kind == "collect" and "." not in self.rule["collect"] and not self.is_of_one

    @property
    def is_of_one(self) -> bool:
        """True for values of the first child in an order, such as the newest."""
        return self.rule.get("limit") == 1 and ("fields" in self.rule or "join" in self.rule)


class GroupShapes:
    """The shapes of what the sources of a link hold, by the columns of its targets."""

    def __init__(self, join: Join, columns: Sequence[Column]) -> None:
        self.child = join.target.name
        self.columns = columns
        self.places = {id(column): place for place, column in enumerate(columns)}
        linked = {id(column) for column in join.columns}
        self.own = [one for one in join.target.identity if id(one) not in linked]
        self.own_places = [self.places[id(one)] for one in self.own]

    def of(self, column: Column, sample: Sequence[Parent]) -> Iterator[GroupShape]:
        """Yield the ways to make what some parents hold in a column."""
        types = column.profile.types - {"z"}
        if types <= {STRING} or types == {MAP}:
            yield from self._take_first(column, sample)
        if types == {STRING}:
            yield from self._join_texts(column, sample)
            return
        entries = [entry for parent in sample for entry in parent.entries]
        if not entries:
            return
        most = MOST * len(entries)
        inner = Counter(entry.value[:1] for entry in entries)
        if types <= {"S", "N"} or (LIST in types and inner[STRING] + inner[NUMBER] >= most):
            yield from self._list_values(column, sample)
        elif MAP in types and inner[NUMBER] >= most:
            yield from self._list_counts_by_value(column)
        elif types & {MAP, LIST} and inner[MAP] >= most:
            yield from self._embed(column, sample)

    def has_values_of_children(self, sample: Sequence[Parent]) -> bool:
        """False for texts, or maps of a few fields, that most parents cannot have from their children. A value that all
        children of a parent have is a copy of the parent's, and says nothing.
        """
        plain = [one for one in sample if one.held and one.children and not one.entries]
        probe = [one for one in plain if len(one.children) > 1][:PROBE]
        places = range(len(self.columns))
        hits = Counter(place for one in probe for place in places if _may_hold_one_of_several(one, place))
        return not plain or max(hits.values(), default=0) >= max(1, PROBE_MIN * len(probe))

    def _take_first(self, column: Column, sample: Sequence[Parent]) -> Iterator[GroupShape]:
        """The text of the first child in an order, such as the newest one, or a map of some of its columns."""
        first = FirstChildren(column, self.columns, sample)
        for order, key, reverse, cells in first.find_cells(islice(self._list_orders(None), 1, None)):
            fields = {name: self.columns[place] for name, place in cells}
            rule: dict[str, Any] = {"collect": self.child, "into": column.column_name, "order": order, "limit": 1}
            if first.is_map:
                rule["fields"] = _show_fields(fields)
            else:
                rule |= {"collect": fields[""].column_name, "join": ", "}
            made = expectation.make_first(cells, key, reverse=reverse, is_map=first.is_map)
            yield GroupShape("collect", rule, tuple(fields.values()), made, lambda parent: parent.held)

    def _form_elements(self, column: Column, sample: Sequence[Parent]) -> Iterator[GroupShape]:
        """Sets of texts that are made of several columns of a child."""
        found: Counter[str] = Counter()
        made: dict[str, Guess] = {}
        probe = [(entry, parent) for parent in sample if len(parent.children) > 1 for entry in parent.entries[:1]]
        for entry, parent in probe[:PROBE]:
            texts = set[str]()
            for row in parent.children[:PROBE]:
                pairs = ((one, parse_value(text)) for one, text in zip(self.columns, row, strict=True))
                usable = {one: value for one, value in pairs if value and next(iter(value.values())) in entry.value}
                for guess in list_guesses(unescape(entry.value[1:]), usable) if len(usable) > 1 else ():
                    if len(guess.columns) > 1 and not guess.letters and not any(one.formats for one in guess.slots):
                        texts.add(guess.text)
                        made.setdefault(guess.text, guess)
            found.update(texts)
        for text, count in found.most_common(KEPT):
            formula = made[text].formula
            if count < PROBE_MIN * len(probe[:PROBE]) or formula is None:
                continue
            places = {one.path: self.places[id(one)] for one in made[text].columns}
            rule = {"collect": self.child, "into": column.column_name, "as": text}
            expected = expectation.make_formed_set(formula, places)
            yield GroupShape("collect", rule, made[text].columns, expected, expectation.read_set)

    def _list_values(self, column: Column, sample: Sequence[Parent]) -> Iterator[GroupShape]:
        """Sets and lists of a column's values, or of the children's ids."""
        is_list = LIST in column.profile.types
        if column.profile.types <= {"S", "z"}:
            yield from self._form_elements(column, sample)
        letter = NUMBER if "N" in column.profile.types else ""
        for one in _rank_columns(sample, self.columns, self.places):
            place = self.places[id(one)]
            if not is_list:
                as_id = self.own == [one]
                rule = {"collect": self.child if as_id else one.column_name, "into": column.column_name}
                told = _add_options(rule, **{"as": f"{{{one.path}}}" if as_id else ""}, numbers=bool(letter))
                yield GroupShape("collect", told, (one,), expectation.make_set(place, letter), expectation.read_set)
                continue
            rule = {"collect": one.column_name, "into": column.column_name, "as": "list"}
            for (order, key, reverse), limit, distinct in product(
                self._list_orders(one), _list_limits(sample), (False, True)
            ):
                told = _add_options(rule, order=order, distinct=distinct, limit=limit)
                made = expectation.make_list(place, key, reverse=reverse, distinct=distinct, limit=limit)
                yield GroupShape("collect", told, (one,), made, expectation.read_list)

    def _join_texts(self, column: Column, sample: Sequence[Parent]) -> Iterator[GroupShape]:
        """One text of the values of all children."""
        several = [one for one in sample if one.held and len(one.children) > 1][:PROBE]
        if len(several) < CASES_MIN:
            return
        for one in self.columns:
            place = self.places[id(one)]
            if not one.profile.types <= {*TEXTS, "z"} or one.profile.is_constant:
                continue
            texts = (
                expectation.find_text_between(each.held or "", [row[place] for row in each.children])
                for each in several
            )
            few = list(islice(texts, JOIN_TRIES))
            found = Counter(text for text in chain(few, texts if any(few) else ()) if text is not None)
            (separator, count), *_ = found.most_common(1) or [("", 0)]
            if not separator or count < PROBE_MIN * len(several):
                continue
            rule = {"collect": one.column_name, "into": column.column_name, "join": unescape(separator)}
            for (order, key, reverse), distinct in product(self._list_orders(one), (False, True)):
                listed = expectation.make_list(place, key, reverse=reverse, distinct=distinct, limit=0)
                made = expectation.make_text(listed, separator)
                told = _add_options(rule, order=order, distinct=distinct)
                yield GroupShape("collect", told, (one,), made, expectation.read_text)

    def _list_counts_by_value(self, column: Column) -> Iterator[GroupShape]:
        """A map with a number for each value of a column: a count, or a sum."""
        for one in self.columns:
            if one.in_identity or not one.profile.types <= {*TEXTS, "z"} or one.profile.distinct > KINDS_MAX:
                continue
            place = self.places[id(one)]
            rule = {"count": self.child, "into": column.column_name, "per": one.path}
            yield GroupShape("count", rule, (one,), expectation.make_counts(place), expectation.read_numbers)
            for amount in self.columns:
                if amount is not one and amount.profile.is_number and not amount.in_identity:
                    told = {"sum": amount.column_name, "into": column.column_name, "per": one.path}
                    made = expectation.make_sums(place, self.places[id(amount)])
                    yield GroupShape("sum", told, (one, amount), made, expectation.read_numbers)

    def _embed(self, column: Column, sample: Sequence[Parent]) -> Iterator[GroupShape]:
        """Maps and lists of maps, whose fields are columns of the children."""
        names = Counter(name for parent in sample for entry in parent.entries for name in entry.fields)
        total = sum(len(parent.entries) for parent in sample)
        fields: dict[str, Column] = {}
        for name, count in names.items():
            best = self._find_field(name, sample)
            if best is not None:
                fields[name] = best
            elif count > STRAY_MAX * total:
                return
        if not fields:
            return
        cells = [(name, self.places[id(one)]) for name, one in fields.items()]
        shown = _show_fields(fields)
        rule = {"embed": self.child, "into": column.column_name}
        reads = tuple(fields.values())
        most = max(len(parent.entries) for parent in sample)
        if MAP in column.profile.types:
            for by, made in self._list_namings(sample):
                told = _add_options(rule, by=by, fields=shown, limit={"items": max(LIMIT_MIN, 2 * most)})
                yield GroupShape("embed", told, reads, expectation.make_map(made, cells), expectation.read_map)
            return
        for (order, key, reverse), limit in product(self._list_orders(None), _list_limits(sample)):
            items = {"items": limit or max(LIMIT_MIN, 2 * most)}
            told = _add_options(rule, fields=shown, **{"as": "list"}, order=order, limit=items)
            told |= {"on_overflow": "oldest"} if limit else {}
            made = expectation.make_maps(cells, key, reverse=reverse, limit=limit)
            yield GroupShape("embed", told, reads, made, expectation.read_maps)

    def _find_field(self, name: str, sample: Sequence[Parent]) -> Column | None:
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

    def _format_id(self, row: Row) -> str:
        """The id of a child: its own fields, joined."""
        return "#".join((row[place] or " ")[1:] for place in self.own_places)

    def _list_namings(self, sample: Sequence[Parent]) -> Iterator[tuple[str, Callable[[Row], str]]]:
        """The names of the entries: the ids of the children, or one of their columns."""
        if self.own and _has_overlapping_names(sample, self._format_id):
            yield "", self._format_id
            return
        for one in self.columns:
            place = self.places[id(one)]

            def by_column(row: Row, place: int = place) -> str:
                return (row[place] or " ")[1:]

            if one.profile.types <= {*TEXTS, "z"} and _has_overlapping_names(sample, by_column):
                yield f"{{{one.path}}}", by_column

    def _list_orders(self, own: Column | None) -> Iterator[tuple[str, Callable[[Row], Any], bool]]:
        """The orders that lists may have: by value or by name, then by each column, both ways."""
        yield "", (self._format_id if own is None else lambda row: expectation.rank(row[self.places[id(own)]])), False
        candidates = [one for one in self.columns if one.profile.types <= {*TEXTS, "z"} and one.profile.distinct > 1]
        candidates.sort(key=lambda one: (not one.profile.is_date, not one.in_identity, -one.profile.distinct))
        for one in candidates[:ORDERS_MAX]:
            place = self.places[id(one)]

            def by_column(row: Row, place: int = place) -> Any:
                return expectation.rank(row[place]), self._format_id(row)

            yield one.path, by_column, False
            yield f"-{one.path}", by_column, True


def _show_fields(fields: Mapping[str, Column]) -> Any:
    """Fields as a rule has them: a list, or a map to new names."""
    plain = all(name == one.path for name, one in fields.items())
    return list(fields) if plain else {one.path: name for name, one in fields.items()}


def _add_options(rule: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """A rule with those options that have a value."""
    return {**rule, **{name: value for name, value in options.items() if value}}


def _list_limits(sample: Sequence[Parent]) -> list[int]:
    """No limit; or the length that no list exceeds, if parents of more children have it."""
    most = max(len(one.entries) for one in sample)
    full = sum(len(one.entries) == most for one in sample if len(one.children) > most)
    beyond = sum(len(one.children) > most for one in sample)
    return [most] if beyond and full >= AGREE_MIN * beyond else [0]


def _rank_columns(sample: Sequence[Parent], columns: Sequence[Column], places: Mapping[int, int]) -> list[Column]:
    """The columns that hold most of the entries, the plainest first."""
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
    return sorted(good, key=lambda one: (-scores[id(one)], not one.in_identity))[:OVERLAPPING_MAX]


def _has_overlapping_names(sample: Sequence[Parent], name: Callable[[Row], str]) -> bool:
    total = hits = 0
    for parent in [one for one in sample if one.entries][: 4 * PROBE]:
        own = {name(row) for row in parent.children}
        total += len(parent.entries)
        hits += sum(entry.name in own for entry in parent.entries)
    return hits >= AGREE_MIN * total


def _may_hold_one_of_several(parent: Parent, place: int) -> bool:
    """False if a parent's text begins with none of several values that its children have in a column, and its map has
    none of them.
    """
    held, values = parent.held or "", {row[place] or "" for row in parent.children}
    holds = held.__contains__ if held[:1] == MAP else held[1:].startswith
    return len(values) > 1 and any(len(one) > SHORT_MAX and holds(one[1:]) for one in values)
