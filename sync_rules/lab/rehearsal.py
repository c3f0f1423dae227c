"""Runs the pipeline in memory, for scenarios and recordings, until no work is left, under any way of delivery.

Invariant: the code of production applies the rules; only the world is small. No index lags here, so a second look comes
as soon as all other work is done. Parked work is retried as long as something changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.kept_calls import CallsInMemory
from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.delivery import Arrival, Arrivals, Delivery
from sync_rules.lab.faults import FAULTY_TRIES_MAX, DiedError, Faults, FaultyWorld
from sync_rules.lab.scenario import Action, Expire, Reported
from sync_rules.model.errors import StoreError
from sync_rules.model.item_change import make_change_id
from sync_rules.model.items import Call, Failure, ItemKey
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.values import Item
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.breaker import DeduplicatedFailures
from sync_rules.pipeline.consumer import process_changes, process_message
from sync_rules.pipeline.messages import Message, PartMessage, PullMessage
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Caller, World, run_work
from sync_rules.rules.ruleset import Rules

ROUNDS_MAX = 1_000  # rules that need more rounds than this, and ROUNDS_PER_CHANGE for each change, never end
ROUNDS_PER_CHANGE: Final = 20


class Rehearsal:
    """A Scene with its own world: queue, failures, and a caller that counts.

    `caller` gets each call once, as the function would; without `caller`, calls are only counted. `start`: another
    rehearsal without pending work. This rehearsal continues from its state, in tables of its own.
    """

    def __init__(
        self,
        rules: Rules,
        caller: Caller | None = None,
        delivery: Delivery | None = None,
        start: Rehearsal | None = None,
    ) -> None:
        self._rules = rules
        self._failures: list[Failure] = []
        self._calls = CountedCalls(caller)
        self._expiring = False
        delivery = delivery or Delivery()
        random = Random(delivery.seed)  # noqa: S311 - reproducible on purpose
        self._arrivals = Arrivals(delivery, random)
        self._faults = Faults(delivery, random)
        self.store: MemoryStore = MemoryStore(rules.tables) if start is None else start.store.copy()
        failures = DeduplicatedFailures(self, Limits(), THIS_PROCESS)
        self.world = World(self.store, self, failures, self._calls, CallsInMemory())
        if start is None:
            run_work(finish_empty(rules), self.world)  # nothing is there yet, so no books lack anything
        else:
            self._take_over(start)
        self.store.on_change = self._note
        self._faulty = FaultyWorld(self.store, self, failures, self._calls, self.world.kept, faults=self._faults)

    def _take_over(self, start: Rehearsal) -> None:
        self._failures += start._failures
        self._calls.known |= start._calls.known
        self._arrivals.position = start._arrivals.position

    # ------------------------------------------------------------ the scene
    def do(self, action: Action) -> None:
        """Write to the store. Raises StoreError for a write that DynamoDB would reject."""
        self._expiring = isinstance(action, Expire)
        write(self.store, action)
        self._expiring = False

    def rest(self) -> bool:
        """Process arrivals until none is left. Return False if the work does not end.

        Raises:
            StoreError: if work fails without a fault.
        """
        self._arrivals.release_late()
        rounds_max = ROUNDS_MAX + ROUNDS_PER_CHANGE * self._arrivals.position
        return any(not self.work() for _ in range(rounds_max))

    def work(self) -> bool:
        """Process the next arrival: records or a message. Return False if nothing is left. Raises like `rest`."""
        self._faulty.land(all_of_them=False)
        arrival = self._arrivals.next()
        if arrival is None:
            return self._faulty.land(all_of_them=True)
        self._take(arrival)
        return True

    def item(self, key: ItemKey) -> Item | None:
        return self.store.item(key)

    def reports(self) -> Sequence[Reported]:
        return [(failure.rule, failure.reason) for failure in self._failures]

    def calls(self, rule: str) -> int:
        return self._calls.times(rule)

    def list_failures(self) -> tuple[Failure, ...]:
        """List the failures, each once."""
        return tuple(dict.fromkeys(self._failures))

    def look_again(self) -> None:
        """Retry parked work: a taken key may be free now, or a missing parent may exist."""
        for failure in self.list_failures():
            if failure.key is not None and failure.element is not None:
                self.send(PartMessage(failure.rule, failure.key, failure.member, failure.element), 0)
            elif failure.key is not None:
                self.send(PullMessage(failure.key), 0)

    # ------------------------------------------------------------ the world: Queue, Failures
    def send(self, message: Message, delay_seconds: int) -> None:
        """Send a message; nothing waits for the delay."""
        self._arrivals.send(message, delay_seconds)

    def park(self, failure: Failure) -> None:
        """Keep a failure record."""
        self._failures.append(failure)

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        self._arrivals.record(key, old, new, expired=self._expiring)

    # ------------------------------------------------------------ the work
    def _take(self, arrival: Arrival) -> None:
        """Run one invocation. If it fails or dies, its input comes again."""
        self._faults.calm, self._faults.met = arrival.tries >= FAULTY_TRIES_MAX, 0
        message = arrival.message
        bounds = Bounds()
        work = (
            process_changes(arrival.changes, self._rules, bounds)
            if message is None
            else process_message(message, self._rules, bounds, again=arrival.tries > 0)
        )
        try:
            report: Report = run_work(work, self._faulty)
        except DiedError:
            self._arrivals.retry(arrival)
            return
        finally:
            self._faults.calm = True
        if not report.failed:
            self._arrivals.finish(arrival)
        elif self._faults.met:
            self._arrivals.retry(arrival, report.failed)
        else:
            reason = next(iter(report.failed.values())).reason
            raise StoreError(reason, "the pipeline failed without an injected fault")


def write(store: MemoryStore, action: Action) -> None:
    """Make a write of the application. Raises StoreError for a write that DynamoDB would reject."""
    match action:
        case Put():
            store.put(action.key.table, action.item)
        case Update():
            store.update(action.key, action.sets, action.removes)
        case Delete() | Expire():
            store.delete(action.key)


class CountedCalls:
    """A Caller that counts calls. It passes each new call on to `caller`, if there is one."""

    def __init__(self, caller: Caller | None = None) -> None:
        self._caller = caller
        self.known: set[tuple[str, str]] = set()  # rule and identity of the change

    def call(self, call: Call) -> None:
        """Make a call if it is new. Raises StoreError if the caller behind does."""
        known = (call.rule, make_change_id(call.change))
        if known not in self.known:
            if self._caller is not None:
                self._caller.call(call)
            self.known.add(known)

    def times(self, rule: str) -> int:
        """Count the changes that made a rule call its function."""
        return sum(name == rule for name, _ in self.known)
