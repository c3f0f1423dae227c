"""Rules that count, add up or compare children: what tally, rank and recount read of a child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from sync_rules.model.numbers import read_number, read_text, read_word
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
        text = read_text(value)
        weight = self.words.get(read_word(value) or "") if text is None else self.texts.get(text)
        return Decimal(self.default if weight is None else weight)

    def body(self) -> list[object]:
        """Return the weights in a form for fingerprints: in a short form if only texts have weights."""
        short: list[object] = [self.path, sorted(self.texts.items())]
        return [*short, sorted(self.words.items()), self.default] if self.words or self.default != "0" else short


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedRule(Rule):
    """A rule that adds up or compares children, which are its source. `of`: the field of a child that counts.
    `weights`: weights of a field's values instead. `per`: the field that groups children.
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
        """True if the rule counts a child that adds nothing as a member of its parent."""
        return False

    @property
    def adds(self) -> bool:
        """True for count and sum, which are 0 without members; mean, min and max then have no value."""
        return self.function in ("count", "sum")

    def compute_share(self, child: Item) -> tuple[str, Decimal] | Blocked | None:
        """Return the group of a child and its amount there; None for a child that adds nothing, even if another field
        is unfit.
        """
        amount, group = self.read_amount(child), self.read_group(child)
        if amount is None or group is None or (self.adds and amount == 0 and not self.counts_members):
            return None
        if isinstance(amount, Blocked):
            return amount
        return group if isinstance(group, Blocked) else (group, amount)

    def read_amount(self, child: Item) -> Decimal | Blocked | None:
        """Return the amount that a child adds or is compared by. None if it has none, Blocked if the value is not a
        number.
        """
        if self.weights is not None:
            return self.weights.of(self._read(child, self.weights.path))
        if self.of is None:
            return Decimal(1)
        value = self._read(child, self.of)
        if value is None:
            return None
        number = read_number(value)
        return Blocked("NotANumber") if number is None else number

    def read_group(self, child: Item) -> str | Blocked | None:
        """Return the group of a child: "" if all children are in one group. None for a child that names no group."""
        if self.per is None:
            return ""
        value = self._read(child, self.per)
        group = read_text(value)
        if group is None and value is not None:
            return Blocked("NotAGroup")
        return group or None  # a map has no empty key

    def _read(self, child: Item, path: Path) -> AttributeValue | None:
        return get(self.source.view(child, (path,)), path)
