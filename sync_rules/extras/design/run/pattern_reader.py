"""Run the access patterns of a rules file by name, each by the requests of its proof.

Invariant: never a Scan. An unknown or missing argument is an error. A pattern that no request serves is an error, with
its reason and the first cure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from sync_rules.extras.design.patterns.answers import PatternAnswer
from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, Pattern, SearchPattern, TreePattern
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.design.run.arguments import CallValues, parse_call
from sync_rules.extras.design.run.get_plan import GetPlan
from sync_rules.extras.design.run.graph_plan import GraphPlan
from sync_rules.extras.design.run.tree_plan import TreePlan
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Item
from sync_rules.read.graph import ThreeSteps
from sync_rules.read.listing import Page
from sync_rules.read.reader import KeyClient, Reader, make_reader
from sync_rules.rules.ruleset import Rules

Plan = GetPlan | GraphPlan | TreePlan
Types = Mapping[str, Callable[..., Any]]
CALLS: Mapping[type, str] = {GetPlan: "page, all or one", GraphPlan: "graph", TreePlan: "all"}


class Patterns:
    """The read patterns of a rules file on one client. Threads may share it. The arguments of a call are the fields of
    the pattern: those of `by`, and that of its range, `(least, greatest)` for `between`. A field whose name is not a
    Python name goes into the map `given`. Values are plain, or raw with a raw `Reader`. Items are dicts: with
    `attributes` only those attributes, under the pattern's names, such as "user.name"; else whole items as in the
    table. A pattern of several entities returns pairs: the entity's name, and the item. `types` converts the items
    of an entity. A class is called with the attributes by name, any other callable with the item.
    """

    def __init__(self, rules: Rules, client: KeyClient | Reader, types: Types | None = None) -> None:
        """Prove the patterns.

        Raises:
            UserError: when `types` names no entity.
        """
        self._rules = rules
        self._reader = make_reader(client)
        self._types = dict(types or {})
        for name in self._types:
            if name not in rules.entities:
                raise UserError(
                    f"types: {explain_unknown_name('entity', name, [one for one in rules.entities if '.' not in one])}"
                )
        self._answers = prove(rules).answers
        self._plans: dict[str, Plan] = {}

    # ------------------------------------------------------------ calls
    def page(
        self,
        name: str,
        given: Mapping[str, Any] | None = None,
        /,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **fields: Any,
    ) -> Page:
        """Return some items: `limit` items, or the pattern's `page`, or else those of one response of at most 1 MB.

        Raises:
            UserError: if the pattern has no pages, arguments are missing or unknown, or `limit` or `cursor` is wrong.
            StoreError: if a request fails.
        """
        plan = self._find_item_plan(name, "page")
        limit = plan.pattern.page if limit is None else limit
        values = self.parse_values(plan, {**(given or {}), **fields})
        if isinstance(plan, TreePlan):
            if plan.pattern.direction != "children":
                raise UserError(f"pattern {name} has no pages", "use all(...)")
            if limit is None:
                raise UserError(f"pattern {name}: no limit", "give `limit`, or declare `page` in the pattern")
            items, after = plan.page(values, limit, cursor)
        else:
            items, after = plan.page(values, limit, cursor)
        return Page([self._convert_item(plan, item) for item in items], after)

    def all(self, name: str, given: Mapping[str, Any] | None = None, /, **fields: Any) -> Iterator[Any]:
        """Yield every item of the pattern `name`, and request further pages as needed."""
        plan = self._find_item_plan(name, "all")
        values = self.parse_values(plan, {**(given or {}), **fields})
        return (self._convert_item(plan, item) for item in plan.all(values))

    def one(self, name: str, given: Mapping[str, Any] | None = None, /, **fields: Any) -> Any | None:
        """Return the single item of a pattern with `one`, or with the whole key in `by`; None if it does not exist."""
        plan = self._find_get_plan(name, "one")
        if not plan.pattern.one and plan.first.request != "GetItem":
            cure = "" if plan.pattern.beside else ", or declare `one: true`"
            raise UserError(f"pattern {name} may find several items", f"use page(...) or all(...){cure}")
        item = plan.one(self.parse_values(plan, {**(given or {}), **fields}))
        return None if item is None else self._convert_item(plan, item)

    def batch(self, name: str, keys: Sequence[Any]) -> list[Any | None]:
        """Return the items of a pattern with `keys`, in the order of these keys; None for a missing item. Each key is a
        map of the fields in `by`, or the value of its only field.
        """
        plan = self._find_get_plan(name, "batch")
        if plan.pattern.keys is None:
            raise UserError(f"pattern {name} reads one key at a time", "declare `keys`, or use one(...)")
        if isinstance(keys, str | Mapping):
            raise UserError(f"pattern {name}: expected a list of keys, found one")
        by = plan.pattern.by
        maps = [
            {by[0]: key} if len(by) == 1 and not (isinstance(key, Mapping) and by[0] in key) else key for key in keys
        ]
        if not all(isinstance(one, Mapping) for one in maps):
            raise UserError(f"pattern {name}: expected keys that are maps of {' and '.join(by)}")
        found = plan.batch([self.parse_values(plan, one) for one in maps])
        return [None if item is None else self._convert_item(plan, item) for item in found]

    def graph(
        self,
        name: str,
        given: Mapping[str, Any] | None = None,
        /,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **fields: Any,
    ) -> ThreeSteps:
        """Return edges, their nodes, and the nodes' neighbours: `limit` edges, or the pattern's `page`, or else all."""
        plan = self.plan(name)
        if not isinstance(plan, GraphPlan):
            _refuse_call(plan, "graph")
        limit = plan.pattern.page if limit is None else limit
        found = plan.page(self.parse_values(plan, {**(given or {}), **fields}), limit, cursor)
        edges, nodes = plan.pattern.edge, plan.pattern.node
        return replace(
            found,
            edges=[self._construct_item(edges, edge) for edge in found.edges],
            nodes=[None if node is None else self._construct_item(nodes, node) for node in found.nodes],
        )

    # ------------------------------------------------------------ plans
    def plan(self, name: str) -> Plan:
        """Return the plan of a pattern. Raises UserError for an unknown pattern, and for a pattern that no request
        serves.
        """
        if name not in self._plans:
            self._plans[name] = self._make_plan(self._find_answer(name))
        return self._plans[name]

    def _find_item_plan(self, name: str, call: str) -> GetPlan | TreePlan:
        plan = self.plan(name)
        return _refuse_call(plan, call) if isinstance(plan, GraphPlan) else plan

    def _find_get_plan(self, name: str, call: str) -> GetPlan:
        plan = self.plan(name)
        return plan if isinstance(plan, GetPlan) else _refuse_call(plan, call)

    def _find_answer(self, name: str) -> PatternAnswer:
        answer = self._answers.get(name)
        if answer is None:
            raise UserError(explain_unknown_name("pattern", name, [*self._answers]))
        if not answer.is_served:
            raise UserError(f"pattern {name} is not served: {answer.reason}", _format_cure(answer))
        return answer

    def _make_plan(self, answer: PatternAnswer) -> Plan:
        pattern: Pattern = answer.pattern
        match pattern:
            case GetPattern():
                return GetPlan(self._rules, answer, pattern, self._reader)
            case GraphPattern():
                return GraphPlan(self._rules, answer, pattern, self._reader)
            case TreePattern():
                return TreePlan(self._rules, answer, pattern, self._reader)
            case SearchPattern():
                raise UserError(f"pattern {pattern.name} is a search", "call SearchVectors with your client")
        raise UserError(f"pattern {pattern.name} is a write", "write with your client; the rules follow")

    def parse_values(self, plan: Plan, arguments: Mapping[str, Any]) -> CallValues:
        """The values of a call. Raises UserError for missing and unknown arguments."""
        return parse_call(self._rules, self._reader, plan.pattern, arguments)

    # ------------------------------------------------------------ results
    def _convert_item(self, plan: GetPlan | TreePlan, item: Item) -> Any:
        """An item in the application's form; with the name of its entity, where a pattern finds several."""
        if not isinstance(plan, GetPlan) or not plan.pattern.beside:
            return self._construct_item(plan.pattern.entity, self._reader.output(item))
        key = plan.first.entity.table.key_of(item)
        entity = None if key is None else self._rules.entity_of(key)
        name = plan.pattern.entity if entity is None else entity.name
        return name, self._construct_item(name, self._reader.output(item))

    def _construct_item(self, entity: str, item: dict[str, Any]) -> Any:
        kind = self._types.get(entity)
        if kind is None:
            return item
        return kind(**item) if isinstance(kind, type) else kind(item)


def _refuse_call(plan: Plan, call: str) -> NoReturn:
    """Raise UserError: a pattern is called as another kind is."""
    raise UserError(f"pattern {plan.pattern.name} is not called by {call}", f"use {CALLS[type(plan)]}")


def _format_cure(answer: PatternAnswer) -> str:
    """The first cure, as entries of the rules file."""
    if not answer.cures:
        return "see `sync-rules patterns`"
    first = answer.cures[0]
    return f"{first.title}: {json.dumps(first.entries, ensure_ascii=False)}"
