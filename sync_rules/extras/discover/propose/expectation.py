"""The value that a parent should hold, made from its children as a rule would make it, to compare with the held value.

Invariant: both have the same form, so they are equal if the parent is right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from sync_rules.extras.discover.propose.parents import Parent, Row
from sync_rules.extras.discover.propose.value_texts import (
    NUMBER,
    STRING,
    TEXTS,
    keep_text,
    parse_value,
    write_plain_map,
)
from sync_rules.rules.formula import Formula

SEPARATOR_MAX: Final = 6  # letters between two values of a text
Expected = Callable[[Sequence[Row]], Any]


def rank(text: str | None) -> tuple[int, Any]:
    """The place of a value among others: nothing first, then numbers, then texts."""
    if text is None or text == STRING:
        return 0, 0
    return (1, Decimal(text[1:])) if text[0] == NUMBER else (2, text[1:])


def make_set(place: int, letter: str) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        kind = letter or STRING
        values = (row[place] for row in rows if row[place] and row[place][0] in TEXTS and len(row[place]) > 1)
        return frozenset(kind + value[1:] for value in values) or None

    return make_value


def make_list(place: int, key: Callable[[Row], Any], *, reverse: bool, distinct: bool, limit: int) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        usable = [row for row in rows if row[place] and row[place][0] in TEXTS and len(row[place]) > 1]
        values = [row[place] for row in sorted(usable, key=key, reverse=reverse)]
        values = list(dict.fromkeys(values)) if distinct else values
        return values[:limit] if limit else values

    return make_value


def make_text(listed: Expected, separator: str) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        return separator.join(value[1:] for value in listed(rows)) or None

    return make_value


def find_text_between(text: str, values: Sequence[str | None]) -> str | None:
    """Return the text between two values in a text that is made from all of them; None for any other text."""
    told = sorted({value[1:] for value in values if value and len(value) > 1}, key=len, reverse=True)
    places = sorted((at, len(one)) for one in told if (at := text.find(one, 1)) > 0)
    if len(told) <= 1 or len(places) < len(told) or places[0][0] != 1:
        return None
    (first, length), (second, _), *_ = places
    between = text[first + length : second]
    return between if 0 < len(between) <= SEPARATOR_MAX else None


def make_counts(place: int) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        counts = Counter(row[place][1:] for row in rows if row[place] and len(row[place]) > 1)
        return {value: Decimal(count) for value, count in counts.items()}

    return make_value


def make_sums(place: int, amount: int) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        found: dict[str, Decimal] = defaultdict(Decimal)
        for row in rows:
            if row[place] and len(row[place]) > 1 and row[amount]:
                found[row[place][1:]] += Decimal(row[amount][1:])
        return dict(found)

    return make_value


def _select_fields(row: Row, cells: Sequence[tuple[str, int]]) -> dict[str, str]:
    return {name: row[place] for name, place in cells if row[place] is not None}


def make_map(name: Callable[[Row], str], cells: Sequence[tuple[str, int]]) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        return {name(row): _select_fields(row, cells) for row in rows}

    return make_value


def make_maps(cells: Sequence[tuple[str, int]], key: Callable[[Row], Any], *, reverse: bool, limit: int) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        ordered = sorted(rows, key=key)
        ordered = ordered[-limit:] if limit else ordered
        return [_select_fields(row, cells) for row in (reversed(ordered) if reverse else ordered)]

    return make_value


def make_first(cells: Sequence[tuple[str, int]], key: Callable[[Row], Any], *, reverse: bool, is_map: bool) -> Expected:
    """Make the fields of the first child in an order, as the typed text of a map, or its single field."""

    def make_value(rows: Sequence[Row]) -> Any:
        if not rows:
            return None
        fields = _select_fields((max if reverse else min)(rows, key=key), cells)
        return write_plain_map(fields) if is_map else fields.get(cells[0][0])

    return make_value


def make_formed_set(formula: Formula, places: Mapping[str, int]) -> Expected:
    def make_value(rows: Sequence[Row]) -> Any:
        values = ({path: parse_value(row[place]) for path, place in places.items()} for row in rows)
        texts = (formula.text(each.__getitem__) for each in values)
        return frozenset(STRING + keep_text(text) for text in texts if text) or None

    return make_value


def read_set(parent: Parent) -> Any:
    return frozenset(entry.value for entry in parent.entries) or None


def read_text(parent: Parent) -> Any:
    return parent.held[1:] if parent.held else None


def read_list(parent: Parent) -> Any:
    return [entry.value for entry in parent.entries] if parent.held else None


def read_numbers(parent: Parent) -> Any:
    return {entry.name: Decimal(entry.value[1:]) for entry in parent.entries} if parent.held else None


def read_map(parent: Parent) -> Any:
    return {entry.name: entry.fields for entry in parent.entries} if parent.held else None


def read_maps(parent: Parent) -> Any:
    return [entry.fields for entry in parent.entries] if parent.held else None


def score_entries(expected: Any, held: Any) -> float:
    """The share of the entries that agree, of sets and of maps; of lists all or nothing."""
    if expected == held:
        return 1.0
    if isinstance(expected, frozenset) and isinstance(held, frozenset):
        return len(expected & held) / len(expected | held)
    if isinstance(expected, dict) and isinstance(held, dict):
        alike = [name for name, one in held.items() if expected.get(name) == one]
        return len(alike) / max(len(expected.keys() | held.keys()), 1)
    return 0.0
