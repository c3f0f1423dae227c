"""Small worlds of the values of children: an item for each child in the ledger, and a set, a list or a text made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from sync_rules.model.values import AttributeValue, Item
from tests.simulation.facts import Configuration, Kind, Place
from tests.simulation.truths import Items, Value, Wanted, put
from tests.simulation.worlds_booked import amount_of, keyed, number, parent_of, world
from tests.simulation.worlds_collected import on
from tests.simulation.worlds_ranked import LEAST_FIRST, Ranked

STATES: tuple[str | AttributeValue, ...] = ("open", "paid", "", {"BOOL": True})  # no text is no value


@dataclass(frozen=True)
class Valued(Ranked):
    """The states of a user's orders: as a set, as a text ordered by the amounts, or the first two as a list from the
    greatest amount on. `where`: only those of orders that are on.
    """

    shape: str = "set"
    where: bool = False

    def wanted(self, items: Items) -> Wanted:
        found: dict[Place, list[tuple[Decimal, tuple[str, ...], str]]] = {}
        for place, item in items.items():
            parent, state = parent_of(place, item) if place[0] == "orders" else None, self._state(item)
            if parent is not None and state is not None and self._lets_in(item):
                amount = amount_of(item)
                rank = Decimal(-1000) if amount is None else amount  # without one: the first
                found.setdefault(parent, []).append((rank, place[1], state))
        return {place: {self.paths[0]: self._shown(sorted(found.get(place, ())))} for place in items if self.at(place)}

    def _shown(self, found: list[tuple[Decimal, tuple[str, ...], str]]) -> Value:
        states = [state for _, _, state in found]
        if self.shape == "list":
            return {"L": [{"S": state} for state in states[::-1][:2]]}
        if not states:
            return None
        return {"SS": sorted(set(states))} if self.shape == "set" else {"S": ", ".join(states)}

    def _state(self, item: Item) -> str | None:
        return item.get("state", {}).get("S") or None

    def _lets_in(self, item: Item) -> bool:
        return on(item) or not self.where

    # ---------------------------------------------------------------- the books
    def _item(self, child: Place, item: Item) -> tuple[Place, Item] | None:
        parent = parent_of(child, item) if child[0] == "orders" else None
        state, amount = self._state(item), amount_of(item)
        if parent is None or state is None or not self._lets_in(item):
            return None
        rank, held = "-", [{"S": state}]
        if self.shape != "set":
            held.append({"NULL": True} if amount is None else number(amount))
        if self.shape == "list" and amount is not None:  # only there the keys are in order
            rank = f"N{LEAST_FIRST[amount]}"
        of, at = "\x1f".join(parent[1]), "\x1f".join((rank, *child[1]))
        place = ("ledger", (f"{self.rule}/R/{of}", at))
        return place, {**keyed(place), "n": {"L": held}}

    def unfit(self, items: Items) -> Iterable[Place]:
        """Orders whose state is neither text nor number."""
        return [place for place, item in items.items() if place[0] == "orders" and "BOOL" in item.get("state", {})]

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        return place, put(items[place], ("state",), None)


TAGS = Valued("users", (("tags",),), rule="tags")


def valued() -> Configuration:
    """Values that several orders have, in three shapes."""
    rules = """
  tags: collect order.state into user.tags
  words: {collect: order.state, into: user.words, join: ", ", order: amount, where: "noise == 'on'"}
  last: {collect: order.state, into: user.last, as: list, order: -amount, limit: 2}
"""
    truths = (
        TAGS,
        Valued("users", (("words",),), rule="words", shape="text", where=True),
        Valued("users", (("last",),), rule="last", shape="list"),
    )
    return replace(world("valued", rules, truths, states=STATES), cost_each=2)  # three items are there at once, each
    # of whose records writes all that it finds wrong on the user, and one of them is refused


def valued_meddled() -> Configuration:
    """A set alone, with foreign changes in the ledger."""
    one = world("valued-meddled", "  tags: collect order.state into user.tags\n", (TAGS,), states=STATES)
    places = (("u0", "o0"), ("u0", "o1"), ("u1", "o0"))
    ledger = tuple(keyed(("ledger", (f"tags/R/x\x1f{user}", f"-\x1fx\x1f{order}"))) for user, order in places)
    kinds = (*one.kinds, Kind("ledger", ledger, copies=(("n",),), made=True))
    return replace(one, kinds=kinds, cost_each=3)  # the set may follow there and back


WORLDS: tuple[Configuration, ...] = (valued(), valued_meddled())
