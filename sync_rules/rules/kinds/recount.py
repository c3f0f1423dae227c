"""count, sum, mean, min and max by listing: each check of a parent reads its members and counts them again.

Invariant: the number is exact in any order of the members. This is for small groups; large groups need a ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import compute_mean, compute_total, format_number, is_holdable
from sync_rules.model.values import Item, Path
from sync_rules.model.writes import Desired
from sync_rules.rules.books import Books
from sync_rules.rules.description import Drawing, TypeOf
from sync_rules.rules.families import Members
from sync_rules.rules.kinds.counted_rule import CountedRule
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.kinds.making_rule import MakingRule
from sync_rules.rules.rule import Blocked, Node


@dataclass(frozen=True, eq=False, kw_only=True)
class RecountRule(CountedRule, MakingRule, GatheredRule):
    """A rule that lists its members and counts them. `books`: the books whose items are listed, sorted by the amount,
    so that the first or last item is enough. None: the children are listed. `places`: the decimal places of a mean;
    None for others.
    """

    books: Books | None = None
    places: int | None = None

    def type_of(self, path: Path, known: TypeOf) -> str:
        return "N" if self.per is None else "M"

    def body(self) -> Mapping[str, object]:
        return {
            **super().body(),
            "mode": "recount",
            "of": self.of,
            "weights": self.weights and self.weights.body(),
            "per": self.per,
            "ends": self.ends,
            **({} if self.places is None else {"places": self.places}),
            **self.making_body(),
        }

    def nodes(self) -> tuple[Node, ...]:
        (shown,) = super().nodes()
        return self.make_nodes(shown.reads)

    def members(self, key: ItemKey, target: Item) -> Members | None:
        listing = super().members(key, target)
        if listing is None or not self.ends:
            return listing
        return replace(listing, max_items=1, enough=True, backward=self.function == "max")

    def draw(self) -> Drawing | None:
        return None if self.ends else Drawing(self.target, self.reads, self.copies)

    @property
    def ends(self) -> bool:
        """True if the first or the last member is enough."""
        return self.books is not None

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked:
        """Return the result over the members, in all or per group. Empty groups are left out, as with a ledger."""
        groups: dict[str, list[Decimal]] = {}
        for key, member in self.in_key_order(sources):
            share = self.compute_share(member)
            if isinstance(share, Blocked):
                return replace(share, member=key)
            if share is not None:
                group, amount = share
                groups.setdefault(group, []).append(amount)
        numbers = {group: self._number(amounts) for group, amounts in groups.items()}
        if not all(map(is_holdable, numbers.values())):
            return Blocked("NumberTooLong")
        shown = {group: {"N": format_number(number)} for group, number in numbers.items() if number or not self.adds}
        if self.per is not None:
            return {self.into: {"M": shown}}
        return {self.into: shown.get("", {"N": "0"} if self.adds else None), **self.make_index_keys(target)}

    def has_members(self, sources: Sequence[Item | None]) -> bool:
        return bool(sources)

    def _number(self, amounts: Sequence[Decimal]) -> Decimal:
        match self.function:
            case "count" | "sum":
                return compute_total(amounts)
            case "mean":
                return compute_mean(compute_total(amounts), Decimal(len(amounts)), self.places or 0)
            case "min":
                return min(amounts)
            case "max":
                return max(amounts)
