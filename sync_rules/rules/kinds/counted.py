"""Rules that count, add up or compare children: what tally, rank and recount read of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from sync_rules.model.numbers import number_of, text_of
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.rules.rule import Blocked, Rule

Function = Literal["count", "sum", "min", "max"]
Weights = tuple[Path, Mapping[str, str]]  # a field, and how much a child counts for each of its values


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedRule(Rule):
    """`of` is the field of a child, here the source, that is added up or compared; `weights` says instead how much each
    value of a field counts; `per` is the field by whose values children are grouped.
    """

    function: Function
    of: Path | None = None
    weights: Weights | None = None
    per: Path | None = None

    @property
    def kind(self) -> str:
        return self.function

    @property
    def reads(self) -> tuple[Path, ...]:
        """The fields of a child that make its amount and its group."""
        paths = (self.of, self.weights and self.weights[0], self.per)
        return tuple(path for path in paths if path is not None)

    @property
    def adds(self) -> bool:
        """True for count and sum, which are 0 without members; min and max then have no value."""
        return self.function in ("count", "sum")

    def share_of(self, child: Item) -> tuple[str, Decimal] | Blocked | None:
        """The group of a child and its amount there; None for a child that adds nothing, whatever else is in it."""
        amount, group = self.amount_of(child), self.group_of(child)
        if amount is None or group is None or (self.adds and amount == 0):
            return None
        if isinstance(amount, Blocked):
            return amount
        return group if isinstance(group, Blocked) else (group, amount)

    def amount_of(self, child: Item) -> Decimal | Blocked | None:
        """The amount that a child adds, or is compared by; None for nothing."""
        if self.weights is not None:
            path, weights = self.weights
            text = text_of(self._read(child, path))
            return None if text is None or text not in weights else Decimal(weights[text])
        if self.of is None:
            return Decimal(1)
        value = self._read(child, self.of)
        if value is None:
            return None
        number = number_of(value)
        return Blocked("NotANumber") if number is None else number

    def group_of(self, child: Item) -> str | Blocked | None:
        """The group of a child: "" where all are in one; None for a child that names none."""
        if self.per is None:
            return ""
        value = self._read(child, self.per)
        group = text_of(value)
        if group is None and value is not None:
            return Blocked("NotAGroup")
        return group or None  # a map has no empty key

    def _read(self, child: Item, path: Path) -> AttributeValue | None:
        """The value of a field, be it an attribute or bound by the child's key."""
        return get(self.source.view(child, (path,)), path)
