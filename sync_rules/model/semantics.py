"""DynamoDB's semantics: guards and writes evaluated on an item in memory, and how values and keys compare.

Invariant: `adapters/expressions.py` renders the same conditions and updates for the service, and a differential test
compares both. No function changes an item that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from sync_rules.model.entities import KEYS_KEPT_MAX, KeyAttribute
from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import compute_total, format_number, is_holdable, parse_number
from sync_rules.model.values import AttributeValue, Item, Path, get, has_overlap, is_same_value, show_path
from sync_rules.model.writes import Action, Check, Condition, Delete, Increment, Put, Test, Transaction, Update, Write

Place = tuple[str, tuple[str | bytes | Decimal, ...]]  # a table, and the identity of a key
SETS: Final = frozenset({"SS", "NS", "BS"})


class InvalidUpdateError(Exception):
    """DynamoDB cannot make this change of this item: a ValidationException. `cure` says what to do instead."""

    def __init__(self, found: str, cure: str) -> None:
        super().__init__(found)
        self.cure = cure


def holds(guard: Iterable[Condition], item: Item | None) -> bool:
    """True if every condition holds; for a missing item only ABSENT can."""
    for condition in guard:  # noqa: SIM110 -- as below
        if not _holds(condition, item):
            return False
    return True


def _holds(condition: Condition, item: Item | None) -> bool:
    value = get(item, condition.path)
    match condition.test:
        case Test.EQUALS:
            return value is not None and is_same_value(value, condition.value)
        case Test.EXISTS:
            return value is not None
        case Test.ABSENT:
            return value is None
        case Test.IS_MAP:
            return value is not None and "M" in value


def is_well_formed(action: Action) -> bool:
    """True if a write passes the checks that DynamoDB makes before it reads the item: no overlapping paths, no key
    path, no invalid value.
    """
    if isinstance(action, Put):
        return all(map(is_storable, read_put_item(action).values()))
    if not isinstance(action, Update | Increment):
        return True
    change = convert_to_update(action)
    values = (*change.sets, *change.adds, *change.discards)
    paths = [*(path for path, _ in values), *change.removes]
    key = {name for name, _, _ in action.key.values}
    for i, path in enumerate(paths):
        if path[0] in key:
            return False
        for other in paths[:i]:
            if has_overlap(path, other):
                return False
    for _, value in values:  # noqa: SIM110 -- every write in memory comes by here, and a generator doubles the time
        if not is_storable(value):
            return False
    return True


def read_put_item(put: Put) -> Item:
    """Return the item of a put, which contains its key."""
    assert all(is_same_value(put.item.get(name), value) for name, value in put.key.attributes().items()), (
        "a put of its own key"
    )
    return put.item


def convert_to_update(action: Update | Increment) -> Update:
    """Return an increment as an update that adds numbers. No other update may add numbers: sent again after a lost
    answer, it would count twice.
    """
    if isinstance(action, Increment):
        amounts = tuple(((name,), {"N": amount}) for name, amount in action.amounts)
        return Update(action.key, (), (), action.guard, amounts)
    elements = (*action.adds, *action.discards)
    assert all(len(path) == 1 and SETS & value.keys() for path, value in elements), "sets at the top of the item"
    return action


def apply_update(item: Item, change: Update) -> Item:
    """Return the changed item, a new value that shares the unchanged parts.

    Raises:
        InvalidUpdateError: when the parent of a nested path is not a map, something is added to or discarded from a
            value of another type, or a sum has more digits than a number can have.
    """
    attributes = dict(item)
    for path, value in change.sets:
        _put(attributes, path, value)
    for path in change.removes:
        _put(attributes, path, None)
    for path, value in change.adds:
        _put(attributes, path, _add_value(item, path[0], value))
    for path, value in change.discards:
        _put(attributes, path, _discard_elements(item, path[0], value))
    return attributes


def is_same_item(old: Item | None, new: Item | None) -> bool:
    """True if two items are equal, their values as DynamoDB compares them."""
    if old is None or new is None:
        return old is new
    if old.keys() != new.keys():
        return False
    for name, value in old.items():
        other = new[name]
        if value is not other and not is_same_value(value, other):
            return False
    return True


def _add_value(item: Item, name: str, more: AttributeValue) -> AttributeValue:
    """ADD: the sum of two numbers, a missing one being 0; the union of two sets."""
    ((kind, content),) = more.items()
    if kind == "N":
        total = compute_total((Decimal(_read_content(item, name, kind) or "0"), Decimal(content)))
        if not is_holdable(total):
            raise InvalidUpdateError(f"the sum in {name} has too many digits", "set it to another number")
        return {"N": format_number(total)}
    elements = _read_content(item, name, kind) or []
    known = {make_comparable(kind[0], element) for element in elements}
    return {kind: [*elements, *(element for element in content if make_comparable(kind[0], element) not in known)]}


def _discard_elements(item: Item, name: str, elements: AttributeValue) -> AttributeValue | None:
    """DELETE: the rest of a set; None instead of the empty set, which DynamoDB cannot hold."""
    ((kind, content),) = elements.items()
    gone = {make_comparable(kind[0], element) for element in content}
    left = [
        element for element in _read_content(item, name, kind) or () if make_comparable(kind[0], element) not in gone
    ]
    return {kind: left} if left else None


def _read_content(item: Item, name: str, kind: str) -> Any:
    """The content of an attribute of this type; None where it is missing."""
    value = item.get(name)
    if value is not None and kind not in value:
        found = f"{name} has another type than the value that is added or taken out"
        raise InvalidUpdateError(found, "set the attribute, or give a value of its type")
    return None if value is None else value[kind]


def is_storable(value: AttributeValue) -> bool:
    """True if DynamoDB accepts a value: no empty set, no element twice, no number out of range."""
    ((kind, content),) = value.items()
    if kind == "S":
        return True  # most values are texts
    match kind:
        case "N":
            return parse_number(content) is not None
        case "NS":
            return all(is_storable({"N": text}) for text in content) and 0 < len(content) == len(
                set(map(Decimal, content))
            )
        case "SS" | "BS":
            return 0 < len(content) == len(set(content))
        case "M":
            return all(map(is_storable, content.values()))
        case "L":
            return all(map(is_storable, content))
    return True


def _put(attributes: dict[str, AttributeValue], path: Path, value: AttributeValue | None) -> None:
    for name in path[:-1]:
        parent = attributes.get(name)
        if parent is None or "M" not in parent:
            raise InvalidUpdateError(f"{show_path(path)}: {name} is not a map", "set the whole map")
        inner = dict(parent["M"])
        attributes[name] = {"M": inner}
        attributes = inner
    if value is None:
        attributes.pop(path[-1], None)
    else:
        attributes[path[-1]] = value


def make_comparable(kind: str, value: str | bytes) -> str | bytes | Decimal:
    """Return a key value in the form that DynamoDB compares and sorts: numbers by value, strings by code point, as in
    UTF-8.
    """
    return Decimal(value) if kind == "N" and isinstance(value, str) else value


@lru_cache(KEYS_KEPT_MAX)
def make_identity(key: ItemKey) -> tuple[str | bytes | Decimal, ...]:
    """Return the values of a key in a form that is equal exactly for keys of a table that name the same item."""
    return tuple([make_comparable(kind, value) if kind == "N" else value for _, kind, value in key.values])


@lru_cache(KEYS_KEPT_MAX)
def make_place(key: ItemKey) -> Place:
    """Return the identity of an item among the items of all tables. It does not depend on the spelling of numbers."""
    return key.table, make_identity(key)


def list_key_values(item: Item, attributes: Iterable[KeyAttribute]) -> tuple[str | bytes | Decimal, ...] | None:
    """List the values of key attributes in sortable form; None if an attribute is missing or of another type."""
    values = []
    for attribute in attributes:
        value = item.get(attribute.name)
        if value is None or attribute.type not in value:
            return None
        values.append(make_comparable(attribute.type, value[attribute.type]))
    return tuple(values)


def make_item(action: Action, before: Item | None) -> Item | None:
    """Return the item after an action; None if the action deletes it. Raises InvalidUpdateError."""
    match action:
        case Delete():
            return None
        case Put():
            return read_put_item(action)
        case Check():
            return before
        case Update() | Increment():
            return apply_update(before or action.key.attributes(), convert_to_update(action))


def apply_action(action: Action, before: Item | None) -> Item | None:
    """Return the item after an action. An action that the service would reject changes nothing."""
    try:
        return make_item(action, before)
    except InvalidUpdateError:
        return before


def list_actions(write: Write) -> tuple[Action, ...]:
    return write.actions if isinstance(write, Transaction) else (write,)


def apply_write(write: Write | Action, image: Item | None) -> Item | None:
    """Return the target after a write, given its `image`. Return None if the write deletes it, or updates an item that
    is unknown.
    """
    last = list_actions(write)[-1] if isinstance(write, Transaction) else write
    if isinstance(last, Put) or (isinstance(last, Update) and image is not None):
        return apply_action(last, image)
    return None
