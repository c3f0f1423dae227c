"""`sync-rules backfill --remote`: start, continue, watch and stop a backfill in the account."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sync_rules.adapters.acceptance import find_applied_rules
from sync_rules.cli.account import Account
from sync_rules.cli.show.backfill import Meter, conclude, open_backfill_display
from sync_rules.cli.show.console import make_console
from sync_rules.jobs.account.account_backfill import ASKED, STOP, load_request, load_run, name_request
from sync_rules.jobs.account.protocol import describe_rules, require_units, select_prints
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.job import parse_where
from sync_rules.jobs.backfill.page import make_supplies as segments_of
from sync_rules.jobs.backfill.progress import Totals, load_unfinished_head
from sync_rules.jobs.backfill.scope import require_beginning, require_same, select_rules_to_apply
from sync_rules.model.errors import UserError
from sync_rules.model.items import Outcome
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import cascade, list_swept_tables

VERB: Final = "backfill"
OPTIONS: Final = {"rules": "--rule", "where": "--where", "rate": "--rate"}  # each of the others is -- and its name


def choose_exit_code(run: BackfillRun, *, done: bool) -> int:
    """Return the exit code of a backfill that has ended."""
    return 0 if done and not run.totals.count(Outcome.FAILED, Outcome.PARKED) else 1


class RemoteBackfill:
    def __init__(self, account: Account, rules_file: Path, *, as_json: bool) -> None:
        self._account = account
        self._rules_file = rules_file
        self._as_json = as_json

    def start(self, rules: Rules, asked: Mapping[str, Any], given: frozenset[str]) -> int:
        """Start or continue a backfill, and watch it to its end. Return the exit code of the command. `asked` is the
        request; `given` names the options that the user typed.
        """
        select_rules_to_apply(rules, asked["rules"], None)  # reports an unknown rule name at once
        running = self._account.machine.list_running_executions()
        if running and asked["resume"]:
            self._require_as_it_runs(running[0], asked, given)
            return self._watch(rules, running[0])
        if running:
            raise UserError(
                f"{running[0]} is running. Watch it with: {self._format_command('--resume')}; "
                f"stop it with: {self._format_command('--stop')}"
            )
        body = self._complete_request(rules, asked, given) if asked["resume"] else asked
        self._require_possible(rules, body)
        return self._watch(rules, self._account.machine.start(VERB, {**body, **describe_rules(rules)}))

    def stop(self) -> int:
        """Stop the running backfill: its workers finish the writes in flight. Raises UserError if none is running."""
        running = self._account.machine.list_running_executions()
        if not running:
            raise UserError(f"no backfill is running in {self._place}")
        for name in running:
            self._account.state.save(STOP, {"execution": name})
            self._account.machine.stop(name)
            print(f"stopped {name}: its workers finish the writes in flight, within seconds.")
        print(f"Continue with: {self._format_command('--resume')}")
        return 0

    @property
    def _place(self) -> str:
        return f"stack {self._account.stack.name} in {self._account.stack.region}"

    def _format_command(self, option: str) -> str:
        return self._account.command(VERB, self._rules_file, option)

    # ------------------------------------------------------------ before it starts
    def _require_as_it_runs(self, name: str, asked: Mapping[str, Any], given: frozenset[str]) -> None:
        """Raises UserError for an option that differs from that of the running backfill."""
        known = self._account.state.load(ASKED) or {}
        if known.get("execution") != name:
            return  # it has not begun yet
        for word in sorted(given):
            before, now = _format_option(known["asked"][word]), _format_option(asked[word])
            if before != now:
                option = OPTIONS.get(word, f"--{word}")
                raise UserError(
                    f"{name} runs with {option} {before}, not {now}: leave the option out to watch it, or stop it first"
                )

    def _complete_request(self, rules: Rules, asked: Mapping[str, Any], given: frozenset[str]) -> dict[str, Any]:
        """The request, completed by the options of the unfinished backfill. Raises UserError when there is none, or an
        option that was given differs in a way that would change its scope.
        """
        head = load_unfinished_head(self._account.state)
        if head is None:
            raise UserError(f"{self._place} has no unfinished backfill: leave out --resume")
        given |= {"rules", "changed"} if given & {"rules", "changed"} else set()  # either selects the rules
        given |= {"workers"} if "rate" in given else set()
        before = load_request(self._account.state, head)
        body = {**asked, **{word: value for word, value in before.items() if word not in given}}
        about = {word: body[word] for word in ("table", "where", "segments")}
        require_same(
            head["scope"], {**head["scope"], **about, "rules": select_prints(rules, self._select_names(rules, body))}
        )
        return body

    def _select_names(self, rules: Rules, body: Mapping[str, Any]) -> frozenset[str]:
        before = find_applied_rules(self._account.state, rules) if body["changed"] else None
        names, _ = select_rules_to_apply(rules, body["rules"], before)
        return names

    def _require_possible(self, rules: Rules, body: Mapping[str, Any]) -> None:
        """Check what can be checked before anything is started in the account. Raises UserError."""
        names, table = self._select_names(rules, body), body["table"]
        if table is not None and table not in rules.tables:
            raise UserError(explain_unknown_name("table", table, rules.tables))
        if body["where"] is not None:
            parse_where(body["where"], rules)
        supplies = segments_of(rules, body["segments"], () if table is None else (table,))
        for step in cascade(rules, names):
            require_units([supply.name for supply in supplies(step.names)])
        if names and not body["resume"] and not body["restart"]:
            require_beginning(self._account.state, {}, self._place, resume=False, restart=False)

    # ------------------------------------------------------------ while it runs
    def _watch(self, rules: Rules, name: str) -> int:
        """Show the progress until the execution has ended, then the result."""
        state = self._account.state
        items: dict[str, int] = {}  # of each table, once it has begun
        meter = Meter(lambda names: sum(items.get(table.name, 0) for table in list_swept_tables(rules, names)))

        def look() -> BackfillRun | None:
            asked = {} if items else state.load(name_request(name)) or {}
            if asked.get("items"):  # the start is a time of another clock than this meter's
                items.update(asked["items"])
                for notice in asked["notices"]:
                    display.say(notice)
                since = (datetime.now(UTC) - datetime.fromisoformat(asked["at"])).total_seconds()
                meter.begin(Totals.of(asked["before"]), max(0.0, since - meter.seconds))
            return load_run(state, rules) if items else None

        def show() -> None:
            run = look()
            if run is not None:
                display.update(lambda: meter.figures(run, run.totals))

        with open_backfill_display(make_console(stderr=True), as_json=self._as_json) as display:
            display.say(f"{name} in stack {self._account.stack.name} is running; Ctrl-C stops watching, not the run")
            ended = self._account.machine.watch(name, show)
        done = ended.well()
        answer = state.load(name_request(name)) or {}
        if answer.get("said"):
            print(answer["said"])
            return 0
        run = look()
        if run is None:
            raise UserError(f"{name} ended before its first step: see its error in Step Functions, and start again")
        go_on = f"Continue with: {self._format_command('--resume')}"
        advice = (go_on, f"To see the failures: {self._account.format_failures_command()}")
        conclude(run, meter, done=done, as_json=self._as_json, advice=advice)
        return choose_exit_code(run, done=done)


def _format_option(value: object) -> str:
    return (", ".join(sorted(value)) or "none") if isinstance(value, list) else "none" if value is None else str(value)
