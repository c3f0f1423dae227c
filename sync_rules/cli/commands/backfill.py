"""`sync-rules backfill`: bring what is there already in line, by the same guarded look as the stream handler's.

Exit code 0 when all of it is done; 1 when something was left, failed or parked, or when it was stopped; 2 for the
user's mistake. Ctrl-C or SIGTERM finishes the writes in hand and saves; a second one stops at once. After either, and
after a crash, --resume goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from sync_rules.adapters import aws
from sync_rules.adapters.budget import Budget, Rate, writes_at_once
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import short_name
from sync_rules.adapters.failure_log import FailureLog, require_writable
from sync_rules.adapters.files import locked
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import FileState, MemoryState, State, TableState, applied, save_applied
from sync_rules.cli.account import (
    RULES_FILE,
    STACK,
    Detach,
    Remote,
    StackName,
    account_of,
    require_local,
    require_remote,
    typed,
)
from sync_rules.cli.commands.backfill_in_account import Asked, backfill_in_account, stop_in_account
from sync_rules.cli.commands.run import stop_signals
from sync_rules.cli.show.backfill import Meter, conclude, display_on
from sync_rules.jobs.account.protocol import WORKERS_MAX as REMOTE_MAX
from sync_rules.jobs.backfill.export import shelf_of
from sync_rules.jobs.backfill.job import BackfillRequest, Job, job_of, job_of_item, unseen_changes
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.jobs.backfill.run import BackfillRun
from sync_rules.jobs.backfill.scope import NOTHING_NEW, note_applied, require_beginning, rules_to_apply, titles_of
from sync_rules.jobs.backfill.throttle import Brake, IteratorAge, slowing, until
from sync_rules.jobs.consume.run import Files, wall_clock_ms
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.suggest import unknown
from sync_rules.pipeline.breaker import DeduplicatedFailures
from sync_rules.rules.key_json import parse_key
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STATE: Final = Path(".sync-rules-state.json")
RATE: Final = 500.0  # half of what one partition takes: the other half is the application's
SEGMENTS: Final = 16
WORKERS: Final = 4
WORKERS_MAX: Final = 8
WRITERS: Final = 8  # with these workers as many calls at once as the client has connections


def backfill(
    context: typer.Context,
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")] = RULES_FILE,
    *,
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule; may be given again.")] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only rules that are new or say something else than when last done.")
    ] = False,
    table: Annotated[
        str | None, typer.Option(help="Only items of this table; with --key, the table of the key.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="JMESPATH", help="Only items of which this holds: \"status == 'OPEN'\".")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Only the item with this key: its copies, all copies of it, its parts."),
    ] = None,
    from_export: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Keys from a table export: a folder or s3://bucket/prefix.")
    ] = None,
    segments: Annotated[int, typer.Option(min=1, max=10_000, help="Segments of each table's scan.")] = SEGMENTS,
    workers: Annotated[
        int,
        typer.Option(min=1, max=REMOTE_MAX, help=f"Segments at the same time; without --remote up to {WORKERS_MAX}."),
    ] = WORKERS,
    rate: Annotated[float, typer.Option(min=0, help="Write units per second at most; 0: without limit.")] = RATE,
    max_lag: Annotated[
        float | None, typer.Option(min=0, help="Slow down while --function is more than so many seconds behind.")
    ] = None,
    function: Annotated[str | None, typer.Option(help="The stream handler's Lambda function.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the backfill that is unfinished.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Forget the one that is unfinished, begin anew.")] = False,
    state: Annotated[Path, typer.Option(help="Where to keep how far it is, and which rules were done.")] = STATE,
    state_table: Annotated[
        str | None,
        typer.Option(help="A table to keep that in, with the string key 'id'.", envvar="SYNC_RULES_STATE_TABLE"),
    ] = None,
    forget: Annotated[
        str | None, typer.Option(metavar="NAME", help="Forget that this rule, which is gone, was done. Nothing else.")
    ] = None,
    failures: Annotated[Path, typer.Option(help="Where to append what cannot succeed.")] = Files.failures,
    endpoint_url: Annotated[str | None, typer.Option(help="Another DynamoDB than AWS's, such as an emulator.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Progress and totals as JSON lines.")] = False,
    remote: Remote = False,
    stack_name: StackName = STACK,
    detach: Detach = False,
    stop: Annotated[bool, typer.Option("--stop", help="With --remote: stop the one that runs there.")] = False,
) -> int:
    """Bring what is in the tables already in line with the rules. Have the stream handler on first."""
    of_items: dict[str, object] = {"--where": where, "--from-export": from_export, "--changed": changed}
    of_state: dict[str, object] = {"--resume": resume, "--restart": restart}
    _require_sense("--resume", resume, {"--restart": restart})
    _require_sense("--changed", changed, {"--rule": rule})
    _require_sense("--key", key, of_items | of_state)
    _require_sense("--forget", forget, of_items | of_state | {"--key": key, "--rule": rule, "--table": table})
    if remote:
        require_local({"--key": key, "--from-export": from_export, "--forget": forget})
        require_local({"--max-lag": max_lag is not None, "--function": function})
        require_local({"--state": state != STATE, "--failures": failures != Files.failures}, "the stack has its own")
        require_local({"--state-table": typed(context, "state_table")}, "the stack has its own")
        _require_sense("--stop", stop, of_items | of_state | {"--rule": rule, "--table": table, "--detach": detach})
        account = account_of(stack_name, "BackfillMachineArn", endpoint_url, region)
        if stop:
            return stop_in_account(account, rules_file)
        asked = {"rules": rule or [], "changed": changed, "table": table, "where": where, "segments": segments}
        asked |= {"workers": workers, "rate": rate, "resume": resume, "restart": restart}
        words = {"rules": "rule", **{word: word for word in asked if word not in ("rules", "resume", "restart")}}
        said = frozenset(word for word, parameter in words.items() if typed(context, parameter))
        what = Asked(asked, said, rules_file)
        return backfill_in_account(account, load_rules(rules_file), what, detach=detach, as_json=as_json)
    require_remote({"--detach": detach, "--stop": stop, "--stack": typed(context, "stack_name")})
    if (max_lag is None) != (function is None) or (max_lag is not None and not rate):
        raise UserError("--max-lag and --function belong together, and need a --rate that can be lowered")
    if workers > WORKERS_MAX:
        raise UserError(f"--workers {workers}: expected at most {WORKERS_MAX} on one machine; --remote takes more")
    rules = load_rules(rules_file)
    client = aws.dynamodb(endpoint_url, region)
    with ExitStack() as stack:
        documents: State = MemoryState() if key else stack.enter_context(_opened(state, state_table, client, rules))
        if forget is not None:
            return _forget(forget, documents, rules, rules_file)
        names, titles = rules_to_apply(rules, rule or [], applied(documents) if changed else None)
        if not names:
            note_applied(documents, rules, titles)
            print(NOTHING_NEW)
            return 0
        if key is not None:
            job = job_of_item(client, rules, names, parse_key(key, table, rules))
        else:
            export = None if from_export is None else (from_export, shelf_of(from_export, endpoint_url, region))
            job = job_of(client, rules, names, BackfillRequest(segments, table, where, export))
            kept = state_table or str(state)
            require_beginning(documents, job.scope.body(), kept, resume=resume, restart=restart)
        age = None if function is None else IteratorAge(aws.cloudwatch(endpoint_url, region), function)
        how = How(workers, rate, age, max_lag or 0.0, failures, as_json=as_json)
        for notice in (*unseen_changes(client, rules, names), *job.notices()):
            print(notice, file=sys.stderr)
        run, done = carry_out(job, client, documents, how)
        if done and key is None:
            failed = titles_of(rules, run.totals.rules_with(Outcome.FAILED))
            effects = frozenset() if table or where else titles - titles_of(rules, names)
            note_applied(documents, rules, (job.covered | effects) - failed)
    return 0 if done and not run.totals.count(Outcome.FAILED, Outcome.PARKED) else 1


# ---------------------------------------------------------------- what is asked for
def _require_sense(option: str, given: object, others: Mapping[str, object]) -> None:
    """Raises UserError for options that say nothing together."""
    for name, value in others.items():
        if given and value:
            raise UserError(f"{option} and {name} cannot be given together")


# ---------------------------------------------------------------- what is kept
@contextmanager
def _opened(file: Path, table: str | None, client: DynamoDBClient, rules: Rules) -> Iterator[State]:
    """The state; a file is this process's alone for as long as it is open."""
    if table is None:
        require_writable(file)
        with locked(file, "backfill", "--state"):
            yield FileState(file)
        return
    if short_name(table) in rules.by_physical_name:
        raise UserError(f"table {table} is one of the rules. Give the state one of its own, with the string key 'id'.")
    yield TableState(client, table)


