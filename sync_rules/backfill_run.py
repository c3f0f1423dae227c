"""A backfill from beginning to end: steps down the cascade, tables in segments, checkpoints, going on where it stopped.

Law: a checkpoint says what is done, and is saved after it is: whoever dies loses the pages in hand, which are found
right when they come again. Copies made from copies come in a later step, so a checkpoint is of one step and round.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Final, Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from sync_rules.attributes import Item
from sync_rules.backfill import Brought, Chosen, bring_page
from sync_rules.cascade import cascade, swept_tables
from sync_rules.errors import StoreError
from sync_rules.metered import MeteredStore
from sync_rules.model import Outcome
from sync_rules.pace import Pace
from sync_rules.rules import Rules
from sync_rules.state import Body, State
from sync_rules.store import Failures, NobodyLooksAgain, Scan, Store, Work, World, drive

PAGE_MAX_ITEMS: Final = 500
PAGE_MAX_TRIES: Final = 6  # after retries of each call: then the segment is left, and --resume goes on with it
WAIT_MAX_SECONDS: Final = 20.0
SAVED_EVERY_SECONDS: Final = 1.0
HEAD: Final = "backfill"  # the document that says what is being brought in line, and in which step

Count = tuple[str, Outcome]


class Supply(Protocol):
    """Where items come from, page by page: a segment of a table, a file of an export. `name` is its own among all."""

    @property
    def name(self) -> str: ...

    def page(self, cursor: Item | None, chosen: Chosen, pace: Pace) -> Work[Brought]:
        """The next page, brought in line. Raises StoreError when it cannot be had."""
        ...


@dataclass(frozen=True)
class Segment:
    """One segment of a table scan."""

    table: str
    number: int
    total: int

    @property
    def name(self) -> str:
        return f"{self.table}/{self.number}-of-{self.total}"

    def page(self, cursor: Item | None, chosen: Chosen, pace: Pace) -> Work[Brought]:
        scan = Scan(self.table, PAGE_MAX_ITEMS, cursor, self.number, self.total)
        return (yield from bring_page(scan, chosen, pace))


@dataclass(frozen=True)
class Place:
    """Where a backfill is: the step down the cascade, and the round in it."""

    step: int
    round: int


Supplies = Callable[[frozenset[str]], Sequence[Supply]]  # for the rules of these names


@dataclass
class Totals:
    """What a backfill came to so far: items seen, those a rule was asked about, outcomes, units spent. Units and items
    count each time that something is gone over.
    """

    items: int = 0
    asked: int = 0
    outcomes: Counter[Count] = field(default_factory=Counter)
    reads: float = 0.0
    writes: float = 0.0

    def add(self, other: Totals) -> None:
        self.items += other.items
        self.asked += other.asked
        self.outcomes.update(other.outcomes)
        self.reads += other.reads
        self.writes += other.writes

    @property
    def wrote(self) -> int:
        """Copies written."""
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome is Outcome.COPIED)

    def body(self) -> Body:
        """As JSON."""
        outcomes = [[rule, outcome.value, count] for (rule, outcome), count in sorted(self.outcomes.items(), key=str)]
        return {**vars(self), "outcomes": outcomes}

    @classmethod
    def of(cls, body: Body) -> Totals:
        """From JSON."""
        outcomes = Counter({(rule, Outcome(word)): count for rule, word, count in body["outcomes"]})
        return cls(**{**body, "outcomes": outcomes})


@dataclass(frozen=True)
class Left:
    """A supply that could not be finished, and why: an error code, never a value."""

    supply: str
    reason: str


class BackfillRun:
    """One backfill. `scope` says what it is about, as JSON: a checkpoint of another scope is not gone on with, so the
    caller looks at `unfinished` first. `supplies` gives, for the rules of one step, what is to be gone over.

    `before_write` is told the units of each write before it is made, and may wait; `on_page` is called with the totals
    so far after each page; `stopping` is asked before each.
    """

    def __init__(
        self,
        chosen: Chosen,
        store: Store,
        failures: Failures,
        state: State,
        scope: Body,
        *,
        supplies: Supplies,
        workers: int = 1,
        pace: Pace | None = None,
        before_write: Callable[[float], None] = lambda _units: None,
        on_page: Callable[[Totals], None] = lambda _totals: None,
        stopping: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.totals = Totals()
        self.left: list[Left] = []
        self._chosen = chosen
        self._store = store
        self._failures = failures
        self._state = state
        self._scope = dict(scope)
        self._supplies = supplies
        self._workers = workers
        self._pace = pace or Pace()
        self._before_write = before_write
        self._on_page = on_page
        self._stopping = stopping
        self._sleep = sleep
        self._clock = clock
        self._lock = Lock()

    def run(self) -> bool:
        """Bring everything in line, or go on where the state says that it stopped. Says whether all of it is done; if
        not, it was told to stop, or `left` says which supplies were left and why. Raises StoreError when the state
        cannot be saved.
        """
        first, finished, resumed = self._begin()
        for number, step in enumerate(cascade(self._chosen.rules, self._chosen.names)):
            if number < first.step:
                continue
            rounds = range(first.round if number == first.step else 0, step.max_rounds)
            for round_ in rounds:
                here = Place(number, round_)
                self._save_head(here, finished)
                chosen = Chosen(self._chosen.rules, step.names, self._chosen.wanted)
                supplies = self._supplies(step.names)
                ended = self._go_over(supplies, chosen, here)
                if ended is None:
                    return False
                finished.add(ended)
                for supply in supplies:
                    self._state.remove(f"{HEAD}/{supply.name}")
                if not ended.wrote and not resumed:  # what was written just before it died is counted nowhere
                    break
                resumed = False
        self._state.remove(HEAD)
        return True

    def _begin(self) -> tuple[Place, Totals, bool]:
        """Where to begin, what was done before that, and whether this goes on with something."""
        head = unfinished(self._state)
        if head is None or head["scope"] != self._scope:
            return Place(0, 0), Totals(), False
        return Place(head["step"], head["round"]), Totals.of(head["totals"]), True

    def _save_head(self, here: Place, finished: Totals) -> None:
        self.totals = replace(finished, outcomes=Counter(finished.outcomes))
        self._state.save(HEAD, {"scope": self._scope, **vars(here), "totals": finished.body()})

    def _go_over(self, supplies: Sequence[Supply], chosen: Chosen, here: Place) -> Totals | None:
        """All supplies, several at a time. Their totals; None when one of them was not finished."""
        with ThreadPoolExecutor(self._workers) as pool:
            runs = list(pool.map(lambda supply: self._run_one(supply, chosen, here), supplies))
        ended = Totals()
        for run in runs:
            if run is None:
                return None
            ended.add(run)
        return ended

    def _run_one(self, supply: Supply, chosen: Chosen, here: Place) -> Totals | None:
        """One supply to its end; None when it was not finished."""
        name = f"{HEAD}/{supply.name}"
        found = self._state.load(name)
        before = found if found is not None and found["here"] == vars(here) else None
        cursor: Item | None = before["cursor"] if before else None
        totals = Totals.of(before["totals"]) if before else Totals()
        with self._lock:
            self.totals.add(totals)
        done = bool(before and before["done"])
        store = MeteredStore(self._store, chosen.rules.tables, self._before_write)
        world = World(store, NobodyLooksAgain(), self._failures)
        saved_at = self._clock()
        while not done and not self._stopping():
            try:
                brought = self._bring(supply, cursor, chosen, world)
            except StoreError as error:
                self._note_left(supply, str(error))
                break
            page = Totals(brought.items, brought.asked, brought.report.outcomes, *_spent(store))
            totals.add(page)
            cursor, done = brought.cursor, brought.cursor is None
            if done or self._clock() - saved_at >= SAVED_EVERY_SECONDS:
                self._save(name, here, cursor, totals, done=done)
                saved_at = self._clock()
            self._tell(page)
        if not done:
            self._save(name, here, cursor, totals, done=False)
        return totals if done else None

    def _bring(self, supply: Supply, cursor: Item | None, chosen: Chosen, world: World) -> Brought:
        """One page, again until nothing on it failed. Raises StoreError when it did each time."""

        def once() -> Brought:
            brought = drive(supply.page(cursor, chosen, self._pace), world)
            for unfinished_ in brought.report.failed.values():
                raise StoreError(unfinished_.reason, f"{len(brought.report.failed)} items not finished")
            return brought

        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, StoreError) and not self._stopping()),
            wait=wait_random_exponential(max=WAIT_MAX_SECONDS),
            stop=stop_after_attempt(PAGE_MAX_TRIES),
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(once)

    def _save(self, name: str, here: Place, cursor: Item | None, totals: Totals, *, done: bool) -> None:
        self._state.save(name, {"here": vars(here), "cursor": cursor, "done": done, "totals": totals.body()})

    def _tell(self, page: Totals) -> None:
        with self._lock:
            self.totals.add(page)
            self._on_page(self.totals)

    def _note_left(self, supply: Supply, reason: str) -> None:
        with self._lock:
            self.left.append(Left(supply.name, reason))


def unfinished(state: State) -> dict[str, Any] | None:
    """The backfill that was begun and not finished, if there is one. Raises StoreError."""
    return state.load(HEAD)


def segments(rules: Rules, total: int, tables: Collection[str] = (), numbers: Iterable[int] | None = None) -> Supplies:
    """Each table that holds what some rules keep, or of these tables those in `tables`, in segments; of the segments
    all, or a sample of these `numbers`.
    """
    some = range(total) if numbers is None else tuple(numbers)

    def of_rules(names: frozenset[str]) -> Sequence[Supply]:
        swept = (table.name for table in swept_tables(rules, names))
        return [Segment(name, number, total) for name in swept if not tables or name in tables for number in some]

    return of_rules


def _spent(store: MeteredStore) -> tuple[float, float]:
    """What was spent since this was last asked."""
    reads, writes = sum(store.reads.values()), float(store.writes.total())
    store.reads.clear()
    store.writes.clear()
    return reads, writes
