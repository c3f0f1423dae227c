"""min, max and values of collect: an item for each child in the ledger, under its parent, in the order of its rank.

Invariant: a rank item has the key that its child's rank makes. Each write checks the child in the same transaction, and
every record of a rank item triggers a check against its child.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import describe_link
from sync_rules.model.numbers import format_number
from sync_rules.model.values import AttributeValue, Item, is_same_value
from sync_rules.model.writes import Check, Delete, Put, Transaction, expect_item
from sync_rules.rules import ledger
from sync_rules.rules.description import Use
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.booked_rule import BookedRule
from sync_rules.rules.kinds.counted_rule import CountedRule
from sync_rules.rules.ledger import AMOUNT, RANK
from sync_rules.rules.rule import Blocked, Node, make_check_use


@dataclass(frozen=True, slots=True)
class Rank:
    """A text that sorts as its child does among the children, and the value that the child's ledger item holds."""

    text: str
    held: AttributeValue


@dataclass(frozen=True, slots=True)
class RankPlace:
    """The key of a child's rank item, and the value that the item holds."""

    key: ItemKey
    held: AttributeValue


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedRule(BookedRule):
    """A rule that keeps an item for each child in the ledger, in the order of its rank. `target` is that rank item."""

    @abstractmethod
    def compute_rank(self, child: Item) -> Rank | Blocked | None:
        """Compute the rank of a child. None for a child without a rank, Blocked for a value that cannot have a rank."""

    def nodes(self) -> tuple[Node, ...]:
        return (Node(self, (self.target, (AMOUNT,)), self.read_of_children),)

    def body(self) -> Mapping[str, object]:
        return {
            "link": describe_link(self.link),
            "where": self.where and self.where.text,
            "ledger": self.target.table.name,
        }

    def _list_items(self, change: Change) -> Iterable[ItemKey | None]:
        for image in (change.old, change.new):
            for place in self._places(change.key, image):
                yield self._make_vacant_key(change.key) if isinstance(place, Blocked) else place.key

    def unconditional(self) -> Self:
        return replace(self, where=None)

    def is_known_by_key(self, entity: Entity) -> bool:
        return entity is not self.source or not self.unconditional().source_paths

    def list_uses_to_write(self) -> Iterator[Use]:
        yield from super().list_uses_to_write()
        yield make_check_use(self)

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Transaction | Blocked | None:
        """Return the transaction that puts the rank item at the child's key, or deletes it elsewhere. A blocked child
        is reported at a key without an item, so its former rank item is still deleted.
        """
        places = () if part.source is None else self._places(part.source, source)
        blocked = next((place for place in places if isinstance(place, Blocked)), None)
        if blocked is not None and self.target.fields(part.target) is None:
            return replace(blocked, member=part.source)
        place = next((one for one in places if isinstance(one, RankPlace) and one.key == part.target), None)
        seen = expect_item(self.target.table.partition.name, target, ((AMOUNT,),))
        if place is None:
            return None if target is None else self._guard_action(part, source, Delete(part.target, seen))
        if target is not None and is_same_value(target.get(AMOUNT), place.held):
            return None
        return self._guard_action(
            part, source, Put(part.target, {**part.target.attributes(), AMOUNT: place.held}, seen)
        )

    def _places(self, key: ItemKey, child: Item | None) -> Sequence[RankPlace | Blocked]:
        """The places of a child, one under each of its parents; Blocked for a child or a value that cannot have one."""
        parents = () if child is None else tuple(self._find_parents(child))
        if child is None or not parents:
            return ()
        rank, speaks = self.compute_rank(child), self._speaks_of(child)
        if rank is None or not speaks:
            return ()
        if isinstance(speaks, Blocked):
            return (speaks,)
        if isinstance(rank, Blocked):
            return (rank,)
        return [one if isinstance(one, Blocked) else self._place(key, one, rank) for one in parents]

    def _place(self, key: ItemKey, parent: ItemKey, rank: Rank) -> RankPlace | Blocked:
        fields = ledger.write_fields("parent", self.parent, parent) | ledger.write_fields("child", self.source, key)
        place = self.target.key_of({**fields, RANK: {"S": rank.text}})
        return Blocked("KeyTooLong") if place is None else RankPlace(place, rank.held)

    def _guard_action(self, part: Part, source: Item | None, action: Put | Delete) -> Transaction:
        """Return a transaction that writes only if the child has not changed since the rule read it."""
        if part.source is None:  # a key that names no child
            return Transaction((action,))
        as_read = expect_item(self.source.table.partition.name, source, self.source_paths)
        return Transaction((Check(part.source, as_read), action))


@dataclass(frozen=True, eq=False, kw_only=True)
class RankRule(CountedRule, RankedRule):
    """A rule that ranks children by their amounts."""

    def body(self) -> Mapping[str, object]:
        return {**super().body(), "function": self.function, "of": self.of}

    def compute_rank(self, child: Item) -> Rank | Blocked | None:
        amount = self.read_amount(child)
        return Rank(ledger.format_rank(amount), {"N": format_number(amount)}) if isinstance(amount, Decimal) else amount
