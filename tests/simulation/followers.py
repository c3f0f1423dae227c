"""Applications that follow their plain writes, and that read by `fresh`, beside the handlers and at their side.

Invariant: it is the code of production, which may die at each of its requests. What `fresh` answers is right for the
items that it read. While no other worker runs, followed writes leave nothing to the stream, or report what they leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import Read
from sync_rules.rules.ruleset import Rules
from sync_rules.write import Follow, WriteError, fresh
from tests.simulation.commands import DivergenceError
from tests.simulation.indexes import BALLAST
from tests.simulation.plain import same
from tests.simulation.spec import Item, Place
from tests.simulation.stops import Asking, Do, ask
from tests.simulation.workload import OPERATIONS, Write
from tests.simulation.world import place_of

if TYPE_CHECKING:
    from tests.simulation.history import History

FOREVER_SECONDS: Final = 1e9
ALONE: Final = 3  # writes while no other worker runs
NO_CLIENT: Any = None  # a store is given in its place


@dataclass(eq=False)
class Following:
    """Plain writes of an application, which it follows. If it dies in between, the stream does all."""

    history: History
    writes: Sequence[Write]
    left: bool = True
    kind = "follow"

    @classmethod
    def drawn(cls, history: History) -> Self | None:
        app = history.app
        names = ("insert", "change", "relink", "delete")
        found = [OPERATIONS[app.one(names)][1](app) for _ in range(1 + history.choices.people.pick(2))]
        writes = [write for write in found if write is not None]
        return cls(history, writes) if writes else None

    def run(self, rules: Rules) -> str:
        noted = Follow(rules, NO_CLIENT, deadline_seconds=FOREVER_SECONDS, store=Asking())
        spec, world = self.history.made.spec, self.history.world
        try:
            for place, new in self.writes:

                def write(place: Place = place, new: Item | None = new) -> tuple[Item | None, Item | None]:
                    old = world.items.get(place)
                    world.operate(place, new)
                    return old, world.items.get(place)

                old, now = ask(Do(f"writes {place}: {new}", write))
                entity = spec.entity_of(place)
                if entity is not None and (old is not None or now is not None):
                    noted.change(entity.name, old, now)
            self.left = bool(noted.bring().left)
        except StoreError:
            return "failed"
        return "left" if self.left else "left nothing"

    def described(self) -> str:
        return f"writes that are followed: {self.writes}"


class Noting(Asking):
    """A store that notes each item as it was read."""

    def __init__(self, saw: dict[Place, Item | None]) -> None:
        self._saw = saw

    def read(self, request: Read) -> Any:
        items = super().read(request)
        for key, item in zip(request.keys, items, strict=True):
            self._saw.setdefault(place_of(key), item)
        return items


@dataclass(eq=False)
class Reading:
    """A look at one item by `fresh`. `saw` has each item as it was read."""

    history: History
    place: Place
    given: Item
    repair: bool = False
    saw: dict[Place, Item | None] = field(default_factory=dict)
    answer: Item | None = None
    kind = "fresh"

    @classmethod
    def drawn(cls, history: History) -> Self | None:
        pick, app = history.choices.people.pick, history.app
        kinds = [kind.entity for kind in app.focus if kind.owned]
        places = [place for place in history.world.items if history.made.spec.entity_of(place) in kinds]
        if not places:
            return None
        place = app.one(places)
        key = history.made.spec.tables[place[0]].attributes(place)
        past = history.world.past.get(place) or [key]
        return cls(history, place, past[-1 - pick(min(len(past), 3))] if pick(2) else key, pick(4) == 3)

    def run(self, rules: Rules) -> str:
        entity = self.history.made.spec.entity_of(self.place)
        assert entity is not None, "an item of an entity"
        try:
            self.answer = fresh(rules, NO_CLIENT, entity.name, self.given, raw=True, repair=self.repair,
                                deadline_seconds=FOREVER_SECONDS, store=Noting(self.saw))  # fmt: skip
        except (StoreError, WriteError):
            return "failed"
        self._judge(self.answer)
        return "answered"

    def _judge(self, answer: Item | None) -> None:
        """Raise DivergenceError unless copies and derived values are what the rules make of the items as they were read."""
        kind = self.history.app.kind_of(self.place)
        if kind is None or kind.mirrored or kind.entity.made:
            return  # made by a rule of another item: judged when all is quiet
        there = self.saw.get(self.place)
        if (answer is None) is not (there is None):
            raise DivergenceError(f"fresh: {self.place} is {there}, and {answer} is shown")
        if answer is None or BALLAST in answer:
            return
        found = {**self.history.world.items, **self.saw, self.place: answer}
        items = {place: item for place, item in found.items() if item is not None}
        for (name, place), values in self.history.oracle.look(items).differing.items():
            if place == self.place and self.history.made.spec.rules[name]["kind"] in ("copy", "derive"):
                raise DivergenceError(f"fresh: {self.place} by rule {name}: expected {values}, shown is {answer}")

    def described(self) -> str:
        return f"a fresh look at {self.place}"


def check_readers(history: History) -> None:
    """With all at rest and right: a fresh look shows each item as it is, and followed writes leave nothing in silence."""
    for place, item in list(history.world.items.items()):
        if history.made.spec.entity_of(place) is None:
            continue
        look = Reading(history, place, history.made.spec.tables[place[0]].attributes(place))
        history.finish(look)
        if look.answer is None or not same({"M": look.answer}, {"M": item}):
            raise DivergenceError(f"fresh: {place} is {item}, and {look.answer} is shown")
    for _ in range(ALONE):
        follow = Following.drawn(history)
        if follow is None or history.world.notes:
            return
        _follow_alone(history, follow)


def _follow_alone(history: History, follow: Following) -> None:
    """One application writes and follows alone; then the stream may write, but only what was left to it."""
    history.tell(f"-- alone: {follow.described()}")
    history.finish(follow)
    before = history.world.clock
    history.rest()
    history.seen["follow", "alone, something left" if follow.left else "alone"] += 1
    places = [place for place, _ in follow.writes]
    if len(set(places)) < len(places) and any(rule["kind"] == "history" for rule in history.made.spec.rules.values()):
        return  # the stream keeps the state between two writes of an item, and `left` does not say so
    if not follow.left and history.world.clock != before:
        raise DivergenceError(f"the stream writes after {follow.described()}, which left nothing")
