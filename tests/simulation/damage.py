"""Damage of the books of counters: any attribute gone, of another type, or of another item; an entry or a total gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.simulation.grammar import Made
from tests.simulation.plain import same
from tests.simulation.spec import Item, Place, Value, put
from tests.simulation.world import World

OTHERS: Final[tuple[Value | None, ...]] = (
    None, {"S": "x"}, {"N": "5"}, {"L": []}, {"NULL": True}, {"L": [{"S": "a"}, {"S": "b"}]},
)  # fmt: skip


def damage_of_books(
    made: Made, world: World, pick: Callable[[int], int], *, ranks: bool = False
) -> tuple[Place, Item | None] | None:
    """An item of the books, and what it shall be; None where there is none, or it would stay as it is. `ranks`: only
    those that have an item for each child, and what these hold: any record of theirs sets it right.
    """
    places = [
        place for place in world.items if place[0] in made.spec.ledgers and (not ranks or "/R/" in place[1][0][1])
    ]
    if not places:
        return None
    place = places[pick(len(places))]
    item = world.items[place]
    names = [name for name in item if name not in made.spec.tables[place[0]].key]
    if ranks:
        names = [name for name in names if name == "n"]
    if not pick(6) or not names:
        return place, None
    damaged = put(item, (names[pick(len(names))],), OTHERS[pick(len(OTHERS))])
    return None if same({"M": damaged}, {"M": item}) else (place, damaged)
