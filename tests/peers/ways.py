"""Paths of a scenario as hops from item to item, each by one reference, and the attributes that are brought along them.

DynamoDB cannot index a list. So where ids stand in a list, on either side, a table of edges comes between: a mirror
keeps one edge per item and element. What is left are hops by single references:

- forward: an attribute of the item holds the key of the next one;
- backward: items of the next table hold the key of the item.

A chain of forward hops becomes a chain of copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sync_rules.model.values import Path, show_path
from tests.peers import conditions
from tests.peers.builder import Builder, Target, path_of

OWNER, ELEMENT = "edge_owner", "edge_element"  # the key of an edge: the item at its near end, and at its far end


@dataclass(frozen=True)
class Hop:
    """A step to an item of `table`. `refs` hold the key of the item at the end of the hop, or backward at its start."""

    table: str
    refs: tuple[Path, ...]
    forward: bool = True


@dataclass(frozen=True)
class Condition:
    """A test of an attribute of the item that this number of hops reaches."""

    after: int
    path: Path
    test: conditions.Test


@dataclass(frozen=True)
class Way:
    """A path from items of a table."""

    start: str
    hops: tuple[Hop, ...]
    conditions: tuple[Condition, ...] = ()

    def table(self, after: int) -> str:
        """The table of the items that this number of hops reaches."""
        return self.start if after == 0 else self.hops[after - 1].table

    def back(self, at: int, to: int = 0) -> tuple[Hop, ...]:
        """From an item that backward hops reached, the way to the item that it was reached from."""
        return tuple(Hop(self.table(n - 1), self.hops[n - 1].refs) for n in range(at, to, -1))


# ---------------------------------------------------------------- reading
def read(builder: Builder, table: str, path: Sequence[Mapping[str, Any]], where: Any = None) -> Way:
    """A path of a scenario, with the condition on what it ends at."""
    hops: list[Hop] = []
    tests: list[Condition] = []
    at = table
    for raw in path:
        hops += _hops(builder, at, raw)
        at = hops[-1].table
        tests += [Condition(len(hops), *test) for test in conditions.read(raw.get("where") or {})]
    tests += [Condition(len(hops), *test) for test in conditions.read(where or {})]
    return Way(table, tuple(hops), tuple(tests))


def _hops(builder: Builder, at: str, raw: Mapping[str, Any]) -> list[Hop]:
    assert raw.keys() <= {"to", "by", "from", "on", "where"}, raw
    if "to" in raw:
        table, refs = raw["to"], _refs(raw["by"])
        if not builder.is_list(at, refs[0]):
            return [Hop(table, refs)]
        edges = edges_of(builder, at, refs[0], table, listed_by_owner=True)
        return [Hop(edges, ((OWNER,),), forward=False), Hop(table, ((ELEMENT,),))]
    table, refs = raw["from"], _refs(raw["on"])
    if not builder.is_list(table, refs[0]):
        return [Hop(table, refs, forward=False)]
    edges = edges_of(builder, table, refs[0], at, listed_by_owner=False)
    return [Hop(edges, ((OWNER,),), forward=False), Hop(table, ((ELEMENT,),))]


def _refs(by: Any) -> tuple[Path, ...]:
    return tuple(path_of(name) for name in by) if isinstance(by, list) else (path_of(by),)


# ---------------------------------------------------------------- edges
def edges_of(builder: Builder, table: str, by: Path, other: str, *, listed_by_owner: bool) -> str:
    """A table with an edge for each reference of an item: a mirror of the items that have the list.

    `listed_by_owner`: the items of `table` are at the near end, else at the far end.
    """
    own, near = builder.id_of(table), OWNER if listed_by_owner else ELEMENT
    far = ELEMENT if listed_by_owner else OWNER
    kinds = {near: builder.keys[table][own], far: builder.keys[other][builder.id_of(other)]}
    words = (table, *by, "edges" if listed_by_owner else "owners")
    known = ("table", *words) in builder.made
    edges = builder.table(words, {OWNER: kinds[OWNER], ELEMENT: kinds[ELEMENT]})
    if known:
        return edges
    mirror: dict[str, Any] = {"mirror": table, "into": edges, "link": {near: own}, "each": {far: show_path(by)}}
    builder.rule((edges, ()), mirror)
    if not listed_by_owner:
        builder.carried[edges] = (Hop(table, ((ELEMENT,),)), mirror)
    return edges


def _carry(builder: Builder, edges: str, path: Path) -> Path:
    """The attribute of an edge that its mirror takes from the item at its far end."""
    name = f"member_{'_'.join(path)}"
    builder.carried[edges][1].setdefault("attributes", {})[show_path(path)] = name
    return (name,)


# ---------------------------------------------------------------- along forward hops
def bring(builder: Builder, table: str, hops: Sequence[Hop], attribute: Path) -> Path:
    """The attribute of items of `table` that holds an attribute of the item at the end of forward hops."""
    table, hops, attribute = _shortened(builder, table, tuple(hops), attribute)
    if not hops:
        return attribute
    key = ("brought", hops, attribute)
    known = (table, *key) in builder.made
    helper = builder.helper(table, key, (*hops[0].refs[0], *attribute, "copy"))
    if not known:
        copy(builder, (table, helper), hops, attribute)
    return helper


def copy(builder: Builder, into: Target, hops: Sequence[Hop], attribute: Path, **options: Any) -> None:
    """Copy an attribute of the item at the end of forward hops, or of the item itself."""
    table, hops, attribute = _shortened(builder, into[0], tuple(hops), attribute)
    if not hops:
        link, source = builder.itself(table), table
    else:
        link, source = single(builder, table, hops), hops[-1].table
    builder.copy(into, (source, attribute), link, **{"on_delete": "clear", **options})


def _shortened(
    builder: Builder, table: str, hops: tuple[Hop, ...], attribute: Path
) -> tuple[str, tuple[Hop, ...], Path]:
    """The same without the hop from an edge to the item that it mirrors: the mirror takes what is wanted along."""
    if table not in builder.carried or not hops or hops[0] != builder.carried[table][0]:
        return table, hops, attribute
    return table, (), _carry(builder, table, attribute)


def single(builder: Builder, table: str, hops: Sequence[Hop]) -> dict[str, str]:
    """A link over one hop to the item at the end of forward hops: what names it is brought here first."""
    refs = tuple(bring(builder, table, hops[:-1], ref) for ref in hops[-1].refs)
    return builder.link(table, refs, hops[-1].table)
