"""`sync-rules backfill`: apply the rules to items that already exist, with the same guarded writes as the handler.

Ctrl-C or SIGTERM finishes the writes in flight and saves the state; a second one stops at once. After either, and after
a crash, --resume continues.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.acceptance import applied_so_far
from sync_rules.adapters.budget import Budget, Rate, writes_at_once
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import short_name
from sync_rules.adapters.export_files import find_shelf, parse_time
from sync_rules.adapters.failure_log import FailureLog, require_writable
from sync_rules.adapters.files import locked
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import FileState, MemoryState, State, TableState, applied, applied_at, save_applied
from sync_rules.cli import options as opt
from sync_rules.cli.account import account_of, require_local, typed
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.link_sample import require_hits, require_rules, sample_new_rules
from sync_rules.cli.remote_backfill import RemoteBackfill, code_of
from sync_rules.cli.show.backfill import Meter, conclude, display_on
from sync_rules.cli.show.console import make_console
from sync_rules.cli.signals import stop_signals
from sync_rules.jobs.account.protocol import WORKERS_MAX as REMOTE_MAX
from sync_rules.jobs.backfill.job import BackfillRequest, Job, job_of, job_of_item, unseen_changes
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.jobs.backfill.run import BackfillRun
from sync_rules.jobs.backfill.scope import (
    NOTHING_NEW,
    note_applied,
    require_beginning,
    rules_to_apply,
    titles_of,
    waiting_titles,
)
from sync_rules.jobs.backfill.throttle import Brake, IteratorAge, slowing, until
from sync_rules.jobs.consume.run import Files, wall_clock_ms
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.suggest import unknown
from sync_rules.pipeline.books import waits
from sync_rules.pipeline.breaker import DeduplicatedFailures
from sync_rules.rules.key_json import parse_key
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ZONED: Final = re.compile(r"[0-9](Z|[+-][0-9]{2}:?[0-9]{2})$")
WRITERS: Final = 8  # with WORKERS_MAX workers, as many calls in flight as the client has connections


def backfill(
    context: typer.Context,
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    rule: opt.RuleNames = None,
    changed: opt.Changed = False,
    accept: opt.Accept = None,
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Only items of this table; with --key, the table of the key.")
    ] = None,
    where: opt.Where = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Only the item with this key: its own copies, and all copies made of it."),
    ] = None,
    from_export: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Take the keys from a table export: a folder or s3://bucket/prefix."),
    ] = None,
    handler_since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --from-export: since when the handler has these rules, such as 2026-01-31T09:30Z.",
        ),
    ] = None,
    segments: Annotated[
        int, typer.Option(min=1, max=10_000, help="Segments that each table's scan is divided into.")
    ] = opt.SEGMENTS,
    workers: Annotated[
        int,
        typer.Option(
            min=1, max=REMOTE_MAX, help=f"Segments scanned in parallel; at most {opt.WORKERS_MAX} without --remote."
        ),
    ] = opt.WORKERS,
    rate: Annotated[float, typer.Option(min=0, help="Maximum write units per second. 0: no limit.")] = opt.RATE,
    max_lag: Annotated[
        float | None, typer.Option(min=0, help="Slow down while --function is more than this many seconds behind.")
    ] = None,
    function: Annotated[
        str | None, typer.Option(metavar="NAME", help="The Lambda function that handles the streams, for --max-lag.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the unfinished backfill.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard the unfinished backfill and start from the beginning.")
    ] = False,
    state: opt.StateFile = opt.STATE,
    state_table: opt.StateTable = None,
    forget: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Drop a deleted rule from the saved state, and do nothing else."),
    ] = None,
    failures: opt.Failures = Files.failures,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    as_json: opt.JsonLines = False,
    remote: opt.Remote = False,
    stack_name: opt.StackName = opt.STACK,
    detach: opt.Detach = False,
    stop: Annotated[bool, typer.Option("--stop", help="With --remote: stop the backfill that is running.")] = False,
) -> int:
    """Apply the rules to items that already exist. Start the stream handler first."""
    if remote:
        require_local({"--key": key, "--from-export": from_export, "--forget": forget})
        require_local({"--handler-since": handler_since, "--accept": accept})
        require_local({"--max-lag": max_lag is not None, "--function": function})
        require_local(
            {"--state": state != opt.STATE, "--failures": failures != Files.failures}, "the stack has its own"
        )
        require_local({"--state-table": typed(context, "state_table")}, "the stack has its own")
        account = account_of(stack_name, "BackfillMachineArn", endpoint_url, region)
        there = RemoteBackfill(account, rules_file, as_json=as_json)
        if stop:
            return there.stop()
        asked = {"rules": rule or [], "changed": changed, "table": table, "where": where, "segments": segments}
        asked |= {"workers": workers, "rate": rate, "resume": resume, "restart": restart}
        words = {"rules": "rule", **{word: word for word in asked if word not in ("rules", "resume", "restart")}}
        given = frozenset(word for word, parameter in words.items() if typed(context, parameter))
        return there.start(load_rules(rules_file), asked, given, detach=detach)
    if (max_lag is None) != (function is None) or (max_lag is not None and not rate):
        raise UserError("--max-lag and --function must be given together, and need a --rate above 0")
    since = _since(handler_since, from_export)
    if workers > opt.WORKERS_MAX:
        raise UserError(f"--workers {workers}: expected at most {opt.WORKERS_MAX} on one machine; --remote takes more")
    rules = load_rules(rules_file)
    require_rules(rules, accept or ())
    client = aws.dynamodb(endpoint_url, region)
    with ExitStack() as stack:
        documents: State = MemoryState() if key else stack.enter_context(_opened(state, state_table, client, rules))
        if forget is not None:
            return _forget(forget, documents, rules, rules_file)
        before = applied_so_far(documents, rules, waiting_titles(rules, _store(client, rules))) if changed else None
        names, titles = rules_to_apply(rules, rule or [], before)
        if not names:
            return _nothing_new(documents, rules, titles)
        sampled: list[str] = []
        if key is not None:
            job = job_of_item(client, rules, names, parse_key(key, table, rules))
        else:
            export = None if from_export is None else (from_export, find_shelf(from_export, endpoint_url, region))
            job = job_of(client, rules, names, BackfillRequest(segments, table, where, export, since))
            kept = state_table or str(state)
            require_beginning(documents, job.scope.body(), kept, resume=resume, restart=restart)
            if not resume:  # a resumed backfill took its sample when it began
                done_before = applied_so_far(documents, rules)
                sampled = require_hits(sample_new_rules(rules, names, done_before, accept or (), _store(client, rules)))
        age = None if function is None else IteratorAge(aws.cloudwatch(endpoint_url, region), function)
        for notice in (*unseen_changes(client, rules, names), *job.notices(), *sampled):
            print(notice, file=sys.stderr)
        pace = Rate(rate)
        brake = None if age is None else Brake(pace, age, max_lag or 0.0)
        run, done, stopped = run_job(
            job, client, documents, workers=workers, rate=pace, brake=brake, failures=failures, as_json=as_json
        )
        used = opt.used(rules_file, endpoint_url, region, state, state_table)
        waiting = _noted(job, documents, run, titles, client, options=used) if done and key is None else frozenset()
    return ExitCode.INTERRUPTED if stopped else max(code_of(run, done=done), int(bool(waiting)))


# ---------------------------------------------------------------- options
def _since(text: str | None, from_export: str | None) -> datetime | None:
    """Raises UserError for no time, and for one without an export."""
    if text is None:
        return None
    if from_export is None:
        raise UserError("--handler-since is about an export: give --from-export too")
    expected = "expected a time and its zone, such as 2026-01-31T09:30Z or 2026-01-31T10:30+01:00"
    if not ZONED.search(text):
        raise UserError(f"--handler-since {text}: {expected}")
    try:
        return parse_time(text)
    except ValueError:
        raise UserError(f"--handler-since {text}: {expected}") from None


# ---------------------------------------------------------------- the state
@contextmanager
def _opened(file: Path, table: str | None, client: DynamoDBClient, rules: Rules) -> Iterator[State]:
    """Open the state. A file is locked for as long as it is open."""
    if table is None:
        require_writable(file)
        with locked(file, "backfill", "--state"):
            yield FileState(file)
        return
    if short_name(table) in rules.by_physical_name:
        raise UserError(f"table {table} belongs to the rules. Give the state its own table, with the string key 'id'.")
    yield TableState(client, table)


def _nothing_new(documents: State, rules: Rules, titles: frozenset[str]) -> int:
    note_applied(documents, rules, titles)
    print(NOTHING_NEW)
    return 0


def _noted(
    job: Job, documents: State, run: BackfillRun, titles: frozenset[str], client: DynamoDBClient, *, options: str
) -> frozenset[str]:
    """Note the rules that were applied, and print which ones wait. Returns those that wait though all was processed."""
    rules, names, covered = job.selection.rules, job.selection.names, job.covered
    failed = titles_of(rules, run.totals.rules_with(Outcome.FAILED))
    waiting = waiting_titles(rules.only(names), _store(client, rules))
    whole = job.scope.table is None and job.scope.where is None
    effects = titles - titles_of(rules, names) if whole else frozenset()
    note_applied(documents, rules, (covered | effects) - failed - waiting)
    for line in waits(waiting, options):
        print(line, file=sys.stderr)
    return waiting & covered


def _forget(title: str, documents: State, rules: Rules, rules_file: Path) -> int:
    before = applied(documents)
    if title not in before:
        raise UserError(unknown("rule", title, before, "the saved state"))
    if any(rule.title == title for rule in rules.rules.values()):
        raise UserError(f"rule {title} is in {rules_file}: only a deleted rule can be dropped from the state")
    at = applied_at(documents) or datetime.now(UTC)
    save_applied(documents, {name: digest for name, digest in before.items() if name != title}, at)
    print(f"dropped rule {title} from the saved state; its copies remain, see `sync-rules prune`")
    return 0


# ---------------------------------------------------------------- a run on this machine
def _store(client: DynamoDBClient, rules: Rules, sleep: Callable[[float], None] = time.sleep) -> DynamoStore:
    return DynamoStore(client, rules.tables, workers=WRITERS, sleep=sleep)


def run_job(
    job: Job,
    client: DynamoDBClient,
    documents: State,
    *,
    workers: int,
    rate: Rate,
    brake: Brake | None,
    failures: Path,
    as_json: bool,
) -> tuple[BackfillRun, bool, bool]:
    """Run a job and show its progress. Gives the run, whether it is complete, and whether it was stopped before."""
    require_writable(failures)
    if brake is not None:
        brake.look()
    meter = Meter(job.estimate)
    with stop_signals() as stopping, display_on(make_console(stderr=True), as_json=as_json) as display:

        def before_write(units: float) -> None:
            if brake is not None:
                brake.look()
            rate.take(units)

        def on_page(totals: Totals) -> None:
            meter.begin(totals)
            display.update(lambda: meter.figures(run, totals))

        run = BackfillRun(
            job.selection,
            _store(client, job.selection.rules, slowing(rate)),
            DeduplicatedFailures(FailureLog(failures, wall_clock_ms), Limits(), THIS_PROCESS),
            documents,
            job.scope.body(),
            supplies=job.supplies,
            completes=job.completes,
            workers=workers,
            bounds=Bounds(Limits(apply_max_writes=writes_at_once(rate.ceiling))),
            before_write=before_write,
            budget=Budget(job.selection.rules.tables),
            on_page=on_page,
            stopping=stopping,
            sleep=until(stopping),
        )
        done = run.run()
        stopped = not done and stopping()
    go_on = "Continue with the same command and --resume." if job.resumable else "Run it again."
    conclude(run, meter, done=done, as_json=as_json, advice=(go_on, f"Failure records: {failures}."))
    return run, done, stopped
