"""Operations of applications: one function each, a single write (or read) of an item as DynamoDB sees it.

Invariant: an application owes the pipeline nothing. It writes stale copies, puts whole items it read long ago, deletes
and re-creates, points elsewhere and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sync_rules.model.sizes import item_bytes
from sync_rules.model.values import AttributeValue, Item, Path, get
from tests.simulation.application import (
    ITEM_MAX_BYTES,
    Application,
    is_source,
    is_target,
    linked,
    new_item,
    some_value,
)
from tests.simulation.facts import Configuration, Kind, Place
from tests.simulation.truths import put
from tests.simulation.watch import Watch, misplaced

Write = tuple[Place, Item | None]  # None: delete
Operation = Callable[[Application], Write | None]


def rename(app: Application) -> Write | None:
    found = app.one(is_source)
    if found is None:
        return None
    kind, _, place = found
    name = kind.truths[app.pick(len(kind.truths))]
    return place, {**app.watch.items[place], name: app.value(kind, place, name)}


def rename_back(app: Application) -> Write | None:
    found = app.one(is_source)
    if found is None:
        return None
    kind, _, place = found
    name = kind.truths[app.pick(len(kind.truths))]
    olds = [old[name] for _, old in app.watch.past[place][:-1] if old is not None and name in old]
    return (place, {**app.watch.items[place], name: olds[-1 - app.pick(len(olds))]}) if olds else None


def remove_value(app: Application) -> Write | None:
    found = app.one(is_source)
    if found is None:
        return None
    kind, _, place = found
    return place, put(app.watch.items[place], (kind.truths[app.pick(len(kind.truths))],), None)


def unrelated(app: Application) -> Write | None:
    """A change that rules do not speak of, except where a condition reads it."""
    found = app.one(lambda kind: kind.flag)
    if found is None:
        return None
    kind, _, place = found
    item, flag = app.watch.items[place], kind.flag or ""
    return place, {**item, flag: {"S": "off" if item.get(flag) == {"S": "on"} else "on"}}


def delete(wanted: Callable[[Kind], object]) -> Operation:
    def operation(app: Application) -> Write | None:
        found = app.one(wanted)
        return None if found is None else (found[2], None)

    return operation


def create_source(app: Application) -> Write | None:
    """A source is made, anew or as it was before it was deleted."""
    found = app.one(is_source, there=False)
    if found is None:
        return None
    before = [old for _, old in app.watch.past.get(found[2], ()) if old is not None]
    return found[2], before[-1] if before and app.pick(2) else new_item(app, *found)


def create_target(app: Application) -> Write | None:
    found = app.one(is_target, there=False)
    return None if found is None else (found[2], new_item(app, *found))


def point_elsewhere(app: Application) -> Write | None:
    found = app.one(lambda kind: kind.links)
    if found is None:
        return None
    kind, _, place = found
    return place, linked(app, kind, app.watch.items[place], kind.links[app.pick(len(kind.links))])


def overwrite_copy(app: Application) -> Write | None:
    found = app.one(is_target)
    if found is None:
        return None
    kind, _, place = found
    return place, put(app.watch.items[place], kind.copies[app.pick(len(kind.copies))], some_value(app))


def remove_copy(app: Application) -> Write | None:
    found = app.one(is_target)
    if found is None:
        return None
    kind, _, place = found
    item, path = app.watch.items[place], kind.copies[app.pick(len(kind.copies))]
    return None if get(item, path) is None else (place, put(item, path, None))


def overwrite_entry(app: Application) -> Write | None:
    """Replace, remove or add an entry of a map that the pipeline keeps, or remove or add an element of a set."""
    found = app.one(is_target)
    if found is None:
        return None
    kind, _, place = found
    item, path = app.watch.items[place], kind.copies[app.pick(len(kind.copies))]
    ((type_of, entries),) = (get(item, path) or {"S": ""}).items()
    if type_of in ("SS", "NS"):
        return place, put(item, path, _set_changed(app, type_of, entries))
    if type_of != "M":
        return None
    names = ("nobody's", *sorted(entries))
    entry = (*path, names[app.pick(len(names))])
    return place, put(item, entry, (None if get(item, entry) else {"M": {}}, {"S": "a text"})[app.pick(2)])


def _set_changed(app: Application, type_of: str, elements: list[str]) -> AttributeValue | None:
    names = ({"SS": "nobody's", "NS": "7.0"}[type_of], *sorted(elements))
    name = names[app.pick(len(names))]
    left = [element for element in elements if element != name]
    changed = left if len(left) < len(elements) else [*elements, name]
    return {type_of: changed} if changed else None


def replace_map(app: Application) -> Write | None:
    """The map around a copy is emptied, removed, or replaced by a text."""
    found = app.one(lambda kind: any(len(path) > 1 for path in kind.copies))
    if found is None:
        return None
    kind, _, place = found
    values: tuple[AttributeValue | None, ...] = ({"M": {}}, None, {"S": "a text"})
    return place, put(app.watch.items[place], kind.copies[0][:1], values[app.pick(3)])


def read(app: Application) -> Write | None:
    found = app.one(is_target if not app.configuration.truths else lambda _kind: True)
    if found is not None:
        app.read.append((found[2], app.watch.items[found[2]]))
    return None


def put_what_was_read(app: Application) -> Write | None:
    return app.read[app.pick(len(app.read))] if app.read else None


def move(app: Application) -> Write | None:
    found = app.one(lambda kind: kind.rank)
    if found is None:
        return None
    kind, _, place = found
    return place, {**app.watch.items[place], kind.rank or "": {"S": "abc"[app.pick(3)]}}


def fill(app: Application) -> Write | None:
    """An item is made as large as items may be; a longer copy does not fit any more."""
    found = app.one(is_target)
    if found is None or "ballast" in app.watch.items[found[2]]:
        return None
    item = {**app.watch.items[found[2]], "ballast": {"S": ""}}
    return found[2], {**item, "ballast": {"S": "x" * (ITEM_MAX_BYTES - item_bytes(item))}}


def shrink(app: Application) -> Write | None:
    full = sorted(place for place, item in app.watch.items.items() if "ballast" in item)
    return None if not full else mended(app, full[app.pick(len(full))])


OPERATIONS: Mapping[str, Operation] = {
    "rename": rename,
    "rename back": rename_back,
    "remove value": remove_value,
    "unrelated": unrelated,
    "delete source": delete(is_source),
    "create source": create_source,
    "create target": create_target,
    "point elsewhere": point_elsewhere,
    "delete target": delete(is_target),
    "overwrite copy": overwrite_copy,
    "remove copy": remove_copy,
    "replace map": replace_map,
    "read": read,
    "put what was read": put_what_was_read,
    "move": move,
    "fill": fill,
    "shrink": shrink,
}
OF_TRUTHS: Mapping[
    str, Operation
] = {  # what is only done where there are truths, so that other worlds stay as they were
    "overwrite entry": overwrite_entry,
}


def operations_of(configuration: Configuration) -> Mapping[str, Operation]:
    return {**OPERATIONS, **OF_TRUTHS} if configuration.truths else OPERATIONS


# ---------------------------------------------------------------- items that cannot take their copies
def unfit(watch: Watch) -> list[Place]:
    """The items that cannot take their copies as they are, and those for which nothing is right."""
    full = {place for place, item in watch.items.items() if "ballast" in item or misplaced(_paths(watch, place), item)}
    return sorted(full.union(*(truth.unfit(watch.items) for truth in watch.truths)))


def reported(watch: Watch) -> frozenset[Place]:
    """The items that are right, and reported all the same; none that cannot take its copies."""
    full = {place for place, item in watch.items.items() if "ballast" in item or misplaced(_paths(watch, place), item)}
    return frozenset[Place]().union(*(truth.reported(watch.items) for truth in watch.truths)) - full


def told(watch: Watch) -> frozenset[Place]:
    """The items of which something is lost, which must be reported."""
    return frozenset[Place]().union(*(truth.told(watch.items) for truth in watch.truths))


def mended(app: Application, place: Place) -> Write:
    """The item, changed by its application so that it can take its copies; or another one that is in the way of that."""
    watch = app.watch
    there = watch.items.get(place, {})  # what several ask for need not be there
    item = put(there, ("ballast",), None)
    for path in _paths(watch, place):
        if misplaced([path], item):
            item = put(item, path[:1], ({"M": {}}, None)[app.pick(2)])
    if item == there:
        return next(truth.mended(watch.items, place) for truth in watch.truths if place in truth.unfit(watch.items))
    return place, item


def _paths(watch: Watch, place: Place) -> list[Path]:
    """The paths that the rules write on an item."""
    facts = [to for fact in watch.of(place) for _, to in fact.pairs]
    return facts + [path for truth in watch.truths if truth.at(place) for path in truth.paths]
