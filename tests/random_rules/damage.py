"""Damage of the books of counters: any attribute gone, of another type, or of another item; an entry or a total gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.random_rules.grammar import Made
from tests.random_rules.plain import same
from tests.random_rules.spec import Item, Place, Value
from tests.random_rules.world import World
from tests.simulation.truths import put

OTHERS: Final[tuple[Value | None, ...]] = (
    None, {"S": "x"}, {"N": "5"}, {"L": []}, {"NULL": True}, {"L": [{"S": "a"}, {"S": "b"}]},
)  # fmt: skip


def damage_of_books(made: Made, world: World, pick: Callable[[int], int]) -> tuple[Place, Item | None] | None:
    """An item of the books, and what it shall be; None where there is none, or it would stay as it is."""
    places = [place for place in world.items if place[0] in made.spec.ledgers]
    if not places:
        return None
    place = places[pick(len(places))]
    item = world.items[place]
    names = [name for name in item if name not in made.spec.tables[place[0]].key]
    if not pick(6) or not names:
        return place, None
    damaged = put(item, (names[pick(len(names))],), OTHERS[pick(len(OTHERS))])
    return None if same({"M": damaged}, {"M": item}) else (place, damaged)
