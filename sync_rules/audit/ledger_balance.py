"""Compare each total of a ledger with the sum of its entries: nothing else detects a total that somebody changed.

Invariant: a total is called wrong only if two scans, a grace period apart, find the same total, the same sum of its
entries, and the two unequal, because a scan is no snapshot; it is repaired only while it is as they found it. Memory is
bounded: the first scan adds up by bucket, and forgets the slots of even buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sync_rules.audit.compare import Difference, Drift
from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import holdable, number_of, spelt, total_of
from sync_rules.model.values import Item
from sync_rules.model.writes import Put, Status, Update, unchanged
from sync_rules.pipeline.requests import Apply, Read, Scan, Work
from sync_rules.rules.families import Part
from sync_rules.rules.formula import stable_hash
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.ledger import AMOUNT, GROUP, VERSION, contribution_of
from sync_rules.rules.ruleset import Rules

PAGE_MAX_ITEMS: Final = 500
BUCKETS: Final = 1 << 16
UNEVEN_MAX_BUCKETS: Final = 4_096  # in one verify: a sixteenth of all totals; the next finds the others
ZERO: Final = Decimal(0)

Slot = tuple[ItemKey, str]  # a total, and which of its attributes
Row = tuple[TallyRule, Slot, "Balance"]


@dataclass(frozen=True)
class Balance:
    """The total in a slot, the sum of its entries, and the version of the total: with another version the same number
    is another total.
    """

    rule: TallyRule
    stands: Decimal = ZERO
    entered: Decimal = ZERO
    version: str = ""

    @property
    def off(self) -> Decimal:
        return total_of((self.stands, self.entered.copy_negate()))

    def plus(self, other: Balance) -> Balance:
        stands, entered = total_of((self.stands, other.stands)), total_of((self.entered, other.entered))
        return Balance(self.rule, stands, entered, self.version or other.version)


def ledgers(rules: Rules, names: frozenset[str]) -> Iterator[tuple[Table, tuple[TallyRule, ...]]]:
    """The tables that are ledgers, each with the rules of these names whose totals it holds."""
    tallies = [rule for name, rule in rules.rules.items() if name in names and isinstance(rule, TallyRule)]
    for table in {rule.target.table.name: rule.target.table for rule in tallies}.values():
        yield table, tuple(rule for rule in tallies if rule.target.table is table)


def unbalanced(table: Table, rules: Sequence[TallyRule]) -> Work[dict[Slot, Balance]]:
    """The totals that differ from the sum of their ledger entries."""
    buckets: dict[int, Decimal] = {}
    cursor: Item | None = None
    while True:
        rows, cursor = yield from _page(table, rules, cursor)
        for _, slot, balance in rows:
            buckets[_bucket(slot)] = total_of((buckets.get(_bucket(slot), ZERO), balance.off))
        if cursor is None:
            break
    uneven = frozenset(sorted(bucket for bucket, off in buckets.items() if off)[:UNEVEN_MAX_BUCKETS])
    return (yield from _added_up(table, rules, lambda slot: _bucket(slot) in uneven)) if uneven else {}


def still(table: Table, rules: Sequence[TallyRule], found: Mapping[Slot, Balance]) -> Work[dict[Slot, Balance]]:
    """The slots that are exactly as they were: nobody is changing them."""
    again = yield from _added_up(table, rules, lambda slot: slot in found)
    return {slot: balance for slot, balance in found.items() if again.get(slot) == balance}


def repair_total(slot: Slot, balance: Balance) -> Work[bool]:
    """Repair a total, if it still is what it was. Says whether it was repaired."""
    key, at = slot
    (item,) = yield Read((key,))
    seen = None if item is None else item.get(at)
    if (
        (number_of(seen) or ZERO) != balance.stands
        or _version(item or {}) != balance.version
        or not holdable(balance.entered)
    ):
        return False
    value = {"N": spelt(balance.entered)}
    guard = unchanged(key.values[0][0], item, ((at,), (VERSION,)))
    write = (
        Put(key, {**key.attributes(), at: value}, guard) if item is None else Update(key, (((at,), value),), (), guard)
    )
    (result,) = yield Apply((write,))
    return bool(result.status is Status.WRITTEN)


def as_difference(slot: Slot, balance: Balance) -> Difference:
    """The difference for a wrong total: a part without a source, whose element is the attribute."""
    key, at = slot
    part = Part(balance.rule, key, None, at)
    return Difference(balance.rule.name, Drift.WRONG, key, None, ((at,),), held="", truth="", part=part)


def slot_of(difference: Difference) -> Slot | None:
    """The slot of a difference, if it is one of a total."""
    part = difference.part
    if part is None or not isinstance(part.rule, TallyRule) or part.rule.totals.fields(part.target) is None:
        return None
    return part.target, part.element


def of_slots(table: Table, rules: Sequence[TallyRule], slots: Collection[Slot]) -> Work[dict[Slot, Balance]]:
    """The given totals that differ from the sum of their ledger entries."""
    return (yield from _added_up(table, rules, slots.__contains__))


def _added_up(table: Table, rules: Sequence[TallyRule], wanted: Callable[[Slot], bool]) -> Work[dict[Slot, Balance]]:
    sums: dict[Slot, Balance] = {}
    cursor: Item | None = None
    while True:
        rows, cursor = yield from _page(table, rules, cursor)
        for rule, slot, balance in rows:
            if wanted(slot):
                sums[slot] = sums.get(slot, Balance(rule)).plus(balance)
        if cursor is None:
            return {slot: balance for slot, balance in sums.items() if balance.off}


def _page(table: Table, rules: Sequence[TallyRule], cursor: Item | None) -> Work[tuple[list[Row], Item | None]]:
    page = yield Scan(table.name, PAGE_MAX_ITEMS, cursor)
    return [row for item in page.items for row in _rows(table, rules, item)], page.cursor


def _rows(table: Table, rules: Sequence[TallyRule], item: Item) -> Iterator[Row]:
    """The amounts of an item: a total for each of its slots, an entry for one. What is no number counts as 0."""
    key = table.key_of(item)
    for rule in rules if key is not None else ():
        assert key is not None
        if rule.totals.fields(key) is not None:
            for at, value in item.items():
                if at == AMOUNT or at.startswith(GROUP):
                    yield rule, (key, at), Balance(rule, stands=number_of(value) or ZERO, version=_version(item))
        elif rule.target.fields(key) is not None:
            held = contribution_of(table, item)
            if held is not None and rule.totals.fields(held.total) is not None:  # else of totals that are used no more
                yield rule, (held.total, held.at), Balance(rule, entered=held.amount)


def _version(total: Item) -> str:
    return str(total.get(VERSION, {}).get("N", ""))


def _bucket(slot: Slot) -> int:
    return stable_hash(f"{slot[0]}{slot[1]}") % BUCKETS
