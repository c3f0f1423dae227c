"""Small worlds of min and max with a ledger: an item for each child, in the order of the amounts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sync_rules.model.values import Item, same
from tests.simulation.facts import Configuration, Kind, Place
from tests.simulation.truths import Items, Wanted
from tests.simulation.worlds_booked import Booked, Tallied, amount_of, keyed, number, parent_of, spent, world
from tests.simulation.worlds_collected import on

LEAST_FIRST = {Decimal("-2.5"): "-86974~", Decimal(0): "0", Decimal(3): "11303", Decimal(5): "11305"}


@dataclass(frozen=True)
class Ranked(Booked):
    """The least or the greatest on each user, and an item for each of its orders, in the order of their amounts."""

    greatest: bool = False

    def wanted(self, items: Items) -> Wanted:
        amounts: dict[Place, list[Decimal]] = defaultdict(list)
        for place, item in items.items():
            if (stands := self._stands(place, item)) is not None:
                amounts[stands[0]].append(stands[1])
        choose = max if self.greatest else min
        return {
            place: {self.paths[0]: number(choose(amounts[place])) if amounts[place] else None}
            for place in items
            if self.at(place)
        }

    def _stands(self, place: Place, item: Item) -> tuple[Place, Decimal] | None:
        """The user and the amount of an order, or None for one that does not count."""
        if place[0] != "orders" or not on(item):
            return None
        parent, amount = parent_of(place, item), amount_of(item)
        return None if parent is None or amount is None else (parent, amount)

    def owned(self, items: Items) -> Mapping[Place, Item]:
        right = (self._item(place, item) for place, item in items.items())
        return {**self.marked(items), **{one[0]: one[1] for one in right if one is not None}}

    def _item(self, child: Place, item: Item) -> tuple[Place, Item] | None:
        stands = self._stands(child, item)
        if stands is None:
            return None
        parent, amount = stands
        of, at = "\x1f".join(parent[1]), "\x1f".join((LEAST_FIRST[amount], *child[1]))
        place = ("ledger", (f"{self.rule}/R/{of}", at))
        return place, {**keyed(place), "n": number(amount)}

    def came_or_went(self, place: Place, old: Item | None, new: Item | None, items: Items) -> str:
        """An item comes and goes only while its order says so."""
        if not self.owns(place) or place == self.mark:
            return ""
        right = self.owned(items).get(place)
        fits = right is None if new is None else same({"M": new}, {"M": right or {}})
        return "" if fits else f"became {new}, but its order says {right}"

    def judge(self, place: Place, old: Item, new: Item, items: Items) -> str:
        return super().judge(place, old, new, items) or self.came_or_went(place, old, new, items)


def booked_mixed() -> Configuration:
    """Amounts that are no numbers: their orders count nothing, the others do."""
    rules = """
  spent: {sum: order.amount, into: user.spent}
  least: {min: order.amount, into: user.least, where: "noise == 'on'"}
"""
    truths = (Tallied("users", (("spent",),), rule="spent", adds=spent), Ranked("users", (("least",),), rule="least"))
    return world("booked-mixed", rules, truths, mixed=True)


def ranked() -> Configuration:
    """The least and the greatest amount of each user's orders."""
    rules = """
  least: {min: order.amount, into: user.least, where: "noise == 'on'"}
  most: {max: order.amount, into: user.most, where: "noise == 'on'"}
"""
    truths = (
        Ranked("users", (("least",),), rule="least"),
        Ranked("users", (("most",),), rule="most", greatest=True),
    )
    return world("ranked", rules, truths)


def ranked_meddled() -> Configuration:
    """The same world, with foreign changes in the ledger."""
    one = ranked()
    places = (("u0", f"{LEAST_FIRST[Decimal(3)]}\x1fx\x1fo0"), ("u0", f"{LEAST_FIRST[Decimal(0)]}\x1fx\x1fo1"))
    ledger = tuple(keyed(("ledger", (f"least/R/x\x1f{user}", at))) for user, at in places)
    kinds = (*one.kinds, Kind("ledger", ledger, copies=(("n",),), made=True))
    return replace(one, name="ranked-meddled", kinds=kinds, cost_each=3)  # the number may follow there and back


WORLDS: tuple[Configuration, ...] = (ranked(), ranked_meddled(), booked_mixed())
