"""Plays one scenario under one schedule of delivery, and checks its expectations each time the pipeline has settled.

Invariant: the pipeline is the real one, from the Lambda event to the guarded write; only the world around it is ours.
There is a stop after every step unless the schedule lags. Checked at each stop are:

- the expectations of the step. If several steps lie between two stops (a lagging schedule), the last expectation of an
  attribute counts, and only if the reference (variant 1, checked step by step) still shows it at this stop: a later
  step may have changed attributes that it does not mention;
- the whole state, which is the reference's at the same step. Maps left empty around a deleted copy, and ledger totals
  of zero, do not count: whether they were ever made depends on when the pipeline looked;
- `max_target_writes`, counting all writes that this step caused, duplicates, retries and second looks included, but not
  writes of helpers alone. Lagging schedules are left out, because there no write belongs to one step;
- `expect_fixed` and `expect_fixed_count` of a repair;
- that no failure was reported or parked, and, at the end, that a repair finds nothing to fix.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.model.values import AttributeValue, Item, Path, is_same_value
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import NULL_PORTS, Read, World, run_work
from sync_rules.rules.rule import Rule
from tests.peers.bench import (
    Bench,
    DiedError,
    DryMeter,
    Failures,
    Meter,
    Queue,
    Record,
    State,
)
from tests.peers.builder import helps
from tests.peers.repair import Fixed, repair
from tests.peers.scenarios import (
    ABSENT,
    Expectation,
    Scenario,
    Step,
    item_of,
    key_of,
    key_text,
)
from tests.peers.states import MismatchError, changed_item, show, something, state_of, unmet, without_empty_maps
from tests.peers.translate import Translation
from tests.peers.variants import REFERENCE, Schedule
from tests.support.builders import attribute_value

SETTLE_MAX_DELIVERIES: Final = 5_000
LAG_MAX_DELIVERIES: Final = 4  # between two writes of an application, drawn


@dataclass(frozen=True)
class Case:
    """A scenario with its translation: what can be run."""

    scenario: Scenario
    translation: Translation

    @property
    def id(self) -> str:
        return self.scenario.id

    @cached_property
    def reference(self) -> Mapping[int, State]:
        """The states that every schedule must reach: those of variant 1, in memory."""
        return run(self, REFERENCE, None)


def run(case: Case, schedule: Schedule, reference: Mapping[int, State] | None) -> dict[int, State]:
    """Play a case; gives the state after each step at which it stopped, 0 being the start.

    Raises:
        MismatchError: with the first difference.
    """
    return Run(case, schedule, Bench(case.translation.text), reference).play()


class Run:
    """One scenario being played."""

    def __init__(
        self, case: Case, schedule: Schedule, bench: Bench, reference: Mapping[int, State] | None = None
    ) -> None:
        self.case, self.schedule, self.bench, self.reference = case, schedule, bench, reference
        self.rules = bench.rules
        self.meter = Meter(bench.store, case.translation.helpers)
        self.queue, self.failures = Queue(), Failures()
        self.consumer = Consumer(self.rules, World(self.meter, self.queue, self.failures), THIS_PROCESS)
        run_work(finish_empty(self.rules), World(bench.store, self.queue, self.failures))
        self.random = None if schedule.seed is None else random.Random(schedule.seed)
        self.waiting: deque[tuple[str, Record]] = deque()  # in order of arrival, of all tables
        self.seen: list[tuple[str, Record]] = []  # since the last step began
        self.states: dict[int, State] = {}

    def play(self) -> dict[int, State]:
        scenario = self.case.scenario
        self._start()
        self._check_stop(0, scenario.expect_initial, filtered=False)
        stale, drifted = self.seen, scenario.initial_is_drifted
        for stretch in stretches(scenario.steps, lagging=self.schedule.lagging):
            self.seen = []
            writes_before = self.meter.writes
            fixed = [fixed for step in stretch for fixed in self._take(step)]
            self._settle()
            last = stretch[-1]
            drifted = last.leaves_drift if last.alone else drifted
            if self.schedule.stale and not drifted:  # a duplicate would heal what the scenario wants to stay wrong
                again, stale = stale, list(self.seen)
                self.waiting.extend(again)
                self._settle()
            self._check_fixed(last, fixed)
            expected = [expectation for step in stretch for expectation in step.expect]
            self._check_stop(last.number, expected, filtered=len(stretch) > 1)
            allowed, made = last.max_target_writes, self.meter.writes - writes_before
            if not self.schedule.lagging and allowed is not None and made > allowed:
                raise MismatchError(f"step {last.number}: expected at most {allowed} target writes, found {made}")
        if not scenario.steps or not scenario.steps[-1].unseen:
            self._check_nothing_left()
        return self.states

    # ------------------------------------------------------------ steps
    def _start(self) -> None:
        """Load the initial items, and let the pipeline bring their copies right; drifted ones get helpers only."""
        for table, items in self.case.scenario.initial.items():
            for item in items:
                self.bench.put(self.rules.tables[table], self._item(table, item_of(item)))
        if self.case.scenario.initial_is_drifted:
            helping = [rule for rule in self.rules.rules.values() if self._helps(rule)]
            repair(self.bench, self.meter, helping)
            self.bench.records()
        else:
            self._settle()

    def _take(self, step: Step) -> list[Fixed]:
        """The step's own writes, and some of what they cause when the pipeline lags behind."""
        for verb, write in step.writes:
            self._write(verb, write)
        if step.unseen:
            self.bench.records()  # nobody reads them
        elif self.schedule.lagging and self.random is not None:
            self._deliver_some(self.random.randrange(LAG_MAX_DELIVERIES))
        return [] if step.repair is None else self._repair(step.repair)

    def _write(self, verb: str, write: Mapping[str, Any]) -> None:
        table = self.rules.tables[write["table"]]
        if "item" in write:
            self.bench.put(table, self._item(table.name, item_of(write["item"])))
            return
        key = key_of(table, write["key"])
        if verb == "delete" or write.get("delete"):
            self.bench.delete(key)
            return
        (old,) = self.bench.store.read(Read((key,)))
        sets = {tuple(str(name).split(".")): attribute_value(value) for name, value in write.get("set", {}).items()}
        removes = [tuple(str(name).split(".")) for name in write.get("remove", ())]
        changed = changed_item(old or key.attributes(), {**sets, **dict.fromkeys(removes)})
        self.bench.put(table, self._item(table.name, changed))

    def _item(self, table: str, item: Item) -> Item:
        """The item as its table takes it: numbers are text in a key of text."""
        keys = self.rules.tables[table].key_attributes
        texts = {one.name: item[one.name]["N"] for one in keys if one.type == "S" and "N" in item.get(one.name, {})}
        return {**item, **{name: {"S": text} for name, text in texts.items()}}

    def _repair(self, limits: Mapping[str, Any]) -> list[Fixed]:
        attributes, keys = limits.get("attrs"), limits.get("keys")
        rules = [
            rule
            for rule in self.rules.rules.values()
            if attributes is None or self._helps(rule) or _named(rule, attributes)
        ]
        if keys is not None:  # what only the translation needs is not of the items that are meant
            repair(self.bench, self.meter, [rule for rule in rules if self._helps(rule)])
        return repair(self.bench, self.meter, rules, None if keys is None else {str(key) for key in keys})

    def _helps(self, rule: Rule) -> bool:
        """True if everything that a rule writes exists for the translation alone."""
        table, helpers = rule.target.table.name, self.case.translation.helpers
        return helps(helpers, table, ()) or all(helps(helpers, table, copy) for copy in rule.copies)

    # ------------------------------------------------------------ delivery
    def _collect(self) -> None:
        records = self.bench.records()
        self.waiting.extend(records)
        self.seen.extend(records)

    def _settle(self) -> None:
        """Deliver until nothing waits: records first, then messages."""
        for _ in range(SETTLE_MAX_DELIVERIES):
            self._collect()
            if self.waiting:
                self._deliver_next()
                continue
            message = self.queue.next()
            if message is None:
                return
            self.consumer.handle_message(message)
            self._check_failures("a message")
        raise MismatchError(f"the pipeline has not settled after {SETTLE_MAX_DELIVERIES} deliveries")

    def _deliver_some(self, deliveries: int) -> None:
        for _ in range(deliveries):
            self._collect()
            if self.waiting:
                self._deliver_next()

    def _deliver_next(self) -> None:
        """One event of the table whose turn it is: all that waits there, or its oldest record."""
        tables = list(dict.fromkeys(table for table, _ in self.waiting))
        turn = tables[0] if self.random is None else self.random.choice(sorted(tables))
        mine = [entry for entry in self.waiting if entry[0] == turn]
        now = mine if self.schedule.batched else mine[:1]
        for entry in now:
            self.waiting.remove(entry)
        event = json.loads(json.dumps({"Records": [record for _, record in now]}))
        if self.schedule.dies:
            self._die_over(event)
        for _ in range(self.schedule.times):
            answer = self.consumer.handle_event(event, lambda: 900_000)
            if answer["batchItemFailures"]:
                raise MismatchError(f"records of {turn} were reported as failed: {self.consumer.telemetry.failed}")
            self._check_failures(f"records of {turn}")

    def _die_over(self, event: Mapping[str, Any]) -> None:
        """A first attempt that dies once half of its target writes, rounded up, are made."""
        dry = DryMeter(self.bench.store, frozenset())
        Consumer(self.rules, World(dry, NULL_PORTS, NULL_PORTS), THIS_PROCESS).handle_event(event, lambda: 900_000)
        self.meter.dies_after = (dry.writes + 1) // 2 if dry.writes else None
        try:
            self.consumer.handle_event(event, lambda: 900_000)
        except DiedError:
            pass
        finally:
            self.meter.dies_after = None

    # ------------------------------------------------------------ checks
    def _check_failures(self, what: str) -> None:
        if self.failures:
            found = ", ".join(f"{one.rule} on {one.key}: {one.reason}" for one in self.failures)
            raise MismatchError(f"{what} left failure records: {found}")

    def _check_stop(self, number: int, expected: Sequence[Expectation], *, filtered: bool) -> None:
        state = self.states[number] = state_of(self.bench)
        reference = None if self.reference is None else self.reference[number]
        last = {(one.table, one.key, one.path): one for one in expected}
        for expectation in last.values():
            if filtered and reference is not None and unmet(expectation, reference, self.rules.tables):
                continue
            difference = unmet(expectation, state, self.rules.tables)
            if difference:
                raise MismatchError(f"step {number}: {expectation}: {difference}")
        if reference is not None:
            difference = next(self._differences(state, reference), None)
            if difference:
                raise MismatchError(f"step {number}: not as under variant 1: {difference}")

    def _differences(self, state: State, reference: State) -> Iterator[str]:
        copies: dict[str, set[Path]] = {}
        for rule in self.rules.rules.values():
            copies.setdefault(rule.target.table.name, set()).update(rule.copies)
        helpers = self.case.translation.helpers
        for key in {**reference, **state}:
            found, expected = state.get(key), reference.get(key)
            if helps(helpers, key.table, ()):
                found, expected = something(found, key), something(expected, key)
                if found is None and expected is None:
                    continue
            where = f"{key.table} {key_text(key)}"
            if found is None or expected is None:
                yield f"{where}: expected {'no item' if expected is None else 'an item'}"
                continue
            paths = copies.get(key.table, set())
            found, expected = without_empty_maps(found, paths), without_empty_maps(expected, paths)
            for name in {**expected, **found}:
                if not is_same_value(found.get(name), expected.get(name)):
                    yield f"{where} {name}: expected {show(expected.get(name))}, found {show(found.get(name))}"

    def _check_fixed(self, step: Step, fixed: Sequence[Fixed]) -> None:
        found = "; ".join(map(str, fixed)) or "nothing"
        if step.fixed_count is not None and len(fixed) != step.fixed_count:
            raise MismatchError(f"step {step.number}: expected {step.fixed_count} discrepancies, found {found}")
        if step.fixed is None:
            return
        tables = self.rules.tables
        expected = []
        for one in step.fixed:
            key, path = key_of(tables[one["table"]], one["key"]), tuple(one["attr"].split("."))
            expected.append(Fixed(key, path, _side(one["wrong"]), _side(one["right"])))
        if sorted(map(str, expected)) != sorted(map(str, fixed)):
            raise MismatchError(f"step {step.number}: expected {'; '.join(map(str, expected))}, found {found}")

    def _check_nothing_left(self) -> None:
        before = self.meter.writes + self.meter.bookkeeping
        fixed = repair(self.bench, self.meter, list(self.rules.rules.values()))
        if fixed or self.meter.writes + self.meter.bookkeeping != before:
            raise MismatchError(f"at the end a repair still finds {'; '.join(map(str, fixed)) or 'something'}")


def _named(rule: Rule, attributes: Collection[str]) -> bool:
    """True if a rule writes one of the attributes, which may be given with their table."""
    names = {".".join(copy) for copy in rule.copies}
    return bool(names & set(attributes) or {f"{rule.target.table.name}.{name}" for name in names} & set(attributes))


def _side(written: Any) -> AttributeValue | None:
    absent = isinstance(written, str) and written == ABSENT
    return None if absent else attribute_value(written)


def stretches(steps: Iterable[Step], *, lagging: bool) -> Iterator[list[Step]]:
    """The steps between two stops: each by itself, or as many as a lagging pipeline may fall behind."""
    for alone, group in groupby(steps, key=lambda step: step.alone or not lagging):
        if alone:
            yield from ([step] for step in group)
        else:
            yield list(group)
