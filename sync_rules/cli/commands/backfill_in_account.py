"""`sync-rules backfill --remote`: begin a backfill in the account, watch it, stop it, go on with it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from sync_rules.adapters.state import applied
from sync_rules.cli.account import Account, left_alone
from sync_rules.cli.show.backfill import Meter, conclude, display_on
from sync_rules.jobs.account.backfill import ASKED, STOP, asked_before, asked_of, watched
from sync_rules.jobs.account.protocol import as_here, prints_of, require_units
from sync_rules.jobs.backfill.job import wanted
from sync_rules.jobs.backfill.progress import Totals, unfinished
from sync_rules.jobs.backfill.run import BackfillRun
from sync_rules.jobs.backfill.scope import require_beginning, require_same, rules_to_apply
from sync_rules.jobs.backfill.segments import segments
from sync_rules.model.errors import UserError
from sync_rules.model.items import Outcome
from sync_rules.model.suggest import unknown
from sync_rules.rules.order import cascade, swept_tables
from sync_rules.rules.ruleset import Rules

VERB = "backfill"
OPTIONS = {"rules": "--rule", "where": "--where", "rate": "--rate"}  # each of the others is -- and its name


@dataclass(frozen=True)
class Asked:
    """What a user asks for: `body` as it is sent, of which `typed` was said, and not left as it is by itself."""

    body: Mapping[str, Any]
    typed: frozenset[str]
    rules_file: Path


def backfill_in_account(account: Account, rules: Rules, asked: Asked, *, detach: bool, as_json: bool) -> int:
    """Begin it, or go on, and watch it to its end. Exit codes as the command's."""
    rules_to_apply(rules, asked.body["rules"], None)  # a name that is no rule's is said at once
    running = account.machine.running()
    watch = f"Watch it with: {account.command(VERB, asked.rules_file, '--resume')}"
    if running and asked.body["resume"]:
        _require_as_it_runs(account, running[0], asked)
        return _watch(account, rules, running[0], asked.rules_file, as_json=as_json)
    if running:
        stop = account.command(VERB, asked.rules_file, "--stop")
        raise UserError(f"{running[0]} is running. {watch}; stop it with: {stop}")
    body = _as_before(account, rules, asked) if asked.body["resume"] else asked.body
    _require_possible(account, rules, body)
    name = account.machine.start(VERB, {**body, **as_here(rules)})
    if detach:
        return left_alone(account, name, lambda: account.state.load(asked_of(name)), watch)
    return _watch(account, rules, name, asked.rules_file, as_json=as_json)


def stop_in_account(account: Account, rules_file: Path) -> int:
    """Stop the backfill that runs: its workers finish the writes in hand. Raises UserError when none does."""
    running = account.machine.running()
    if not running:
        raise UserError(f"no backfill runs in stack {account.stack.name} in {account.stack.region}")
    for name in running:
        account.state.save(STOP, {"execution": name})
        account.machine.stop(name)
        print(f"stopped {name}: its workers finish the writes in hand, within seconds.")
    print(_go_on(account, rules_file))
    return 0


def _go_on(account: Account, rules_file: Path) -> str:
    return f"Go on with: {account.command(VERB, rules_file, '--resume')}"


# ---------------------------------------------------------------- what is asked for
def _require_as_it_runs(account: Account, name: str, asked: Asked) -> None:
    """Raises UserError for what is typed, and is not what the one that runs was asked for."""
    known = account.state.load(ASKED) or {}
    if known.get("execution") != name:
        return  # it has not begun yet
    for word in sorted(asked.typed):
        before, now = _shown(known["asked"][word]), _shown(asked.body[word])
        if before != now:
            option = OPTIONS.get(word, f"--{word}")
            raise UserError(
                f"{name} runs with {option} {before}, not {now}: leave it out to watch, or stop that one first"
            )


def _shown(value: object) -> str:
    return (", ".join(sorted(value)) or "none") if isinstance(value, list) else "none" if value is None else str(value)


