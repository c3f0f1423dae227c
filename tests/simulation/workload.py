"""What applications do: one function per operation, each a single write (or read) of an item as DynamoDB sees it.

Law: an application owes the pipeline nothing. It writes stale copies, puts whole items it read long ago, deletes and
re-creates, points elsewhere and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sync_rules.attributes import AttributeValue, Item, get
from sync_rules.sizes import item_bytes
from tests.simulation.configurations import Configuration, Kind, Place
from tests.simulation.oracles import Watch, misplaced, put

ITEM_MAX_BYTES = 600  # instead of 400 KB
NUMBERS = ("1", "22", "333")  # three values per source, so that they come back; of different sizes


class Chooser(Protocol):
    def __call__(self, count: int, /) -> int: ...


@dataclass
class Application:
    """What an application knows: the items there can be, and what it read earlier and may still put."""

    configuration: Configuration
    watch: Watch
    pick: Chooser
    unique: bool = False
    read: list[tuple[Place, Item]] = field(default_factory=list)
    counter: int = 0

    def slots(self, wanted: Callable[[Kind], object], *, there: bool) -> list[tuple[Kind, int, Place]]:
        """The items of some kinds that exist, or that do not."""
        return [
            (kind, at, place)
            for kind in self.configuration.kinds
            if wanted(kind)
            for at, place in enumerate(kind.places())
            if (place in self.watch.items) is there
        ]

    def one(self, wanted: Callable[[Kind], object], *, there: bool = True) -> tuple[Kind, int, Place] | None:
        some = self.slots(wanted, there=there)
        return some[self.pick(len(some))] if some else None

    def value(self, place: Place, name: str) -> AttributeValue:
        """A value that is this source's and nobody else's."""
        self.counter += 1
        chosen = str(self.counter) if self.unique else NUMBERS[self.pick(len(NUMBERS))]
        return {"S": f"{name} of {'/'.join(place[1])} #{chosen}"}


Write = tuple[Place, Item | None]  # None: delete
Operation = Callable[[Application], Write | None]


def is_source(kind: Kind) -> object:
    return kind.truths


def is_target(kind: Kind) -> object:
    return kind.copies


def rename(app: Application) -> Write | None:
    found = app.one(is_source)
    if found is None:
        return None
    kind, _, place = found
    name = kind.truths[app.pick(len(kind.truths))]
    return place, {**app.watch.items[place], name: app.value(place, name)}


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


def new_item(app: Application, kind: Kind, at: int, place: Place) -> Item:
    """An item with some links, and copies that are fresh, missing, or stale."""
    item: Item = dict(kind.keys[at])
    if kind.flag:
        item = {**item, kind.flag: {"S": ("on", "off")[app.pick(2)]}}
    for name in kind.truths:
        item = {**item, name: app.value(place, name)}
    for link in kind.links:
        item = linked(app, kind, item, link)
    if kind.rank:
        item = {**item, kind.rank: {"S": "abc"[app.pick(3)]}}
    match app.pick(3):
        case 0:
            item = with_right_copies(app.watch, place, item)
        case 1:
            pass
        case _:
            for path in kind.copies:
                item = put(item, path, some_value(app))
    return item


def with_right_copies(watch: Watch, place: Place, item: Item) -> Item:
    for fact in watch.of(place):
        for to, value in watch.wanted(fact, item).items():
            item = put(item, to, value) if value is not None else item
    return item


def linked(app: Application, kind: Kind, item: Item, link: str) -> Item:
    choice = app.pick(len(kind.link_values) + 1)
    return put(item, (link,), None if choice == len(kind.link_values) else {"S": kind.link_values[choice]})


def some_value(app: Application) -> AttributeValue:
    """A value that some source has or had, or that none ever had."""
    values = [
        old[name]
        for kind in app.configuration.kinds
        for place in kind.places()
        for _, old in app.watch.past.get(place, ())
        if old is not None
        for name in kind.truths
        if name in old
    ]
    choice = app.pick(len(values) + 1)
    return values[choice] if choice < len(values) else {"S": "nobody's #0"}


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


def replace_map(app: Application) -> Write | None:
    """The map around a copy is emptied, removed, or replaced by a text."""
    found = app.one(lambda kind: any(len(path) > 1 for path in kind.copies))
    if found is None:
        return None
    kind, _, place = found
    values: tuple[AttributeValue | None, ...] = ({"M": {}}, None, {"S": "a text"})
    return place, put(app.watch.items[place], kind.copies[0][:1], values[app.pick(3)])


def read(app: Application) -> Write | None:
    found = app.one(is_target)
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


# ---------------------------------------------------------------- the beginning and the end
def beginning(configuration: Configuration, watch: Watch) -> dict[Place, Item]:
    """The items a history starts with, all right: every source but the last, every target but the last."""
    for kind in configuration.kinds:
        places = kind.places()
        there = len(places) - 1 if len(places) > 2 else len(places)
        for at in range(there):
            item: Item = dict(kind.keys[at])
            if kind.flag:
                item = {**item, kind.flag: {"S": "on"}}
            for name in kind.truths:
                item = {**item, name: {"S": f"{name} of {'/'.join(places[at][1])} #0"}}
            for number, link in enumerate(kind.links):
                item = {**item, link: {"S": kind.link_values[(number + (at > 2)) % 2]}}
            if kind.rank:
                item = {**item, kind.rank: {"S": "abc"[at % 3]}}
            watch.load(places[at], item)
    for place in sorted(watch.items, key=_depth(configuration)):
        watch.load(place, with_right_copies(watch, place, watch.items[place]))
    return watch.items


def _depth(configuration: Configuration) -> Callable[[Place], int]:
    """Sources before what copies from them: in the order in which the kinds are listed."""
    order = {place: number for number, kind in enumerate(configuration.kinds) for place in kind.places()}
    return lambda place: order[place]


def unfit(watch: Watch) -> list[Place]:
    """The items that cannot take their copies as they are."""
    return sorted(
        place
        for place, item in watch.items.items()
        if "ballast" in item or any(misplaced(fact, item) for fact in watch.of(place))
    )


def mended(app: Application, place: Place) -> Write:
    """The item, changed by its application so that it can take its copies."""
    item = put(app.watch.items[place], ("ballast",), None)
    for fact in app.watch.of(place):
        if misplaced(fact, item):
            item = put(item, fact.pairs[0][1][:1], ({"M": {}}, None)[app.pick(2)])
    return place, item
