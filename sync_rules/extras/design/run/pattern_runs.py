"""Runs declared patterns on tables, and measures them: rows, requests, units, milliseconds. `prove` compares their
answers with those of tables with right copies only.

Invariant: it only reads. A difference names pattern, rule, attribute and key, and no value beside the key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any, Literal

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.design.patterns.answers import PatternAnswer
from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, SearchPattern, TreePattern
from sync_rules.extras.design.patterns.keepers import list_keepers
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.design.run.arguments import Readable
from sync_rules.extras.design.run.get_plan import GetPlan
from sync_rules.extras.design.run.graph_plan import GraphPlan
from sync_rules.extras.design.run.memory_reader import MemoryReader
from sync_rules.extras.design.run.pattern_reader import Patterns, Plan
from sync_rules.extras.design.run.sample_calls import Arguments, calls
from sync_rules.extras.design.run.tree_plan import TreePlan
from sync_rules.model.items import ItemKey
from sync_rules.model.values import AttributeValue, Item, same
from sync_rules.read.reader import Reader
from sync_rules.rules.ruleset import Rules

Wrong = Literal["missing", "extra", "wrong"]


class Metered:
    """A client that asks for the units of each request, and counts requests and units."""

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


@dataclass(frozen=True)
class AnswerDifference:
    """One difference between an answer and the right one: an item, or an attribute of it, and the rules that keep it;
    none where the application, or an index that lags, is the cause.
    """

    wrong: Wrong
    key: ItemKey
    attribute: str
    rules: tuple[str, ...]


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
    proved: bool = False
    mismatches: list[AnswerDifference] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.rows)

    @property
    def mean_units(self) -> float | None:
        """The read units of one call; None where the service does not say them."""
        told = [units for units in self.units if units is not None]
        return mean(told) if told and len(told) == len(self.units) else None

    @property
    def p50(self) -> float | None:
        """The milliseconds of the middle call."""
        return median(self.milliseconds) if self.milliseconds else None


@dataclass(frozen=True)
class PatternTrial:
    """Patterns on one client. `items` gives the items of a table, by its name, from which arguments are taken."""

    rules: Rules
    client: Any
    items: Callable[[str], Iterable[Item]]
    given: Mapping[str, str]
    most: int
    clock: Callable[[], float] = time.perf_counter

    def run(self, names: Iterable[str], right: MemoryStore | None = None) -> Iterator[PatternRun]:
        """Call each pattern; with `right`, compare what it returns with these tables."""
        answers = prove(self.rules).answers
        client = Metered(self.client)
        patterns = Patterns(self.rules, Reader(client, raw=True))
        wanted = None if right is None else Patterns(self.rules, MemoryReader(right))
        for name in names:
            measured = PatternRun(name, answers[name])
            pattern = measured.answer.pattern
            if not isinstance(pattern, GetPattern | GraphPattern | TreePattern):
                measured.left = "a search" if isinstance(pattern, SearchPattern) else "a write"
            elif not measured.answer.is_served:
                measured.left = "not served"
            else:
                self._try(measured, pattern, client, patterns, wanted)
            yield measured

    def _try(
        self, measured: PatternRun, pattern: Readable, client: Metered, patterns: Patterns, wanted: Patterns | None
    ) -> None:
        name = measured.name
        plan = patterns.plan(name)
        entity = pattern.start if isinstance(pattern, GraphPattern) else " and ".join(pattern.entities)
        found = calls(self.rules, plan, self.items, self.given, self.most)
        for arguments in found:
            self._measure(measured, plan, patterns, client, arguments)
            if wanted is not None:
                measured.proved = True
                given = patterns.parse_values(plan, arguments)
                right = read_answer(wanted.plan(name), given)
                measured.mismatches += mismatches(self.rules, measured.answer, read_answer(plan, given), right)
        if not found:
            measured.left = f"no item of {entity} that was read gives its keys: name them with --key"

    def _measure(
        self, measured: PatternRun, plan: Plan, patterns: Patterns, client: Metered, arguments: Arguments
    ) -> None:
        given = patterns.parse_values(plan, arguments)
        client.reset()
        began = self.clock()
        rows = _rows(plan, given)
        measured.milliseconds.append((self.clock() - began) * 1000)
        measured.rows.append(rows)
        measured.requests.append(client.requests)
        measured.units.append(client.units)


def _rows(plan: Plan, given: Any) -> int:
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


# ---------------------------------------------------------------- proved
Answered = dict[ItemKey, Item]


def read_answer(plan: Plan, given: Any) -> Answered:
    """Everything that a pattern returns, by the keys of the items that it finds; of a graph by those of its edges."""
    if isinstance(plan, GetPlan) and plan.pattern.keys is not None:
        (item,) = plan.batch([given])
        key = plan.key(given)
        return {} if item is None or key is None else {key: item}
    if not isinstance(plan, GraphPlan):
        return dict(plan.list_keyed_items(given))
    found: Answered = {}
    steps = plan.page(given, None, None)
    for edge, node, around in zip(steps.edges, steps.nodes, steps.neighbours, strict=True):
        key = plan.answer.steps[0].entity.table.key_of(edge)
        assert key is not None, "a row has the key of its table"
        made: dict[str, AttributeValue] = dict(node or {})
        if around is not None:
            made[plan.set_name] = {"L": [*(one.element for one in around.found), *around.strange]}
        found[key] = made
    return found


def mismatches(rules: Rules, answer: PatternAnswer, found: Answered, right: Answered) -> Iterator[AnswerDifference]:
    kept = [one for one in list_keepers(rules, answer) if one.rule is not None]
    several = bool(answer.steps[0].beside)
    for key in dict.fromkeys((*right, *found)):
        if key not in found or key not in right:
            made = [one.rule for one in kept if one.rule and one.role in ("item", "key", "tested", "path")]
            if several:
                made = [rule for rule in made if rule.target is rules.entity_of(key)]
            makers = tuple(dict.fromkeys(rule.title for rule in made))
            yield AnswerDifference("missing" if key not in found else "extra", key, "", makers)
            continue
        for name in dict.fromkeys((*right[key], *found[key])):
            value, wanted = found[key].get(name), right[key].get(name)
            if not same(value, wanted):
                titles = (
                    one.rule.title
                    for one in kept
                    if one.rule and name in (one.name, one.place.rpartition(".")[2], one.name.partition(".")[0])
                )
                wrong: Wrong = "missing" if value is None else "extra" if wanted is None else "wrong"
                yield AnswerDifference(wrong, key, name, tuple(dict.fromkeys(titles)))


def load_items(rules: Rules, items: Callable[[str], Iterable[Item]]) -> MemoryStore:
    """All items of the tables, in memory. Raises StoreError for one that DynamoDB cannot have."""
    store = MemoryStore(rules.tables)
    for name in rules.tables:
        for item in items(name):
            store.put(name, item)
    return store
