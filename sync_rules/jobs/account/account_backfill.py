"""A backfill in the account: a BackfillRun spread over calls, which share nothing but its state.

Invariant: one worker at a time holds the checkpoint of a unit. A unit is a supply of one run, step and round. A worker
that takes over a unit marks it, because the writes of the dead worker are in no totals: another round follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from sync_rules.adapters.acceptance import find_applied_rules
from sync_rules.adapters.budget import Budget, Rate, choose_writes_at_once
from sync_rules.adapters.state import LeasedState, SharedState, State
from sync_rules.jobs.account.protocol import TIME_RESERVED_MS, Answer, Body, begin_once, report_leftovers, require_units
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.job import BackfillRequest, Job, parse_where
from sync_rules.jobs.backfill.page import Selection, accept_all, make_supplies
from sync_rules.jobs.backfill.progress import HEAD, Totals, load_unfinished_head
from sync_rules.jobs.backfill.scope import (
    NOTHING_NEW,
    list_titles,
    list_waiting_titles,
    note_applied_rules,
    require_beginning,
    select_rules_to_apply,
)
from sync_rules.jobs.backfill.throttle import make_slowing_sleep, make_stoppable_sleep
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.pipeline.books import describe_waits
from sync_rules.pipeline.requests import Failures, Store
from sync_rules.rules import fingerprints
from sync_rules.rules.ruleset import Rules

STOP: Final = "backfill-stop"  # the document that names the execution to stop
STOPPED: Final = "Stopped"
WAITING: Final = "BooksNotComplete"  # other rules booked under the same name meanwhile
LOOKED_EVERY_SECONDS: Final = 3.0  # at the document STOP
ASKED: Final = "backfill-asked"  # the document of the last request, and its execution
NOTED: Final = ("rules", "changed", "table", "where", "segments", "workers", "rate")  # for a later --resume
GO_ON: Final = "Go on with backfill --remote --resume"

Stores = Callable[[Callable[[float], None]], Store]  # a store that waits so before it tries a call again
Jobs = Callable[[frozenset[str], BackfillRequest], Job]


@dataclass
class Stopping:
    """A predicate: True once little time remains, or the user stopped the run (`asked_to`). It reads the state every
    few seconds.
    """

    state: State
    execution: str
    remaining_ms: Callable[[], int]
    clock: Callable[[], float]
    asked_to: bool = False
    _looked: float | None = None

    def __call__(self) -> bool:
        now = self.clock()
        if self._looked is None or now - self._looked >= LOOKED_EVERY_SECONDS:
            self._looked = now
            with suppress(StoreError):  # it is looked at again
                self.asked_to = is_to_stop(self.state, self.execution)
        return self.asked_to or self.remaining_ms() < TIME_RESERVED_MS


def name_request(execution: str) -> str:
    """Return the name of the document that describes an execution's request, for `--remote` and for the end. Each
    execution has its own document: if another execution began first, the refused execution leaves that document
    unchanged.
    """
    return f"backfill-remote/{execution}"


def is_to_stop(state: State, execution: str) -> bool:
    """Return True if the user stopped this execution. Raises StoreError."""
    return (state.load(STOP) or {}).get("execution") == execution


@dataclass(eq=False)
class BackfillWork:
    """The Work of a backfill. `stores` makes a store, and `jobs` makes the Job of a request. Both raise UserError and
    StoreError.
    """

    rules: Rules
    stores: Stores
    failures: Failures
    state: SharedState
    jobs: Jobs
    remaining_ms: Callable[[], int] = field(kw_only=True)
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    sleep: Callable[[float], None] | None = field(default=None, kw_only=True)

    # ------------------------------------------------------------ the machine's questions
    def begin(self, asked: Body, execution: str) -> Answer:
        before = (
            find_applied_rules(self.state, self.rules, self._list_incomplete_titles(self.rules.keeper_names))
            if asked["changed"]
            else None
        )
        names, titles = select_rules_to_apply(self.rules, asked["rules"], before)
        if not names:
            note_applied_rules(self.state, self.rules, titles)
            self.state.save(name_request(execution), {"said": NOTHING_NEW})
            return Answer()
        job = self.jobs(names, BackfillRequest(asked["segments"], asked["table"], asked["where"]))
        held = LeasedState(self.state)
        head = held.load(HEAD) or {}
        again = head.get("run") == execution  # the answer to the same question was lost
        if again and head.get("done"):
            return Answer()
        run = BackfillRun(
            job.selection,
            self.stores(time.sleep),
            self.failures,
            held,
            job.scope.body(),
            supplies=job.supplies,
            completes=_list_completed_rules(names, job.scope.body()),
            name=execution,
        )
        for step in run.steps:
            require_units([supply.name for supply in job.supplies(step.names)])
        restart = asked["restart"] and not again
        require_beginning(
            held, job.scope.body(), "the deployed stack", resume=asked["resume"] or again, restart=restart
        )

        def make_head() -> Body:
            whole = asked["table"] is None and asked["where"] is None
            effects = titles - list_titles(self.rules, names) if whole else frozenset()
            stopped = load_run(self.state, self.rules) if asked["resume"] else None
            return {
                "said": "",
                "applies": sorted(job.covered_titles | effects),
                "items": dict(job.items),
                "notices": list(job.notices()),
                "before": (Totals() if stopped is None else stopped.totals).body(),
                "at": datetime.now(UTC).isoformat(),
            }

        begin_once(self.state, name_request(execution), make_head)
        run.begin()
        head = held.load(HEAD) or {}
        self._note_request(asked, execution, head["run"])
        token = {"execution": execution, "workers": asked["workers"], "rate": asked["rate"]}
        return self._make_next_answer(run, held, head, token)

    def unit(self, unit: str, run: Body) -> bool:
        stopping = Stopping(self.state, run["execution"], self.remaining_ms, self.clock)
        head = self.state.load(HEAD) or {}
        if stopping() or not _is_in_round(head, run):  # or another call has seen this round to its end
            return True
        held = LeasedState(self.state)
        rate = Rate(run["rate_each"])
        backfill = resume_run(
            head,
            self.rules,
            self.stores(make_slowing_sleep(rate)),
            self.failures,
            held,
            bounds=Bounds(Limits(apply_max_writes=choose_writes_at_once(rate.ceiling))),
            before_write=rate.take,
            budget=Budget(self.rules.tables, run["workers"]),
            stopping=stopping,
            sleep=self.sleep or make_stoppable_sleep(stopping),
            clock=self.clock,
        )
        supply = next((one for one in backfill.list_round_supplies() if one.name == unit), None)
        if supply is None:
            raise UserError(f"unit {unit} is not in the current step")
        name = f"{HEAD}/{unit}"
        held.claim(name, uuid4().hex)
        done = backfill.process(supply)
        reason = backfill.left.get(unit, "")
        held.release(name, reason)
        if reason:
            code, _, more = reason.partition(": ")
            raise StoreError(code, more)
        return done or stopping.asked_to

    def end(self, run: Body) -> Answer:
        held = LeasedState(self.state)
        head = held.load(HEAD) or {}
        if head.get("run") != run["run"]:
            raise UserError("another backfill started and replaced this one: watch it with backfill --remote --resume")
        backfill = resume_run(head, self.rules, self.stores(time.sleep), self.failures, held)
        if _is_in_round(head, run):
            held.fetch(f"{HEAD}/{supply.name}" for supply in backfill.list_round_supplies())
            if not backfill.end_round():
                if _is_in_round(self.state.load(HEAD) or {}, run):
                    return self._report_leftovers(backfill, run)
                raise StoreError("StateTaken", "another call ends this round")  # and is asked again
        if backfill.is_over:
            asked = self.state.load(name_request(run["execution"])) or {}
            failed = list_titles(self.rules, backfill.totals.list_rules_with(Outcome.FAILED))
            applies = frozenset(asked.get("applies", ()))
            waiting = self._list_incomplete_titles(backfill.completes)
            note_applied_rules(self.state, self.rules, applies - failed - waiting)
            cause = "; ".join(describe_waits(waiting, " --remote"))
            return Answer(error=WAITING, cause=cause) if waiting - failed else Answer()
        return self._make_next_answer(backfill, held, held.load(HEAD) or {}, run)

    def _list_incomplete_titles(self, names: Collection[str]) -> frozenset[str]:
        """The titles of these rules whose books are not complete. Raises StoreError."""
        return list_waiting_titles(self.rules.only(names), self.stores(time.sleep))

    def _note_request(self, asked: Body, execution: str, run: str) -> None:
        """Note the request once its run has begun, for a later --resume, and remove the note of the run before."""
        before = self.state.load(ASKED) or {}
        body = {"execution": execution, "run": run, "asked": {name: asked[name] for name in NOTED}}
        self.state.save(ASKED, body)
        if before.get("execution", execution) != execution:
            self.state.remove(name_request(before["execution"]))

    # ------------------------------------------------------------ the answers
    def _make_next_answer(self, backfill: BackfillRun, held: LeasedState, head: Mapping[str, Any], run: Body) -> Answer:
        """The answer that asks for the supplies of this round that are not done."""
        supplies = backfill.list_round_supplies()
        held.fetch(f"{HEAD}/{supply.name}" for supply in supplies)
        backfill.survey()
        units = [*backfill.left]
        workers = max(1, min(run["workers"], len(units)))
        here = {"run": head["run"], "place": head["place"], "rate_each": run["rate"] / workers}
        return Answer(more=True, units=units, workers=workers, run={**run, **here})

    def _report_leftovers(self, backfill: BackfillRun, run: Body) -> Answer:
        if is_to_stop(self.state, run["execution"]):
            return Answer(error=STOPPED, cause=f"the user stopped it. {GO_ON}")
        return report_leftovers([*backfill.left.items()], GO_ON)


def _is_in_round(head: Mapping[str, Any], run: Body) -> bool:
    """True if a backfill is still in the round of a call."""
    return not head.get("done") and (head.get("run"), head.get("place")) == (run["run"], run["place"])


def _list_completed_rules(names: frozenset[str], scope: Mapping[str, Any]) -> frozenset[str]:
    """Return the rules whose books are complete after this backfill; none for one table or a `where`."""
    return names if scope["table"] is None and scope["where"] is None else frozenset()


def resume_run(
    head: Mapping[str, Any], rules: Rules, store: Store, failures: Failures, state: State, **options: Any
) -> BackfillRun:
    """Return the backfill that another process began, at its position. `options` are passed to BackfillRun.

    Raises:
        UserError: if a rule changed since the backfill began.
    """
    scope = head["scope"]
    prints = fingerprints.compute_rule_fingerprints(rules)
    if changed := [title for title, digest in scope["rules"].items() if prints.get(title) != digest]:
        message = f"these rules changed since the backfill started: {', '.join(changed)}."
        raise UserError(f"{message} Deploy them as they were, or start from the beginning with --restart")
    kept = rules.keeper_names
    names = frozenset(name for name in kept if rules.rules[name].title in scope["rules"])
    where = accept_all if scope["where"] is None else parse_where(scope["where"], rules)
    tables = () if scope["table"] is None else (scope["table"],)
    selection = Selection(rules, names, where)
    supplies = make_supplies(rules, scope["segments"], tables)
    completes = _list_completed_rules(names, scope)
    run = BackfillRun(selection, store, failures, state, scope, supplies=supplies, completes=completes, **options)
    run.attach(head)
    return run


def load_request(state: State, head: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request of the unfinished backfill. For a backfill that began on a machine, return what its scope
    holds. Raises StoreError, and UserError if the backfill cannot continue in the account.
    """
    scope, noted = head["scope"], state.load(ASKED) or {}
    if noted.get("run") == head["run"]:
        return dict(noted["asked"])
    about = {name: scope[name] for name in ("table", "where", "segments")}
    return {"rules": sorted(scope["rules"]), "changed": False, **about}


def load_run(state: SharedState, rules: Rules) -> BackfillRun | None:
    """Return the backfill with the totals of all workers, to display it. None if it has not begun. Raises StoreError
    and UserError.
    """
    held = LeasedState(state)
    head = held.load(HEAD)
    if head is None or not (head.get("done") or load_unfinished_head(state)):
        return None
    unused: Any = None  # to show it, the run needs neither a store nor a place for failures
    run = resume_run(head, rules, unused, unused, held)
    held.fetch(f"{HEAD}/{supply.name}" for supply in run.list_round_supplies())
    run.survey()
    return run
