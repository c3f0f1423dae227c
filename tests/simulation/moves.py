"""Mirrors that move: an item gets another key, once. What the items say of them, and which writes may be made.

Invariant: no item is in two places, none is lost on its way, and each comes as it went. An attribute that came after the
look at an item may be left behind; that is reported for as long as the moved item lacks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sync_rules.pipeline.messages import PartMessage, decode
from tests.simulation.oracle import View, lets_in, mirror_of, shown
from tests.simulation.plain import RaisingError, same
from tests.simulation.spec import Body, Item, Place, Spec

if TYPE_CHECKING:
    from tests.simulation.world import World


def places_of(spec: Spec, rule: Body, item: Item) -> list[Place | None]:
    """The places to which an item should move. Raises RaisingError."""
    mirror = mirror_of(spec, rule)
    return [at for at, _ in mirror.named(rule, item)] if lets_in(rule, mirror.source, item) else []


def look(view: View, rule: Body) -> None:
    """Each item is where it should be, or its key is taken."""
    for place, item in view.of(mirror_of(view.spec, rule).source):
        try:
            named = places_of(view.spec, rule, item)
        except RaisingError:
            view.leave(rule, place, "raises")
            continue
        for at in named:
            key = {} if at is None else view.spec.tables[at[0]].attributes(at)
            if at is None:
                view.leave(rule, place, "NoMirrorKey")
            elif any(not same(item.get(name, value), value) for name, value in key.items()):
                view.leave(rule, place, "would be overwritten")
            elif at in view.items:
                view.leave(rule, at, "KeyTaken")
            else:
                view.wrong(rule, place, f"it should be at {shown(at)}")


@dataclass(frozen=True)
class Left:
    """Attributes that a move left behind, of the item as it was deleted. `since`: how many images its new place had."""

    names: frozenset[str]
    since: int


class Moves:
    """The watch over moves."""

    def __init__(self, spec: Spec, items: Mapping[Place, Item], past: Mapping[Place, list[Item]]) -> None:
        self._spec, self._items, self._past = spec, items, past
        self._rules = [rule for rule in spec.rules.values() if rule.get("mode") == "move"]
        self._going: dict[Place, tuple[Place, Item]] = {}  # by the new place
        self.left: dict[tuple[str, Place], Left] = {}

    def goes(self, place: Place, old: Item) -> bool:
        """True if an item is deleted by a move, which must end before the write does."""
        entity = self._spec.entity_of(place)
        for rule in self._rules:
            if mirror_of(self._spec, rule).source is entity:
                for at in places_of(self._spec, rule, old):
                    if at is not None:
                        self._going[at] = place, old
                        return True
        return False

    def comes(self, place: Place, new: Item) -> str | None:
        """The fault of an item that comes by a move, "" if it has none; None if it comes by no move."""
        if place not in self._going:
            return None
        source, gone = self._going.pop(place)
        key = self._spec.tables[place[0]].key
        if any(not same(new[name], gone.get(name)) for name in new if name not in key):
            return "it was another one"
        lacks = frozenset(gone) - frozenset(new)
        if lacks:
            seen = [one for one in self._past.get(source, ()) if not lacks & one.keys()]
            if not any(all(same(new.get(name), value) for name, value in one.items()) for one in seen):
                return f"it never was without {sorted(lacks)}"
            (rule,) = (
                rule for rule in self._rules if mirror_of(self._spec, rule).source is self._spec.entity_of(source)
            )
            self.left[rule["name"], place] = Left(lacks, len(self._past.get(place, ())))
        return ""

    def ended(self) -> str:
        """The fault of a whole write: what went and came nowhere."""
        gone = list(self._going)
        self._going.clear()
        return f"it moves to {shown(gone[0])}, and comes nowhere" if gone else ""


def unreported(world: World, *, impatient: bool) -> Iterator[str]:
    """Name the attributes that moves left behind, that are lacking still, and that are not reported."""
    told = {
        (one.rule, (one.key.table, tuple((k, v) for _, k, v in one.key.values))) for one in world.failures if one.key
    }
    if not impatient:
        parts = [decode(note.text) for note in world.notes if note.parked]
        told = {
            (one.rule, (one.target.table, tuple((kind, value) for _, kind, value in one.target.values)))
            for one in parts
            if isinstance(one, PartMessage)
        }
    for (name, place), left in world.safety.moves.left.items():
        images = world.past.get(place, [])[left.since :]
        lacking = place in world.items and all(left.names - image.keys() for image in images)
        if lacking and (name, place) not in told:
            yield f"rule {name} on {shown(place)}: nobody says that {sorted(left.names)} are left behind"
