"""From what a target should hold to one guarded update of it.

Law: an update compares before it sets. Every path it touches is guarded by what the image showed there, every map it
has to create by its absence, and the item itself by its existence, so nothing newer and nothing foreign is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sync_rules.model.items import Condition, ItemKey, Test, Update, equals_seen
from sync_rules.model.values import TYPES, AttributeValue, Item, Path, get, nest, same, show_path

Desired = Mapping[Path, AttributeValue | None]


def differences(image: Item, desired: Desired) -> dict[Path, AttributeValue | None]:
    """The paths that do not hold what they should."""
    return {path: value for path, value in desired.items() if not same(get(image, path), value)}


def as_seen(image: Item, paths: Iterable[Path]) -> tuple[Condition, ...]:
    """A newer write loses nothing to an older one: each copy is replaced only if it still is what was seen."""
    return tuple(equals_seen(path, get(image, path)) for path in paths)


def target_exists(key: ItemKey) -> Condition:
    """UpdateItem would otherwise create a half-empty item."""
    return Condition(Test.EXISTS, (key.values[0][0],))


def misfit(image: Item, paths: Iterable[Path]) -> str | None:
    """Why a copy cannot be placed, if so: something that is not a map stands on the way. The item must change first."""
    for path in paths:
        for length in range(1, len(path)):
            value = get(image, path[:length])
            if value is not None and "M" not in value:
                found = TYPES[next(iter(value))]
                return f"{show_path(path[:length])} is a {found}: expected a map to hold {path[length]}"
    return None


def update_of(
    key: ItemKey, image: Item, changes: Mapping[Path, AttributeValue | None], guard: Iterable[Condition]
) -> Update:
    """One update that makes the changes to an item seen as `image`, under `guard` and what the paths need beside it.

    None of the paths may be a `misfit`.
    """
    sets: dict[Path, AttributeValue] = {}
    removes: list[Path] = []
    conditions = [target_exists(key), *guard, *as_seen(image, changes)]
    for path, value in changes.items():
        missing = _missing_map(image, path)
        if value is None:
            removes.append(path)
        elif missing is None:
            sets[path] = value
            if len(path) > 1 and get(image, path) is None:
                conditions.append(Condition(Test.IS_MAP, path[:-1]))
        else:
            sets[missing] = _merged(sets.get(missing), nest(path[len(missing) :], value))
            conditions.append(equals_seen(missing, None))
            if len(missing) > 1:
                conditions.append(Condition(Test.IS_MAP, missing[:-1]))
    return Update(key, tuple(sets.items()), tuple(removes), distinct(conditions))


def distinct(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Each condition once, in order: several rules may ask for the same."""
    once: list[Condition] = []
    for condition in conditions:
        if condition not in once:
            once.append(condition)
    return tuple(once)


def _missing_map(image: Item, path: Path) -> Path | None:
    """The outermost map on the way to a path that does not exist yet."""
    return next((path[:length] for length in range(1, len(path)) if get(image, path[:length]) is None), None)


def _merged(left: AttributeValue | None, right: AttributeValue) -> AttributeValue:
    """Two nested maps as one; no two rules write overlapping paths, so they never disagree."""
    if left is None:
        return right
    merged = dict(left["M"])
    for name, value in right["M"].items():
        merged[name] = _merged(merged[name], value) if name in merged else value
    return {"M": merged}
