"""Joint writes: one write for several parts, such as the elements of one set or the shares of one total. A total that
no difference can change is written as a whole: no number can hold the difference, or the total holds no number.

Invariant: a joint write does what its writes do, under all of their guards. DynamoDB names no item twice in a
transaction and no path twice in an update: writes that it could not take as one stay apart. A total is written as a
whole only while it is exactly as it was read, its version included, and in the transaction that writes the entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import compute_total, format_number, is_holdable, read_number
from sync_rules.model.values import AttributeValue, Item, Path
from sync_rules.model.writes import Action, Check, Increment, Put, Transaction, Update, Write, expect_item
from sync_rules.pipeline.requests import Found
from sync_rules.pipeline.tasks import PartLook
from sync_rules.rules.rule import Blocked

TRANSACTION_MAX_ACTIONS: Final = 100  # quota of TransactWriteItems
TOTAL_BROKEN: Final = Blocked("TotalBroken")


@dataclass(frozen=True, eq=False)
class JointWrite:
    """One write for several parts."""

    looks: tuple[PartLook, ...]
    write: Write


def join_writes(wanted: Iterable[tuple[PartLook, Write]]) -> list[JointWrite]:
    """Merge writes where possible: elements of one set into one update, transactions into one."""
    groups: dict[object, list[JointWrite]] = {}
    for look, write in wanted:
        joints = groups.setdefault(_make_join_key(write), [])
        both = _join(joints[-1].write, write) if joints else None
        if both is None:
            joints.append(JointWrite((look,), write))
        else:
            joints[-1] = JointWrite((*joints[-1].looks, look), both)
    return [joint for joints in groups.values() for joint in joints]


def _make_join_key(write: Write) -> object:
    """Writes can be merged only if this is equal for both."""
    if isinstance(write, Update):
        return write.key, bool(write.adds)
    actions = write.actions if isinstance(write, Transaction) else (write,)
    return type(actions[0]), actions[0].key if isinstance(actions[0], Check) else None


def _join(one: Write, two: Write) -> Write | None:
    if isinstance(one, Update) and isinstance(two, Update):
        return _join_elements(one, two)
    if isinstance(one, Transaction) and isinstance(two, Transaction):
        return _join_transactions(one, two)
    return None


def _join_elements(one: Update, two: Update) -> Update | None:
    """Merge updates of one item that both ADD or both DELETE: one expression may not name a set twice."""
    if one.guard != two.guard or one.sets or two.sets or one.removes or two.removes:
        return None
    return replace(one, adds=_merge_elements(one.adds, two.adds), discards=_merge_elements(one.discards, two.discards))


Elements = tuple[tuple[Path, AttributeValue], ...]


def _merge_elements(one: Elements, two: Elements) -> Elements:
    sets: dict[Path, AttributeValue] = dict(one)
    for path, value in two:
        ((kind, elements),) = value.items()
        before = sets.get(path, {kind: []})
        sets[path] = {kind: [*before[kind], *(element for element in elements if element not in before[kind])]}
    return tuple(sets.items())


def _join_transactions(one: Transaction, two: Transaction) -> Transaction | None:
    """Merge transactions that check the same source in the same way, or add to totals; no item may be named twice."""
    checks = [action for action in (one.actions[0], two.actions[0]) if isinstance(action, Check)]
    if checks and (len(checks) == 1 or checks[0] != checks[1]):
        return None
    totals: dict[ItemKey, Increment] = {}
    others: list[Action] = []
    for action in (*one.actions[len(checks) // 2 :], *two.actions[len(checks) // 2 :]):
        if isinstance(action, Increment):
            together = _sum(totals[action.key], action) if action.key in totals else action
            if together is None:
                return None
            totals[action.key] = together
        else:
            others.append(action)
    actions = (*checks[:1], *totals.values(), *others)
    if len(actions) > TRANSACTION_MAX_ACTIONS or len({action.key for action in actions}) < len(actions):
        return None
    return Transaction(actions)


def _sum(one: Increment, two: Increment) -> Increment | None:
    """The exact sum of both; None when DynamoDB could not hold it in one number."""
    amounts = {name: Decimal(amount) for name, amount in one.amounts}
    for name, amount in two.amounts:
        amounts[name] = compute_total((amounts.get(name, Decimal(0)), Decimal(amount)))
    if not all(map(is_holdable, amounts.values())):
        return None
    return replace(one, amounts=tuple((name, format_number(amount)) for name, amount in amounts.items()))


# ---------------------------------------------------------------- totals as a whole
def list_increments(write: Write) -> tuple[Increment, ...]:
    """List the increments of a write: the numbers that it adds to totals."""
    actions = write.actions if isinstance(write, Transaction) else ()
    return tuple(action for action in actions if isinstance(action, Increment))


def fits_numbers(increment: Increment) -> bool:
    """True if each difference fits into one number: from 0.0000000001 to 1E+30 takes 41 digits, and DynamoDB has 38."""
    return all(is_holdable(Decimal(amount)) for _, amount in increment.amounts)


def put_totals(write: Transaction, totals: Mapping[ItemKey, Found]) -> Transaction | Blocked:
    """Return a transaction with a whole new total in place of each increment that DynamoDB cannot hold. Return Blocked
    if the total is not a number, or too long.
    """
    actions: list[Action] = []
    for action in write.actions:
        if isinstance(action, Increment) and not fits_numbers(action):
            total = totals[action.key]
            assert total is None or isinstance(total, Mapping), "a total that could not be read fails before"
            new = add_to_total(action, total)
            if isinstance(new, Blocked):
                return new
            actions.append(new)
        else:
            actions.append(action)
    return replace(write, actions=tuple(actions))


def add_to_total(increment: Increment, total: Item | None) -> Update | Put | Blocked:
    """The write of a total as a whole; Blocked if it is not a number, or would be none that DynamoDB holds."""
    numbers: dict[str, AttributeValue] = {}
    for name, amount in increment.amounts:
        value = (total or {}).get(name)
        held = Decimal(0) if value is None else read_number(value)
        if held is None:
            return TOTAL_BROKEN
        number = compute_total((held, Decimal(amount)))
        if not is_holdable(number):
            return Blocked("NumberTooLong")
        numbers[name] = {"N": format_number(number)}
    guard = expect_item(increment.key.values[0][0], total, [(name,) for name in numbers])
    if total is None:
        return Put(increment.key, {**increment.key.attributes(), **numbers}, guard)
    return Update(increment.key, tuple(((name,), number) for name, number in numbers.items()), (), guard)
