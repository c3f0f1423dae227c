"""min and max: an item for each child in the ledger, under its parent, in the order of the amounts.

Law: a rank item stands where its child's amount puts it, and nowhere else. What puts it there checks the child in the
same transaction, and every record of a rank item is a reason to ask its child again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import Link, Pointer
from sync_rules.model.numbers import number_of, spelt
from sync_rules.model.values import Item, Path, changed, same
from sync_rules.model.where import Where
from sync_rules.model.writes import Check, Delete, Put, Transaction, unchanged
from sync_rules.rules import ledger
from sync_rules.rules.ledger import AMOUNT, RANK
from sync_rules.rules.rule import Blocked, Node, Part, PartRule


@dataclass(frozen=True, slots=True)
class Place:
    """Where a child belongs, and its amount there."""

    key: ItemKey
    amount: Decimal


@dataclass(frozen=True, eq=False, kw_only=True)
class RankRule(PartRule):
    """`source` is the child, `target` its rank item. `link` pairs each identity field of the parent with the place on
    the child where it is read.
    """

    parent: Entity
    function: Literal["min", "max"]
    of: Path
    link: Link
    where: Where | None = None

    @property
    def kind(self) -> str:
        return self.function

    @cached_property
    def pointer(self) -> Pointer:
        """From a child to its parent."""
        return Pointer(self.link, self.parent)

    @cached_property
    def source_paths(self) -> tuple[Path, ...]:
        """What decides the place of a child."""
        return ledger.watched(self.source, self.link, self.where, (self.of,))

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        return self.source_paths if entity is self.source else None

    def nodes(self) -> tuple[Node, ...]:
        return (Node(self, (self.target, (AMOUNT,)), tuple((self.source, path) for path in self.source_paths)),)

    def body(self) -> Mapping[str, object]:
        return {
            "function": self.function,
            "of": self.of,
            "link": sorted((field, ref.path) for field, ref in self.link),
            "where": self.where and self.where.text,
            "ledger": self.target.table.name,
        }

    # ---------------------------------------------------------------- what matters
    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """The places of a child as it was and as it is; and every rank item that was written."""
        if entity is self.target:
            yield Part(self, change.key, ledger.named("child", self.source, entity.fields(change.key)))
        elif change.old is None or change.new is None or changed(change.old, change.new, self.source_paths):
            for key in dict.fromkeys(self._look_at(change.key, image) for image in (change.old, change.new)):
                if key is not None:
                    yield Part(self, key, change.key)

    def _look_at(self, child: ItemKey, image: Item | None) -> ItemKey | None:
        place = self._place(child, image)
        if isinstance(place, Blocked):
            return ledger.nowhere(self.title, self.target.table, child)
        return None if place is None else place.key

    # ---------------------------------------------------------------- what is true
    def judge(self, part: Part, target: Item | None, source: Item | None) -> Transaction | Blocked | None:
        """A rank item where the child belongs, none where it does not. Blocked is told once, where nothing ever stands:
        the place that a child had before must be cleared all the same.
        """
        place = None if part.source is None else self._place(part.source, source)
        if isinstance(place, Blocked):
            if self.target.fields(part.target) is None:
                return replace(place, member=part.source)
            place = None
        seen = unchanged(self.target.table.partition.name, target, ((AMOUNT,),))
        if place is None or place.key != part.target:
            return None if target is None else self._checked(part, source, Delete(part.target, seen))
        amount = {"N": spelt(place.amount)}
        if target is not None and same(target.get(AMOUNT), amount):
            return None
        return self._checked(part, source, Put(part.target, {**part.target.attributes(), AMOUNT: amount}, seen))

    def _place(self, key: ItemKey, child: Item | None) -> Place | Blocked | None:
        """Where a child belongs; None when it belongs nowhere."""
        if child is None or not ledger.holds(self.where, self.source, child):
            return None
        parent = self.pointer(child)
        value = ledger.read(self.source, child, self.of)
        if parent is None or value is None:
            return None
        amount = number_of(value)
        if amount is None:
            return Blocked("NotANumber")
        fields = ledger.naming("parent", self.parent, parent) | ledger.naming("child", self.source, key)
        place = self.target.key_of({**fields, RANK: {"S": ledger.rank_text(amount)}})
        return Blocked("KeyTooLong") if place is None else Place(place, amount)

    def _checked(self, part: Part, source: Item | None, action: Put | Delete) -> Transaction:
        """The action, if the child still is as it was read."""
        if part.source is None:  # a key that names no child: nobody's place
            return Transaction((action,))
        as_read = unchanged(self.source.table.partition.name, source, self.source_paths)
        return Transaction((Check(part.source, as_read), action))
