"""Read a graph in three steps: edges by Query, their nodes by BatchGetItem, the nodes' neighbours by BatchGetItem.

Invariant: each request has one result, in the order of the requests; None for a missing item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any

from sync_rules.model.entities import Entity, Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.templates import may_overlap
from sync_rules.model.values import Item, Path
from sync_rules.read.key_range import KeyRange
from sync_rules.read.listing import Listing
from sync_rules.read.neighbours import NeighbourReader, Neighbours
from sync_rules.read.reader import Client, Reader, find_rule, make_reader
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class ThreeSteps:
    """Edges, and for each edge its node and the node's neighbours; None if the node of an edge is missing. `cursor`
    reads the next page of edges; it is None after the last page.
    """

    edges: list[dict[str, Any]]
    nodes: list[dict[str, Any] | None]
    neighbours: list[Neighbours | None]
    cursor: str | None = None

    @property
    def omitted(self) -> list[dict[str, Any]]:
        """The nodes whose edge sets were left out."""
        pairs = zip(self.nodes, self.neighbours, strict=True)
        return [node for node, around in pairs if node is not None and around is not None and around.omitted]


def _require_form(name: str, given: Any, form: tuple[str, ...]) -> None:
    """Raise UserError unless a condition on a sort key is a tuple, or a list, of an attribute and its values."""
    if given is None or (
        isinstance(given, tuple | list) and len(given) == len(form) and given[0] and isinstance(given[0], str)
    ):
        return
    shown = f"{len(given)} values" if isinstance(given, tuple | list) else type(given).__name__
    raise UserError(f"{name}: expected ({', '.join(form)}), the sort key's attribute first; found {shown}")


class Graph:
    """A graph as adjacency list: nodes, edges, and on each node the set of its edges that a `collect` rule keeps.

    Sets and indexes lag behind edges by moments: a new neighbour may be missing, a removed one may still be there.
    """

    def __init__(
        self,
        client: Client | Reader,
        rule: CollectRule,
        neighbours: Sequence[Entity] = (),
        link: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._reader = make_reader(client)
        self._rule = rule
        self._neighbours = NeighbourReader(self._reader, rule, neighbours, link) if neighbours else None

    @classmethod
    def of(
        cls,
        rules: Rules,
        name: str,
        client: Client | Reader,
        *,
        neighbour: str | Sequence[str] | None = None,
        link: Mapping[str, str] = MappingProxyType({}),
    ) -> Graph:
        """Return the graph that the `collect` rule of this name keeps. `neighbour` is the entity at the other end of
        its edges, or several entities if the ends are mixed, such as users and teams. Their identity fields are read
        from the edge's key and element, by default under the same names. `link` maps the neighbour's fields to other
        field names of the edge. It may also map an attribute of the neighbour's key to an edge field: {PK: target}.
        The field's value, such as TEAM#7, then shows the entity.

        Raises:
            UserError: if no such rule or entity exists, or edges lack the neighbour's key or do not show its
                entity.
        """
        rule = find_rule(rules, name, CollectRule)
        names = (neighbour,) if isinstance(neighbour, str) else tuple(neighbour or ())
        for other in names:
            if other not in rules.entities:
                raise UserError(
                    f"no entity {other!r}. Known: {', '.join(name for name in rules.entities if '.' not in name)}"
                )
        entities = [rules.entities[other] for other in names]
        _require_apart(entities, link)
        return cls(client, rule, entities, link)

    # ------------------------------------------------------------ step 1: edges
    def edges(
        self,
        equals: Mapping[str, Any],
        *,
        begins_with: tuple[str, str] | None = None,
        between: tuple[str, Any, Any] | None = None,
        gte: tuple[str, Any] | None = None,
        lte: tuple[str, Any] | None = None,
        index: str | None = None,
        backward: bool = False,
    ) -> Listing:
        """Return the edges under one partition key, of the table or of an index, in the order of the sort key. `equals`
        gives the values of key attributes. One other option may narrow the sort key; each begins with its name.
        `begins_with` gives the beginning of its values, `between` its least and greatest value, `gte` only the
        least, `lte` only the greatest. Both ends belong to the range.

        Raises:
            UserError: if two of them are given, an option has another form, or a range is invalid.
        """
        for name, given, form in (
            ("begins_with", begins_with, ("ATTRIBUTE", "beginning")),
            ("between", between, ("ATTRIBUTE", "least", "greatest")),
            ("gte", gte, ("ATTRIBUTE", "least")),
            ("lte", lte, ("ATTRIBUTE", "greatest")),
        ):
            _require_form(name, given, form)
        if sum(one is not None for one in (begins_with, between, gte, lte)) > 1:
            raise UserError("two conditions on a sort key: give one of begins_with, between, gte and lte")
        conditions = KeyConditions(tuple(self._reader.raw_attributes(equals, equals).items()), begins_with)
        within = self._make_range(between, gte, lte)
        return Listing(self._reader, self._rule.source.table, conditions, index, backward, within=within)

    def _make_range(
        self, between: tuple[str, Any, Any] | None, gte: tuple[str, Any] | None, lte: tuple[str, Any] | None
    ) -> KeyRange | None:
        """The range that one of these options gives; None without any."""
        if between is not None:
            name, least, greatest = between
            gte, lte = (name, least), (name, greatest)
        given = {end: pair for end, pair in (("least", gte), ("greatest", lte)) if pair is not None}
        if not given:
            return None
        ((name, _), *_) = given.values()
        values = {end: self._reader.raw_attributes({name: value}, (name,))[name] for end, (_, value) in given.items()}
        return KeyRange(name, **values)

    def edges_of(self, node: Mapping[str, Any], *, backward: bool = False) -> Listing:
        """Return the edges of one node, also if its set was left out.

        Raises:
            UserError: if no Query lists the edges.
        """
        if self._rule.find is None:
            raise UserError("no Query lists the edges of a node by the table's key: call `edges` with an index")
        key = self._reader.key_of(self._rule.target.table, node)
        find = self._rule.find
        return Listing(self._reader, self._rule.source.table, self._rule.conditions(key), find.index, backward)

    # ------------------------------------------------------------ step 2: nodes
    def nodes(self, keys: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the items of these keys, in the order of the keys; None for a missing item.
        A key may come twice, and may be a whole item: only its key attributes are used.

        Raises:
            UnprocessedKeysError: if DynamoDB leaves keys unprocessed after all retries.
        """
        table = self._rule.target.table
        return self._reader.outputs(self._reader.get(table, [self._reader.key_of(table, key) for key in keys]))

    # ------------------------------------------------------------ step 3: neighbours
    def neighbours(self, items: Iterable[Mapping[str, Any] | None]) -> list[Neighbours | None]:
        """Return the neighbours of each of these nodes, from the nodes' edge sets; None for None. A node without the
        attribute has no edges.

        Raises:
            UserError: if the graph was made without `neighbour`, or the attribute is not a set.
            UnprocessedKeysError: if DynamoDB leaves keys unprocessed after all retries.
        """
        names = (self._rule.into, *(attribute.name for attribute in self._rule.target.table.key))
        return self.around([None if item is None else self._reader.raw_attributes(item, names) for item in items])

    def around(self, nodes: Sequence[Item | None]) -> list[Neighbours | None]:
        """Return the neighbours of each of these raw nodes, as `neighbours` does."""
        return self._require_neighbour_reader().of(nodes)

    def _require_neighbour_reader(self) -> NeighbourReader:
        if self._neighbours is None:
            raise UserError("no `neighbour` was named: give the entity at an edge's other end")
        return self._neighbours

    # ------------------------------------------------------------ all three
    def three_steps(self, edges: Listing, *, limit: int | None = None, cursor: str | None = None) -> ThreeSteps:
        """Read edges, their nodes, and the nodes' neighbours: a Query and two BatchGetItems, each repeated as its quota
        requires. Without `limit` it reads all edges; with `limit`, that number after `cursor`.

        Raises:
            UserError, UnprocessedKeysError: like the steps.
        """
        around = self._require_neighbour_reader().of  # an error in it is raised before two steps are paid for
        nodes = NodeRead(self._rule.target.table, self._rule.pointer, self._reader.output)
        return read_steps(edges, nodes, around, limit, cursor)


