"""Compare each total of a ledger with the sum of its entries: nothing else detects a total that somebody changed.

Invariant: a total is called wrong only if two scans, a grace period apart, find the same total, the same sum of its
entries, and the two unequal, because a scan is no snapshot; it is repaired only while it is as they found it. A sum
lacks each unreadable entry: as long as a rule has one, its totals are left alone. Memory
is bounded: the first scan adds up by bucket, and forgets the slots of even buckets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from sync_rules.audit.compare import Difference, Drift
from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import is_holdable, number_of, spell, total_of
from sync_rules.model.values import AttributeValue, Item
from sync_rules.model.writes import Put, Status, Update, expect_item
from sync_rules.pipeline.requests import Apply, Read, Scan, Work
from sync_rules.rules.families import Part
from sync_rules.rules.formula import stable_hash
from sync_rules.rules.kinds.tally import TallyRule, list_amounts
from sync_rules.rules.ledger import GROUP, VERSION, holds_amount
from sync_rules.rules.ruleset import Rules

PAGE_MAX_ITEMS: Final = 500
BUCKETS: Final = 1 << 16
UNEVEN_MAX_BUCKETS: Final = 4_096  # in one verify: a sixteenth of all totals; the next finds the others
ZERO: Final = Decimal(0)

Slot = tuple[ItemKey, str]  # a total, and which of its attributes; its version stands for the item as a whole
Row = tuple[TallyRule, Slot | None, "Balance"]  # without a slot: an unreadable entry


@dataclass(frozen=True)
class Balance:
    """The total in a slot, the sum of its entries, and the version of the total: with another version the same number
    is another total. `broken`: no number stands where one must.
    """

    rule: TallyRule
    stands: Decimal = ZERO
    entered: Decimal = ZERO
    version: str = ""
    broken: bool = False

    @property
    def off(self) -> Decimal:
        return total_of((self.stands, self.entered.copy_negate()))

    @property
    def wrong(self) -> bool:
        return self.broken or bool(self.off)

    def plus(self, other: Balance) -> Balance:
        stands, entered = total_of((self.stands, other.stands)), total_of((self.entered, other.entered))
        return Balance(self.rule, stands, entered, self.version or other.version, self.broken or other.broken)


def list_ledgers(rules: Rules, names: frozenset[str]) -> Iterator[tuple[Table, tuple[TallyRule, ...]]]:
    """The tables that are ledgers, each with the rules of these names whose totals it holds."""
    tallies = [rule for name, rule in rules.rules.items() if name in names and isinstance(rule, TallyRule)]
    for table in {rule.target.table.name: rule.target.table for rule in tallies}.values():
        yield table, tuple(rule for rule in tallies if rule.target.table is table)


def find_unbalanced_totals(
    table: Table, rules: Sequence[TallyRule], *, consistent: bool = False
) -> Work[dict[Slot, Balance]]:
    """The totals that differ from the sum of their ledger entries. `consistent`: by scans that do not lag."""
    off: defaultdict[int, Decimal] = defaultdict(Decimal)  # by bucket: its totals, less its entries
    broken: set[int] = set()

    def add(slot: Slot, balance: Balance) -> None:
        bucket = _bucket(slot)
        off[bucket] = total_of((off[bucket], balance.off))
        if balance.broken:
            broken.add(bucket)

    yield from _scan(table, rules, add, consistent=consistent)
    wrong = broken | {bucket for bucket, amount in off.items() if amount}
    uneven = frozenset(sorted(wrong)[:UNEVEN_MAX_BUCKETS])
    if not uneven:
        return {}
    return (yield from _add_up(table, rules, lambda slot: _bucket(slot) in uneven, consistent=consistent))


def find_unsound(rules: Rules, names: frozenset[str]) -> Work[frozenset[str]]:
    """The rules of these names with an unreadable entry, or a total that two scans find wrong in the same way. Scans
    that lag could both lack an entry that was made just now.
    """
    found: set[str] = set()
    for table, tallies in list_ledgers(rules, names):
        found |= yield from _scan(table, tallies, lambda _slot, _balance: None, consistent=True)
        wrong = yield from find_unbalanced_totals(table, tallies, consistent=True)
        off = (yield from confirm_unbalanced_totals(table, tallies, wrong, consistent=True)) if wrong else {}
        found |= {balance.rule.name for balance in off.values()}
    return frozenset(found)


def confirm_unbalanced_totals(
    table: Table, rules: Sequence[TallyRule], found: Mapping[Slot, Balance], *, consistent: bool = False
) -> Work[dict[Slot, Balance]]:
    """The slots with the same total and sum as before: no writer is changing them."""
    again = yield from _add_up(table, rules, lambda slot: slot in found, consistent=consistent)
    return {slot: balance for slot, balance in found.items() if again.get(slot) == balance}


def repair_total(key: ItemKey, balances: Mapping[str, Balance]) -> Work[bool]:
    """Repair the slots of a total in one write, if all of them still are what they were. Says whether it was done."""
    (item,) = yield Read((key,))
    held = item or {}
    for at, balance in balances.items():
        seen = _slots_of(balance.rule, held).get(at, Balance(balance.rule))
        if replace(seen, entered=balance.entered) != balance or not is_holdable(balance.entered):
            return False
    values = {at: {"N": spell(balance.entered)} for at, balance in balances.items()}
    values[VERSION] = {"N": spell((number_of(held.get(VERSION)) or ZERO) + 1)}
    guard = expect_item(key.values[0][0], item, [(at,) for at in values])
    sets = tuple(((at,), value) for at, value in values.items())
    write = Put(key, {**key.attributes(), **values}, guard) if item is None else Update(key, sets, (), guard)
    (result,) = yield Apply((write,))
    return bool(result.status is Status.WRITTEN)


def as_difference(slot: Slot, balance: Balance) -> Difference:
    """The difference for a wrong total: a part without a source, whose element is the attribute."""
    key, at = slot
    part = Part(balance.rule, key, None, at)
    paths = ((balance.rule.label(part) or GROUP,),)
    return Difference(balance.rule.name, Drift.WRONG, key, None, paths, held="", truth="", part=part)


def find_slot(difference: Difference) -> Slot | None:
    """The slot of a difference, if it is one of a total."""
    part = difference.part
    if part is None or not isinstance(part.rule, TallyRule) or part.rule.totals.fields(part.target) is None:
        return None
    return part.target, part.element


def check_slots(table: Table, rules: Sequence[TallyRule], slots: Collection[Slot]) -> Work[dict[Slot, Balance]]:
    """The given totals that differ from the sum of their ledger entries; of a slot without an attribute, all groups."""
    return (yield from _add_up(table, rules, lambda slot: slot in slots or (slot[0], "") in slots))


def _add_up(
    table: Table, rules: Sequence[TallyRule], wanted: Callable[[Slot], bool], *, consistent: bool = False
) -> Work[dict[Slot, Balance]]:
    sums: dict[Slot, Balance] = {}

    def add(slot: Slot, balance: Balance) -> None:
        if wanted(slot):
            sums[slot] = sums.get(slot, Balance(balance.rule)).plus(balance)

    unreadable = yield from _scan(table, rules, add, consistent=consistent)
    return {slot: one for slot, one in sums.items() if one.wrong and one.rule.name not in unreadable}


def _scan(
    table: Table, rules: Sequence[TallyRule], add: Callable[[Slot, Balance], None], *, consistent: bool
) -> Work[set[str]]:
    """Call `add` with each amount in a ledger. Returns the rules that have an unreadable entry."""
    unreadable: set[str] = set()
    cursor: Item | None = None
    while True:
        page = yield Scan(table.name, PAGE_MAX_ITEMS, cursor, consistent=consistent)
        for rule, slot, balance in (row for item in page.items for row in _rows(table, rules, item)):
            if slot is None:
                unreadable.add(rule.name)
            else:
                add(slot, balance)
        cursor = page.cursor
        if cursor is None:
            return unreadable


def _rows(table: Table, rules: Sequence[TallyRule], item: Item) -> Iterator[Row]:
    """The amounts of an item: a total for each of its slots, an entry for each slot that it adds to."""
    key = table.key_of(item)
    for rule in rules if key is not None else ():
        assert key is not None
        if rule.totals.fields(key) is not None:
            for at, balance in _slots_of(rule, item).items():
                yield rule, (key, at), balance
        elif rule.target.fields(key) is not None:
            held = rule.read_contribution(item)
            if held is None:
                yield rule, None, Balance(rule, broken=True)
            elif rule.totals.fields(held.total) is not None:  # else of totals that are used no more
                for at, amount in list_amounts(held, members=rule.counts_members):
                    yield rule, (held.total, at), Balance(rule, entered=amount)


def _slots_of(rule: TallyRule, total: Item) -> dict[str, Balance]:
    """The slots of a total as they stand; its version is one of them where no booking can count it up."""
    version = str(total.get(VERSION, ""))

    def balance(value: AttributeValue) -> Balance:
        number = number_of(value)
        return Balance(rule, number or ZERO, ZERO, version, broken=number is None)

    slots = {at: balance(value) for at, value in total.items() if holds_amount(at)}
    if (slots or VERSION in total) and number_of(total.get(VERSION)) is None:
        slots[VERSION] = Balance(rule, version=version, broken=True)
    return slots


def _bucket(slot: Slot) -> int:
    return stable_hash(f"{slot[0]}{slot[1]}") % BUCKETS
