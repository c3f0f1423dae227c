"""A backfill in the account: the very BackfillRun, in calls that know of each other by its state alone.

Law: a unit is a supply of one run, step and round. Whoever works on one holds its checkpoint, and whoever takes it over
says so: what a worker that died had written is counted nowhere, so the round in which it died is not the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from sync_rules.adapters.budget import Budget, Rate, writes_at_once
from sync_rules.adapters.state import LeasedState, SharedState, State, applied
from sync_rules.jobs.account.protocol import (
    TIME_RESERVED_MS,
    Answer,
    Body,
    left_of,
    require_deployed,
    require_time,
    require_units,
)
from sync_rules.jobs.backfill.job import BackfillRequest, Job, wanted
from sync_rules.jobs.backfill.page import Selection, everything
from sync_rules.jobs.backfill.progress import HEAD, Totals, unfinished
from sync_rules.jobs.backfill.run import BackfillRun
from sync_rules.jobs.backfill.scope import NOTHING_NEW, note_applied, require_beginning, rules_to_apply, titles_of
from sync_rules.jobs.backfill.segments import segments
from sync_rules.jobs.backfill.throttle import slowing, until
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.pipeline.requests import Failures, Store
from sync_rules.rules import fingerprints
from sync_rules.rules.rule import EffectRule
from sync_rules.rules.ruleset import Rules

STOP: Final = "backfill-stop"  # the document that names the execution that is to stop
STOPPED: Final = "Stopped"
LOOKED_EVERY_SECONDS: Final = 3.0  # at whether to stop
ASKED: Final = "backfill-asked"  # the document of what the last one was asked for, and by which execution
TOLD: Final = ("rules", "changed", "table", "where", "segments", "workers", "rate")  # of what is asked: for who goes on
GO_ON: Final = "Go on with backfill --remote --resume"
OF_EXPORT: Final = "the backfill that is unfinished goes over an export: go on where it was begun, or --restart"

Stores = Callable[[Callable[[float], None]], Store]  # a store that waits so before it tries a call again
Jobs = Callable[[frozenset[str], BackfillRequest], Job]


class Stopping:
    """Whether to stop: time is nearly up, or the user has said so (`told`). Looks at the state every few seconds."""

    def __init__(
        self, state: State, execution: str, remaining_ms: Callable[[], int], clock: Callable[[], float]
    ) -> None:
        self.told = False
        self._state = state
        self._execution = execution
        self._remaining_ms = remaining_ms
        self._clock = clock
        self._looked: float | None = None

    def __call__(self) -> bool:
        now = self._clock()
        if self._looked is None or now - self._looked >= LOOKED_EVERY_SECONDS:
            self._looked = now
            with suppress(StoreError):  # it is looked at again
                self.told = is_to_stop(self._state, self._execution)
        return self.told or self._remaining_ms() < TIME_RESERVED_MS


def asked_of(execution: str) -> str:
    """The document of what an execution made of what it was asked, for who watches and for the end: each has its own,
    so that who began at the same moment, and was refused, leaves no trace in it.
    """
    return f"backfill-remote/{execution}"


def is_to_stop(state: State, execution: str) -> bool:
    """Whether an execution was told to stop. Raises StoreError."""
    return (state.load(STOP) or {}).get("execution") == execution


class BackfillWork:
    """A Work. `stores` makes a store, `jobs` makes out what is asked for: both raise UserError and StoreError."""

    def __init__(
        self,
        rules: Rules,
        stores: Stores,
        failures: Failures,
        state: SharedState,
        jobs: Jobs,
        *,
        remaining_ms: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._rules = rules
        self._stores = stores
        self._failures = failures
        self._state = state
        self._jobs = jobs
        self._remaining_ms = remaining_ms
        self._clock = clock
        self._sleep = sleep

    # ------------------------------------------------------------ the machine's questions
    def begin(self, asked: Body, execution: str) -> Answer:
        require_deployed(asked, self._rules)
        before = applied(self._state) if asked["changed"] else None
        names, titles = rules_to_apply(self._rules, asked["rules"], before)
        if not names:
            note_applied(self._state, self._rules, titles)
            self._state.save(asked_of(execution), {"said": NOTHING_NEW})
            return Answer()
        job = self._jobs(names, BackfillRequest(asked["segments"], asked["table"], asked["where"]))
        held = LeasedState(self._state)
        head = held.load(HEAD) or {}
        again = head.get("run") == execution  # its answer was lost
        if again and head.get("done"):
            return Answer()
        run = BackfillRun(
            job.selection,
            self._stores(time.sleep),
            self._failures,
            held,
            job.scope.body(),
            supplies=job.supplies,
            name=execution,
        )
        for step in run.steps:
            require_units([supply.name for supply in job.supplies(step.names)])
        restart = asked["restart"] and not again
        require_beginning(
            held, job.scope.body(), "the deployed stack", resume=asked["resume"] or again, restart=restart
        )
        all_of_it = asked["table"] is None and asked["where"] is None
        effects = titles - titles_of(self._rules, names) if all_of_it else frozenset()
        body = {"applies": sorted(job.covered | effects), "items": dict(job.items), "notices": list(job.notices())}
        if self._state.load(asked_of(execution)) is None:  # or its answer was lost
            stopped = watched(self._state, self._rules) if asked["resume"] else None
            done = Totals() if stopped is None else stopped.totals
            body |= {"before": done.body(), "at": datetime.now(UTC).isoformat()}
            self._state.save(asked_of(execution), {"said": "", **body})
        run.begin()
        self._note_asked(asked, execution, (held.load(HEAD) or {})["run"])
        token = {"execution": execution, "workers": asked["workers"], "rate": asked["rate"]}
        return self._next(run, held, held.load(HEAD) or {}, token)

    def unit(self, unit: str, run: Body) -> bool:
        require_time(self._remaining_ms())
        stopping = Stopping(self._state, run["execution"], self._remaining_ms, self._clock)
        head = self._state.load(HEAD) or {}
        if stopping() or not _at(head, run):  # or another call has seen this round to its end
            return True
        held = LeasedState(self._state)
        rate = Rate(run["rate_each"])
        backfill = of_head(
            head,
            self._rules,
            self._stores(slowing(rate)),
            self._failures,
            held,
            bounds=Bounds(Limits(apply_max_writes=writes_at_once(rate.ceiling))),
            before_write=rate.take,
            budget=Budget(self._rules.tables, run["workers"]),
            stopping=stopping,
            sleep=self._sleep or until(stopping),
            clock=self._clock,
        )
        supply = next((one for one in backfill.supplies() if one.name == unit), None)
        if supply is None:
            raise UserError(f"there is no {unit} in this step")
        name = f"{HEAD}/{unit}"
        held.claim(name, uuid4().hex)
        done = backfill.process(supply)
        reason = backfill.left[0].reason if backfill.left else ""
        held.release(name, reason)
        if reason:
            code, _, more = reason.partition(": ")
            raise StoreError(code, more)
        return done or stopping.told

    def end(self, run: Body) -> Answer:
        held = LeasedState(self._state)
        head = held.load(HEAD) or {}
        if head.get("run") != run["run"]:
            raise UserError("another backfill was begun meanwhile: it goes on, and this one ends")
        backfill = of_head(head, self._rules, self._stores(time.sleep), self._failures, held)
        if _at(head, run):
            held.fetch(f"{HEAD}/{supply.name}" for supply in backfill.supplies())
            if not backfill.end_round():
                if _at(self._state.load(HEAD) or {}, run):
                    return self._left(backfill, run)
                raise StoreError("StateTaken", "another call ends this round")  # and is asked again
        if backfill.ended:
            asked = self._state.load(asked_of(run["execution"])) or {}
            failed = titles_of(self._rules, backfill.totals.rules_with(Outcome.FAILED))
            note_applied(self._state, self._rules, frozenset(asked.get("applies", ())) - failed)
            return Answer()
        return self._next(backfill, held, held.load(HEAD) or {}, run)

    def _note_asked(self, asked: Body, execution: str, run: str) -> None:
        """Once it is begun, and nobody else: what it is, for who goes on with it; and what the one before was goes."""
        before = self._state.load(ASKED) or {}
        told = {"execution": execution, "run": run, "asked": {name: asked[name] for name in TOLD}}
        self._state.save(ASKED, told)
        if before.get("execution", execution) != execution:
            self._state.remove(asked_of(before["execution"]))

    # ------------------------------------------------------------ how they are answered
    def _next(self, backfill: BackfillRun, held: LeasedState, head: Mapping[str, Any], run: Body) -> Answer:
        """The supplies of this round that are not done."""
        supplies = backfill.supplies()
        held.fetch(f"{HEAD}/{supply.name}" for supply in supplies)
        backfill.survey()
        units = [one.supply for one in backfill.left]
        workers = max(1, min(run["workers"], len(units)))
        here = {"run": head["run"], "place": head["place"], "rate_each": run["rate"] / workers}
        return Answer(more=True, units=units, workers=workers, run={**run, **here})

    def _left(self, backfill: BackfillRun, run: Body) -> Answer:
        if is_to_stop(self._state, run["execution"]):
            return Answer(error=STOPPED, cause=f"it was told to stop. {GO_ON}")
        return left_of([(one.supply, one.reason) for one in backfill.left], GO_ON)


def _at(head: Mapping[str, Any], run: Body) -> bool:
    """Whether a backfill is in the round that a call is about."""
    return not head.get("done") and (head.get("run"), head.get("place")) == (run["run"], run["place"])


def of_head(
    head: Mapping[str, Any], rules: Rules, store: Store, failures: Failures, state: State, **options: Any
) -> BackfillRun:
    """The backfill that was begun elsewhere, standing where it is. `options` are those of BackfillRun.

    Raises:
        UserError: when the rules are not those that it was begun with, or it goes over no segments.
    """
    scope = head["scope"]
    prints = fingerprints.of_each(rules)
    if changed := [title for title, digest in scope["rules"].items() if prints.get(title) != digest]:
        message = f"the rules say something else than when the backfill was begun: {', '.join(changed)}."
        raise UserError(f"{message} Deploy them as they were, or begin anew with --restart")
    if scope["segments"] is None:
        raise UserError(OF_EXPORT)
    kept = (name for name, rule in rules.rules.items() if not isinstance(rule, EffectRule))
    names = frozenset(name for name in kept if rules.rules[name].title in scope["rules"])
    where = everything if scope["where"] is None else wanted(scope["where"], rules)
    tables = () if scope["table"] is None else (scope["table"],)
    selection = Selection(rules, names, where)
    supplies = segments(rules, scope["segments"], tables)
    run = BackfillRun(selection, store, failures, state, scope, supplies=supplies, **options)
    run.attach(head)
    return run


def asked_before(state: State, head: Mapping[str, Any]) -> dict[str, Any]:
    """What the unfinished backfill was asked for, as far as that is known: of one that was begun on a machine, what it
    is about. Raises StoreError, and UserError for one that cannot be gone on with here.
    """
    scope, told = head["scope"], state.load(ASKED) or {}
    if scope["segments"] is None:
        raise UserError(OF_EXPORT)
    if told.get("run") == head["run"]:
        return dict(told["asked"])
    about = {name: scope[name] for name in ("table", "where", "segments")}
    return {"rules": sorted(scope["rules"]), "changed": False, **about}


def watched(state: SharedState, rules: Rules) -> BackfillRun | None:
    """The backfill as it stands now, for who only looks: its totals are those of all its workers. None before it began.
    Raises StoreError, UserError.
    """
    held = LeasedState(state)
    head = held.load(HEAD)
    if head is None or not (head.get("done") or unfinished(state)):
        return None
    nobody: Any = None  # who only looks asks neither a store nor whoever keeps failures
    run = of_head(head, rules, nobody, nobody, held)
    held.fetch(f"{HEAD}/{supply.name}" for supply in run.supplies())
    run.survey()
    return run
