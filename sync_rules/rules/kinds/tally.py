"""count, sum and mean by ledger: each child has an entry with its contribution, and the same transaction adds it to its
parent's total.

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
from sync_rules.model.numbers import compute_mean, compute_total, format_number, is_holdable, read_number
from sync_rules.model.values import AttributeValue, Item, Path, show_path
from sync_rules.model.writes import Delete, Desired, Increment, Put, Transaction, expect_item
from sync_rules.rules import ledger
from sync_rules.rules.books import Books
from sync_rules.rules.description import Moment, Operation, TypeOf, Use
from sync_rules.rules.families import Hint, Part
from sync_rules.rules.formula import compute_stable_hash
from sync_rules.rules.kinds.booked_rule import BookedRule
from sync_rules.rules.kinds.counted_rule import CountedRule
from sync_rules.rules.kinds.making_rule import MakingRule
from sync_rules.rules.ledger import AMOUNT, BETWEEN, ENTRY, GROUP, MEMBERS, SHARD, VERSION, Contribution, holds_amount
from sync_rules.rules.rule import Blocked, Node


@dataclass(frozen=True, eq=False, kw_only=True)
class TallyRule(CountedRule, BookedRule):
    """A rule that keeps an entry for each child, and adds it to a total. `target` is the entry, `totals` the entity of
    the totals. A parent has `shards` totals. `sums`: further fields of a child that the same entry adds up.
    """

    totals: Entity
    shards: int = 1
    sums: tuple[Path, ...] = ()

    @property
    def reads(self) -> tuple[Path, ...]:
        return (*super().reads, *self.sums)

    @property
    def required_types(self) -> Mapping[Path, tuple[str, ...]]:
        return {**super().required_types, **dict.fromkeys(self.sums, ("N",))}

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
            **({"sums": self.sums} if self.sums else {}),
        }

    @property
    def counts_members(self) -> bool:
        return self.parent.made or self.function == "mean"

    def _list_items(self, change: Change) -> Iterable[ItemKey | None]:
        """The entries of a child; for a child that cannot be counted also the key where that is reported."""
        if self.each is None:
            yield self._make_entry_key(change.key)
        for image in (image for image in (change.old, change.new) if image is not None):
            for entry, share in self._shares(change.key, image):
                yield entry
                if isinstance(share, Blocked):
                    yield self._make_vacant_key(change.key)

    def is_known_by_key(self, entity: Entity) -> bool:
        return entity is not self.source or self.each is None  # else the key of a child alone names its entry

    def find_total(self, item: Item) -> ItemKey | None:
        held = self.read_contribution(item)
        return None if held is None else held.total

    def read_contribution(self, entry: Item) -> Contribution | None:
        """Read the contribution in an entry. None if the pipeline did not write the entry: it names no total of the
        rule.
        """
        held = ledger.read_contribution(self.target.table, entry)
        name = self.renamed_from or self.title  # the books keep the name that they began with
        return held if held is not None and ledger.is_total(name, held.total) else None

    def list_uses_to_write(self) -> Iterator[Use]:
        yield from super().list_uses_to_write()
        yield Use(Moment.WRITTEN, Operation.UPDATE, self.target.table, "the total, in the same transaction")

    def _make_entry_key(self, child: ItemKey, parent: ItemKey | Blocked | None = None) -> ItemKey | None:
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
            entry = only if only is not None and self.each is None else self._make_entry_key(key, parent)
            if only in (None, entry):
                yield entry, self._compute_contribution(entry, child, parent)

    def label(self, part: Part) -> str:
        """Return the attribute of a total; "" for a group, whose name is a value."""
        return "" if self._is_group(part.element) else part.element

    def mask_paths(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((GROUP,) if self._is_group(path[0]) else path for path in paths))

    def _is_group(self, name: str) -> bool:
        """True for an attribute of a total whose name may be a value: of a group, and not of a further sum."""
        return name.startswith(GROUP) and name not in map(name_sum, self.sums)

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Transaction | Blocked | None:
        """Return the transaction that writes the entry as its child is now, and moves the totals by the difference. A
        blocked child is reported at a key without an item, so its former contribution is still taken back.
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
            Increment(total, (*((at, format_number(net)) for at, net in nets.items()), (VERSION, "1")))
            for total, nets in _compute_moves(held, wanted, members=self.counts_members).items()
        )
        return Transaction((*moved, self._make_entry_write(part, target, wanted)))

    def rebuild_part(self, part: Part, target: Item | None, source: Item | None) -> Transaction | None:
        """Return the write of the entry as its child is now. It moves no total, because nothing says what the broken
        entry added, and where.
        """
        if self.target.fields(part.target) is None:
            return None
        wanted = self._find_contribution(part, source)
        right = wanted is None if target is None else wanted is not None and wanted == self.read_contribution(target)
        return None if right else Transaction((self._make_entry_write(part, target, wanted),))

    def _find_contribution(self, part: Part, child: Item | None) -> Contribution | None:
        shares = () if child is None or part.source is None else self._shares(part.source, child, part.target)
        return next((share for _, share in shares if not isinstance(share, Blocked)), None)

    def _make_entry_write(self, part: Part, target: Item | None, wanted: Contribution | None) -> Put | Delete:
        names = (*ENTRY, *ledger.list_sums(target or {}), *(name for name, _ in (wanted.sums if wanted else ())))
        seen = expect_item(self.target.table.partition.name, target, [(name,) for name in dict.fromkeys(names)])
        if wanted is None:
            return Delete(part.target, seen)
        return Put(part.target, ledger.make_entry(part.target, wanted), seen)

    def _explain_block(self, part: Part, source: Item | None) -> Blocked | None:
        """Return why a child counts nothing although it should; None if it counts."""
        if part.source is None or source is None:
            return None
        blocked = next((share for _, share in self._shares(part.source, source) if isinstance(share, Blocked)), None)
        return blocked and replace(blocked, member=part.source)

    def _compute_contribution(
        self, entry: ItemKey | None, child: Item, parent: ItemKey | Blocked
    ) -> Contribution | Blocked | None:
        """The contribution of a child to the total of a parent; None when it adds nothing."""
        speaks = self._speaks_of(child)
        if not speaks:
            return None
        if isinstance(speaks, Blocked):
            return speaks
        share, sums = self.compute_share(child), self._read_sums(child)
        if share is None or isinstance(share, Blocked):
            return share
        if isinstance(sums, Blocked):
            return sums
        if isinstance(parent, Blocked):
            return parent
        group, amount = share
        if entry is None:
            return Blocked("KeyTooLong")
        fields = ledger.write_fields("parent", self.parent, parent) | {
            SHARD: {"S": str(choose_shard(entry, self.shards))}
        }
        if (total := self.totals.key_of(fields)) is None:
            return Blocked("KeyTooLong")
        return Contribution(total, f"{GROUP}{group}" if self.per else AMOUNT, amount, sums)

    def _read_sums(self, child: Item) -> tuple[tuple[str, Decimal], ...] | Blocked:
        """Return what a child adds to each further sum; Blocked if one of its values is not a number."""
        found: list[tuple[str, Decimal]] = []
        for path in self.sums:
            value = self._read(child, path)
            number = Decimal(0) if value is None else read_number(value)
            if number is None:
                return Blocked(f"NotANumber: {show_path(path)}")
            if number:
                found.append((name_sum(path), number))
        return tuple(sorted(found))


