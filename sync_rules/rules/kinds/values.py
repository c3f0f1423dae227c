"""collect, of values: an attribute of a parent's children on the parent, as a set, a list or a text.

A child has an item in the ledger, which holds its value and what it is ordered by. The parent's attribute is made
from all these items each time one of them changes, so a value of several children stays until the last of them goes.

Invariant: what is shown is a function of the items in the ledger alone, in whatever order they were found. Only where
the first few of many are shown do keys of the ledger hold what orders them: else no key holds a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, Literal

from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import number_of, spell, text_of
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.rules import ledger
from sync_rules.rules.books import Books
from sync_rules.rules.description import TypeOf
from sync_rules.rules.families import Desired, Members
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.kinds.rank import Rank, RankedRule
from sync_rules.rules.ledger import AMOUNT
from sync_rules.rules.rule import Blocked

Shape = Literal["set", "list", "text"]
UNORDERED: Final = "-"  # sorts before the rank of any number or text
Order = tuple[str, Decimal | str]


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueRule(RankedRule):
    """`of`: the field of a child that is shown; `order`: the field that orders it. `ranked`: keys are in this order.
    `numbers`: only numbers are accepted.
    """

    of: Path
    order: Path
    ranked: bool
    numbers: bool
    kind = "collect"

    @property
    def reads(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.of, self.order)))

    @property
    def required_types(self) -> Mapping[Path, tuple[str, ...]]:
        return {self.order: ("S", "N", "NULL"), self.of: ("N",) if self.numbers else ("S", "N")}

    def body(self) -> Mapping[str, object]:
        said = {"of": self.of, "order": self.order, "ranked": self.ranked, "numbers": self.numbers}
        return {**super().body(), **said}

    def rank_of(self, child: Item) -> Rank | Blocked | None:
        """The rank of a child; None for one without a value, or with an empty text for it."""
        value, by = self._read(child, self.of), self._read(child, self.order)
        if value is None or value == {"S": ""}:
            return None
        if self.numbers and number_of(value) is None:
            return Blocked("NotANumber")
        shown, ordered = _plain(value), None if by is None else _plain(by)
        if shown is None or (ordered is None and by is not None):
            return Blocked("NotAValue")
        held = [shown] if self.of == self.order else [shown, ordered or {"NULL": True}]
        return Rank(_rank_text(_order_of(ordered)) if self.ranked else UNORDERED, {"L": held})

    def _read(self, child: Item, path: Path) -> AttributeValue | None:
        return get(self.source.view(child, (path,)), path)


@dataclass(frozen=True, slots=True)
class Held:
    """The value in a ledger item, and what it is ordered by."""

    value: AttributeValue
    order: Order


@dataclass(frozen=True, eq=False, kw_only=True)
class ValuesRule(GatheredRule):
    """The members are ledger items of `books`. `ranked`: their keys are in order. `join`: the text between values;
    `distinct`: each value once; `max_items`: the number shown, None for all; `descending`: from the end.
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
        return {"set": "NS" if self.numbers else "SS", "list": "L", "text": "S"}[self.shape]

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
        """All items; where their keys are in order, as many as are shown are enough."""
        listing = super().members(key, target)
        if listing is None or self.max_items is None or not self.ranked:
            return listing
        return replace(listing, max_items=self.max_items, enough=True, backward=self.descending)

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked:
        """The values in order; of equal order, by the keys of the children. Without any, a list is empty, and there is
        no set and no text.
        """
        found: list[Held] = []
        for key, member in self.in_key_order(sources):
            held = _parse_entry(member.get(AMOUNT))
            if held is None or (self.numbers and "N" not in held.value):
                return Blocked("EntryBroken", member=key)
            found.append(held)
        found.sort(key=lambda one: one.order)
        values = list(self._once([one.value for one in (reversed(found) if self.descending else found)]))
        return {self.into: self._make_value(values[: self.max_items])}

    def _once(self, values: Sequence[AttributeValue]) -> Iterator[AttributeValue]:
        """The values; where they are distinct, the first of those that are shown alike."""
        seen: set[object] = set()
        for value in values:
            alike = tuple(value.items()) if self.shape == "list" else text_of(value)
            if not self.distinct or alike not in seen:
                seen.add(alike)
                yield value

    def _make_value(self, values: Sequence[AttributeValue]) -> AttributeValue | None:
        if self.shape == "list":
            return {"L": list(values)}
        texts = [text_of(value) or "" for value in values]
        if not texts:
            return None
        return {"S": self.join.join(texts)} if self.shape == "text" else {"NS" if self.numbers else "SS": texts}


def _plain(value: AttributeValue) -> AttributeValue | None:
    """A text or a number, in its one spelling; None for anything else."""
    number = number_of(value)
    return {"N": spell(number)} if number is not None else value if "S" in value else None


def _order_of(value: AttributeValue | None) -> Order:
    """A value as it sorts: none first, then numbers, then texts."""
    if value is None or "NULL" in value:
        return "", ""
    return ("N", Decimal(value["N"])) if "N" in value else ("S", value["S"])


def _rank_text(order: Order) -> str:
    """The same as a text that sorts like it."""
    kind, value = order
    ranked = ledger.rank_text(value) if isinstance(value, Decimal) else ledger.rank_of_text(value)
    return kind + ranked if kind else UNORDERED


def _parse_entry(value: AttributeValue | None) -> Held | None:
    """Return the value and its order from a ledger entry; None if the pipeline did not write the entry."""
    parts: Sequence[AttributeValue] = (value or {}).get("L", ())
    shown = _plain(parts[0]) if parts else None
    if not shown or shown == {"S": ""} or len(parts) > 2:  # noqa: PLR2004 - the value, and what orders it
        return None
    order = None if "NULL" in parts[-1] else _plain(parts[-1])
    return None if order is None and "NULL" not in parts[-1] else Held(shown, _order_of(order))
