"""Read the neighbours of nodes: the items that the elements of their sets name, by BatchGetItem.

Invariant: each node has one result, in the order of the nodes; None for a missing node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import make_plain_value
from sync_rules.model.templates import Fields
from sync_rules.model.values import AttributeValue, Item
from sync_rules.read.reader import Reader, require_key
from sync_rules.rules.kinds.collect import CollectRule


@dataclass(frozen=True)
class Neighbour:
    """One element of an edge set. `fields` are the fields of the element, such as a role, and of the edge's key. `item`
    is the item at the other end, or None if it is deleted.
    """

    element: Any
    fields: Mapping[str, Any]
    item: dict[str, Any] | None


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of one node, in the order of their elements. `omitted`: the set was left out because it grew too
    large; `edges_of` reads the edges. `strange`: elements that do not match the template, so no rule wrote them.
    """

    found: tuple[Neighbour, ...] = ()
    omitted: bool = False
    strange: tuple[Any, ...] = ()


Element = tuple[AttributeValue, Fields, ItemKey | None]  # with the fields of its edge; None: it names no neighbour


@dataclass(frozen=True)
class _End:
    """One entity at the other end of edges. `link` gives for its identity fields, or for attributes of its key, the
    field of edge or element that holds them.
    """

    entity: Entity
    link: Mapping[str, str]

    @property
    def needed_fields(self) -> tuple[str, ...]:
        """The fields of edge and element that name the item."""
        in_keys = [attribute.name for attribute in self.entity.table.key if attribute.name in self.link]
        bound = {field for name in in_keys for field in self.entity.templates[name].fields}
        own = [self.link.get(field, field) for field in self.entity.identity if field not in bound]
        return (*(self.link[name] for name in in_keys), *own)

    def key(self, fields: Fields) -> ItemKey | None:
        """Make the key of an item from these fields of an edge, renamed by `link`. Return None if they make no key."""
        bound: dict[str, AttributeValue] = {}
        for attribute in self.entity.table.key:
            if attribute.name in self.link:
                found = self.entity.templates[attribute.name].parse(fields.get(self.link[attribute.name]))
                if found is None:
                    return None
                bound |= found
        named = ((field, self.link.get(field, field)) for field in self.entity.identity if field not in bound)
        return self.entity.key_of({**bound, **{field: fields[name] for field, name in named if name in fields}})


class NeighbourReader:
    """A reader of the neighbours of nodes, which the nodes' sets name. A neighbour is of the first entity whose key the
    edge can name.
    """

    def __init__(
        self, reader: Reader, rule: CollectRule, neighbours: Sequence[Entity], link: Mapping[str, str]
    ) -> None:
        self._reader = reader
        self._rule = rule
        self._ends = tuple(_End(entity, link) for entity in neighbours)
        known = {*rule.source.identity, *rule.element.fields}
        for end in self._ends:
            missing = ", ".join(field for field in end.needed_fields if field not in known)
            if missing:
                raise UserError(f"no edge names its neighbour by {missing}. Known: {', '.join(sorted(known))}")

    def of(self, nodes: Sequence[Item | None]) -> list[Neighbours | None]:
        """Return the neighbours of each of these raw nodes, None for None, with one batch of keys for all nodes."""
        elements = [[] if node is None else [*self._parse(node)] for node in nodes]
        keys = [key for some in elements for _, _, key in some if key is not None]
        items: dict[ItemKey, Item | None] = {}
        for table in {end.entity.table.name: end.entity.table for end in self._ends}.values():
            of_table = [key for key in keys if key.table == table.name]
            items |= zip(of_table, self._reader.get(table, of_table), strict=True)
        return [
            None if node is None else self._make_neighbours(node, some, items)
            for node, some in zip(nodes, elements, strict=True)
        ]

    def _parse(self, node: Item) -> Iterator[Element]:
        at = require_key(self._rule.target.table, node)
        for element in self._list_elements(node):
            (text,) = element.values()
            edge = self._rule.edge_key(at, text)
            bound = {} if edge is None else self._rule.source.fields(edge) or {}
            fields = {**(self._rule.element.parse(text) or {}), **bound}
            ends = (key for end in self._ends if (key := end.key(fields)) is not None)
            yield element, fields, None if edge is None else next(ends, None)

    def _list_elements(self, node: Item) -> list[AttributeValue]:
        into = self._rule.into
        ((kind, content),) = node.get(into, {"NULL": True}).items()
        if kind == "NULL":
            return []
        if kind == "SS":
            return [{"S": text} for text in sorted(content)]
        if kind == "NS":
            return sorted(({"N": text} for text in content), key=make_plain_value)
        raise UserError(f"{into!r} of table {self._rule.target.table.physical_name} holds no set, nor NULL, but {kind}")

    def _make_neighbours(
        self, node: Item, elements: Sequence[Element], items: Mapping[ItemKey, Item | None]
    ) -> Neighbours:
        reader = self._reader
        found = (
            Neighbour(reader.value(element), reader.output(fields), *reader.outputs([items[key]]))
            for element, fields, key in elements
            if key is not None
        )
        strange = (reader.value(element) for element, _, key in elements if key is None)
        return Neighbours(tuple(found), "NULL" in node.get(self._rule.into, {}), tuple(strange))
