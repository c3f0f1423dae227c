"""The pipeline in memory, one request at a time. A person makes things go wrong, and switches invariants off.

Invariant: the code of production does the work. The stage only decides what is delivered, answered, delayed or lost. An
invariant that is off is taken out at the edge of the pipeline, so no ring knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.kept_calls import CallsInMemory
from sync_rules.adapters.memory import MemoryStore, Values
from sync_rules.audit.compare import Difference, Drift, can_be_late
from sync_rules.lab.delivery import Arrival
from sync_rules.lab.faults import THROTTLED
from sync_rules.lab.recompute import Discrepancy, Ending, list_differences, list_discrepancies
from sync_rules.lab.rehearsal import CountedCalls, write
from sync_rules.lab.scenario import Action, Expire
from sync_rules.lab.trial import TOLERATED
from sync_rules.model.entities import Index
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Call, Change, Failure, ItemKey
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.values import Item
from sync_rules.model.writes import Condition, Increment, Result, Status, Test, Transaction, Write
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.breaker import DeduplicatedFailures
from sync_rules.pipeline.consumer import process_message
from sync_rules.pipeline.messages import Message, PartMessage, PullMessage, PushMessage
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Apply, Later, Request, Work, World, run_work
from sync_rules.pipeline.tasks import make_tasks
from sync_rules.pipeline.work import do_tasks
from sync_rules.rules.ruleset import Rules

GUARD, SECOND_LOOK, RE_CHECK = "guard", "second-look", "re-check"  # the invariants that can be off
ALWAYS: Final = (Condition(Test.ABSENT, ("never there",)),)  # a guard that always holds
STEP_BY_STEP: Final = Bounds(Limits(side_by_side_max_lists=1))  # one request after the other
STEPS_MAX: Final = 5_000  # rules that need more never end


class LaggingStore(MemoryStore):
    """A store whose indexes lag on demand: while `lags`, writes reach no index."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules.tables)
        self.lags = False
        self._rows: list[tuple[str, Index, Values, Item | None]] = []

    def propagate(self, table: str, index: Index, key: Values, item: Item | None) -> None:
        if self.lags:
            self._rows.append((table, index, key, item))
        else:
            super().propagate(table, index, key, item)

    def catch_up(self) -> bool:
        """Bring all indexes up to date. False if none lagged."""
        lagged, self.lags = self.lags, False
        while self._rows:
            super().propagate(*self._rows.pop(0))
        return lagged


@dataclass
class Worker:
    """An invocation in progress. It waits for the answer to `request`."""

    arrival: Arrival
    work: Work[Report]
    request: Request | None = None