@dataclass(frozen=True)
class NodeRead:
    """How to read nodes: their table, the key that an edge names, the form of a node, and the paths to read (None for
    all).
    """

    table: Table
    pointer: Callable[[Item], ItemKey | None]
    view: Callable[[Item], dict[str, Any]]
    projects: tuple[Path, ...] | None = None


def read_steps(
    edges: Listing,
    nodes: NodeRead,
    around: Callable[[Sequence[Item | None]], Sequence[Neighbours | None]],
    limit: int | None,
    cursor: str | None,
) -> ThreeSteps:
    """Read edges, their nodes, and with `around` the nodes' neighbours. Without a limit, read all edges."""
    reader = edges.reader
    rows, after = edges.part(limit, cursor)
    found = reader.get(nodes.table, [nodes.pointer(row) for row in rows], projects=nodes.projects)
    return ThreeSteps(
        [reader.output(row) for row in rows],
        [None if node is None else nodes.view(node) for node in found],
        [*around(found)],
        after,
    )


def _require_apart(entities: Sequence[Entity], link: Mapping[str, str]) -> None:
    """Require that the values which `link` gives to keys tell mixed neighbours apart."""
    for one, other in combinations(entities, 2):
        keys = [(a.name, b.name) for a in one.table.key for b in other.table.key if {a.name, b.name} <= link.keys()]
        if all(link[a] != link[b] or may_overlap(one.templates[a], other.templates[b]) for a, b in keys):
            raise UserError(
                f"an edge does not say if its neighbour is of {one.name!r} or of {other.name!r}: give in `link` the "
                "field that holds a key of theirs, such as {PK: target}"
            )
