"""count, sum and mean: what each child contributes, entered in the ledger once and added to its parent's total with it.

Invariant: an entry is guarded by what it was when read, and every record of an entry triggers a check against its
child, also if an application wrote it. Without either, a late write counts a child twice, or one that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import describe_link
from sync_rules.model.numbers import is_holdable, mean_of, number_of, spell, total_of
from sync_rules.model.values import AttributeValue, Item, Path
from sync_rules.model.writes import Delete, Desired, Increment, Put, Transaction, expect_item
from sync_rules.rules import ledger
from sync_rules.rules.books import Books
from sync_rules.rules.description import Moment, Operation, TypeOf, Use
from sync_rules.rules.families import Hint, Part
from sync_rules.rules.formula import stable_hash
from sync_rules.rules.kinds.booked_rule import BookedRule
from sync_rules.rules.kinds.counted_rule import CountedRule
from sync_rules.rules.kinds.making_rule import MakingRule
from sync_rules.rules.ledger import AMOUNT, BETWEEN, ENTRY, GROUP, MEMBERS, SHARD, VERSION, Contribution, holds_amount
from sync_rules.rules.rule import Blocked, Node


@dataclass(frozen=True, eq=False, kw_only=True)
class TallyRule(CountedRule, BookedRule):
    """`target` is the entry of a child, `totals` the entity of the totals. A parent has `shards` of them."""

    totals: Entity
    shards: int = 1

    def nodes(self) -> tuple[Node, ...]:
        return tuple(Node(self, (entity, (AMOUNT,)), self.read_of_children) for entity in (self.target, self.totals))

    def body(self) -> Mapping[str, object]:
        return {
            "function": self.function,
            "link": describe_link(self.link),
            "of": self.of,
            "weights": self.weights and self.weights.body(),
            "per": self.per,
            "where": self.where and self.where.text,
            "shards": self.shards,
            "ledger": self.target.table.name,
            **({"members": True} if self.counts_members else {}),
        }

    @property
    def counts_members(self) -> bool:
        return self.parent.made or self.function == "mean"

    def _items_of(self, change: Change) -> Iterable[ItemKey | None]:
        """The entries of a child; for a child that cannot be counted also the key where that is reported."""
        if self.each is None:
            yield self._entry_of(change.key)
        for image in (image for image in (change.old, change.new) if image is not None):
            for entry, share in self._shares(change.key, image):
                yield entry
                if isinstance(share, Blocked):
                    yield self._nowhere(change.key)

    def is_known_by_key(self, entity: Entity) -> bool:
        return entity is not self.source or self.each is None  # else the key of a child alone names its entry

    def find_total(self, item: Item) -> ItemKey | None:
        held = self.read_contribution(item)
        return None if held is None else held.total

    def read_contribution(self, entry: Item) -> Contribution | None:
        """The contribution in an entry; None for one that the pipeline did not write: it names no total of the rule."""
        held = ledger.contribution_of(self.target.table, entry)
        name = self.renamed_from or self.title  # the books keep the name that they began with
        return held if held is not None and ledger.is_total(name, held.total) else None

    def list_uses_to_write(self) -> Iterator[Use]:
        yield from super().list_uses_to_write()
        yield Use(Moment.WRITTEN, Operation.UPDATE, self.target.table, "the total, in the same transaction")

    def _entry_of(self, child: ItemKey, parent: ItemKey | Blocked | None = None) -> ItemKey | None:
        """The entry of a child; with `each`, the one for a parent."""
        fields = ledger.write_fields("child", self.source, child)
        if self.each is not None and isinstance(parent, ItemKey):
            fields |= ledger.write_fields("parent", self.parent, parent)
        return self.target.key_of(fields)

    def _shares(
        self, key: ItemKey, child: Item, only: ItemKey | None = None
    ) -> Iterator[tuple[ItemKey | None, Contribution | Blocked | None]]:
        """The entries of a child, all or `only` one, each with its contribution."""
        for parent in self._find_parents(child):
            entry = only if only is not None and self.each is None else self._entry_of(key, parent)
            if only in (None, entry):
                yield entry, self._contribution(entry, child, parent)

    def label(self, part: Part) -> str:
        """The attribute of a total; "" for a group, whose name is a value."""
        return "" if part.element.startswith(GROUP) else part.element

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Transaction | Blocked | None:
        """The entry as its child is now, and the totals moved by the difference. A blocked child is reported at a key
        without an item, so its former contribution is still taken back.
        """
        if self.target.fields(part.target) is None:
            return self._explain_block(part, source)
        held = None if target is None else self.read_contribution(target)
        if held is None and target is not None:
            return Blocked("EntryBroken", member=part.source)
        wanted = self._find_contribution(part, source)
        if wanted == held:
            return None
        moved = (
            Increment(total, (*((at, spell(net)) for at, net in nets.items()), (VERSION, "1")))
            for total, nets in _moves(held, wanted, members=self.counts_members).items()
        )
        return Transaction((*moved, self._make_entry_write(part, target, wanted)))

    def rebuild_part(self, part: Part, target: Item | None, source: Item | None) -> Transaction | None:
        """The entry as its child is now. No total is moved: what the entry added, and where, is not known."""
        if self.target.fields(part.target) is None:
            return None
        wanted = self._find_contribution(part, source)
        right = wanted is None if target is None else wanted is not None and wanted == self.read_contribution(target)
        return None if right else Transaction((self._make_entry_write(part, target, wanted),))

    def _find_contribution(self, part: Part, child: Item | None) -> Contribution | None:
        shares = () if child is None or part.source is None else self._shares(part.source, child, part.target)
        return next((share for _, share in shares if not isinstance(share, Blocked)), None)

    def _make_entry_write(self, part: Part, target: Item | None, wanted: Contribution | None) -> Put | Delete:
        seen = expect_item(self.target.table.partition.name, target, [(name,) for name in ENTRY])
        if wanted is None:
            return Delete(part.target, seen)
        return Put(part.target, ledger.entry_item(part.target, wanted), seen)

    def _explain_block(self, part: Part, source: Item | None) -> Blocked | None:
        """Return why a child counts nothing although it should; None if it counts."""
        if part.source is None or source is None:
            return None
        blocked = next((share for _, share in self._shares(part.source, source) if isinstance(share, Blocked)), None)
        return blocked and replace(blocked, member=part.source)

    def _contribution(
        self, entry: ItemKey | None, child: Item, parent: ItemKey | Blocked
    ) -> Contribution | Blocked | None:
        """The contribution of a child to the total of a parent; None when it adds nothing."""
        speaks = self._speaks_of(child)
        if not speaks:
            return None
        if isinstance(speaks, Blocked):
            return speaks
        share = self.share_of(child)
        if share is None or isinstance(share, Blocked):
            return share
        if isinstance(parent, Blocked):
            return parent
        group, amount = share
        if entry is None:
            return Blocked("KeyTooLong")
        fields = ledger.write_fields("parent", self.parent, parent) | {SHARD: {"S": str(shard_of(entry, self.shards))}}
        if (total := self.totals.key_of(fields)) is None:
            return Blocked("KeyTooLong")
        return Contribution(total, f"{GROUP}{group}" if self.per else AMOUNT, amount)


def shard_of(entry: ItemKey, shards: int) -> int:
    """The shard of the parent's totals that a child adds to: always the same one."""
    text = BETWEEN.join(str(value) for _, _, value in entry.values)
    return stable_hash(text) % shards


