"""Small worlds where rules of several kinds meet: on one item, or one building on another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sync_rules.model.values import AttributeValue, Item
from tests.simulation.facts import Configuration, Fact, Kind, at, keys, text
from tests.simulation.truths import Items, Truth, Value, Wanted
from tests.simulation.worlds_gathered import (
    CHILDREN,
    HELD_CHILD,
    MAP,
    PARENT,
    PARENTS,
    Recounted,
    shown,
    through_index,
)
from tests.simulation.worlds_own import Derived, tree


def spelt(item: Item, name: str) -> str | None:
    """A number as text: the same for equal ones."""
    number = item.get(name, {}).get("N")
    return None if number is None else format(Decimal(number).normalize(), "f")


def shared() -> Configuration:
    """A world whose parents have a copy, an attribute derived from the copy, embedded children and their count."""
    rules = """
tables:
  orgs: {key: {org: S}}
  parents: {key: {parent: S}, indexes: {by_org: {org: S}}}
  children: {key: {parent: S, child: S}}
entities:
  org: {table: orgs}
  parent: {table: parents}
  child: {table: children}
rules:
  name: {copy: org.name, into: parent.org_name, on_delete: clear}
  label: {derive: parent.label, join: [parent, org_name], separator: "#"}
  kids: {embed: child, into: parent.about.kids, fields: [name, size], limit: {items: 10}}
  n: {count: child, into: parent.about.n, mode: recount}
"""
    orgs = ("o0", "o1")
    parent = replace(
        PARENT,
        copies=(("org_name",), ("label",), ("about", "kids"), ("about", "n")),
        links=("org",),
        link_values=orgs,
    )
    kinds = (Kind("orgs", keys(orgs, "org"), truths=("name",), flag="noise"), HELD_CHILD, parent)
    fact = Fact("name", "parents", at("orgs", "org"), ((("name",), ("org_name",)),), attached_by=("org",))

    def label(item: Item) -> Value:
        return {"S": "#".join(filter(None, (text(item, "parent"), text(item, "org_name") or spelt(item, "org_name"))))}

    truths = (
        Derived("parents", (("label",),), made=label, exact=True),
        replace(MAP, paths=(("about", "kids"),)),
        Recounted("parents", (("about", "n"),)),
    )
    return Configuration(
        "mixed",
        rules,
        kinds,
        (fact,),
        truths,
        indexed=True,
        attaching=frozenset({"create source"}),
        exact_cost=None,
    )


@dataclass(frozen=True)
class Nested(Truth):
    """Each item of a table shows those of another one that are kept under its key."""

    below_it: str = ""
    name: str = ""
    fields: tuple[str, ...] = ("name",)

    def wanted(self, items: Items) -> Wanted:
        return {place: {self.paths[0]: {"M": self._shown(place[1][-1], items)}} for place in items if self.at(place)}

    def _shown(self, name: str, items: Items) -> Mapping[str, AttributeValue]:
        return {
            other[1][1]: {"M": {field: item[field] for field in self.fields if field in item}}
            for other, item in items.items()
            if other[0] == self.below_it and other[1][0] == name
        }


def chain() -> Configuration:
    """Leaves in their branch, branches with their leaves in their tree."""
    rules = """
tables:
  trees: {key: {tree: S}}
  branches: {key: {tree: S, branch: S}}
  leaves: {key: {branch: S, leaf: S}}
entities:
  tree: {table: trees}
  branch: {table: branches}
  leaf: {table: leaves}
rules:
  inner: {embed: leaf, into: branch.leaves, link: {tree: home, branch: branch}, fields: [name], limit: {items: 9}}
  outer: {embed: branch, into: tree.branches, fields: [name, leaves], limit: {items: 9}}
