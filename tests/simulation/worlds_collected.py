"""Small worlds of collect: a set on a node with an element for each of its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sync_rules.model.values import Item, get
from tests.simulation.facts import Configuration, Kind, Place, keys, text
from tests.simulation.truths import Items, Truth, Value, Wanted, put

Claim = tuple[Place, str]  # a node, and the element that an edge asks for there


@dataclass(frozen=True)
class Collected(Truth):
    """The set on each node: the elements of the edges that point to it, and nothing else."""

    claim: Callable[[Place, Item], Claim | None] = lambda _place, _item: None
    kind: str = "SS"
    strict: bool = False

    def wanted(self, items: Items) -> Wanted:
        claims = [claim for place, item in items.items() if (claim := self.claim(place, item)) is not None]
        return {place: {self.paths[0]: self._set(claims, place)} for place in items if self.at(place)}

    def _set(self, claims: Iterable[Claim], node: Place) -> Value:
        elements = sorted({element for place, element in claims if place == node})
        return {self.kind: elements} if elements else None

    def unfit(self, items: Items) -> Iterable[Place]:
        """Nodes with something else in the place of the set."""
        values = {place: get(item, self.paths[0]) for place, item in items.items() if self.at(place)}
        return [place for place, value in values.items() if value is not None and self.kind not in value]

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        return place, put(items[place], self.paths[0], None)

    def judge(self, place: Place, old: Item, new: Item, items: Items) -> str:
        """Strict: what comes or goes does so while its edge says so."""
        if not (self.strict and self.at(place)):
            return ""
        right = self._elements(self.wanted(items)[place][self.paths[0]])
        before, now = (self._elements(get(item, self.paths[0])) for item in (old, new))
        wrong = [element for element in before ^ now if (element in now) != (element in right)]
        return f"{', '.join(sorted(wrong))} came or went against its edge at this moment" if wrong else ""

    def _elements(self, value: Value) -> frozenset[str]:
        return frozenset((value or {}).get(self.kind, ()))


ROLES = ("lead", "guest")


def on(item: Item) -> bool:
    """The `where` of every rule in these worlds."""
    return text(item, "noise") != "off"


def collect(name: str, options: str = "", *, strict: bool = False) -> Configuration:
    """Members of goals, listed by the table itself: which goal is in the key, the role makes the element."""
    rules = f"""
tables:
  goals: {{key: {{goal: S}}}}
  members: {{key: {{goal: S, user: S}}}}
entities:
  goal: {{table: goals}}
  member: {{table: members}}
rules:
  members: {{collect: member, into: goal.members, as: "{{user}}-{{role}}", omit: "noise == 'off'"{options}}}
"""

    def claim(place: Place, item: Item) -> Claim | None:
        role = text(item, "role")
        if place[0] != "members" or not role or not on(item):
            return None
        return ("goals", place[1][:1]), f"{place[1][1]}-{role}"

    pairs = (("s0", "u0"), ("s0", "u1"), ("s2", "u0"), ("s1", "u0"), ("s0", "u2"))
    members = tuple({"goal": {"S": goal}, "user": {"S": user}} for goal, user in pairs)
    return Configuration(
        name,
        rules,
        (
            Kind("members", members, truths=("role",), truth_values=ROLES, flag="noise"),
            Kind("goals", keys(("s0", "s1", "s2"), "goal"), copies=(("members",),)),
        ),
        truths=(Collected("goals", (("members",),), claim=claim, strict=strict),),
        exact_cost=False,  # what comes into a set and what goes from it is not written in one, and strict elements each alone
        cost_each=8 if strict else 2,
    )


def collect_numbers() -> Configuration:
    """A set of numbers: the seats that are taken. Most are of one hall, which is often created when they are there."""
    rules = """
tables:
  halls: {key: {hall: S}}
  seats: {key: {hall: S, seat: S}}
entities:
  hall: {table: halls}
  seat: {table: seats}
rules:
  seats: {collect: seat, into: hall.seats, as: "{seat}", numbers: true, where: "noise == 'on'"}
