"""Runs declared patterns on tables, and measures them: rows, requests, units, milliseconds.

Invariant: it only reads, and shows no value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

from sync_rules.extras.design.patterns.answers import PatternAnswer
from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, SearchPattern, TreePattern
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.design.run.arguments import Readable
from sync_rules.extras.design.run.get_plan import GetPlan
from sync_rules.extras.design.run.graph_plan import GraphPlan
from sync_rules.extras.design.run.pattern_reader import Patterns, Plan
from sync_rules.extras.design.run.sample_calls import Arguments, list_calls
from sync_rules.extras.design.run.tree_plan import TreePlan
from sync_rules.model.values import Item
from sync_rules.read.reader import Reader
from sync_rules.rules.ruleset import Rules


class Metered:
    """A client that requests the units of each request, and counts requests and units."""

    def __init__(self, client: Any) -> None:
        self.meta = getattr(client, "meta", None)
        self._client = client
        self.reset()

    def reset(self) -> None:
        """Restart both counts. `units` becomes None once an answer does not state its units."""
        self.requests = 0
        self.units: float | None = 0.0

    def query(self, **parameters: Any) -> Any:
        return self._count_call(self._client.query, parameters)

    def get_item(self, **parameters: Any) -> Any:
        return self._count_call(self._client.get_item, parameters)

    def batch_get_item(self, **parameters: Any) -> Any:
        return self._count_call(self._client.batch_get_item, parameters)

    def _count_call(self, call: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
        answer = call(**parameters, ReturnConsumedCapacity="TOTAL")
        self.requests += 1
        consumed = answer.get("ConsumedCapacity")
        each = consumed if isinstance(consumed, list) else [consumed] if consumed else []
        told = [one.get("CapacityUnits") for one in each]
        if self.units is not None:
            self.units = None if not told or None in told else self.units + sum(told)
        return answer


@dataclass
class PatternRun:
    """The calls of one pattern. `left`: the reason why it was not called."""

    name: str
    answer: PatternAnswer
    left: str = ""
    rows: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    units: list[float | None] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.rows)

    @property
    def mean_units(self) -> float | None:
        """The mean read units of one call; None if the service does not return them."""
        told = [units for units in self.units if units is not None]
        return mean(told) if told and len(told) == len(self.units) else None

    @property
    def p50(self) -> float | None:
        """The milliseconds of the middle call."""
        return median(self.milliseconds) if self.milliseconds else None


@dataclass(frozen=True)
class PatternTrial:
    """Patterns on one client. `items` returns the items of a table, by its name, from which arguments are taken."""

    rules: Rules
    client: Any
    items: Callable[[str], Iterable[Item]]
    given: Mapping[str, str]
    most: int
    clock: Callable[[], float] = time.perf_counter

    def run(self, names: Iterable[str]) -> Iterator[PatternRun]:
        """Call the patterns in turn. Yield the rows, requests, read units and milliseconds of each pattern's calls."""
        answers = prove(self.rules).answers
        client = Metered(self.client)
        patterns = Patterns(self.rules, Reader(client, raw=True))
        for name in names:
            measured = PatternRun(name, answers[name])
            pattern = measured.answer.pattern
            if not isinstance(pattern, GetPattern | GraphPattern | TreePattern):
                measured.left = "a search" if isinstance(pattern, SearchPattern) else "a write"
            elif not measured.answer.is_served:
                measured.left = "not served"
            else:
                self._try(measured, pattern, client, patterns)
            yield measured

    def _try(self, measured: PatternRun, pattern: Readable, client: Metered, patterns: Patterns) -> None:
        plan = patterns.plan(measured.name)
        entity = pattern.start if isinstance(pattern, GraphPattern) else " and ".join(pattern.entities)
        found = list_calls(self.rules, plan, self.items, self.given, self.most)
        for arguments in found:
            self._measure(measured, plan, patterns, client, arguments)
        if not found:
            measured.left = f"no item of {entity} that was read gives its keys: name them with --key"

    def _measure(
        self, measured: PatternRun, plan: Plan, patterns: Patterns, client: Metered, arguments: Arguments
    ) -> None:
        given = patterns.parse_values(plan, arguments)
        client.reset()
        began = self.clock()
        rows = _count_rows(plan, given)
        measured.milliseconds.append((self.clock() - began) * 1000)
        measured.rows.append(rows)
        measured.requests.append(client.requests)
        measured.units.append(client.units)


def _count_rows(plan: Plan, given: Any) -> int:
    match plan:
        case GetPlan() if plan.pattern.keys is not None:
            return sum(item is not None for item in plan.batch([given]))
        case GetPlan():
            limit = 1 if plan.pattern.one else plan.pattern.page
            return len(plan.page(given, limit, None)[0])
        case GraphPlan():
            return len(plan.page(given, plan.pattern.page, None).edges)
        case TreePlan():
            return sum(1 for _ in plan.all(given))