"""
    branches = tuple(
        key for tree, some in (("t0", ("b0", "b1")), ("t1", ("b2",))) for key in keys(some, "branch", tree=tree)
    )
    leaves = tuple(key for some in ("b0", "b1", "b2") for key in keys(("l0", "l1"), "leaf", branch=some))
    kinds = (
        Kind("leaves", leaves, truths=("name",), links=("home",), link_values=("t0", "t1"), flag="noise"),
        Kind("branches", branches, truths=("name",), copies=(("leaves",),), flag="noise"),
        Kind("trees", keys(("t0", "t1"), "tree"), copies=(("branches",),), flag="noise"),
    )
    truths = (
        InBranch("branches", (("leaves",),), below_it="leaves"),
        Nested("trees", (("branches",),), below_it="branches", fields=("name", "leaves")),
    )
    return Configuration("embed-chain", rules, kinds, truths=truths, exact_cost=None)


@dataclass(frozen=True)
class InBranch(Nested):
    """The leaves of a branch say in which tree it is."""

    def wanted(self, items: Items) -> Wanted:
        of_tree = {
            tree: {place: item for place, item in items.items() if place[0] != "leaves" or text(item, "home") == tree}
            for tree in ("t0", "t1")
        }
        return {
            place: {self.paths[0]: {"M": self._shown(place[1][1], of_tree[place[1][0]])}}
            for place in items
            if self.at(place)
        }


def derived_link() -> Configuration:
    """A world in which a child's link and index key are derived from its other attributes."""
    rules = """
tables:
  parents: {key: {parent: S}}
  children: {key: {child: S}, indexes: {by_parent: {parent: S, rank: S}}}
entities:
  parent: {table: parents}
  child: {table: children}
rules:
  home: {derive: child.parent, as: "{team:home}", map: {home: {red: p0, blue: p1}}}
  rank: {derive: child.rank, join: [name, size]}
  kids: {embed: child, into: parent.kids, fields: [name, size], limit: {items: 10}, sparse: true}
"""
    homes = {"red": "p0", "blue": "p1"}

    def home(child: Item) -> Value:
        return {"S": homes[team]} if (team := text(child, "team") or "") in homes else None

    def rank(child: Item) -> Value:
        there = (text(child, "name"), spelt(child, "size"))
        return {"S": " ".join(filter(None, there))} if any(there) else None

    child = Kind(
        "children",
        keys(CHILDREN, "child"),
        truths=("team", "name", "size"),
        truth_values=("red", "blue", "green"),
        numbers=("size",),
        copies=(("parent",), ("rank",)),
        flag="noise",
    )
    truths = (
        Derived("children", (("parent",),), made=home, exact=True),
        Derived("children", (("rank",),), made=rank, exact=True),
        replace(MAP, counts=shown),
    )
    return Configuration(
        "derive-link",
        rules,
        (child, replace(PARENT, keys=keys(PARENTS, "parent"))),
        truths=truths,
        indexed=True,
        attaching=frozenset(
            {"create source", "rename", "rename back", "remove value", "overwrite copy", "remove copy"}
        ),
        exact_cost=None,
    )


def reports() -> Configuration:
    """People with those who report to them, who are people too; one may be the boss of itself."""
    rules = """
tables:
  people: {key: {person: S}, indexes: {by_boss: {boss: S, rank: S}}}
entities:
  person: {table: people, required: [rank]}
rules:
  reports: {embed: person, into: person.reports, link: {person: boss}, by: "{person}", fields: [name, noise], limit: {items: 9}}
"""
    slots = ("p0", "p1", "p2", "p3")
    kind = Kind(
        "people",
        keys(slots, "person"),
        truths=("name",),
        links=("boss",),
        link_values=slots,
        copies=(("reports",),),
        rank="rank",
        flag="noise",
    )
    attaching = frozenset({"create source"})
    truth = Reports("people", (("reports",),))
    return Configuration("embed-own", rules, (kind,), truths=(truth,), indexed=True, attaching=attaching)


@dataclass(frozen=True)
class Reports(Truth):
    """The items that name an item as their boss, with some of their attributes."""

    def wanted(self, items: Items) -> Wanted:
        return {place: {self.paths[0]: {"M": self._of(place[1][0], items)}} for place in items if self.at(place)}

    def _of(self, boss: str, items: Items) -> Mapping[str, AttributeValue]:
        return {
            place[1][0]: {"M": {name: item[name] for name in ("name", "noise") if name in item}}
            for place, item in items.items()
            if text(item, "boss") == boss and "rank" in item
        }


WORLDS: tuple[Configuration, ...] = (
    reports(),
    shared(),
    chain(),
    derived_link(),
    replace(through_index("embed-unordered", "limit: {items: 10}", MAP), in_order=False),
    replace(tree("path-unordered", "on_delete: clear"), in_order=False),
)
