"""Small worlds of history: an item for each version that an item ever was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sync_rules.model.values import Item, same
from tests.simulation.facts import Configuration, Kind, Place, keys, text
from tests.simulation.truths import Items, Truth
from tests.simulation.worlds_collected import on
from tests.simulation.worlds_mirrored import Mirrored, some

if TYPE_CHECKING:
    from tests.simulation.watch import Watch

ZERO = "0"  # the name of the newest
PADDED = "V#00"
NUMBERS = ("1", "2", "3", "4", "5", "11")
Heard = Mapping[Place, Iterable[tuple[Item | None, Item | None]]]


@dataclass(frozen=True)
class Versions(Truth):
    """The versions of sources, which are named by their `name` and hold their `bio`. `heard` has, by source, the states
    before and after that its records showed, and `ever` all that there were.
    """

    table: str = "versions"
    lets_in: Callable[[Item], bool] = lambda _item: True
    heard: Heard = field(default_factory=dict)
    ever: Callable[[Place], Iterator[Item]] = lambda _place: iter(())

    def watching(self, watch: Watch) -> Versions:
        def ever(place: Place) -> Iterator[Item]:
            return (item for _, item in watch.past.get(place, ()) if item is not None)

        return replace(self, heard=watch.heard, ever=ever)

    def owns(self, place: Place) -> bool:
        return place[0] == self.table and place[1][1] != ZERO

    def version(self, place: Place, state: Item) -> tuple[Place, Item] | None:
        """The version that a state of a source is; None for one that is not let in, or has no name."""
        name = text(state, "name")
        if place[0] != "sources" or not self.lets_in(state) or name is None:
            return None
        held = {at: state[at] for at in ("source", "name", "bio") if at in state}
        return (self.table, (*place[1], name)), held

    def _states(self, place: Place) -> list[Item]:
        """All that a version may hold."""
        source = ("sources", place[1][:1])
        found = (self.version(source, state) for state in self.ever(source))
        return [held for at, held in filter(None, found) if at == place]

    def _was(self, place: Place, item: Item) -> bool:
        """True if a version holds what its source was."""
        return any(same({"M": item}, {"M": held}) for held in self._states(place))

    def owned(self, items: Items) -> Mapping[Place, Item]:
        right: dict[Place, Item] = {}
        now = (self.version(source, state) for source, state in items.items())
        shown = (self._shown(source, *pair) for source, pairs in self.heard.items() for pair in pairs)
        for version in filter(None, (*now, *(one for pair in shown for one in pair))):
            right.setdefault(*version)
        kept = {place: item for place, item in items.items() if self.owns(place) and self._was(place, item)}
        return right | kept  # of two states of one version, the one that was first

    def _shown(self, source: Place, *states: Item | None) -> list[tuple[Place, Item] | None]:
        """The versions that a record shows: none for a deletion, or where it changed nothing that a version holds."""
        old, new = (None if state is None else self.version(source, state) for state in states)
        return [] if states[1] is None or old == new else [old, new]

    def unfit(self, items: Items) -> Iterable[Place]:
        """Sources without a name, and versions of which their source now is another state."""
        for source, item in items.items():
            if source[0] == "sources" and self.lets_in(item) and text(item, "name") is None:
                yield source
            version = self.version(source, item)
            if version is not None and version[0] in items and items[version[0]] != version[1]:
                yield version[0]

    reported = unfit

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        """Give the source a name that it never had."""
        source = ("sources", place[1][:1])
        names = (f"cured {number}" for number in range(len(items) + 1))
        name = next(name for name in names if (self.table, (*source[1], name)) not in items)
        return source, {**items[source], "name": {"S": name}}

    def came_or_went(self, place: Place, old: Item | None, new: Item | None, items: Items) -> str:
        if not self.owns(place):
            return ""
        if new is None:
            return "a version was deleted"
        return "" if self._was(place, new) else f"put as {new}, which its source never was"

    def judge(self, place: Place, old: Item, new: Item, items: Items) -> str:
        return f"a version became {new}" if self.owns(place) else ""


@dataclass(frozen=True)
class Latest(Versions):
    """The newest `keep` versions of each source, by their numbers."""

    keep: int = 2

    def version(self, place: Place, state: Item) -> tuple[Place, Item] | None:
        found = super().version(place, state)
        if found is None:
            return None
        (table, (source, name)), held = found
        name = f"V#{name:>02}"
        return (table, (source, name)), {**held, "name": {"S": name}}

    def owns(self, place: Place) -> bool:
        return super().owns(place) and place[1][1] != PADDED

    def newer(self, places: Iterable[Place], place: Place) -> int:
        """The number of versions of one source that are newer than one."""
        return sum(self.owns(one) and one[1][0] == place[1][0] and one[1][1] > place[1][1] for one in places)

    def owned(self, items: Items) -> Mapping[Place, Item]:
        every = super().owned(items)
        return {place: item for place, item in every.items() if self.newer(every, place) < self.keep}

    def unfit(self, items: Items) -> Iterable[Place]:
        return (place for place in super().unfit(items) if place in items)

    reported = unfit

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        """Give the source the next number."""
        source = ("sources", place[1][:1])
        numbers = [int(one[1][1][2:]) for one in items if self.owns(one) and one[1][0] == place[1][0]]
        return source, {**items[source], "name": {"S": str(max([11, *numbers]) + 1)}}

    def came_or_went(self, place: Place, old: Item | None, new: Item | None, items: Items) -> str:
        if new is not None or not self.owns(place):
            return super().came_or_went(place, old, new, items)
        return "one of the newest versions was deleted" if self.newer(items, place) < self.keep else ""


@dataclass(frozen=True)
class Newest(Mirrored):
    """The newest state of each source, under a name that none has."""

    table: str = "versions"
    zero: str = ZERO

    def owns(self, place: Place) -> bool:
        return place[0] == self.table and place[1][1] == self.zero


def newest(lets_in: Callable[[Item], bool] = lambda _item: True, zero: str = ZERO) -> Newest:
    def asked(place: Place, item: Item) -> Mapping[Place, Item]:
        if place[0] != "sources" or not lets_in(item):
            return {}
        at = ("versions", (*place[1], zero))
        return {at: some(source=item["source"], name={"S": zero}, bio=item.get("bio"))}

    return Newest(
        asked=asked,
        holder=lambda place, _item: ("sources", place[1][:1]),
        written=("source", "name", "bio"),
        zero=zero,
    )


def history(name: str, options: str = "", *more: Truth, **truth: Callable[[Item], bool]) -> Configuration:
    """Sources whose name says which version they are; a biography may change under one name."""
    rules = f"""
