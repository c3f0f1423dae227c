"""Rules that count, add up or compare children: what tally, rank and recount read of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from sync_rules.model.numbers import number_of, text_of, word_of
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.rules.rule import Blocked, Rule

Function = Literal["count", "sum", "mean", "min", "max"]
WORDS: Final = ("true", "false", "null")  # for the truth values and for NULL


@dataclass(frozen=True)
class Weights:
    """The weight of a child by its value at a path: `texts` for strings and numbers, `words` for true, false and NULL,
    `default` for all others and a missing value.
    """

    path: Path
    texts: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    default: str = "0"

    def of(self, value: AttributeValue | None) -> Decimal:
        text = text_of(value)
        weight = self.words.get(word_of(value) or "") if text is None else self.texts.get(text)
        return Decimal(self.default if weight is None else weight)

    def body(self) -> list[object]:
        """The weights as part of what makes a rule what it is: in short where only texts have one."""
        short: list[object] = [self.path, sorted(self.texts.items())]
        return [*short, sorted(self.words.items()), self.default] if self.words or self.default != "0" else short


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedRule(Rule):
    """`of`: the field of a child, the source, that is added up or compared; `weights`: the weights of a field's values
    instead; `per`: the field that groups children.
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
        paths = (self.of, None if self.weights is None else self.weights.path, self.per)
        return tuple(path for path in paths if path is not None)

    @property
    def required_types(self) -> Mapping[Path, tuple[str, ...]]:
        needed = {**super().required_types, **({} if self.of is None else {self.of: ("N",)})}
        return needed if self.per is None else {**needed, self.per: ("S", "N")}

    @property
    def counts_members(self) -> bool:
        """True if a child that adds nothing counts as a member of its parent."""
        return False

    @property
    def adds(self) -> bool:
        """True for count and sum, which are 0 without members; mean, min and max then have no value."""
        return self.function in ("count", "sum")

    def share_of(self, child: Item) -> tuple[str, Decimal] | Blocked | None:
        """The group of a child and its amount there; None for a child that adds nothing, whatever else is in it."""
        amount, group = self.amount_of(child), self.group_of(child)
        if amount is None or group is None or (self.adds and amount == 0 and not self.counts_members):
            return None
        if isinstance(amount, Blocked):
            return amount
        return group if isinstance(group, Blocked) else (group, amount)

    def amount_of(self, child: Item) -> Decimal | Blocked | None:
        """The amount that a child adds, or is compared by; None for nothing."""
        if self.weights is not None:
            return self.weights.of(self._read(child, self.weights.path))
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
        return get(self.source.view(child, (path,)), path)
