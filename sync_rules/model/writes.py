"""Writes and their guards, and the guarded update that makes a target hold desired values.

Invariant: an update compares before it sets. Every path that it touches is guarded by the value of the image, every map
that it creates by its absence, and the item by its existence, so no newer value and no other item's value is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from sync_rules.model.items import ItemKey
from sync_rules.model.values import TYPES, AttributeValue, Item, Path, get, is_same_value, nest, show_path


class Test(Enum):
    EQUALS = "="
    EXISTS = "exists"
    ABSENT = "absent"
    IS_MAP = "is map"

    __test__ = False  # pytest would take it for a test case
    __hash__ = object.__hash__  # faster than Enum's own


class Condition(NamedTuple):
    """One part of a guard, as data. `value` is given for EQUALS only."""

    test: Test
    path: Path
    value: AttributeValue | None = None


def expect_value(path: Path, seen: AttributeValue | None) -> Condition:
    """Return the condition that a path still has the value of the image. None requires absence: NULL is a value."""
    return Condition(Test.ABSENT, path) if seen is None else Condition(Test.EQUALS, path, seen)


def expect_item(partition: str, item: Item | None, paths: Iterable[Path]) -> tuple[Condition, ...]:
    """Return the conditions that an item has not changed since it was read: absent, or the same value at each path.
    `partition`: the name of its partition key, which shows whether the item exists.
    """
    if item is None:
        return (Condition(Test.ABSENT, (partition,)),)
    return (Condition(Test.EXISTS, (partition,)), *(expect_value(path, get(item, path)) for path in paths))


@dataclass(slots=True)  # as a Change: made for every copy, and never changed
class Update:
    """A write that sets and removes paths of one item if the guard holds. It never creates the item.

    `adds` and `discards` put elements into sets and take them out (ADD and DELETE in DynamoDB's expressions): each is a
    top-level attribute and a set of elements. Other elements of the set are neither read nor compared.
    """

    key: ItemKey
    sets: tuple[tuple[Path, AttributeValue], ...]
    removes: tuple[Path, ...]
    guard: tuple[Condition, ...]
    adds: tuple[tuple[Path, AttributeValue], ...] = ()
    discards: tuple[tuple[Path, AttributeValue], ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    key: ItemKey
    guard: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """An action of a transaction that writes nothing: another item must still satisfy the guard."""

    key: ItemKey
    guard: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """A write of one whole item, which may be new, if the guard holds. Only for items that belong to the pipeline."""

    key: ItemKey
    item: Item
    guard: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Increment:
    """An action of a transaction that adds to numbers of an item, which may be new. Only for items that belong to the
    pipeline. It is the only write without a guard: another action of the transaction has the guard.
    """

    key: ItemKey
    amounts: tuple[tuple[str, str], ...]  # attribute and number
    guard: tuple[Condition, ...] = ()


Action = Check | Update | Delete | Put | Increment


@dataclass(frozen=True, slots=True)
class Transaction:
    """All of the actions or none, each on another item. The target's action is the last."""

    actions: tuple[Action, ...]


Write = Update | Put | Delete | Transaction


class Status(Enum):
    WRITTEN = "written"
    REFUSED = "refused"  # a guard did not hold: an answer, not an error
    REJECTED = "rejected"  # can never succeed as it stands: over 400 KB, wrong type
    FAILED = "failed"  # throttled, conflicting, timed out: may have happened, must be retried


@dataclass(frozen=True, slots=True)
class Result:
    """The store's answer to one write.

    `item`: after REFUSED, the target as it is now (None: no such item). `refused`: the positions of the actions in a
    transaction whose guard did not hold. `reason` is the service's error code after REJECTED and FAILED.
    """

    status: Status
    item: Item | None = None
    refused: frozenset[int] = frozenset({0})
    reason: str = ""


WRITTEN: Final = Result(Status.WRITTEN)


Desired = Mapping[Path, AttributeValue | None]  # what a target must hold at each path; None: nothing


def find_differences(image: Item, desired: Desired) -> dict[Path, AttributeValue | None]:
    """Return the paths whose value differs from the desired value, with the desired value."""
    found: dict[Path, AttributeValue | None] = {}
    for path, value in desired.items():  # a loop: every target comes by here, and most hold what they must
        now = image.get(path[0]) if len(path) == 1 else get(image, path)
        if now != value and not is_same_value(now, value):
            found[path] = value
    return found


def expect_values(image: Item, paths: Iterable[Path]) -> tuple[Condition, ...]:
    """Return the conditions that each path still has the value of the image, so that no newer write is lost."""
    return tuple([expect_value(path, get(image, path)) for path in paths])


def expect_existence(key: ItemKey) -> Condition:
    """Return the condition that an item exists: UpdateItem would otherwise create a half-empty item."""
    return Condition(Test.EXISTS, (key.values[0][0],))


def find_misfit(image: Item, paths: Iterable[Path]) -> str | None:
    """Return why a copy has no place: a value on its path is not a map. None if it has one."""
    for path in paths:
        for length in range(1, len(path)):
            value = get(image, path[:length])
            if value is not None and "M" not in value:
                found = TYPES[next(iter(value))]
                return f"{show_path(path[:length])} is a {found}: expected a map to hold {path[length]}"
    return None


def make_update(
    key: ItemKey, image: Item, changes: Mapping[Path, AttributeValue | None], guard: Iterable[Condition]
) -> Update:
    """Make one update that makes the changes to an item read as `image`, under `guard` and the guards of the paths.

    No path may be a `find_misfit`.
    """
    sets: dict[Path, AttributeValue] = {}
    removes: list[Path] = []
    conditions = [expect_existence(key), *guard, *expect_values(image, changes)]
    for path, value in changes.items():
        missing = _find_missing_map(image, path) if len(path) > 1 else None
        if value is None:
            removes.append(path)
        elif missing is None:
            sets[path] = value
            if len(path) > 1 and get(image, path) is None:
                conditions.append(Condition(Test.IS_MAP, path[:-1]))
        else:
            sets[missing] = _merge_maps(sets.get(missing), nest(path[len(missing) :], value))
            conditions.append(expect_value(missing, None))
            if len(missing) > 1:
                conditions.append(Condition(Test.IS_MAP, missing[:-1]))
    return Update(key, tuple(sets.items()), tuple(removes), drop_repeated_conditions(conditions))


def drop_repeated_conditions(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    once: list[Condition] = []
    for condition in conditions:
        if condition not in once:
            once.append(condition)
    return tuple(once)


def _find_missing_map(image: Item, path: Path) -> Path | None:
    return next((path[:length] for length in range(1, len(path)) if get(image, path[:length]) is None), None)


def _merge_maps(left: AttributeValue | None, right: AttributeValue) -> AttributeValue:
    """Merge two nested maps. They never conflict: no two rules write overlapping paths."""
    if left is None:
        return right
    merged = dict(left["M"])
    for name, value in right["M"].items():
        merged[name] = _merge_maps(merged[name], value) if name in merged else value
    return {"M": merged}
