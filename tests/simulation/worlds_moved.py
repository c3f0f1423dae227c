"""Small worlds of a mirror that moves: an item gets another key, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from sync_rules.model.values import Item, same
from tests.simulation.facts import Configuration, Kind, Place, keys, text
from tests.simulation.truths import Items, Truth
from tests.simulation.worlds_collected import on

if TYPE_CHECKING:
    from tests.simulation.watch import Watch

OLD, NEW = "orders", "by_dept"


@dataclass(frozen=True)
class Left:
    """Something that a move left behind: `gone` is the order as it was deleted, with attributes that came after the look
    at it; `moment` is when it came to its new place without them.
    """

    gone: Item
    moment: int


@dataclass(frozen=True)
class Moved(Truth):
    """No order is anywhere but where it should be, none is in two places, and none is lost on its way. An attribute that
    came after the look at it may be left behind, and must be told, unless the record of the delete never came. `going`
    has the orders that one write removed, until they have come: a transaction moves several.
    """

    lets_in: Callable[[Item], bool] = on
    going: dict[Place, Item] = field(default_factory=dict, compare=False)
    left: dict[Place, Left] = field(default_factory=dict, compare=False)
    watch: Watch | None = None

    def watching(self, watch: Watch) -> Moved:
        return replace(self, going={}, left={}, watch=watch)

    def _past(self, place: Place) -> list[tuple[int, Item | None]]:
        assert self.watch is not None, "it was given one"
        return self.watch.past.get(place, [])

    def moved(self, place: Place, item: Item) -> Place | None:
        """The place where an order should be; None for one that stays."""
        dept = text(item, "dept")
        return (NEW, (dept, *place[1])) if place[0] == OLD and dept and self.lets_in(item) else None

    def owns(self, place: Place) -> bool:
        return place[0] in (OLD, NEW)

    def owned(self, items: Items) -> Mapping[Place, Item]:
        """The orders as they should be: each moved where its place is free."""
        right = {place: item for place, item in items.items() if self.owns(place)}
        for place, item in items.items():
            to = self.moved(place, item)
            if to is not None and to not in right:
                right[to] = right.pop(place)
        return right

    def unfit(self, items: Items) -> Iterable[Place]:
        """Places that are taken, and orders that may be called poorer than one that was deleted under their old key."""
        poorer = (place for place, item in items.items() if self._lacks(place, item))
        return [*self._taken(items), *poorer]

    def _taken(self, items: Items) -> list[Place]:
        asked = (self.moved(place, item) for place, item in items.items())
        return [to for to in asked if to is not None and to in items]

    def _lacks(self, place: Place, item: Item) -> Item:
        """The attributes that orders had when they were deleted under the old key of an item, and it has not."""
        if place[0] != NEW:
            return {}
        pairs = pairwise(self._past((OLD, place[1][1:])))
        gone = [old for (_, old), (_, new) in pairs if new is None and old and text(old, "dept") == place[1][0]]
        return {name: value for old in gone for name, value in old.items() if name not in item}

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        """Somebody makes room, or gives an order what it lacks."""
        return place, None if place in self._taken(items) else {**items[place], **self._lacks(place, items[place])}

    def told(self, items: Items) -> Iterable[Place]:
        for place, one in self.left.items():
            since = [item for moment, item in self._past(place) if moment >= one.moment]
            heard = () if self.watch is None else self.watch.heard.get((OLD, place[1][1:]), ())
            came = any(new is None and old is one.gone for old, new in heard)
            if came and all(item is not None for item in since) and set(one.gone) - {*chain(*filter(None, since))}:
                yield place

    def came_or_went(self, place: Place, old: Item | None, new: Item | None, items: Items) -> str:
        """An order goes only to its place, and comes only from where it was until then, as it was seen there: with all
        that it had, but what it got since.
        """
        if old is not None:
            if self.moved(place, old) is None:
                return "deleted, but it should stay"
            self.going[place] = old
            return ""
        source = (OLD, place[1][1:])
        gone, now = self.going.pop(source, {}), new or {}
        if self.moved(source, gone) != place or not same({"M": now}, {"M": {name: gone.get(name) for name in now}}):
            return "it was another one"
        if len(now) < len(gone):
            there = [item for _, item in self._past(source) if item is not None]
            own = _differing(there[-1] if there else {}, gone)  # what its application changed in the same transaction
            if not any(same({"M": {**item, **own}}, {"M": {**dict.fromkeys(own), **now}}) for item in there):
                return "it never was so"
            self.left[place] = Left(gone, self.watch.clock if self.watch else 0)
        return ""

    def always(self, items: Items) -> str:
        """Each order that went has come, in the same write."""
        gone = tuple(self.going)
        self.going.clear()
        return f"{gone[0]} went, and came nowhere" if gone else ""

    def judge(self, place: Place, old: Item, new: Item, items: Items) -> str:
        """Never changed where it is."""
        return "changed by a move" if self.owns(place) else ""


def _differing(old: Item, new: Item) -> dict[str, Any]:
    """The attributes that differ, as they are in the new item, None for one that went."""
    return {name: new.get(name) for name in {**old, **new} if old.get(name) != new.get(name)}


def off(item: Item) -> bool:
    return item.get("noise") == {"S": "off"}


def move(name: str, where: str, lets_in: Callable[[Item], bool], note: tuple[str, ...], *, made: bool) -> Configuration:
    """Orders that move to their departments when they are closed. A place there may be taken."""
    rules = f"""
tables:
  orders: {{key: {{order: S}}}}
  by_dept: {{key: {{dept: S, order: S}}}}
entities:
  order: {{table: orders}}
  dept_order: {{table: by_dept}}
rules:
  by_dept: {{mirror: order, into: dept_order, mode: move, where: "{where}"}}
"""
    depts, slots = ("d0", "d1"), ("o0", "o1", "o2")
    places = tuple({"dept": {"S": dept}, "order": {"S": slot}} for dept in depts for slot in slots)
    return Configuration(
        name,
        rules,
        (
            Kind(OLD, keys(slots, "order"), ("name",), ("dept", *note), (*depts, ""), flag="noise"),
            Kind(NEW, places, ("name",), flag="noise", made=made),
        ),
        truths=(Moved(NEW, lets_in=lets_in),),
        exact_cost=False,
    )


WORLDS: tuple[Configuration, ...] = (
    move("move", "noise == 'on'", on, (), made=False),
    move(
        "move-late", "noise == 'off'", off, ("note", "memo"), made=True
    ),  # there is room, and more comes to each order
)
