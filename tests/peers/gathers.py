"""Attributes made of many items: maps of entries, counts, sums, least and greatest.

Each becomes one rule of ours over the items that point to their parent by one attribute. DynamoDB cannot index a list,
so if ids stand in a list, on either side, a table of edges comes between: a mirror keeps one edge per item and element,
and the members' attributes stand on their edges:

- a list on the members: their mirrors carry the attributes;
- a list on the parent: attributes are copied onto the edges, with the member's own key, without which there is no
  member.

Counts and the like keep their books in a ledger, one table per scenario.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.model.values import Path, show_path
from tests.peers.builder import Builder, Target, UnsupportedError, path_of

OWNER, ELEMENT = "edge_owner", "edge_element"  # the key of an edge: the parent, and the member
ENTRIES_MAX: Final = 1000
WEIGHING: Final = {"weight", "weight_map", "weight_default"}  # all of them, or none
WORDS: Final = {"table", "attr", "agg", "path", "of", "where", "fields", "empty", *WEIGHING}
EMPTY: Final[Mapping[str, Any]] = {"map": {}, "count": 0, "sum": 0, "min": "<absent>", "max": "<absent>"}


@dataclass(frozen=True)
class Members:
    """The items that one is made of, as a rule of ours names them: their entity, by which attribute they point to the
    parent, what an entry is called, and how an attribute that the scenario names is called on them.
    """

    entity: str
    by: Path
    name: str
    there: str | None  # an attribute that only those members have which exist
    named: Mapping[Path, Path] | None = None  # None: by their own names

    def path(self, path: Path) -> Path:
        return path if self.named is None else self.named[path]


def gather(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """Translate `agg`. Raises UnsupportedError, before anything is made of it."""
    _check(builder, rule)
    kind, fields = rule["agg"], [path_of(name) for name in rule.get("fields", ())]
    (hop,) = rule["path"]
    where = {path_of(n): v for given in (hop.get("where"), rule.get("where")) for n, v in (given or {}).items()}
    of = None if "of" not in rule else path_of(rule["of"])
    parent = into[0]
    weight = path_of(rule["weight"]) if "weight" in rule else None
    members = _members(builder, parent, hop, [*fields, *where, *(path for path in (of, weight) if path is not None)])
    said = {
        "into": show_path((parent, *into[1])),
        "link": {builder.id_of(parent): show_path(members.by)},
    }
    if members.there is not None or where:
        there = () if members.there is None else (members.there,)
        said["where"] = " && ".join([*there, *(_equal(members.path(path), value) for path, value in where.items())])
    if kind == "map":
        said["link"] = builder.link(members.entity, members.by, parent)
        shown = {show_path(members.path(path)): path[-1] for path in fields}
        limit = {"items": ENTRIES_MAX}
        builder.rule(into, {"embed": members.entity, **said, "by": members.name, "fields": shown, "limit": limit})
        return
    if weight is not None:
        values = {show_path(members.path(weight)): rule["weight_map"]}
        said["weights"] = {"values": values, "default": rule["weight_default"]}
    counted = members.entity if of is None else show_path((members.entity, *members.path(of)))
    builder.rule(into, {kind: counted, **said, "ledger": builder.table(("ledger",), {"PK": "S", "SK": "S"})})


def _check(builder: Builder, rule: Mapping[str, Any]) -> None:
    kind = rule["agg"]
    if kind not in EMPTY:
        raise UnsupportedError(f"agg: {kind}")
    if rule.keys() - WORDS:
        raise UnsupportedError(f"agg: {kind} with {', '.join(sorted(rule.keys() - WORDS))}")
    if rule.get("empty", EMPTY[kind]) != EMPTY[kind]:
        raise UnsupportedError(f"agg: {kind} with `empty`")
    if (kind == "map") != ("fields" in rule) or (kind in ("sum", "min", "max")) != ("of" in rule):
        raise UnsupportedError(f"agg: {kind} with {', '.join(sorted(rule))}")
    weighing = WEIGHING & rule.keys()
    if weighing and (weighing != WEIGHING or kind != "count"):
        raise UnsupportedError(f"agg: {kind} with {', '.join(sorted(weighing))} alone")
    if any(len(path_of(name)) > 1 for name in rule.get("fields", ())):
        raise UnsupportedError("agg: map with a field inside a map")
    if len(rule["path"]) > 1:
        raise UnsupportedError(f"agg: {kind} over several hops")
    builder.id_of(rule["table"])


def _members(builder: Builder, parent: str, hop: Mapping[str, Any], needed: list[Path]) -> Members:
    """The items at the other end of a hop, or their edges."""
    if "to" in hop:
        return _edges_of_parents(builder, parent, hop["to"], path_of(hop["by"]), needed)
    member, by = hop["from"], path_of(hop["on"])
    if any(isinstance(value, list) for value in builder.values(member, by)):
        return _edges_of_members(builder, parent, member, by, needed)
    return Members(member, by, "|".join(f"{{{name}}}" for name in builder.keys[member]), None)


def _edges_of_parents(builder: Builder, parent: str, member: str, by: Path, needed: list[Path]) -> Members:
    """The parent lists its members."""
    own, other = builder.id_of(parent), builder.id_of(member)
    edges = _edges(builder, (parent, *by), builder.keys[parent][own], builder.keys[member][other])
    builder.rule((edges, ()), {"mirror": parent, "into": edges, "link": {OWNER: own}, "each": {ELEMENT: show_path(by)}})
    link = builder.link(edges, (ELEMENT,), member)
    named = {path: _of_member(path) for path in [(other,), *needed]}
    for path, name in named.items():
        builder.copy((edges, name), (member, path), link, on_delete="clear")
    return Members(edges, (OWNER,), f"{{{ELEMENT}}}", show_path(named[other,]), named)


def _edges_of_members(builder: Builder, parent: str, member: str, by: Path, needed: list[Path]) -> Members:
    """Each member lists its parents."""
    own, other = builder.id_of(parent), builder.id_of(member)
    edges = _edges(builder, (member, *by), builder.keys[parent][own], builder.keys[member][other])
    known = next((rule for rule in builder.rules.values() if "mirror" in rule and rule["into"] == edges), None)
    mirror = known or {"mirror": member, "into": edges, "link": {ELEMENT: other}, "each": {OWNER: show_path(by)}}
    named = {path: _of_member(path) for path in needed}
    if named:
        mirror.setdefault("attributes", {}).update({show_path(path): show_path(name) for path, name in named.items()})
    if known is None:
        builder.rule((edges, ()), mirror)
    return Members(edges, (OWNER,), f"{{{ELEMENT}}}", None, named)


def _edges(builder: Builder, words: Path, owner: str, element: str) -> str:
    return builder.table((*words, "edges"), {OWNER: owner, ELEMENT: element})


def _of_member(path: Path) -> Path:
    """The name of a member's attribute on its edge."""
    return (f"member_{'_'.join(path)}",)


def _equal(path: Path, value: Any) -> str:
    """A condition that an attribute has a value, as JMESPath."""
    literal = json.dumps(value).replace("`", r"\`")
    return f"{'.'.join(name if name.isidentifier() else json.dumps(name) for name in path)} == `{literal}`"