def name_sum(path: Path) -> str:
    """Return the attribute of entries and totals for a further sum of a field. A rule with sums has no groups."""
    return f"{GROUP}{show_path(path)}"


def choose_shard(entry: ItemKey, shards: int) -> int:
    """Choose the shard of the parent's totals that an entry adds to: always the same shard."""
    if shards == 1:
        return 0
    text = BETWEEN.join(str(value) for _, _, value in entry.values)
    return compute_stable_hash(text) % shards


def _compute_moves(
    held: Contribution | None, wanted: Contribution | None, *, members: bool
) -> dict[ItemKey, dict[str, Decimal]]:
    """The net amounts for each total, in one go: a transaction takes an item once. `members`: they are counted, too."""
    moves: dict[ItemKey, dict[str, Decimal]] = {}
    for contribution, taken in ((held, True), (wanted, False)):
        if contribution is None:
            continue
        nets = moves.setdefault(contribution.total, {})
        for at, amount in list_amounts(contribution, members=members):
            nets[at] = compute_total((nets.get(at, Decimal(0)), amount.copy_negate() if taken else amount))
    return moves


def list_amounts(contribution: Contribution, *, members: bool) -> tuple[tuple[str, Decimal], ...]:
    """List the attributes of a total that a contribution adds to, each with its amount. `members`: the total counts
    members.
    """
    amounts = ((contribution.at, contribution.amount), *contribution.sums)
    return (*amounts, (MEMBERS, Decimal(1))) if members else amounts


@dataclass(frozen=True, eq=False, kw_only=True)
class TotalRule(MakingRule):
    """A rule that shows the totals of a ledger on a parent. `source` is the entity of the totals; each parent has
    `shards`. `per`: the value is a map of groups. `places`: the decimal places of a mean; None for a sum. `sums`: by
    attribute of the parent, the field of a child whose sum it shows.
    """

    into: Path
    books: Books = field(kw_only=True)
    function: Literal["count", "sum", "mean"]
    per: bool = False
    shards: int = 1
    places: int | None = None
    sums: Mapping[Path, Path] = field(default_factory=dict)
    deciding_paths = ()  # a parent is named by its key alone, which cannot change

    @property
    def kind(self) -> str:
        return self.function

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        return (self.into, *self.sums)

    def nodes(self) -> tuple[Node, ...]:
        return self.make_nodes(((self.source, (AMOUNT,)),))

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
            **({"sums": sorted(self.sums.items())} if self.sums else {}),
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
        """Return the keys of a parent's totals. A parent whose key does not fit into a ledger key has fewer than
        `shards`.
        """
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
            number = read_number(value)
            if number is None:
                return Blocked("TotalBroken")
            sums[name] = compute_total((sums.get(name, Decimal(0)), number))
        members = sums.pop(MEMBERS, Decimal(0))
        if self.places is not None:
            if members <= 0:
                return {self.into: None, **self.make_index_keys(target)}
            sums = {AMOUNT: compute_mean(sums.get(AMOUNT, Decimal(0)), members, self.places)}
        if not all(map(is_holdable, sums.values())):
            return Blocked("NumberTooLong")
        if not self.per:
            shown = {self.into: AMOUNT, **{into: name_sum(path) for into, path in self.sums.items()}}
            numbers = {into: _make_number(sums.get(name, Decimal(0))) for into, name in shown.items()}
            return {**numbers, **self.make_index_keys(target)}
        groups = {name.removeprefix(GROUP): _make_number(sums[name]) for name in sums if name != AMOUNT and sums[name]}
        return {self.into: {"M": groups}, **self.make_index_keys(target)}

    def has_members(self, sources: Sequence[Item | None]) -> bool | Blocked:
        numbers = [read_number(total[MEMBERS]) for total in sources if total is not None and MEMBERS in total]
        held = [number for number in numbers if number is not None]
        return Blocked("TotalBroken") if len(held) < len(numbers) else compute_total(held) > 0


def _make_number(number: Decimal) -> AttributeValue:
    return {"N": format_number(number)}
