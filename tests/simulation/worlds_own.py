"""Small worlds of what an item says of itself and of its parent: derive and path."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace

from sync_rules.model.values import Item, Path
from tests.simulation.facts import IMPOSSIBLE, Configuration, Fact, Kind, Place, at, keys, text
from tests.simulation.truths import Items, Truth, Value, Wanted, put


@dataclass(frozen=True)
class Derived(Truth):
    """An attribute of an item made from its own attributes."""

    made: Callable[[Item], Value] = lambda _item: None

    def wanted(self, items: Items) -> Wanted:
        return {place: {self.paths[0]: self.made(item)} for place, item in items.items() if self.at(place)}


def derive(name: str, default: str | None = None) -> Configuration:
    """An attribute made of two others, and another one made of it: one rule of an item comes before another."""
    given = "" if default is None else f", default: {default}"
    rules = f"""
tables:
  people: {{key: {{team: S, person: S}}}}
entities:
  person: {{table: people}}
rules:
  rank: {{derive: person.rank, as: "{{role:order}}-{{role}}", map: {{order: {{lead: 500, guest: 100}}}}{given}}}
  label: {{derive: person.label, join: [rank, person, name], separator: "#"}}
"""
    order = {"lead": "500", "guest": "100"}

    def rank(item: Item) -> Value:
        role = text(item, "role") or ""
        made = f"{order[role]}-{role}" if role in order else default
        return None if made is None else {"S": made}

    def label(item: Item) -> Value:
        there = (text(item, name) for name in ("rank", "person", "name"))
        return {"S": "#".join(one for one in there if one)}

    slots = ("p0", "p1", "p2")
    kind = Kind(
        "people",
        keys(slots, "person", team="x"),
        truths=("role", "name"),
        truth_values=("lead", "guest", "nobody"),
        copies=(("rank",), ("label",)),
        flag="noise",
    )
    truths = (
        Derived("people", (("rank",),), made=rank, exact=True),
        Derived("people", (("label",),), made=label, exact=True),
    )
    return Configuration(name, rules, (kind,), truths=truths, exact_cost=False)


@dataclass(frozen=True)
class Hierarchy(Truth):
    """The path of each node from its root down, and the attributes made from it; by ids, and `named` by names too.

    A node whose parent is deleted, or in or below a ring, has no root: its path follows from its parent's present path.
    """

    on_delete: str = "clear"
    extras: bool = False  # graph, depth, and an attribute carried down
    default: Value = None  # of the attribute carried down
    named: bool = False

    def wanted(self, items: Items) -> Wanted:
        nodes = {place[1][-1]: item for place, item in items.items() if self.at(place)}
        return {place: self._wanted(place[1][-1], nodes) for place in items if self.at(place)}

    def _wanted(self, own: str, nodes: Mapping[str, Item]) -> dict[Path, Value]:
        up = _parent(nodes[own])
        if up is not None and up not in nodes:
            given: dict[Path, Value] = {} if self.default is None else {("tenant",): self.default}
            if self.on_delete == "clear":
                return {**dict.fromkeys(self.paths), **given}
            return {path: value for path, value in given.items() if path[0] not in nodes[own]}
        line = _line(own, nodes) or _line_by_parent(own, nodes)
        if line is None or own in line[:-1]:
            return {}
        made: dict[Path, Value] = {("Path",): {"S": "|".join(line)}}
        if self.named:
            made |= _trail(own, nodes)
        if self.extras:
            shard = 1 + int.from_bytes(hashlib.sha256(own.encode()).digest()[:8], "big") % 2
            made |= {("Graph",): {"S": f"{line[0]}#{shard}"}, ("Depth",): {"N": str(len(line) - 1)}}
            made |= {("tenant",): nodes[up].get("tenant") or self.default} if up is not None else {}
        return made

    def below(self, items: Items, places: Container[Place]) -> Iterable[Place]:
        for place in items:
            if self.at(place):
                nodes = {other[1][-1]: item for other, item in items.items() if self.at(other)}
                line = _line(place[1][-1], nodes) or ()
                if any((place[0], (*place[1][:-1], node)) in places for node in line):
                    yield place

    def unfit(self, items: Items) -> Iterable[Place]:
        """The nodes of a ring, and those below a rootless node that has no path, or whose path contains them; by names,
        those below a rootless node that has a name and no breadcrumb.
        """
        nodes = {place[1][-1]: item for place, item in items.items() if self.at(place)}
        owns = {place: place[1][-1] for place in items if self.at(place)}
        return [
            place
            for place, own in owns.items()
            if _has_no_path(own, nodes) or (self.named and _line(own, nodes) is None and not _above_named(own, nodes))
        ]

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        """The ring is broken: one of its nodes becomes a root."""
        return place, put(items[place], ("up",), None)


def _parent(node: Item) -> str | None:
    return text(node, "up") or None


def _line(own: str, nodes: Mapping[str, Item]) -> tuple[str, ...] | None:
    """The ids from the root down to a node; None when it has no root."""
    line = [own]
    while (up := _parent(nodes[line[0]])) is not None:
        if up in line or up not in nodes:
            return None
        line.insert(0, up)
    return tuple(line)


def _line_by_parent(own: str, nodes: Mapping[str, Item]) -> tuple[str, ...] | None:
    """The same by the path that its parent has; None when that has none."""
    above = text(nodes.get(_parent(nodes[own]) or "", {}), "Path")
    return (*above.split("|"), own) if above else None


def _name(node: Item) -> str:
    value = node.get("name", {})
    return value.get("S") or value.get("N") or ""


def _trail(own: str, nodes: Mapping[str, Item]) -> dict[Path, Value]:
    """The names from the root down to a node. Without a root they follow what its parent has, once that has it."""
    line, up = _line(own, nodes), nodes.get(_parent(nodes[own]) or "", {})
    names = [_name(nodes[node]) for node in line] if line else [text(up, "Trail") or "", _name(nodes[own])]
    if not line and not names[0] and _name(up):
        return {}
    trail = " / ".join(filter(None, names))
    return {("Trail",): {"S": trail} if trail else None}


def _above_named(own: str, nodes: Mapping[str, Item]) -> bool:
    """True if the parent of a node has the breadcrumb that it should have, or needs none."""
    up = nodes.get(_parent(nodes[own]) or "", {})
    return bool(text(up, "Trail")) or not _name(up)


def _has_no_path(own: str, nodes: Mapping[str, Item]) -> bool:
    seen: list[str] = []
    up: str | None = own
    while up is not None and up in nodes and up not in seen:
        seen.append(up)
        up = _parent(nodes[up])
    if up == own or up is None or _parent(nodes[own]) not in nodes:
        return up == own  # in a ring; else it has a root, or is left without a parent
    line = _line_by_parent(own, nodes)
    return line is None or own in line[:-1]


NODES = ("r", "n11", "n1", "m", "n2")  # one id is a part of another, though not a segment of its path


def tree(
    name: str,
    options: str,
    *,
    on_delete: str = "clear",
    extras: bool = False,
    default: Value = None,
    named: bool = False,
) -> Configuration:
    """Nodes that hang below each other, and in rings; the children of one are listed through an index."""
    path = "Path" if not named else "Trail, ids: Path, by: name, separator: ' / '"
    rules = f"""
