"""The numbers that a parent's children may make, each in two forms: computed from children in memory, and as SQL.

Invariant: both forms of a number give the same value, rounded as the rule rounds it. SQL gives no mean of a total
beyond TOTAL_MAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.parents import ChildCondition
from sync_rules.extras.discover.propose.value_texts import NUMBER
from sync_rules.language.kinds.count import PLACES_DEFAULT
from sync_rules.model.numbers import compute_mean

SCALE: Final = 10  # decimal places that statements keep
TOTAL_MAX: Final = 10 ** (37 - 2 * SCALE)  # the largest total of a mean: a DECIMAL must hold 10**SCALE times as much
DECIMAL: Final = f"DECIMAL(38, {SCALE})"


class Amounts(NamedTuple):
    """The amounts of some children in one column."""

    total: Decimal
    least: Decimal
    most: Decimal
    number: int


@dataclass
class ChildSum:
    """The children of one parent that have one value of a column: how many, and their amounts by column."""

    count: int = 0
    amounts: dict[int, Amounts] = field(default_factory=dict)


@dataclass(frozen=True)
class NumberForm:
    """A number that children may make: its kind, the column with its place among the amounts, the condition, and the
    decimal places of a mean.
    """

    kind: str
    amount: Column | None = None
    place: int = -1
    condition: ChildCondition | None = None
    places: int = PLACES_DEFAULT

    def of(self, children: ChildSum | None) -> Decimal | None:
        """The number that some children make; None for the mean, the least and the most of no amounts."""
        if self.kind == "count":
            return Decimal(children.count if children is not None else 0)
        amounts = children.amounts.get(self.place) if children is not None else None
        if amounts is None:
            return Decimal(0) if self.kind == "sum" else None
        match self.kind:
            case "sum":
                return amounts.total
            case "mean":
                return compute_mean(amounts.total, Decimal(amounts.number), self.places)
            case "min":
                return amounts.least
        return amounts.most

    def make_sql(self) -> str:
        """Return the number of a group of children, which statements call `t`. The rule rounds a mean alike."""
        where = f" FILTER ({self.condition.sql})" if self.condition is not None else ""
        if self.amount is None:
            return f"count(*){where}"
        amount = make_decimal_sql(self.amount, "t")
        if self.kind == "sum":
            return f"coalesce(sum({amount}){where}, 0)"
        if self.kind != "mean":
            return f"{self.kind}({amount}){where}"
        total, number = f"sum({amount}){where}", f"count({amount}){where} * {10 ** (SCALE - self.places)}"
        scaled = f"(CASE WHEN abs({total}) <= {TOTAL_MAX} THEN abs({total}) * {10**SCALE} END)::HUGEINT"
        rounded = f"((2 * {scaled} + {number}) // nullif(2 * {number}, 0))::DECIMAL(28, 0)"
        unit = f"{Decimal(1).scaleb(-self.places):f}::DECIMAL({SCALE}, {self.places})"
        return f"sign({total}) * {rounded} * {unit}"


def add_groups(groups: Mapping[str | None, ChildSum], values: frozenset[str | None]) -> ChildSum:
    """The sum of the groups of children that have one of these values."""
    parts = [one for value, one in groups.items() if value in values]
    if len(parts) == 1:
        return parts[0]
    whole = ChildSum(sum(one.count for one in parts))
    for place in {place for one in parts for place in one.amounts}:
        totals, least, most, numbers = zip(*(one.amounts[place] for one in parts if place in one.amounts), strict=True)
        whole.amounts[place] = Amounts(sum(totals, Decimal(0)), min(least), max(most), sum(numbers))
    return whole


def make_decimal_sql(column: Column, alias: str) -> str:
    """Return a column's number as a DECIMAL; NULL for what is not a number, or is too large."""
    name = f"{alias}.{column.sql}"
    return f"CASE WHEN {name}[1] = '{NUMBER}' THEN try_cast(substr({name}, 2) AS {DECIMAL}) END"
