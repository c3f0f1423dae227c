"""count and sum, the other half: a parent's attribute, kept equal to the totals that stand in the ledger.

Law: the attribute is a copy like any other. Whoever writes over it is put right, a parent that comes after its children
finds their total, and where there is no total it is nothing: 0, or an empty map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from sync_rules.model.items import Change, Condition, ItemKey
from sync_rules.model.numbers import holdable, number_of, spelt, total_of
from sync_rules.model.values import AttributeValue, Item, Path
from sync_rules.rules.kinds import ledger
from sync_rules.rules.kinds.ledger import AMOUNT, GROUP, SHARD
from sync_rules.rules.rule import Desired, Hint, Node, TargetRule, Trouble


@dataclass(frozen=True, eq=False, kw_only=True)
class TotalRule(TargetRule):
    """`source` is the entity of the totals, of which a parent has `shards`. `per`: a map of group and number."""

    into: Path
    function: Literal["count", "sum"]
    per: bool = False
    shards: int = 1

    @property
    def kind(self) -> str:
        return self.function

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        return (self.into,)

    def nodes(self) -> tuple[Node, ...]:
        return (Node(self, (self.target, self.into), ((self.source, (AMOUNT,)),)),)

    def body(self) -> Mapping[str, object]:
        return {
            "function": self.function,
            "into": self.into,
            "per": self.per,
            "shards": self.shards,
            "ledger": self.source.table.name,
        }

    # ---------------------------------------------------------------- what matters
    def hints(self, change: Change) -> Iterable[Hint]:
        """The parent that a total names by its key."""
        parent = ledger.named("parent", self.target, self.source.fields(change.key))
        return () if parent is None else (Hint(parent),)

    @cached_property
    def relevant_paths(self) -> tuple[Path, ...]:
        return self.copies

    @property
    def goes_by(self) -> tuple[Path, ...]:
        return ()

    def source_keys(self, target: Item) -> tuple[ItemKey, ...]:
        """A parent's totals; none at all when its key does not fit into theirs."""
        key = self.target.table.key_of(target)
        if key is None:
            return ()
        parent = ledger.naming("parent", self.target, key)
        keys = [self.source.key_of({**parent, SHARD: {"S": str(shard)}}) for shard in range(self.shards)]
        return tuple(key for key in keys if key is not None)

    # ---------------------------------------------------------------- what is true
    def desired(self, sources: Sequence[Item | None], target: Item) -> Desired | Trouble:  # noqa: ARG002
        """The sum over the shards; groups of nothing are left out."""
        if len(sources) < self.shards:
            return Trouble("KeyTooLong")
        sums: dict[str, Decimal] = {}
        for name, value in (pair for total in sources if total is not None for pair in total.items()):
            if name != AMOUNT and not name.startswith(GROUP):
                continue
            number = number_of(value)
            if number is None:
                return Trouble("TotalBroken")
            sums[name] = total_of((sums.get(name, Decimal(0)), number))
        if not all(map(holdable, sums.values())):
            return Trouble("NumberTooLong")
        if not self.per:
            return {self.into: _number(sums.get(AMOUNT, Decimal(0)))}
        groups = {name.removeprefix(GROUP): _number(sums[name]) for name in sums if name != AMOUNT and sums[name]}
        return {self.into: {"M": groups}}

    def link_guard(self, image: Item) -> tuple[Condition, ...]:  # noqa: ARG002
        """None: a parent is named by its key alone, which cannot change."""
        return ()


def _number(number: Decimal) -> AttributeValue:
    return {"N": spelt(number)}