def _forget(title: str, documents: State, rules: Rules, rules_file: Path) -> int:
    before = applied(documents)
    if title not in before:
        raise UserError(unknown("rule", title, before, "what was done"))
    if any(rule.title == title for rule in rules.rules.values()):
        raise UserError(f"rule {title} is in {rules_file}: only a rule that is gone can be forgotten")
    save_applied(documents, {name: digest for name, digest in before.items() if name != title}, datetime.now(UTC))
    print(f"forgot that rule {title} was done; what it wrote is still there, see `sync-rules prune`")
    return 0


# ---------------------------------------------------------------- doing it
@dataclass(frozen=True)
class How:
    """With how many workers, how fast, slowed down by whose lag, and where failures go."""

    workers: int
    rate: float
    age: IteratorAge | None
    max_lag_seconds: float
    failures: Path
    as_json: bool


def carry_out(job: Job, client: DynamoDBClient, documents: State, how: How) -> tuple[BackfillRun, bool]:
    """Run it and show it. Says whether all of it is done."""
    require_writable(how.failures)
    rate = Rate(how.rate)
    brake = None if how.age is None else Brake(rate, how.age, how.max_lag_seconds)
    if brake is not None:
        brake.look()
    meter = Meter(job.estimate)
    with stop_signals() as stopping, display_on(Console(stderr=True), as_json=how.as_json) as display:

        def before_write(units: float) -> None:
            if brake is not None:
                brake.look()
            rate.take(units)

        def on_page(totals: Totals) -> None:
            meter.begin(totals)
            display.update(lambda: meter.figures(run, totals))

        run = BackfillRun(
            job.selection,
            DynamoStore(client, job.selection.rules.tables, workers=WRITERS, sleep=slowing(rate)),
            DeduplicatedFailures(FailureLog(how.failures, wall_clock_ms), Limits(), THIS_PROCESS),
            documents,
            job.scope.body(),
            supplies=job.supplies,
            workers=how.workers,
            bounds=Bounds(Limits(apply_max_writes=writes_at_once(how.rate))),
            before_write=before_write,
            budget=Budget(job.selection.rules.tables),
            on_page=on_page,
            stopping=stopping,
            sleep=until(stopping),
        )
        done = run.run()
    how_to_go_on = "Go on with the same command and --resume." if job.resumable else "Run it again."
    conclude(
        run, meter, done=done, as_json=how.as_json, advice=(how_to_go_on, f"Parked or failed, and why: {how.failures}.")
    )
    return run, done
