"""Book totals where adding a difference is not enough: it cannot be said in one number, or the total holds none.

Invariant: a total is written as a whole only while it is exactly as it was read, its version included, and in the
transaction that writes the entry. If another writer adds to it meanwhile, DynamoDB refuses the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final

from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import holdable, number_of, spelt, total_of
from sync_rules.model.values import AttributeValue, Item
from sync_rules.model.writes import Action, Increment, Put, Transaction, Update, Write, unchanged
from sync_rules.pipeline.requests import Found
from sync_rules.rules.rule import Blocked

TOTAL_BROKEN: Final = Blocked("TotalBroken")


def increments(write: Write) -> tuple[Increment, ...]:
    """The totals that a write adds to."""
    actions = write.actions if isinstance(write, Transaction) else ()
    return tuple(action for action in actions if isinstance(action, Increment))


def sayable(increment: Increment) -> bool:
    """True if each difference fits into one number: from 0.0000000001 to 1E+30 takes 41 digits, and DynamoDB has 38."""
    return all(holdable(Decimal(amount)) for _, amount in increment.amounts)


def in_whole(write: Transaction, totals: Mapping[ItemKey, Found]) -> Transaction | Blocked:
    """The same booking with the new total in place of each difference that cannot be said."""
    actions: list[Action] = []
    for action in write.actions:
        if isinstance(action, Increment) and not sayable(action):
            total = totals[action.key]
            assert total is None or isinstance(total, Mapping), "a total that could not be read fails before"
            new = _new_total(action, total)
            if isinstance(new, Blocked):
                return new
            actions.append(new)
        else:
            actions.append(action)
    return replace(write, actions=tuple(actions))


def addable(increment: Increment, total: Item | None) -> bool:
    """True if all that is added to is a number, or absent."""
    held = (None if total is None else total.get(name) for name, _ in increment.amounts)
    return all(value is None or number_of(value) is not None for value in held)


def _new_total(increment: Increment, total: Item | None) -> Update | Put | Blocked:
    if not addable(increment, total):
        return TOTAL_BROKEN
    numbers: dict[str, AttributeValue] = {}
    for name, amount in increment.amounts:
        held = number_of((total or {}).get(name)) or Decimal(0)
        number = total_of((held, Decimal(amount)))
        if not holdable(number):
            return Blocked("NumberTooLong")
        numbers[name] = {"N": spelt(number)}
    guard = unchanged(increment.key.values[0][0], total, [(name,) for name in numbers])
    if total is None:
        return Put(increment.key, {**increment.key.attributes(), **numbers}, guard)
    return Update(increment.key, tuple(((name,), number) for name, number in numbers.items()), (), guard)
