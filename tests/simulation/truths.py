"""Truths about everything that is not a plain copy: the statements of an observer, and how they are compared.

Invariant: a truth is recomputed from the items of the applications each time, in plain Python and without the core, so
that a fault in the core cannot excuse itself. It knows how things are and never how they came to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sync_rules.model.values import AttributeValue, Item, Path, get, same
from tests.simulation.facts import Place

if TYPE_CHECKING:
    from tests.simulation.watch import Watch

Value = AttributeValue | None
Items = Mapping[Place, Item]
Wanted = Mapping[Place, Mapping[Path, Value]]


@dataclass(frozen=True)
class Truth:
    """One rule as an observer states it. `paths` are what it writes on the items of `table` that `applies` lets in:
    these and whatever is inside them. `exact`: what it writes must be right at the very moment it is written. `plain`:
    it writes texts as its sources have them, so that a later one is never followed by an earlier one.
    """

    table: str
    paths: tuple[Path, ...] = ()
    applies: Callable[[Place], bool] = lambda _place: True
    exact: bool = False
    plain: bool = False

    def watching(self, watch: Watch) -> Truth:
        """This truth, where it must know how things came to be so."""
        return self

    # ---------------------------------------------------------------- when all is quiet
    def wanted(self, items: Items) -> Wanted:
        """The required values by item and path. A place or path not named is free."""
        return {}

    def owns(self, place: Place) -> bool:
        """True if the pipeline owns this item, such as a mirror, an entry or a total."""
        return False

    def owned(self, items: Items) -> Mapping[Place, Item]:
        """The items that belong to the pipeline: exactly these must be there. What may be there or not is found in
        `items`.
        """
        return {}

    def unfit(self, items: Items) -> Iterable[Place]:
        """Items for which nothing is right, as the applications have them: a true cycle, more than fits."""
        return ()

    def reported(self, items: Items) -> Iterable[Place]:
        """The unfit items whose values are right all the same, and which must be reported."""
        return ()

    def told(self, items: Items) -> Iterable[Place]:
        """The items of which something is lost that nobody can bring back, and which must be reported."""
        return ()

    def below(self, items: Items, places: Container[Place]) -> Iterable[Place]:
        """The items whose values are made of those that stand on some others, and wait for them."""
        return ()

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        """The write by which an application cures one unfit item, perhaps on another item."""
        raise NotImplementedError

    def meddled(self, items: Items) -> Mapping[Place, Item]:
        """Items of its own, each as a strange hand may leave it, which no record of another item would show."""
        return {}

    # ---------------------------------------------------------------- at every write
    def at(self, place: Place) -> bool:
        return place[0] == self.table and self.applies(place)

    def may_write(self, place: Place, path: Path) -> bool:
        """True if the pipeline may write this path; on an item that it owns, any path."""
        return self.owns(place) or (self.at(place) and any(path[: len(mine)] == mine for mine in self.paths))

    def judge(self, place: Place, old: Item, new: Item, items: Items) -> str:
        """The fault of one write of the pipeline to an existing item, or an empty text; `items` are as after the write."""
        if not self.exact:
            return ""
        for path, value in self.wanted(items).get(place, {}).items():
            if not same(get(old, path), get(new, path)) and not same(get(new, path), value):
                return f"{'.'.join(path)} became {get(new, path)}, but at this moment {value} is right"
        return ""

    def came_or_went(self, place: Place, old: Item | None, new: Item | None, items: Items) -> str:
        """The fault of creating or deleting an item of the pipeline's own, or an empty text."""
        return ""

    def always(self, items: Items) -> str:
        """The fault of a state that must hold after every single write of the pipeline, a transaction being one."""
        return ""


def touched(old: Item, new: Item) -> Iterator[Path]:
    """The paths in which two versions of an item differ, inside maps as far as there are maps. A map that comes counts
    as what is in it, for a rule may need one to put its value into.
    """
    yield from _touched((), old, new)


def _touched(path: Path, old: Mapping[str, AttributeValue], new: Mapping[str, AttributeValue]) -> Iterator[Path]:
    for name in {**old, **new}:
        was, is_now, here = old.get(name), new.get(name), (*path, name)
        if was == is_now:
            continue
        before = {} if was is None else was.get("M")
        after = {} if is_now is None else is_now.get("M")
        if before is None or after is None or not (before or after):
            yield here
        else:
            yield from _touched(here, before, after)


def put(item: Item, path: Path, value: Value) -> Item:
    """The item with one path set or removed; maps on the way are made when needed."""
    inner = item.get(path[0])
    if len(path) > 1:
        value = {"M": put(inner["M"] if inner is not None and "M" in inner else {}, path[1:], value)}
    rest = {name: old for name, old in item.items() if name != path[0]}
    return rest if value is None else {**rest, path[0]: value}


def wrong(truth: Truth, items: Items, right: Items | None = None) -> Iterator[tuple[Place, str]]:
    """Differences from a truth, each with its place. `right` gives the items from which the required values are
    computed, if these are others.
    """
    right = items if right is None else right
    for place, paths in truth.wanted(right).items():
        for path, value in paths.items() if place in items else ():
            if not same(get(items[place], path), value):
                yield place, f"{'.'.join(path)} is {get(items[place], path)} and should be {value}"
    owned = truth.owned(right)
    for place in dict.fromkeys((*owned, *filter(truth.owns, items))):
        if not same({"M": items.get(place, {})}, {"M": owned.get(place, {})}):
            yield place, f"is {items.get(place)} and should be {owned.get(place)}"


def completed(truths: Iterable[Truth], items: Items) -> dict[Place, Item]:
    """The items with everything as the truths have it; one may build on another."""
    now = dict(items)
    for _ in range(20):
        before = dict(now)
        for truth in truths:
            for place, paths in truth.wanted(now).items():
                for path, value in paths.items() if place in now else ():
                    if not same(get(now[place], path), value):
                        now[place] = put(now[place], path, value)
            now = {place: item for place, item in now.items() if not truth.owns(place)} | dict(truth.owned(now))
        if now == before:
            return now
    raise AssertionError("the truths of this world contradict each other")
