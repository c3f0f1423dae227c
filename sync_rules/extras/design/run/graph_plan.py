"""Run `graph`: a Query of the edges, a BatchGetItem of their nodes, and a BatchGetItem of the neighbours that a set
names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sync_rules.extras.design.patterns.answers import PatternAnswer
from sync_rules.extras.design.patterns.declarations import GraphPattern
from sync_rules.extras.design.patterns.graphs import find_ends, find_set_rule, map_end_names
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.extras.design.run.arguments import CallValues
from sync_rules.extras.design.run.key_conditions import make_check, make_condition
from sync_rules.extras.design.run.projection import Sight
from sync_rules.model.items import ItemKey
from sync_rules.model.values import AttributeValue, Item, Path
from sync_rules.read.graph import Graph, NodeRead, ThreeSteps, read_steps
from sync_rules.read.listing import Listing
from sync_rules.read.neighbours import Neighbours
from sync_rules.read.reader import Reader
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class GraphPlan:
    """A proved `graph` pattern, ready to run."""

    rules: Rules
    answer: PatternAnswer
    pattern: GraphPattern
    reader: Reader

    @cached_property
    def _rule(self) -> CollectRule | None:
        model = ProofInput.of(self.rules)
        return find_set_rule(model, find_ends(model, self.pattern))

    @cached_property
    def around(self) -> Callable[[Sequence[Item | None]], Sequence[Neighbours | None]]:
        """Reads the neighbours of raw nodes; none where the pattern names none.

        Raises:
            UserError: when an edge does not name its neighbour, or not which of several entities it is of.
        """
        if self._rule is None or not self.pattern.neighbours:
            return lambda nodes: [None] * len(nodes)
        link = dict(self.pattern.link)
        return Graph.of(self.rules, self._rule.name, self.reader, neighbour=self.pattern.neighbours, link=link).around

    @cached_property
    def _sight(self) -> Sight:
        return Sight(self.rules, self.rules.entities[self.pattern.node])

    @cached_property
    def _projects(self) -> tuple[Path, ...] | None:
        """The paths of nodes that are read; None for all."""
        paths = self._sight.paths(self.pattern.returns)
        sets = [(self._rule.into,)] if self._rule is not None and self.pattern.neighbours else []
        return None if paths is None else tuple(dict.fromkeys((*paths, *sets)))

    def _find_node_key(self, edge: Item) -> ItemKey | None:
        if self._rule is not None:
            return self._rule.pointer(edge)
        edges, node = Sight(self.rules, self.rules.entities[self.pattern.edge]), self._sight.entity
        read = {own: edges.read(edge, field) for field, own in map_end_names(node, self.pattern).items()}
        fields = {name: value for name, value in read.items() if value is not None}
        for attribute in node.table.key:  # a field of the edge may hold a whole key attribute
            if attribute.name in fields and attribute.name not in node.identity:
                fields |= node.templates[attribute.name].parse(fields[attribute.name]) or {}
        return node.key_of(fields)

    def _start(self, given: CallValues) -> CallValues:
        """The values of a call under the names that the edge has for them."""
        start = self.rules.entities[self.pattern.start]
        types = {attribute.name: attribute.type for attribute in start.table.key}
        named: dict[str, AttributeValue] = {}
        for field, own in map_end_names(start, self.pattern).items():
            value = given.fields.get(own)
            if own in types and own not in start.identity:
                value = start.templates[own].build(given.fields, types[own])
            if value is not None:
                named[field] = value
        return CallValues(named)

    def page(self, given: CallValues, limit: int | None, cursor: str | None) -> ThreeSteps:
        """Return edges, their nodes, and the nodes' neighbours. Without a limit, return all."""
        around, first = self.around, self.answer.steps[0]  # an error in them is raised before a request is paid for
        named = self._start(given)
        condition = make_condition(first, named)
        listing = Listing(
            self.reader,
            first.entity.table,
            condition.conditions,
            None if first.index is None else first.index.name,
            first.backward,
            make_check(first, named),
            condition.within,
        )
        nodes = NodeRead(self._sight.entity.table, self._find_node_key, self._view, self._projects)
        return read_steps(listing, nodes, around, limit, cursor)

    def _view(self, node: Item) -> dict[str, Any]:
        return self.reader.output(self._sight.view(node, self.pattern.returns))
