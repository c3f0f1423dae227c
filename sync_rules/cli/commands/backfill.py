"""`sync-rules backfill`: apply the rules to items that already exist, with the same guarded writes as the handler.

Ctrl-C or SIGTERM finishes the writes in flight and saves the state; a second one stops at once. After either, and after
a crash, --resume continues.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.acceptance import find_applied_rules
from sync_rules.adapters.budget import Budget, Rate, choose_writes_at_once
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import State
from sync_rules.cli import options as opt
from sync_rules.cli.account import find_account, is_typed
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.link_sample import require_hits, sample_new_rules
from sync_rules.cli.remote_backfill import RemoteBackfill, choose_exit_code
from sync_rules.cli.saved_state import open_state
from sync_rules.cli.show.backfill import Meter, conclude, open_backfill_display
from sync_rules.cli.show.console import make_console
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.jobs.account.protocol import WORKERS_MAX as REMOTE_MAX
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.job import BackfillRequest, Job, list_unseen_changes, make_job
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.jobs.backfill.scope import (
    NOTHING_NEW,
    list_titles,
    list_waiting_titles,
    note_applied_rules,
    require_beginning,
    select_rules_to_apply,
)
from sync_rules.jobs.backfill.throttle import make_slowing_sleep, make_stoppable_sleep
from sync_rules.jobs.failure_log import FailureLog, require_writable
from sync_rules.jobs.local_files import Files, read_wall_clock_ms
from sync_rules.language.load import load_rules
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.pipeline.books import describe_waits
from sync_rules.pipeline.breaker import DeduplicatedFailures
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

WRITERS: Final = 8  # with WORKERS_MAX workers, as many calls in flight as the client has connections
RATE_OF_WORKER: Final = opt.RATE / opt.WORKERS  # write units a second
REMOTE_UNLIMITED_WORKERS: Final = 32
SEGMENTS_OF_WORKER: Final = opt.SEGMENTS // opt.WORKERS
NO_OTHERS: Final = (
    "--where", "--changed", "--resume", "--restart", "--rule", "--table", "--rate", "--format",
)  # fmt: skip

VERB: Final = Verb(
    needs={"--stop": ("--remote",)},
    excludes={
        "--changed": ("--rule",),
        "--stop": NO_OTHERS,
        "--remote": ("--accept", "--state"),
    },
)


def backfill(
    context: typer.Context,
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    rule: opt.RuleNames = None,
    changed: opt.Changed = False,
    accept: opt.Accept = None,
    table: opt.OnlyTable = None,
    where: opt.Where = None,
    rate: Annotated[
        float,
        typer.Option(
            min=0, help="Maximum write units per second. 0: no limit. With --remote, a higher rate has more workers."
        ),
    ] = opt.RATE,
    resume: Annotated[
        bool | None,
        typer.Option("--resume/--restart", help="Continue the unfinished backfill, or discard it and start again."),
    ] = None,
    state: opt.State = opt.STATE,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Lines = opt.LineForm.TEXT,
    remote: opt.Remote = False,
    stop: Annotated[bool, typer.Option("--stop", help="With --remote: stop the backfill that is running.")] = False,
) -> int:
    """Apply the rules to items that already exist. Start the stream handler first."""
    as_json = form is not opt.LineForm.TEXT
    begin = {"resume": resume is True, "restart": resume is False}
    if remote:
        account = find_account("BackfillMachineArn", endpoint_url, region)
        there = RemoteBackfill(account, rules_file, as_json=as_json)
        if stop:
            return there.stop()
        workers = _count_remote_workers(rate)
        asked = {"rules": rule or [], "changed": changed, "table": table, "where": where, "rate": rate, **begin}
        asked |= {"segments": max(opt.SEGMENTS, SEGMENTS_OF_WORKER * workers), "workers": workers}
        options = {"rules": "rule", "changed": "changed", "table": "table", "where": "where", "rate": "rate"}
        given = {word for word, parameter in options.items() if is_typed(context, parameter)}
        return there.start(load_rules(rules_file), asked, frozenset(given))
    rules = load_rules(rules_file)
    opt.require_titles(accept or (), rules, option="--accept")
    client = aws.dynamodb(endpoint_url, region)
    with open_state(state, client, rules) as documents:
        before = (
            find_applied_rules(documents, rules, list_waiting_titles(rules, _make_store(client, rules)))
            if changed
            else None
        )
        names, titles = select_rules_to_apply(rules, rule or [], before)
        if not names:
            note_applied_rules(documents, rules, titles)
            print(NOTHING_NEW)
            return 0
        job = make_job(client, rules, names, BackfillRequest(opt.SEGMENTS, table, where))
        require_beginning(documents, job.scope.body(), state, **begin)
        sampled: list[str] = []
        if not resume:  # a resumed backfill took its sample when it began
            done_before = find_applied_rules(documents, rules)
            sampled = require_hits(
                sample_new_rules(rules, names, done_before, accept or (), _make_store(client, rules))
            )
        for notice in (*list_unseen_changes(client, rules, names), *job.notices(), *sampled):
            print(notice, file=sys.stderr)
        run, done, stopped = run_job(job, client, documents, rate=Rate(rate), as_json=as_json)
        used = opt.repeat_options(rules_file, endpoint_url, region, state)
        waiting = _note_applied_rules(job, documents, run, titles, client, options=used) if done else frozenset()
    return ExitCode.INTERRUPTED if stopped else max(choose_exit_code(run, done=done), int(bool(waiting)))


# ---------------------------------------------------------------- options
def _count_remote_workers(rate: float) -> int:
    """The number of segments that functions scan in parallel: more for a higher rate."""
    if not rate:
        return REMOTE_UNLIMITED_WORKERS
    return min(REMOTE_MAX, max(opt.WORKERS, ceil(rate / RATE_OF_WORKER)))


# ---------------------------------------------------------------- the state
def _note_applied_rules(
    job: Job, documents: State, run: BackfillRun, titles: frozenset[str], client: DynamoDBClient, *, options: str
) -> frozenset[str]:
    """Note the rules that were applied, and print which ones wait. Returns those that wait though all was processed."""
    rules, names, covered = job.selection.rules, job.selection.names, job.covered_titles
    failed = list_titles(rules, run.totals.list_rules_with(Outcome.FAILED))
    waiting = list_waiting_titles(rules.only(names), _make_store(client, rules))
    whole = job.scope.table is None and job.scope.where is None
    effects = titles - list_titles(rules, names) if whole else frozenset()
    note_applied_rules(documents, rules, (covered | effects) - failed - waiting)
    for line in describe_waits(waiting, options):
        print(line, file=sys.stderr)
    return waiting & covered


# ---------------------------------------------------------------- a run on this machine
def _make_store(client: DynamoDBClient, rules: Rules, sleep: Callable[[float], None] = time.sleep) -> DynamoStore:
    return DynamoStore(client, rules.tables, workers=WRITERS, sleep=sleep)


def run_job(
    job: Job, client: DynamoDBClient, documents: State, *, rate: Rate, as_json: bool
) -> tuple[BackfillRun, bool, bool]:
    """Run a job and show its progress. Return the run, whether it is complete, and whether the user stopped it."""
    failures = Files.failures
    require_writable(failures)
    meter = Meter(job.estimate)
    with stop_signals() as stopping, open_backfill_display(make_console(stderr=True), as_json=as_json) as display:

        def on_page(totals: Totals) -> None:
            meter.begin(totals)
            display.update(lambda: meter.figures(run, totals))

        run = BackfillRun(
            job.selection,
            _make_store(client, job.selection.rules, make_slowing_sleep(rate)),
            DeduplicatedFailures(FailureLog(failures, read_wall_clock_ms), Limits(), THIS_PROCESS),
            documents,
            job.scope.body(),
            supplies=job.supplies,
            completes=job.completes,
            workers=opt.WORKERS,
            bounds=Bounds(Limits(apply_max_writes=choose_writes_at_once(rate.ceiling))),
            before_write=rate.take,
            budget=Budget(job.selection.rules.tables),
            on_page=on_page,
            stopping=stopping,
            sleep=make_stoppable_sleep(stopping),
        )
        done = run.run()
        stopped = not done and stopping()
    advice = ("Continue with the same command and --resume.", f"Failure records: {failures}.")
    conclude(run, meter, done=done, as_json=as_json, advice=advice)
    return run, done, stopped
