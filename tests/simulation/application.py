"""An application as the workload sees it: its knowledge, the items it can choose from, its writes.

Invariant: everything it chooses comes from one stream of choices; the plainest choice is the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sync_rules.model.values import AttributeValue, Item
from tests.simulation.facts import Configuration, Kind, Place, valued
from tests.simulation.truths import completed, put
from tests.simulation.watch import Watch

ITEM_MAX_BYTES = 600  # instead of 400 KB
NUMBERS = ("1", "22", "333")  # three values per source, so that they come back; of different sizes
AMOUNTS = ("5", "0", "-2.50")  # the same, where a truth is a number
SETS = (("a",), ("a", "b"), ("b", "c"))  # the same, where it is a set


class Chooser(Protocol):
    def __call__(self, count: int, /) -> int: ...


@dataclass
class Application:
    """The items that an application can choose from, and those that it read earlier and may still put."""

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

    def value(self, kind: Kind, place: Place, name: str) -> AttributeValue:
        """A value unique to this source, unless its kind lists the values to choose from."""
        if kind.truth_values and name == kind.truths[0]:
            return valued(kind.truth_values[self.pick(len(kind.truth_values))])
        if name in kind.mixed and self.pick(4) == 3:
            return {"S": "many"}
        self.counter += 1
        chosen = str(self.counter) if self.unique else NUMBERS[self.pick(len(NUMBERS))]
        if name in kind.numbers:
            return {"N": chosen if self.unique else AMOUNTS[NUMBERS.index(chosen)]}
        if name in kind.sets:
            return {"SS": [chosen] if self.unique else list(SETS[NUMBERS.index(chosen)])}
        return {"S": f"{name} of {'/'.join(place[1])} #{chosen}"}


def is_source(kind: Kind) -> object:
    return kind.truths


def is_target(kind: Kind) -> object:
    return kind.copies


# ---------------------------------------------------------------- new items
def new_item(app: Application, kind: Kind, at: int, place: Place) -> Item:
    """An item with some links, and copies that are fresh, missing, or stale."""
    item: Item = dict(kind.keys[at])
    if kind.flag:
        item = {**item, kind.flag: {"S": ("on", "off")[app.pick(2)]}}
    for name in kind.truths:
        item = {**item, name: app.value(kind, place, name)}
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
    return completed(watch.truths, {**watch.items, place: item}).get(place, item) if watch.truths else item


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
        for name in (*kind.truths, *(path[0] for path in kind.copies if app.watch.truths))
        if name in old
    ]
    choice = app.pick(len(values) + 1)
    return values[choice] if choice < len(values) else {"S": "nobody's #0"}


# ---------------------------------------------------------------- what a history begins with
def beginning(configuration: Configuration, watch: Watch, *, bare: bool = False) -> dict[Place, Item]:
    """The items a history starts with, all right: every source but the last, every target but the last. `bare`: as they
    were before there were rules.
    """
    for kind in configuration.kinds:
        places = kind.places()
        there = len(places) - 1 if len(places) > 2 else len(places)
        for at in range(0 if kind.made else there):
            watch.load(places[at], _first(kind, at, places[at]))
    if bare:
        return watch.items
    for place in sorted(watch.items, key=_depth(configuration)):
        watch.load(place, with_right_copies(watch, place, watch.items[place]))
    for place, item in completed(watch.truths, watch.items).items():
        watch.load(place, item)
    return watch.items


def _first(kind: Kind, at: int, place: Place) -> Item:
    """An item as a history begins with it, without its copies."""
    item: Item = dict(kind.keys[at])
    if kind.flag:
        item = {**item, kind.flag: {"S": "on"}}
    for name in kind.truths:
        first: AttributeValue = {"N": "3"} if name in kind.numbers else {"S": f"{name} of {'/'.join(place[1])} #0"}
        first = {"SS": list(SETS[1])} if name in kind.sets else first
        item = {**item, name: first}
    if kind.truth_values:
        item = {**item, kind.truths[0]: valued(kind.truth_values[at % len(kind.truth_values)])}
    for number, link in enumerate(kind.links):
        item = {**item, link: {"S": kind.link_values[(number + (at > 2)) % 2]}}
    if kind.first_links:
        item = put(item, kind.links[:1], None if (named := kind.first_links[at]) is None else {"S": named})
    if kind.rank:
        item = {**item, kind.rank: {"S": "abc"[at % 3]}}
    return item


def _depth(configuration: Configuration) -> Callable[[Place], int]:
    """Sources before what copies from them: in the order in which the kinds are listed."""
    order = {place: number for number, kind in enumerate(configuration.kinds) for place in kind.places()}
    return lambda place: order[place]