def _moves(
    held: Contribution | None, wanted: Contribution | None, *, members: bool
) -> dict[ItemKey, dict[str, Decimal]]:
    """The net amounts for each total, in one go: a transaction takes an item once. `members`: they are counted, too."""
    moves: dict[ItemKey, dict[str, Decimal]] = {}
    for contribution, taken in ((held, True), (wanted, False)):
        if contribution is None:
            continue
        nets = moves.setdefault(contribution.total, {})
        for at, amount in list_amounts(contribution, members=members):
            nets[at] = total_of((nets.get(at, Decimal(0)), amount.copy_negate() if taken else amount))
    return moves


def list_amounts(contribution: Contribution, *, members: bool) -> tuple[tuple[str, Decimal], ...]:
    """The attributes of a total that a contribution adds to, each with its amount."""
    amount = (contribution.at, contribution.amount)
    return (amount, (MEMBERS, Decimal(1))) if members else (amount,)


@dataclass(frozen=True, eq=False, kw_only=True)
class TotalRule(MakingRule):
    """`source` is the entity of the totals, each parent has `shards`. `per`: the value is a map of groups.
    `places`: the decimal places of a mean; None for a sum.
    """

    into: Path
    books: Books = field(kw_only=True)
    function: Literal["count", "sum", "mean"]
    per: bool = False
    shards: int = 1
    places: int | None = None
    deciding_paths = ()  # a parent is named by its key alone, which cannot change

    @property
    def kind(self) -> str:
        return self.function

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        return (self.into,)

    def nodes(self) -> tuple[Node, ...]:
        return self.nodes_of(((self.source, (AMOUNT,)),))

    def type_of(self, path: Path, known: TypeOf) -> str:
        return "M" if self.per else "N"

    def body(self) -> Mapping[str, object]:
        return {
            "function": self.function,
            "into": self.into,
            "per": self.per,
            "shards": self.shards,
            "ledger": self.source.table.name,
            **({} if self.places is None else {"places": self.places}),
            **self.making_body(),
        }

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        return (self.source, *super().owned_entities)

    def is_known_by_key(self, entity: Entity) -> bool:
        return True  # a total names its parent by its key

    def draw(self) -> None:
        return None  # the arrow of its entries stands for it

    def hints(self, change: Change) -> Iterable[Hint]:
        parent = ledger.read_key("parent", self.target, self.source.fields(change.key))
        return () if parent is None else (Hint(parent),)

    def source_keys(self, target: Item) -> tuple[ItemKey, ...]:
        """A parent's totals; none at all when its key does not fit into theirs."""
        key = self.target.table.key_of(target)
        if key is None:
            return ()
        parent = ledger.write_fields("parent", self.target, key)
        keys = [self.source.key_of({**parent, SHARD: {"S": str(shard)}}) for shard in range(self.shards)]
        return tuple(key for key in keys if key is not None)

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked:
        """Return the sum or the mean over the shards, without empty groups."""
        if len(sources) < self.shards:
            return Blocked("KeyTooLong")
        sums: dict[str, Decimal] = {}
        for name, value in (pair for total in sources if total is not None for pair in total.items()):
            if not holds_amount(name):
                continue
            number = number_of(value)
            if number is None:
                return Blocked("TotalBroken")
            sums[name] = total_of((sums.get(name, Decimal(0)), number))
        members = sums.pop(MEMBERS, Decimal(0))
        if self.places is not None:
            if members <= 0:
                return {self.into: None, **self.index_keys_of(target)}
            sums = {AMOUNT: mean_of(sums.get(AMOUNT, Decimal(0)), members, self.places)}
        if not all(map(is_holdable, sums.values())):
            return Blocked("NumberTooLong")
        if not self.per:
            return {self.into: _number(sums.get(AMOUNT, Decimal(0))), **self.index_keys_of(target)}
        groups = {name.removeprefix(GROUP): _number(sums[name]) for name in sums if name != AMOUNT and sums[name]}
        return {self.into: {"M": groups}, **self.index_keys_of(target)}

    def has_members(self, sources: Sequence[Item | None]) -> bool | Blocked:
        numbers = [number_of(total[MEMBERS]) for total in sources if total is not None and MEMBERS in total]
        held = [number for number in numbers if number is not None]
        return Blocked("TotalBroken") if len(held) < len(numbers) else total_of(held) > 0


def _number(number: Decimal) -> AttributeValue:
    return {"N": spell(number)}