class Stage:
    """Tables, streams, a queue and one worker. `events` says what happened, each as a kind with values. `off` names
    the invariants that are off.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.off: frozenset[str] = frozenset()
        self.store, self._applied = LaggingStore(rules), MemoryStore(rules.tables)
        self.events: list[tuple[Any, ...]] = []
        self.waiting: list[Arrival] = []
        self.delayed: list[Arrival] = []
        self.finished: list[Arrival] = []
        self.flying: list[Write] = []  # of workers that died: they may still happen
        self.worker: Worker | None = None
        self.throttles = False
        self._changes: list[Change] = []
        self._failures: list[Failure] = []
        self._erased: set[ItemKey] = set()
        failures = DeduplicatedFailures(self, Limits(), THIS_PROCESS)
        self._world = World(self.store, self, failures, CountedCalls(), CallsInMemory())
        run_work(finish_empty(rules), self._world)
        self.store.on_change = self._note

    # ------------------------------------------------------------ the application
    def do(self, action: Action, say: str) -> None:
        """Make a write of the application. Raises StoreError for a write that DynamoDB would reject."""
        write(self.store, action)
        item = self.store.item(action.key)
        if item is None:
            self._applied.delete(action.key)
            self._erased.add(action.key)
        else:
            self._applied.put(action.key.table, item)
        if isinstance(action, Expire) and self.waiting:
            self.waiting[-1] = Arrival((replace(self.waiting[-1].changes[0], expired=True),))
        self.events.append(("application", say, action.key, item))

    # ------------------------------------------------------------ the world: Queue, Failures, stream
    def send(self, message: Message, delay_seconds: int) -> None:
        """Queue a message. A delayed one comes after all other work."""
        (self.delayed if delay_seconds else self.waiting).append(Arrival(message=message, position=len(self._changes)))

    def park(self, failure: Failure) -> None:
        """Keep a failure record."""
        self._failures.append(failure)

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        self._changes.append(Change(key, old, new, str(len(self._changes) + 1)))
        self.waiting.append(Arrival((self._changes[-1],)))

    # ------------------------------------------------------------ what goes wrong
    def repeat(self) -> None:
        """Deliver the newest finished arrival again."""
        self._deliver_again(self.finished[-1], "twice")

    def delay(self) -> None:
        """Let others overtake the first waiting arrival; records of one item stay in order. If there are no others,
        deliver the oldest finished arrival again.
        """
        late = [one for one in self.waiting if _order_of(one) == _order_of(self.waiting[0])]
        if len(late) == len(self.waiting):
            self._deliver_again(self.finished[0], "late")
        else:
            self.waiting = [one for one in self.waiting if one not in late] + late
            self.events.append(("fault", "overtaken", late[0]))

    def die(self) -> None:
        """Kill the worker, or the next worker before its first write. Its input comes back; its write may land late."""
        while self.worker is None or not isinstance(self.worker.request, Apply):
            if not self.step():
                return
        self.flying += self.worker.request.writes
        self.events.append(("death", self.worker.request))
        self._retry(self.worker)

    def throttle(self) -> None:
        """Throttle the next request."""
        self.throttles = True

    def lag(self) -> None:
        """Let the indexes lag until all other work is done."""
        self.store.lags = True

    def _deliver_again(self, arrival: Arrival, when: str) -> None:
        self.events.append(("fault", when, arrival))
        self.waiting.insert(0, replace(arrival, again=True, tries=0))

    def _retry(self, worker: Worker) -> None:
        self.waiting.insert(0, replace(worker.arrival, tries=worker.arrival.tries + 1))
        self.worker = None

    # ------------------------------------------------------------ the work
    def run(self) -> bool:
        """Take steps until no work is left. False if that takes too long."""
        return any(not self.step() for _ in range(STEPS_MAX))

    def step(self) -> bool:
        """Answer the request of the worker, or begin the next piece of work. False when nothing is left."""
        if self.worker is not None:
            self._answer(self.worker)
        elif self.waiting:
            self._begin(self.waiting.pop(0))
        elif self.flying:
            request = Apply((self.flying.pop(0),))
            self.events.append(("late", request, self._find_answer(request)))
        elif self.store.catch_up():
            self.events.append(("index",))
        elif due := next(filter(self._is_due, self.delayed), None):
            self.delayed.remove(due)
            self._begin(due)
        else:
            return False
        return True

    def is_idle(self) -> bool:
        """True if no work is left."""
        pending = self.worker or self.waiting or self.flying or self.store.lags
        return not (pending or any(map(self._is_due, self.delayed)))

    def _is_due(self, arrival: Arrival) -> bool:
        """Parked work is tried again only after a change."""
        parked = isinstance(arrival.message, PullMessage | PartMessage) and arrival.message.attempt > 1
        return not parked or arrival.position < len(self._changes)

    def _begin(self, arrival: Arrival) -> None:
        if arrival.message is not None:
            work = process_message(arrival.message, self.rules, STEP_BY_STEP, again=arrival.tries > 0)
            self.events.append(("message", arrival))
        else:
            tasks = make_tasks(arrival.changes, self.rules)
            if RE_CHECK in self.off:
                own = arrival.changes[0].key
                tasks = replace(tasks, pulls=tuple(one for one in tasks.pulls if one.key != own or one.members))
            work = do_tasks(tasks, self.rules, STEP_BY_STEP)
            self.events += [("record", arrival), ("tasks", tasks.pulls, tasks.pushes, tasks.parts, tasks.effects)]
        self.worker = Worker(arrival, work)
        self._go_on(self.worker, partial(next, work))

    def _answer(self, worker: Worker) -> None:
        request = worker.request
        assert request is not None, "a worker waits for an answer"
        throttled, self.throttles = self.throttles and not isinstance(request, Call), False
        try:
            answer = _throttle(request) if throttled else self._find_answer(request)
        except StoreError as error:
            self.events.append(("request", request, error.reason))
            self._go_on(worker, partial(worker.work.throw, error))
        else:
            self.events.append(("request", request, answer))
            self._go_on(worker, partial(worker.work.send, answer))

    def _find_answer(self, request: Request) -> Any:
        match request:
            case Apply() if GUARD in self.off:
                request = Apply(tuple(map(_without_guard, request.writes)))
            case Later(PushMessage() | PullMessage() as message) if message.delay_seconds and SECOND_LOOK in self.off:
                return "dropped"
        return self._world.answer(request)

    def _go_on(self, worker: Worker, resume: Callable[[], Request]) -> None:
        try:
            worker.request = resume()
        except StopIteration as stop:
            self.events.append(("end", not stop.value.failed))
            if stop.value.failed:
                self._retry(worker)
            else:
                self.finished.append(worker.arrival)
                self.worker = None

    # ------------------------------------------------------------ the verdict
    def list_wrong(self) -> Iterator[Discrepancy]:
        """The copies that are not right, by verify. At rest all checks of a replay decide, and see lost items too."""
        if self.is_idle():
            parked, erased = self._failures, frozenset(self._erased)
            yield from list_discrepancies(Ending(self.rules, self.store, self._applied, self._changes, parked, erased))
            return
        for one in list_differences(self.rules, self.store):
            if one.drift not in TOLERATED and not can_be_late(one, self.rules):
                yield from (Discrepancy(one.rule, one.drift, one.target, path) for path in one.paths or ((),))

    def list_stuck(self) -> Iterator[Difference]:
        """List what verify calls stuck: no write of a rule can make it right."""
        return (one for one in list_differences(self.rules, self.store) if one.drift is Drift.STUCK)


def _order_of(arrival: Arrival) -> object:
    """The item whose records must stay in order. A message has an order of its own."""
    return arrival.changes[0].key if arrival.changes else id(arrival)


def _throttle(request: Request) -> tuple[Result, ...]:
    if isinstance(request, Apply):
        return (Result(Status.FAILED, reason=THROTTLED),) * len(request.writes)
    raise StoreError(THROTTLED)


def _without_guard(one: Write) -> Write:
    if isinstance(one, Transaction):
        bare = (act if isinstance(act, Increment) else replace(act, guard=ALWAYS) for act in one.actions)
        return Transaction(tuple(bare))
    return replace(one, guard=ALWAYS)
