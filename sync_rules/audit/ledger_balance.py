"""Compare each total of a ledger with the sum of its entries: nothing else detects a total that another program
changed.

Invariant: a scan is not a snapshot. A total is wrong only if two scans, a grace period apart, find the same total and
the same, different sum. It is repaired only while it is as they found it. A sum lacks unreadable entries: as long as a
rule has such an entry, its totals are left alone. Memory is bounded: the first scan adds up by bucket, and forgets the
slots of even buckets.
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
from sync_rules.model.numbers import compute_total, format_number, is_holdable, read_number
from sync_rules.model.values import AttributeValue, Item
from sync_rules.model.writes import Put, Status, Update, expect_item
from sync_rules.pipeline.requests import Apply, Read, Scan, Work
from sync_rules.rules.families import Part
from sync_rules.rules.formula import compute_stable_hash
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
    """The total in a slot, the sum of its entries, and the version of the total. The same number with another version
    is another total. `broken`: a value that must be a number is not a number.
    """

    rule: TallyRule
    stands: Decimal = ZERO
    entered: Decimal = ZERO
    version: str = ""
    broken: bool = False

    @property
    def off(self) -> Decimal:
        return compute_total((self.stands, self.entered.copy_negate()))

    @property
    def wrong(self) -> bool:
        return self.broken or bool(self.off)

    def plus(self, other: Balance) -> Balance:
        stands, entered = compute_total((self.stands, other.stands)), compute_total((self.entered, other.entered))
        return Balance(self.rule, stands, entered, self.version or other.version, self.broken or other.broken)


def list_ledgers(rules: Rules, names: frozenset[str]) -> Iterator[tuple[Table, tuple[TallyRule, ...]]]:
    """List the ledger tables, each with those of the named rules whose totals it holds."""
    tallies = [rule for name, rule in rules.rules.items() if name in names and isinstance(rule, TallyRule)]
    for table in {rule.target.table.name: rule.target.table for rule in tallies}.values():
        yield table, tuple(rule for rule in tallies if rule.target.table is table)


def find_unbalanced_totals(
    table: Table, rules: Sequence[TallyRule], *, consistent: bool = False
) -> Work[dict[Slot, Balance]]:
    """Return the totals that differ from the sum of their ledger entries. `consistent`: use consistent scans."""
    off: defaultdict[int, Decimal] = defaultdict(Decimal)  # by bucket: its totals, less its entries
    broken: set[int] = set()

    def add(slot: Slot, balance: Balance) -> None:
        bucket = _compute_bucket(slot)
        off[bucket] = compute_total((off[bucket], balance.off))
        if balance.broken:
            broken.add(bucket)

    yield from _scan(table, rules, add, consistent=consistent)
    wrong = broken | {bucket for bucket, amount in off.items() if amount}
    uneven = frozenset(sorted(wrong)[:UNEVEN_MAX_BUCKETS])
    if not uneven:
        return {}
    return (yield from _add_up(table, rules, lambda slot: _compute_bucket(slot) in uneven, consistent=consistent))


def find_unsound_rules(rules: Rules, names: frozenset[str]) -> Work[frozenset[str]]:
    """Return the named rules that have an unreadable entry, or a total that two scans find wrong in the same way. The
    scans are consistent: lagging scans could both lack a new entry.
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
    """Return the slots whose total and sum are the same as before, because no writer is changing them."""
    again = yield from _add_up(table, rules, lambda slot: slot in found, consistent=consistent)
    return {slot: balance for slot, balance in found.items() if again.get(slot) == balance}


def repair_total(key: ItemKey, balances: Mapping[str, Balance]) -> Work[bool]:
    """Repair the slots of a total in one write, if none has changed. Return True if the write succeeded."""
    (item,) = yield Read((key,))
    held = item or {}
    for at, balance in balances.items():
        seen = _list_slots(balance.rule, held).get(at, Balance(balance.rule))
        if replace(seen, entered=balance.entered) != balance or not is_holdable(balance.entered):
            return False
    values = {at: {"N": format_number(balance.entered)} for at, balance in balances.items()}
    values[VERSION] = {"N": format_number((read_number(held.get(VERSION)) or ZERO) + 1)}
    guard = expect_item(key.values[0][0], item, [(at,) for at in values])
    sets = tuple(((at,), value) for at, value in values.items())
    write = Put(key, {**key.attributes(), **values}, guard) if item is None else Update(key, sets, (), guard)
    (result,) = yield Apply((write,))
    return bool(result.status is Status.WRITTEN)


def make_difference(slot: Slot, balance: Balance) -> Difference:
    """Make the difference of a wrong total: a part without a source, whose element is the attribute."""
    key, at = slot
    part = Part(balance.rule, key, None, at)
    paths = ((balance.rule.label(part) or GROUP,),)
    return Difference(balance.rule.name, Drift.WRONG, key, None, paths, held="", truth="", part=part)


def find_slot(difference: Difference) -> Slot | None:
    """Return the slot of a difference, or None if it is not the difference of a total."""
    part = difference.part
    if part is None or not isinstance(part.rule, TallyRule) or part.rule.totals.fields(part.target) is None:
        return None
    return part.target, part.element


def check_slots(table: Table, rules: Sequence[TallyRule], slots: Collection[Slot]) -> Work[dict[Slot, Balance]]:
    """Return the given totals that differ from the sum of their ledger entries. A slot without an attribute means all
    groups of its total.
    """
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
        for rule, slot, balance in (row for item in page.items for row in _list_rows(table, rules, item)):
            if slot is None:
                unreadable.add(rule.name)
            else:
                add(slot, balance)
        cursor = page.cursor
        if cursor is None:
            return unreadable


def _list_rows(table: Table, rules: Sequence[TallyRule], item: Item) -> Iterator[Row]:
    """The amounts of an item: a total for each of its slots, an entry for each slot that it adds to."""
    key = table.key_of(item)
    for rule in rules if key is not None else ():
        assert key is not None
        if rule.totals.fields(key) is not None:
            for at, balance in _list_slots(rule, item).items():
                yield rule, (key, at), balance
        elif rule.target.fields(key) is not None:
            held = rule.read_contribution(item)
            if held is None:
                yield rule, None, Balance(rule, broken=True)
            elif rule.totals.fields(held.total) is not None:  # else of totals that are used no more
                for at, amount in list_amounts(held, members=rule.counts_members):
                    yield rule, (held.total, at), Balance(rule, entered=amount)


def _list_slots(rule: TallyRule, total: Item) -> dict[str, Balance]:
    """The slots of a total as they stand; its version is one of them where no booking can count it up."""
    version = str(total.get(VERSION, ""))

    def balance(value: AttributeValue) -> Balance:
        number = read_number(value)
        return Balance(rule, number or ZERO, ZERO, version, broken=number is None)

    slots = {at: balance(value) for at, value in total.items() if holds_amount(at)}
    if (slots or VERSION in total) and read_number(total.get(VERSION)) is None:
        slots[VERSION] = Balance(rule, version=version, broken=True)
    return slots


def _compute_bucket(slot: Slot) -> int:
    return compute_stable_hash(f"{slot[0]}{slot[1]}") % BUCKETS
