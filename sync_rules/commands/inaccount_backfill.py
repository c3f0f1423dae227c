"""`sync-rules backfill --remote`: begin a backfill in the account, watch it, stop it, go on with it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from sync_rules.backfilling.display import Meter, conclude, display_on
from sync_rules.backfilling.run import BackfillRun
from sync_rules.cascade import swept_tables
from sync_rules.commands.inaccount import Account
from sync_rules.errors import UserError
from sync_rules.fingerprints import of_each
from sync_rules.model import Outcome
from sync_rules.remote.backfill import GO_ON, STOP, asked_of, watched
from sync_rules.rules import Rules

VERB = "backfill"


def backfill_in_account(
    account: Account, rules: Rules, asked: Mapping[str, Any], *, detach: bool, as_json: bool
) -> int:
    """Begin it, or go on, and watch it to its end. `asked` is what the user asks for. Exit codes as the command's."""
    running = account.machine.running()
    if running and asked["resume"]:
        return _watch(account, rules, running[0], as_json=as_json)
    if running:
        raise UserError(
            f"{running[0]} is running. Watch it with: sync-rules backfill --remote --resume; "
            "stop it with: sync-rules backfill --remote --stop"
        )
    name = account.machine.start(VERB, {**asked, "prints": of_each(rules)})
    if detach:
        print(f"started {name}\nWatch it with: sync-rules backfill --remote --resume")
        return 0
    return _watch(account, rules, name, as_json=as_json)


def stop_in_account(account: Account) -> int:
    """Stop the backfill that runs: its workers finish the writes in hand. Raises UserError when none does."""
    running = account.machine.running()
    if not running:
        raise UserError(f"no backfill runs in stack {account.stack.name} in {account.stack.region}")
    for name in running:
        account.state.save(STOP, {"execution": name})
        account.machine.stop(name)
        print(f"stopped {name}: its workers finish the writes in hand, within seconds.\n{GO_ON}")
    return 0


def _watch(account: Account, rules: Rules, name: str, *, as_json: bool) -> int:
    """Show how far it is, until it has ended; then what it came to."""
    view = View(account, rules, name)
    with display_on(Console(stderr=True), as_json=as_json) as display:
        display.say(f"{name} in stack {account.stack.name}; Ctrl-C leaves it running")

        def look() -> None:
            run = view.look()
            if run is not None:
                view.meter.begin(run.totals)
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
    queue = account.stack.outputs.get("FailuresQueueUrl", "URL")
    advice = (f"{GO_ON}.", f"Parked or failed, and why: sync-rules failures --queue {queue}")
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
            self._items = self.asked().get("items", {})
        return watched(self._account.state, self._rules) if self._items else None

    def _estimate(self, names: frozenset[str]) -> int:
        return sum(self._items.get(table.name, 0) for table in swept_tables(self._rules, names))
