"""A backfill from beginning to end: steps down the cascade, tables in segments, checkpoints, resuming.

Invariant: a checkpoint is saved after the work that it counts. A worker that dies loses only its current pages; the
next worker reads them again and finds them right. Copies made from copies come in a later step, so a checkpoint belongs
to one run, step and round. The state is all that beginning, processing a supply and ending a round share, so each may
be another process. The run begins books before the first child of a round. It completes them after the last child, if
every child was checked and none failed. Numbers from these books are written in a later step or round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, TypeVar
from uuid import uuid4

from sync_rules.adapters import patience
from sync_rules.adapters.budget import Budget
from sync_rules.adapters.meter import MeteredStore
from sync_rules.adapters.state import Body, State
from sync_rules.audit.ledger_balance import find_unsound_rules
from sync_rules.jobs.backfill.page import Pages, Selection, Supplies, Supply
from sync_rules.jobs.backfill.progress import (
    HEAD,
    UNREADABLE,
    Position,
    Totals,
    load_unfinished_head,
    make_first_position,
    make_next_position,
)
from sync_rules.jobs.backfill.throttle import WORKER_GONE, Crew
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.pipeline.books import begin_all_books, finish_all_books
from sync_rules.pipeline.requests import NULL_PORTS, Failures, Store, Work, World, run_work
from sync_rules.rules.selection import cascade

T = TypeVar("T")
SAVED_EVERY_SECONDS: Final = 1.0  # where pages need no write; where they do, each is
SAVE_PAUSE_FACTOR: Final = 10  # a save that took long is not made again before ten times as long has passed


@dataclass(eq=False)
class BackfillRun:
    """One backfill. `scope` describes it as JSON. A run resumes only a checkpoint of its own scope, so the caller
    checks `load_unfinished_head` first. `supplies` returns the supplies for the rules of a step. `before_write` gets
    the units of each write before the write, and may wait, as may `budget`. `on_page` gets the totals at the start
    of each round and after each page. `stopping` is called before each page and every few writes. `position` is an
    index into `steps`, and `before` holds the totals at its start. `name` identifies the run. `completes` names the
    rules whose children and entries are all checked: only their books are completed. With `audits`, the run reads
    the ledger, and does not complete books whose totals differ from their entries.
    """

    selection: Selection
    store: Store
    failures: Failures
    state: State
    scope: Body
    _: KW_ONLY
    supplies: Supplies
    name: str = ""
    completes: frozenset[str] = frozenset()
    audits: bool = True
    workers: int = 1
    bounds: Bounds = field(default_factory=Bounds)
    before_write: Callable[[float], object] | None = None
    budget: Budget | None = None
    on_page: Callable[[Totals], None] = lambda _totals: None
    stopping: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        in_order = self.selection.rules.only(sorted(self.selection.rules.rules))  # whatever the file's order is
        self.steps = tuple(cascade(in_order, self.selection.names))
        self.position = make_first_position(0, self.steps)
        self.before = Totals()
        self.left: dict[str, str] = {}  # the supplies that could not be finished, each with an error code
        self._run = self.name or uuid4().hex  # checkpoints of another run are none of this one
        self._resumed = False
        self._began = datetime.now(UTC).isoformat(timespec="seconds")
        self._begun: dict[str, int] = {}  # how often the books of each rule were begun, when this step was
        self._steps_done = Totals()
        self._rounds = Totals()  # of this step, done
        self._round = Totals()
        self._supplies: Sequence[Supply] | None = None
        self._crew = Crew(self.workers, self.stopping)
        self._pages = Pages(self.bounds, self._crew.is_halted, self.sleep)
        self._lock = Lock()

    def run(self) -> bool:
        """Process everything, from the position in the state. Return True if all is done; if False, the run was
        stopped, or `left` names unfinished supplies. Raises StoreError if the state cannot be saved.
        """
        self.begin()
        while not self.is_over:
            if not self._go_over() or not self.end_round():
                return False
        return True

    @property
    def is_over(self) -> bool:
        """True once the last step is done."""
        return self.position.step == len(self.steps)

    def list_round_supplies(self) -> Sequence[Supply]:
        if self._supplies is None:
            self._supplies = () if self.is_over else self.supplies(self.steps[self.position.step].names)
        return self._supplies

    def attach(self, head: Mapping[str, Any]) -> None:
        """Continue at the position that another process saved. Raises UserError if these rules do not have that
        position.
        """
        self._run, self._resumed = head["run"], bool(head.get("resumed"))
        self._began = head.get("began", self._began)
        self._begun = dict(head.get("books", {}))
        self.position, self._supplies = Position(**head["place"]), None
        if self.position.step > len(self.steps):
            raise UserError(UNREADABLE)
        self._steps_done, self._rounds = Totals.of(head["steps"]), Totals.of(head["rounds"])
        self.before = self._sum()

    def process(self, supply: Supply) -> bool:
        """Process one supply of this round to its end. Return False if it was stopped, or `left` names the reason.
        Raises StoreError if the state cannot be saved.
        """
        return self._run_one(supply, self._load(supply))

    def survey(self) -> bool:
        """Read the progress of each supply of this round. Return True if all are done; `left` names the others."""
        found = [(supply, self._load(supply)) for supply in self.list_round_supplies()]
        self.left = {supply.name: one.get("reason") or WORKER_GONE for supply, one in found if not one["done"]}
        with self._lock:
            self._round = Totals()
            for _, one in found:
                self._round.add(Totals.of(one["totals"]))
        self._resumed = self._resumed or any(one.get("broken") for _, one in found)
        return not self.left

    def end_round(self) -> bool:
        """End this round if all its supplies are done, and move to the next. Return True if they are done. Raises
        StoreError.
        """
        if not self.survey():
            return False
        supplies = self.list_round_supplies()
        self._finish_books()
        self._move_on(self._round.copy())
        self._save_head()
        for supply in supplies:  # the position is another one: no run resumes them
            self.state.remove(f"{HEAD}/{supply.name}")
        if self.is_over:
            self._save_head()  # a file keeps what was removed until something is saved
        return True

    @property
    def totals(self) -> Totals:
        """The totals so far. They include items that were parked on unfinished pages, because their failure records
        exist.
        """
        with self._lock:
            totals = self._sum()
        totals.outcomes.update(self._pages.parked)
        return totals

    # ------------------------------------------------------------ the position
    def begin(self) -> None:
        """Save the beginning in the state, or resume the saved run. Raises StoreError and UserError."""
        head = load_unfinished_head(self.state)
        if head is not None and head["scope"] == self.scope:
            self.attach(head)
            self._resumed = True
        self._save_head(begins=True)

    def _save_head(self, *, begins: bool = False) -> None:
        found = None if begins else self.state.load(HEAD)
        if found is not None and found["run"] != self._run:
            raise StoreError(
                "StateTaken", "another backfill started on the same state: that one continues, and this one ends"
            )
        self._round = Totals()
        self._begin_books()
        self.before = self._sum()
        body = {"steps": self._steps_done.body(), "rounds": self._rounds.body(), "place": vars(self.position)}
        what = {"run": self._run, "done": self.is_over, "scope": self.scope, "resumed": self._resumed}
        books = {"books": self._begun} if self._begun else {}
        self.state.save(HEAD, {**what, **body, **books, "began": self._began})

    def _move_on(self, ended: Totals) -> None:
        self._rounds.look_again(ended)
        position = make_next_position(self.position, self.steps, self.selection.rules, ended, resumed=self._resumed)
        if position.step > self.position.step:
            self._steps_done.add(self._rounds)
            self._rounds, self._begun = Totals(), {}
        self.position, self._supplies, self._resumed = position, None, False

    # ------------------------------------------------------------ books
    def _begin_books(self) -> None:
        """Begin the books of this step, at its first round. A step that another process began keeps what it noted: if
        they were begun again since, the first children may be booked by other rules. Raises StoreError.
        """
        if not (self.is_over or self._resumed or self._begun):
            names = self.steps[self.position.step].names & self.completes
            self._begun = self._process_books(begin_all_books(self.selection.rules, names))

    def _finish_books(self) -> None:
        """Complete the books whose children were all checked in this round, unless somebody else wrote to them:
        `verify --repair` then makes them right, and completes them. Raises StoreError.
        """
        failed = self._round.list_rules_with(Outcome.FAILED)
        begun = {name: number for name, number in self._begun.items() if name not in failed}
        if begun:
            off = (
                self._process_books(find_unsound_rules(self.selection.rules, frozenset(begun)))
                if self.audits
                else frozenset()
            )
            sound = {name: number for name, number in begun.items() if name not in off}
            self._process_books(finish_all_books(self.selection.rules, sound))

    def _process_books(self, work: Work[T]) -> T:
        store = MeteredStore(self.store, self.selection.rules.tables, self.before_write, self.budget)
        done = run_work(work, World(store, NULL_PORTS, self.failures))
        self._steps_done.add(Totals(reads=sum(store.reads.values()), writes=float(store.writes.total())))
        return done

    # ------------------------------------------------------------ supplies
    def _go_over(self) -> bool:
        """Process all supplies, several at a time. Says whether all were finished."""
        begun = [(supply, self._load(supply)) for supply in self.list_round_supplies()]
        with self._lock:
            for _, found in begun:
                self._round.add(Totals.of(found["totals"]))
            self.on_page(self._sum())
        return self._crew.run(lambda one: self._run_one(*one), begun)

    def _run_one(self, supply: Supply, begun: dict[str, Any]) -> bool:
        """Process one supply from its checkpoint to its end. Says whether it was finished."""
        selection = replace(self.selection, names=self.steps[self.position.step].names)
        cursor: Item | None = begun["cursor"]
        totals = Totals.of(begun["totals"])
        done: bool = begun["done"]
        store = MeteredStore(self.store, selection.rules.tables, self.before_write, self.budget)
        world = World(store, NULL_PORTS, self.failures)
        saved_at, pause = self.clock(), 0.0
        while not done and not self._crew.is_halted():
            page = Totals()
            store.forget()
            try:
                result = self._pages.process(supply, cursor, selection, world, page, recording=self.position.recording)
            except StoreError as error:
                self._take(page, store, totals)
                if not self._crew.is_halted():
                    self.left[supply.name] = str(error)
                self._crew.broken = self._crew.broken or patience.is_over()
                break
            self._take(page, store, totals)
            cursor, done = result.cursor, result.cursor is None
            waited = (began := self.clock()) - saved_at
            if done or waited >= max(pause, 0 if page.count(Outcome.COPIED) else SAVED_EVERY_SECONDS):
                self._save(supply, cursor, totals, done=done)
                saved_at = self.clock()
                pause = SAVE_PAUSE_FACTOR * (saved_at - began)
        if not done:
            self._save(supply, cursor, totals, done=False)
        return done

    # ------------------------------------------------------------ between threads
    def _take(self, page: Totals, store: MeteredStore, totals: Totals) -> None:
        """Count a page that was processed, in full or in part."""
        page.reads, page.writes = sum(store.reads.values()), float(store.writes.total())
        store.reads.clear()
        store.writes.clear()
        totals.add(page)
        with self._lock:
            self._round.add(page)
            self.on_page(self._sum())

    def _sum(self) -> Totals:
        step = self._rounds.copy()
        step.look_again(self._round)
        step.add(self._steps_done)
        return step

    # ------------------------------------------------------------ checkpoints
    def _load(self, supply: Supply) -> dict[str, Any]:
        found, fresh = self.state.load(f"{HEAD}/{supply.name}"), self._body(None, Totals(), done=False)
        return found if found is not None and found.get("here") == fresh["here"] else fresh

    def _save(self, supply: Supply, cursor: Item | None, totals: Totals, *, done: bool) -> None:
        self.state.save(f"{HEAD}/{supply.name}", self._body(cursor, totals, done=done))

    def _body(self, cursor: Item | None, totals: Totals, *, done: bool) -> dict[str, Any]:
        here = {"run": self._run, **vars(self.position)}
        return {"here": here, "cursor": cursor, "done": done, "totals": totals.body()}
