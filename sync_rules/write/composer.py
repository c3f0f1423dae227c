"""Compose one transaction: an action for each item that changed, and a check of each item that only decided.

Invariant: the transaction compares every item that decided with the image that was read. If a source changes meanwhile,
the transaction is cancelled, so no action writes a value of an old image.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import compute_total, format_number, is_holdable, read_number
from sync_rules.model.semantics import SETS, Place, is_same_item
from sync_rules.model.sizes import ITEM_MAX_BYTES, count_item_bytes
from sync_rules.model.values import AttributeValue, Item, Path, get, has_overlap
from sync_rules.model.writes import (
    Action,
    Check,
    Condition,
    Delete,
    Put,
    Test,
    Update,
    drop_repeated_conditions,
    expect_item,
)
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Own, list_paths, subtract_elements
from sync_rules.write.needs import Needs
from sync_rules.write.read_through import Applied, ReadThrough

ACTIONS_MAX: Final = 100  # quota of TransactWriteItems
BYTES_MAX: Final = 4 * 1024 * 1024  # of all items of one transaction
CONDITIONS_MAX: Final = 150  # of one action: an expression has at most 4 KB
NOTHING: Final = Applied()


@dataclass(frozen=True, slots=True)
class Planned:
    """One action of the transaction, with the application's action in it, or None. Its guard may be empty if the
    application writes an item that no rule reads.
    """

    action: Action
    own: Own | None = None


def compose(owns: Mapping[Place, Own], store: ReadThrough, rules: Rules, left: Collection[str] = ()) -> list[Planned]:
    """Return the actions that repeat the writes in memory, guarded by every value that decided them. The application's
    actions come first. `left` names the rules with work left to the stream: whether their other copies are right is
    unknown.
    """
    return _TransactionComposer(owns, store, rules, left).plan_actions()


def can_be_sent(planned: Iterable[Planned]) -> bool:
    """Return True if these actions fit in one transaction: their number, total bytes, and conditions per action."""
    planned = list(planned)
    if len(planned) > ACTIONS_MAX or any(len(one.action.guard) > CONDITIONS_MAX for one in planned):
        return False
    if len(planned) * 2 * ITEM_MAX_BYTES <= BYTES_MAX:  # an action has an item, or values of one, and a guard's values
        return True
    return sum(map(_count_bytes, planned)) <= BYTES_MAX


def _count_bytes(one: Planned) -> int:
    action = one.action
    values = sum(count_item_bytes({".".join(c.path): c.value}) for c in action.guard if c.value is not None)
    match action:
        case Put():
            return values + count_item_bytes(action.item)
        case Update():
            return values + sum(
                count_item_bytes({".".join(p): v}) for p, v in (*action.sets, *action.adds, *action.discards)
            )
    return values


class _TransactionComposer:
    def __init__(self, owns: Mapping[Place, Own], store: ReadThrough, rules: Rules, left: Collection[str] = ()) -> None:
        self._owns = owns
        self._store = store
        self._needs = Needs(owns, store, rules, left)

    def plan_actions(self) -> list[Planned]:
        store = self._store
        known = [place for place in store.before if place not in self._owns]
        derived = [place for place in known if not is_same_item(store.before[place], store.now(place))]
        written = {**dict.fromkeys(self._owns), **dict.fromkeys(derived)}
        self._needs.note(written)
        found = [Planned(self._write_own(place, own), own) for place, own in self._owns.items()]
        found += (Planned(self._write_derived_item(place)) for place in derived)
        checked = dict.fromkeys((*self._needs.places, *store.applied))
        for place in checked:
            if place not in written and (guard := self._make_guard(place)):
                found.append(Planned(Check(store.keys[place], guard)))
        return found

    # ------------------------------------------------------------ actions
    def _make_guard(self, place: Place) -> tuple[Condition, ...]:
        """The conditions that every value which decided this write is still as it was read."""
        return drop_repeated_conditions((*self._store.applied.get(place, NOTHING).guard, *self._needs.guard(place)))

    def _write_own(self, place: Place, own: Own) -> Action:
        before, now = self._store.before[place], self._store.now(place)
        applied = self._store.applied.get(place, NOTHING)
        if own.override and now is not None:
            now = _apply_override(own, before, now)
        if own.verb == "put":
            needs = self._needs.guard(place)
            return self._remove_item(own.key, before, needs) if now is None else Put(own.key, now, needs)
        guard = self._make_guard(place)
        if now is None:
            if own.verb == "delete":
                return Delete(own.key, self._needs.guard(place))
            return self._remove_item(own.key, before, guard)
        if own.verb == "delete":
            return Put(own.key, now, guard)
        if own.update is None:
            return Check(own.key, guard) if is_same_item(before, now) else self._write_derived_item(place)
        if before is None and applied.paths:
            guard = drop_repeated_conditions((*guard, Condition(Test.ABSENT, (own.key.values[0][0],))))
        derived = [path for path in applied.paths if not (own.override and _is_touched(path, list_paths(own.update)))]
        return _complete_update(replace(own.update, guard=guard), derived, applied.elements, before, now)

    def _remove_item(self, key: ItemKey, before: Item | None, guard: tuple[Condition, ...]) -> Action:
        if before is not None:
            return Delete(key, guard)
        return Check(key, guard or (Condition(Test.ABSENT, (key.values[0][0],)),))

    def _write_derived_item(self, place: Place) -> Action:
        key, before, now = self._store.keys[place], self._store.before[place], self._store.now(place)
        applied = self._store.applied.get(place, NOTHING)
        guard = self._make_guard(place)
        if now is None:
            return Delete(key, guard)
        only_numbers = applied.numbers and not (applied.whole or applied.paths or applied.elements)
        if only_numbers and (amounts := _find_amounts(applied, before or {}, now)) is not None:
            return Update(key, (), (), guard, amounts)
        if before is None or applied.whole:
            absent = () if before is not None else (Condition(Test.ABSENT, (key.values[0][0],)),)
            return Put(key, now, drop_repeated_conditions((*guard, *absent)))
        paths = (*applied.paths, *((name,) for name in applied.numbers))
        return _complete_update(Update(key, (), (), guard), paths, applied.elements, before, now)


def _apply_override(own: Own, before: Item | None, now: Item) -> Item:
    meant = own.after(before) or {}
    new = dict(now)
    for path in own.paths:
        if path[0] in meant:
            new[path[0]] = meant[path[0]]
        else:
            new.pop(path[0], None)
    return new


def _is_touched(path: Path, others: Iterable[Path]) -> bool:
    return any(has_overlap(path, other) for other in others)


def _find_amounts(applied: Applied, before: Item, now: Item) -> tuple[tuple[Path, AttributeValue], ...] | None:
    """The amount to add to each number; None if no number can hold one of them."""
    found: list[tuple[Path, AttributeValue]] = []
    for name in applied.numbers:
        old, new = read_number(before.get(name, {"N": "0"})), read_number(now.get(name))
        if old is None or new is None or not is_holdable(amount := compute_total((new, old.copy_negate()))):
            return None
        if amount:
            found.append(((name,), {"N": format_number(amount)}))
    return tuple(found)


def _complete_update(
    update: Update, derived: Iterable[Path], elements: Iterable[str], before: Item | None, now: Item
) -> Update:
    """An update that includes the changes of the rules. If both write one attribute, its final value is set."""
    own_adds = {path[0]: (path, value) for path, value in (*update.adds, *update.discards)}
    paths = [*(path for path, _ in update.sets), *update.removes, *derived]
    adds, discards, guard = list(update.adds), list(update.discards), update.guard
    for name in elements:
        if name in own_adds or any(path[0] == name for path in paths):
            paths.append((name,))
            continue
        more, less = _diff_sets(get(before, (name,)), get(now, (name,)))
        if more and less:  # one expression may not name a set twice
            paths.append((name,))
            guard = drop_repeated_conditions((*guard, *expect_item(update.key.values[0][0], before, [(name,)])))
        elif more:
            adds.append(((name,), more))
        elif less:
            discards.append(((name,), less))
    adds = [(path, value) for path, value in adds if not _is_touched(path, paths)]
    discards = [(path, value) for path, value in discards if not _is_touched(path, paths)]
    shortest = [path for path in dict.fromkeys(paths) if not any(path[:n] in paths for n in range(len(path)))]
    sets = [(path, value) for path in shortest if (value := get(now, path)) is not None]
    removes = [path for path in shortest if get(now, path) is None]
    return replace(
        update, sets=tuple(sets), removes=tuple(removes), adds=tuple(adds), discards=tuple(discards), guard=guard
    )


def _diff_sets(
    before: AttributeValue | None, now: AttributeValue | None
) -> tuple[AttributeValue | None, AttributeValue | None]:
    kind = next(iter(SETS & (now or before or {}).keys()))
    old, new = (before or {}).get(kind, ()), (now or {}).get(kind, ())
    return subtract_elements(kind, new, old), subtract_elements(kind, old, new)