tables:
  nodes: {{key: {{team: S, node: S}}, indexes: {{by_up: {{up: S, rank: S}}}}}}
entities:
  node: {{table: nodes, required: [rank]}}
rules:
  paths: {{path: node.{path}, parent: up, {options}}}
"""
    made = (("Path",), ("Graph",), ("Depth",), ("tenant",)) if extras else (("Path",),)
    made = (("Path",), ("Trail",)) if named else made
    kind = Kind(
        "nodes",
        keys(NODES, "node", team="x"),
        truths=("tenant",) if extras else ("name",) if named else (),
        truth_values=("a", "b / c", "") if named else (),
        mixed=("name",) if named else (),
        links=("up",),
        link_values=(*NODES, *IMPOSSIBLE),
        copies=made[:3],
        rank="rank",
        flag="noise",
        first_links=(None, "r", "n11", "n1", None),
    )
    truth = Hierarchy("nodes", made, on_delete=on_delete, extras=extras, default=default, named=named)
    gone = Fact("paths", "nodes", at("nodes", "team", "up"), (), "delete", attached_by=("up", "rank"))
    return Configuration(
        name,
        rules,
        (kind,),
        (gone,) if on_delete == "delete" else (),
        (truth,),
        indexed=True,
        attaching=frozenset({"create source"}),
        exact_cost=False,  # a path that an application wrote is put right before it is handed down, or after
    )


EXTRAS = "graph: Graph, shards: 2, depth: Depth, carry: [tenant]"
WORLDS: tuple[Configuration, ...] = (
    derive("derive"),
    derive("derive-default", "none"),
    tree("path", f"on_delete: clear, {EXTRAS}", extras=True),
    tree("path-default", f"on_delete: clear, {EXTRAS}, default: {{tenant: none}}", extras=True, default={"S": "none"}),
    replace(
        tree(
            "path-default-keep",
            f"on_delete: keep, {EXTRAS}, default: {{tenant: none}}",
            on_delete="keep",
            extras=True,
            default={"S": "none"},
        ),
        exact_cost=None,  # once a default stands where a parent is gone, nothing says that it was missing
    ),
    tree("path-keep", "on_delete: keep", on_delete="keep"),
    tree("path-delete", "on_delete: delete", on_delete="delete"),
    tree("path-names", "on_delete: clear", named=True),
    tree("path-names-keep", "on_delete: keep", on_delete="keep", named=True),
)
