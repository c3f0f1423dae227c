"""collect, of values: an attribute of a parent's children on the parent, as a set, a list or a text; or fields of the
first child, as a map.

A child has an item in the ledger, which holds its value and what it is ordered by. A map of fields is a value
too. The parent's attribute is made from all these items each time one of them changes, so a value of several children
stays until the last of them goes.

Invariant: what is shown is a function of the items in the ledger alone, in whatever order they were found. Only where
the first few of many are shown do keys of the ledger hold what orders them: else no key holds a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, Literal

from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import format_number, read_number, read_text
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.model.writes import Desired
from sync_rules.rules import ledger
from sync_rules.rules.books import Books
from sync_rules.rules.description import TypeOf
from sync_rules.rules.families import Members
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.kinds.rank import Rank, RankedRule
from sync_rules.rules.ledger import AMOUNT
from sync_rules.rules.rule import Blocked

Shape = Literal["set", "list", "text", "map"]
UNORDERED: Final = "-"  # sorts before the rank of any number or text
Order = tuple[str, Decimal | str]


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueRule(RankedRule):
    """A rule that keeps a child's value in the ledger. `of`: the field of a child that is shown. `fields`: several
    fields instead, with their names in a map. `order`: the field that orders the values. `ranked`: ledger keys are
    in this order. `numbers`: only numbers are accepted.
    """

    of: Path | None
    fields: tuple[tuple[Path, str], ...] = ()
    order: Path
    ranked: bool
    numbers: bool
    kind = "collect"

    @property
    def reads(self) -> tuple[Path, ...]:
        shown = (path for path, _ in self.fields) if self.of is None else (self.of,)
        return tuple(dict.fromkeys((*shown, self.order)))

    @property
    def required_types(self) -> Mapping[Path, tuple[str, ...]]:
        types: dict[Path, tuple[str, ...]] = {self.order: ("S", "N", "NULL")}
        return types if self.of is None else types | {self.of: ("N",) if self.numbers else ("S", "N")}

    def body(self) -> Mapping[str, object]:
        said = {"of": self.of, "order": self.order, "ranked": self.ranked, "numbers": self.numbers}
        return {**super().body(), **said, **({"fields": self.fields} if self.fields else {})}

    def compute_rank(self, child: Item) -> Rank | Blocked | None:
        """Compute the rank of a child; None for a child without a value, or with an empty text."""
        value = self._read_fields(child) if self.of is None else self._read(child, self.of)
        by = self._read(child, self.order)
        if value is None or value == {"S": ""}:
            return None
        if self.numbers and read_number(value) is None:
            return Blocked("NotANumber")
        shown, ordered = (
            value if self.of is None else _normalize_value(value),
            None if by is None else _normalize_value(by),
        )
        if shown is None or (ordered is None and by is not None):
            return Blocked("NotAValue")
        held = [shown] if self.of == self.order else [shown, ordered or {"NULL": True}]
        return Rank(_format_rank(_make_order(ordered)) if self.ranked else UNORDERED, {"L": held})

    def _read(self, child: Item, path: Path) -> AttributeValue | None:
        return get(self.source.view(child, (path,)), path)

    def _read_fields(self, child: Item) -> AttributeValue:
        read = ((name, self._read(child, path)) for path, name in self.fields)
        return {"M": {name: value for name, value in read if value is not None}}


@dataclass(frozen=True, slots=True)
class Held:
    """The value in a ledger item, and what it is ordered by."""

    value: AttributeValue
    order: Order


@dataclass(frozen=True, eq=False, kw_only=True)
class ValuesRule(GatheredRule):
    """A rule that shows the values of children on their parent. The members are ledger items of `books`. `ranked`:
    their keys are in order. `join`: the text between values. `distinct`: each value once. `max_items`: the number
    shown, None for all. `descending`: from the end.
    """

    shape: Shape
    ranked: bool = False
    numbers: bool = False
    join: str = ""
    distinct: bool = False
    max_items: int | None = None
    descending: bool = False
    books: Books | None = field(default=None)
    kind = "collect"

    @property
    def reads(self) -> tuple[Path, ...]:
        return ((AMOUNT,),)

    def type_of(self, path: Path, known: TypeOf) -> str:
        return {"set": "NS" if self.numbers else "SS", "list": "L", "text": "S", "map": "M"}[self.shape]

    def body(self) -> Mapping[str, object]:
        return {
            **super().body(),
            "as": self.shape,
            "ranked": self.ranked,
            "numbers": self.numbers,
            "join": self.join,
            "distinct": self.distinct,
            "max_items": self.max_items,
            "descending": self.descending,
        }

    def draw(self) -> None:
        return None  # the arrow of its ledger items stands for it

    def members(self, key: ItemKey, target: Item) -> Members | None:
        """Return the Query for all ledger items. If their keys are in order, it may end at `max_items`."""
        listing = super().members(key, target)
        if listing is None or self.max_items is None or not self.ranked:
            return listing
        return replace(listing, max_items=self.max_items, enough=True, backward=self.descending)

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked:
        """Return the values in order, and values of equal order by the keys of the children. Without values the list is
        empty; a set, text or map is missing.
        """
        found: list[Held] = []
        for key, member in self.in_key_order(sources):
            held = _parse_entry(member.get(AMOUNT))
            if held is None or (self.numbers and "N" not in held.value):
                return Blocked("EntryBroken", member=key)
            found.append(held)
        found.sort(key=lambda one: one.order)
        values = self._once([one.value for one in (reversed(found) if self.descending else found)])
        return {self.into: self._make_value(values[: self.max_items])}

    def _once(self, values: Sequence[AttributeValue]) -> Sequence[AttributeValue]:
        """The values; where they are distinct, the first of those that are shown alike."""
        if not self.distinct:
            return values
        alike = (tuple(value.items()) if self.shape == "list" else read_text(value) for value in values)
        first: dict[object, AttributeValue] = {}
        for key, value in zip(alike, values, strict=True):
            first.setdefault(key, value)
        return tuple(first.values())

    def _make_value(self, values: Sequence[AttributeValue]) -> AttributeValue | None:
        if self.shape == "list":
            return {"L": list(values)}
        if self.shape == "map":
            return values[0] if values else None
        texts = [read_text(value) or "" for value in values]
        if not texts:
            return None
        return {"S": self.join.join(texts)} if self.shape == "text" else {"NS" if self.numbers else "SS": texts}


def _normalize_value(value: AttributeValue) -> AttributeValue | None:
    """A text or a number, in its one spelling; None for anything else."""
    number = read_number(value)
    return {"N": format_number(number)} if number is not None else value if "S" in value else None


def _make_order(value: AttributeValue | None) -> Order:
    """A value as it sorts: none first, then numbers, then texts."""
    if value is None or "NULL" in value:
        return "", ""
    return ("N", Decimal(value["N"])) if "N" in value else ("S", value["S"])


def _format_rank(order: Order) -> str:
    """The same as a text that sorts like it."""
    kind, value = order
    ranked = ledger.format_rank(value) if isinstance(value, Decimal) else ledger.format_text_rank(value)
    return kind + ranked if kind else UNORDERED


def _parse_entry(value: AttributeValue | None) -> Held | None:
    """Return the value and its order from a ledger entry; None if the pipeline did not write the entry."""
    parts: Sequence[AttributeValue] = (value or {}).get("L", ())
    shown = None if not parts else parts[0] if "M" in parts[0] else _normalize_value(parts[0])
    if not shown or shown == {"S": ""} or len(parts) > 2:  # noqa: PLR2004 - the value, and what orders it
        return None
    order = None if "NULL" in parts[-1] else _normalize_value(parts[-1])
    return None if order is None and "NULL" not in parts[-1] else Held(shown, _make_order(order))