def _as_before(account: Account, rules: Rules, asked: Asked) -> dict[str, Any]:
    """What is asked for, and where nothing is said, what the unfinished backfill was. Raises UserError when there is
    none, or what is said is not what it is about.
    """
    head = unfinished(account.state)
    if head is None:
        raise UserError(f"{_named(account)} has no backfill to go on with: leave out --resume")
    before = asked_before(account.state, head)
    which = frozenset(("rules", "changed"))  # each of them says it
    typed = asked.typed | which if asked.typed & which else asked.typed
    body = {**asked.body, **{word: value for word, value in before.items() if word not in typed}}
    names, _ = rules_to_apply(rules, body["rules"], applied(account.state) if body["changed"] else None)
    about = {word: body[word] for word in ("table", "where", "segments")}
    require_same(head["scope"], {**head["scope"], **about, "rules": prints_of(rules, names)})
    return body


def _require_possible(account: Account, rules: Rules, body: Mapping[str, Any]) -> None:
    """See to what can be seen from here, before anything is started. Raises UserError."""
    names, _ = rules_to_apply(rules, body["rules"], applied(account.state) if body["changed"] else None)
    if body["table"] is not None and body["table"] not in rules.tables:
        raise UserError(unknown("table", body["table"], rules.tables))
    if body["where"] is not None:
        wanted(body["where"], rules)
    supplies = segments(rules, body["segments"], () if body["table"] is None else (body["table"],))
    for step in cascade(rules, names):
        require_units([supply.name for supply in supplies(step.names)])
    if names and not body["resume"] and not body["restart"]:
        require_beginning(account.state, {}, _named(account), resume=False, restart=False)


def _named(account: Account) -> str:
    return f"stack {account.stack.name} in {account.stack.region}"


# ---------------------------------------------------------------- watching
def _watch(account: Account, rules: Rules, name: str, rules_file: Path, *, as_json: bool) -> int:
    """Show how far it is, until it has ended; then what it came to."""
    view = View(account, rules, name)
    with display_on(Console(stderr=True), as_json=as_json) as display:
        display.say(f"{name} in stack {account.stack.name}; Ctrl-C leaves it running")

        def look() -> None:
            run = view.look()
            if run is not None:
                display.update(lambda: view.meter.figures(run, run.totals))

        ended = account.machine.watch(name, look)
    done = ended.well()
    said = view.asked()
    for notice in said.get("notices", ()):
        print(notice, file=sys.stderr)
    if said.get("said"):
        print(said["said"])
        return 0
    run = view.look()
    if run is None:
        raise UserError(f"{name} has ended, and nothing was begun")
    advice = (f"{_go_on(account, rules_file)}", f"Parked or failed, and why: {account.failures_command()}")
    conclude(run, view.meter, done=done, as_json=as_json, advice=advice)
    return 0 if done and not run.totals.count(Outcome.FAILED, Outcome.PARKED) else 1


class View:
    """What is seen of a backfill from outside."""

    def __init__(self, account: Account, rules: Rules, name: str) -> None:
        self.meter = Meter(self._estimate)
        self._account = account
        self._rules = rules
        self._name = name
        self._items: Mapping[str, int] = {}

    def asked(self) -> Mapping[str, Any]:
        """What the function made of what was asked; nothing before it has."""
        return self._account.state.load(asked_of(self._name)) or {}

    def look(self) -> BackfillRun | None:
        """How far it is; None before it has begun."""
        if not self._items:
            asked = self.asked()
            self._items = asked.get("items", {})
            if self._items:  # since when is by another clock than this one
                since = (datetime.now(UTC) - datetime.fromisoformat(asked["at"])).total_seconds()
                self.meter.begin(Totals.of(asked["before"]), max(0.0, since - self.meter.seconds))
        return watched(self._account.state, self._rules) if self._items else None

    def _estimate(self, names: frozenset[str]) -> int:
        return sum(self._items.get(table.name, 0) for table in swept_tables(self._rules, names))
