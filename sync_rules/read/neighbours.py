"""The third step through a graph: from the edge sets of nodes to what stands at the other end of their edges.

Law: a set is taken apart by the template that made it. One that was left out because it grew too large is said to be
so, and is never taken for an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import plain_of
from sync_rules.model.templates import Fields
from sync_rules.model.values import AttributeValue, Item
from sync_rules.read.reader import Reader, raw_key_of
from sync_rules.rules.kinds.collect import CollectRule


@dataclass(frozen=True)
class Neighbour:
    """One element of an edge set. `fields` is what the element says of the edge, such as its role, with what the edge's
    key binds; `item` is what stands at the other end, None when it is gone.
    """

    element: Any
    fields: Mapping[str, Any]
    item: dict[str, Any] | None


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of one node, in the order of their elements.

    `omitted`: the set was left out because it grew too large; ask `edges_of` for the edges. `strange`: elements that
    name no edge by the template, so somebody else put them there.
    """

    found: tuple[Neighbour, ...] = ()
    omitted: bool = False
    strange: tuple[Any, ...] = ()


@dataclass(frozen=True)
class _Reference:
    """What an element names: what it says of its edge, and the key at the other end."""

    element: AttributeValue
    fields: Fields
    key: ItemKey


@dataclass(frozen=True)
class _Named:
    """What the set of one node names, before it is read."""

    references: list[_Reference]
    strange: list[AttributeValue]
    omitted: bool


class Surroundings:
    """Finds the neighbours of nodes by the sets that a rule keeps on them.

    `link` says by which field of edge or element a neighbour's identity field is named, where not by its own.
    """

    def __init__(self, reader: Reader, rule: CollectRule, neighbour: Entity, link: Mapping[str, str]) -> None:
        self._reader = reader
        self._rule = rule
        self._neighbour = neighbour
        self._link = {field: link.get(field, field) for field in neighbour.identity}
        known = {*rule.source.identity, *rule.element.fields}
        missing = ", ".join(field for field in self._link.values() if field not in known)
        if missing:
            raise UserError(f"no edge names its neighbour by {missing}. Known: {', '.join(sorted(known))}")

    def of(self, nodes: Sequence[Item | None]) -> list[Neighbours | None]:
        """The neighbours of each of these raw nodes, None for None: one batch of keys for all of them."""
        named = [None if node is None else self._named(node) for node in nodes]
        keys = [reference.key for one in named if one is not None for reference in one.references]
        items = dict(zip(keys, self._reader.get(self._neighbour.table, keys), strict=True))
        return [None if one is None else self._result(one, items) for one in named]

    def _named(self, node: Item) -> _Named:
        at = raw_key_of(self._rule.target.table, node)
        references: list[_Reference] = []
        strange: list[AttributeValue] = []
        for element in self._elements(node):
            (text,) = element.values()
            edge = self._rule.edge_key(at, text)
            bound = {} if edge is None else self._rule.source.fields(edge) or {}
            fields = {**(self._rule.element.parse(text) or {}), **bound}
            key = self._neighbour.key_of({field: fields[name] for field, name in self._link.items() if name in fields})
            if edge is None or key is None:
                strange.append(element)
            else:
                references.append(_Reference(element, fields, key))
        return _Named(references, strange, omitted="NULL" in node.get(self._rule.into, {}))

    def _elements(self, node: Item) -> list[AttributeValue]:
        """The elements of a node's set, in order."""
        into = self._rule.into
        ((kind, content),) = node.get(into, {"NULL": True}).items()
        if kind == "NULL":
            return []
        if kind == "SS":
            return [{"S": text} for text in sorted(content)]
        if kind == "NS":
            return sorted(({"N": text} for text in content), key=plain_of)
        raise UserError(f"{into!r} of table {self._rule.target.table.physical_name} holds no set, nor NULL, but {kind}")

    def _result(self, named: _Named, items: Mapping[ItemKey, Item | None]) -> Neighbours:
        reader = self._reader
        return Neighbours(
            tuple(
                Neighbour(
                    reader.value(reference.element),
                    reader.shown(reference.fields),
                    reader.shown_or_none(items[reference.key]),
                )
                for reference in named.references
            ),
            named.omitted,
            tuple(map(reader.value, named.strange)),
        )