tables:
  sources: {{key: {{source: S}}}}
  versions: {{key: {{source: S, name: S}}}}
entities:
  source: {{table: sources}}
  version: {{table: versions}}
rules:
  versions: {{history: source, into: version, attributes: [bio]{options}}}
"""
    return Configuration(
        name,
        rules,
        (Kind("sources", keys(("s0", "s1", "s2"), "source"), truths=("name", "bio"), flag="noise"),),
        truths=(Versions(**truth), *more),  # type: ignore[arg-type]
        exact_cost=False,
        cost_each=2,
    )


def latest(name: str, options: str = "", *more: Truth, **truth: Callable[[Item], bool]) -> Configuration:
    """Sources whose numbers come as they like, and of whose versions two stay."""
    plain = history(name, f", keep: {{count: 2}}{options}", *more, **truth)
    kinds = tuple(replace(kind, truths=("name", "bio"), truth_values=NUMBERS) for kind in plain.kinds)
    rules = plain.rules.replace("{table: versions}", '{table: versions, key: {name: "V#{name:pad(2)}"}}')
    return replace(plain, rules=rules, kinds=kinds, truths=(Latest(**truth), *more), cost_each=3)  # type: ignore[arg-type]


WORLDS: tuple[Configuration, ...] = (
    history("history"),
    history("history-where", ", where: \"noise == 'on'\"", lets_in=on),
    history("history-newest", ", newest: true", newest()),
    history("history-newest-where", ", newest: true, where: \"noise == 'on'\"", newest(on), lets_in=on),
    latest("history-keep"),
    latest("history-keep-newest", ", newest: true, where: \"noise == 'on'\"", newest(on, PADDED), lets_in=on),
)