"""

    def claim(place: Place, item: Item) -> Claim | None:
        return (("halls", place[1][:1]), place[1][1]) if place[0] == "seats" and on(item) else None

    pairs = (("s0", "1"), ("s0", "22"), ("s2", "1"), ("s0", "3"), ("s0", "-0.5"), ("s0", "4"))
    seats = tuple({"hall": {"S": hall}, "seat": {"S": seat}} for hall, seat in pairs)
    return Configuration(
        "collect-numbers",
        rules,
        (
            Kind("seats", seats, truths=("name",), flag="noise"),
            Kind("halls", keys(("s0", "s2"), "hall"), copies=(("seats",),), made=True),
        ),
        truths=(Collected("halls", (("seats",),), claim=claim, kind="NS"),),
        exact_cost=False,
        cost_each=2,
    )


def collect_graph() -> Configuration:
    """A graph in one table: a node is an edge from itself to itself."""
    rules = """
tables:
  graph: {key: {source: S, target: S}}
entities:
  node: {table: graph, key: {source: "{id}", target: "{id}"}}
  edge: {table: graph}
rules:
  edges: {collect: edge, into: node.edges, as: "{target}-{role}", link: {id: source}, omit: "noise == 'off'"}
"""

    def claim(place: Place, item: Item) -> Claim | None:
        (source, target), role = place[1], text(item, "role")
        return (("graph", (source, source)), f"{target}-{role}") if source != target and role and on(item) else None

    def pair(source: str, target: str) -> Item:
        return {"source": {"S": source}, "target": {"S": target}}

    edges = (pair("n0", "n1"), pair("n1", "n0"), pair("n0", "n2"), pair("n2", "n0"), pair("n0", "n3"))
    return Configuration(
        "collect-graph",
        rules,
        (
            Kind("graph", edges, truths=("role",), truth_values=ROLES, flag="noise"),
            Kind("graph", tuple(pair(node, node) for node in ("n0", "n1", "n2")), copies=(("edges",),)),
        ),
        truths=(Collected("graph", (("edges",),), lambda place: place[1][0] == place[1][1], claim=claim),),
        exact_cost=False,
        cost_each=2,
    )


def collect_index(name: str, options: str = "", *, strict: bool = False, few: bool = False) -> Configuration:
    """Edges that may change their node, listed through an index that may lag.

    `few`: one node, absent at first, so that it is often created while the index does not show an edge yet, or only some.
    """
    rules = f"""
tables:
  goals: {{key: {{goal: S}}}}
  members: {{key: {{member: S}}, indexes: {{by_goal: {{goal: S, rank: S}}}}}}
entities:
  goal: {{table: goals}}
  member: {{table: members, required: [rank]}}
rules:
  members: {{collect: member, into: goal.members, as: "{{member}}-{{role}}", via: by_goal{options}}}
"""

    def claim(place: Place, item: Item) -> Claim | None:
        goal, role = text(item, "goal"), text(item, "role")
        return (("goals", (goal,)), f"{place[1][0]}-{role}") if place[0] == "members" and goal and role else None

    slots, goals = ("t0", "t1", "t2", "t3", "t4"), ("s0",) if few else ("s0", "s1", "s2")
    edges = Kind("members", keys(slots, "member"), ("role",), ("goal",), (*goals, ""), rank="rank", truth_values=ROLES)
    return Configuration(
        name,
        rules,
        (
            replace(edges, first_links=(None, None, *goals * 3)) if few else edges,
            Kind("goals", keys(goals, "goal"), copies=(("members",),), made=few),
        ),
        truths=(Collected("goals", (("members",),), claim=claim, strict=strict),),
        indexed=True,
        exact_cost=False,
        cost_each=8 if strict else 2,
    )


WORLDS: tuple[Configuration, ...] = (
    collect("collect"),
    collect("collect-strict", ", strict: true", strict=True),
    collect_numbers(),
    collect_graph(),
    collect_index("collect-index"),
    collect_index("collect-few", few=True),
    collect_index("collect-strict-index", ", strict: true", strict=True),
)
