"""`sync-rules run`: consume the streams of all tables from a terminal or a container until stopped, and resume later.

Ctrl-C or SIGTERM finishes the batches in flight and saves the checkpoint; a second one stops at once, and the next
start processes the batches in flight again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.console import Console

from sync_rules.adapters import aws
from sync_rules.adapters.acceptance import find_applied_rules
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import make_caller
from sync_rules.adapters.files import lock_file, read_if_there, require_own
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.meter import limit_store
from sync_rules.adapters.preflight import list_stream_arns, require_tables
from sync_rules.adapters.state import State
from sync_rules.cli import options as opt
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.link_sample import require_hits, sample_new_rules
from sync_rules.cli.saved_state import read_state
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.display import Display, open_display
from sync_rules.cli.show.text import bracket_alterations, format_count, format_duration
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import POLL_BUSY_MS, WAIT_SECONDS, LocalRun, RunStatus
from sync_rules.jobs.consume.mapping import Concurrently, run_serially
from sync_rules.jobs.consume.run_start import RunAcceptance, RunBeginnings
from sync_rules.jobs.failure_log import require_writable
from sync_rules.jobs.local_files import Files
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.language.load import load_rules
from sync_rules.model import json_bytes
from sync_rules.model.errors import StoreError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import Store
from sync_rules.rules.ruleset import Rules

LINE_EVERY_SECONDS: Final = 5.0
TABLES_MAX: Final = 20  # named at the start
ALWAYS: Final = ("copied", "right", "refused", "failed", "parked")
COUNTED: Final = (
    "copied",
    "done",
    "right",
    "refused",
    "failed",
    "again",
    "waiting",
    "parked",
)  # in the order of the line


def describe_beginning(rules_file: Path, rules: Rules, place: str, files: Files) -> list[str]:
    """Return the sentences before the first request: the rules, the tables and their place, and the start position."""
    titles = {rule.title for rule in rules.rules.values()}
    names = [table.physical_name for table in rules.streamed_tables]
    more = f" and {len(names) - TABLES_MAX:,} more" if len(names) > TABLES_MAX else ""
    what = f"{rules_file}: {format_count(len(titles), 'rule')} over {format_count(len(names), 'table')} at {place}"
    since = "reads the streams from their beginning, up to 24 hours back, as there is no"
    if files.checkpoint.exists():
        since = "resumes from"
    return [f"{what}: {', '.join(names[:TABLES_MAX])}{more}.", f"This run {since} {files.checkpoint}."]


@contextmanager
def open_run_display(console: Console, *, as_json: bool) -> Iterator[Display[RunStatus]]:
    """Open the display of a run: JSON lines on request, a live line on a terminal, plain lines elsewhere."""
    if as_json:
        yield Display(lambda text: _put(notice=text), lambda now: _put(status=asdict(now)), LINE_EVERY_SECONDS)
        return
    with open_display(console, _LineOf(), every_seconds=LINE_EVERY_SECONDS) as display:
        display.shown = -inf  # the first line comes at once
        yield display


def conclude(display: Display[RunStatus], status: RunStatus, files: Files, *, as_json: bool) -> None:
    """Show the last status, then a summary."""
    display.show(status)
    if as_json:
        _put(summary={**asdict(status), "checkpoint": str(files.checkpoint)})
        return
    for text in list_summary_lines(status, files):
        display.say(text)


def _put(**content: Any) -> None:
    """Print a JSON line: {"status": ...}, {"notice": ...}, at last {"summary": ...}."""
    print(json.dumps(content), flush=True)


class _LineOf:
    """The line for each status, with the rate since the one before."""

    def __init__(self) -> None:
        self._before = RunStatus()

    def __call__(self, now: RunStatus) -> str:
        before, self._before = self._before, now
        seconds = now.seconds - before.seconds
        return format_status(now, (now.records - before.records) / seconds if seconds > 0 else 0.0)


def format_status(status: RunStatus, records_per_second: float) -> str:
    lag = "-" if status.lag_ms is None else format_duration(status.lag_ms)
    over = () if status.messages_due or status.messages_waiting else ("again",)  # what was to be tried again, was
    parts = [
        f"{records_per_second:,.0f} records/s",
        f"{status.records:,} records",
        *(
            f"{name} {getattr(status, name):,}"
            for name in COUNTED
            if name in ALWAYS or (getattr(status, name) and name not in over)
        ),
        f"lag {lag}",
        f"later {status.messages_due:,} due, {status.messages_waiting:,} waiting",
        f"{status.shards:,} shards",
        *list_warnings(status),
    ]
    return " · ".join(parts)


def list_warnings(status: RunStatus) -> list[str]:
    """List sentences about lost records, given-up records and errors; none if all is well."""
    found = []
    if status.trimmed:
        found.append(f"RECORDS LOST BEFORE THEY WERE READ ({status.trimmed} times): run `sync-rules verify --repair`")
    if status.given_up:
        found.append(f"{status.given_up:,} records given up")
    if status.read_errors:
        found.append(f"{status.read_errors:,} reads of a stream failed")
    if status.errors:
        found.append("errors: " + ", ".join(f"{name} {count:,}" for name, count in status.errors.items()))
    return found


def list_summary_lines(status: RunStatus, files: Files) -> list[str]:
    """List the lines of the summary: counts, the checkpoint, and the files of failures."""
    altered = bracket_alterations(status.alterations)
    later = status.messages_due + status.messages_waiting
    done = (
        f"{status.records:,} records in {status.seconds:,.1f} s: {status.copied:,} copied{altered}, "
        f"{status.right:,} already right, {status.refused:,} refused by a guard, "
        f"{status.failed:,} failed, {status.parked:,} parked."
        + (f" {status.done:,} called." if status.done else "")
        + (f" {status.again:,} to be retried." if status.again and later else "")
    )
    lines = [done, f"Checkpoint: {files.checkpoint}, with {later:,} messages for later."]
    if status.waiting:
        lines.append(f"{status.waiting:,} times a number was left as it is, because its rule waits for a backfill.")
    if status.parked:
        lines.append(f"Failure records: {files.failures}.")
    if status.given_up:
        lines.append(f"Batches given up: {files.batches}.")
    return [*lines, *list_warnings(status)]


# One process reads the streams and works off messages by turns: a large fan-out gives way to records after this many.
BY_TURNS: Final = Limits(fan_out_inline_max_items=200, fan_out_relay_max_items=200)
READ_ONCE: Final = Limits(fan_out_again_first_seconds=0, fan_out_again_max_seconds=0)  # later work would never be taken
LOOK_EVERY_SECONDS: Final = 2.0  # at the rules file
A = TypeVar("A")
B = TypeVar("B")

VERB: Final = Verb(stopped=ExitCode.WELL)


def run(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    checkpoint: Annotated[
        Path, typer.Option(metavar="FILE", help="File with the position in each stream.")
    ] = Files.checkpoint,
    failures: opt.Failures = Files.failures,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of records per batch.")] = 1_000,
    parallelization: Annotated[
        int, typer.Option(min=1, max=10, help="Batches of one shard that are processed in parallel.")
    ] = 1,
    calls_table: opt.CallsTable = None,
    accept: opt.Accept = None,
    state: opt.State = opt.STATE,
    once: opt.Once = False,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Consume the tables' streams and keep copies correct. Runs until stopped; start it again to resume."""
    as_json = form is not opt.LineForm.TEXT
    require_own(checkpoint, rules_file, failures)
    require_own(failures, rules_file)
    for path in (checkpoint, failures):
        require_writable(path)
    files = Files(checkpoint, failures)
    require_writable(files.batches)
    edited = Edited(rules_file)
    rules = load_rules(rules_file)
    client = aws.dynamodb(endpoint_url, region)
    settings = make_settings(batch_size, parallelization, own_engine=endpoint_url is not None and not once)
    with ExitStack() as stack:
        display = stack.enter_context(open_run_display(make_console(), as_json=as_json))
        for text in describe_beginning(rules_file, rules, aws.format_place(client), files):
            display.say(text)
        arns = list(require_tables(client, rules, times_to_live=True).stream_arns)
        store = limit_store(dynamodb := DynamoStore(client, rules.tables), rules.tables)
        opt.require_titles(accept or (), rules, option="--accept")
        open_state = partial(read_state, state, client)
        if not is_resumed(files.checkpoint, rules):
            for text in list_link_notices(rules, open_state(), accept or (), store):
                display.say(text)
        options = opt.repeat_options(rules_file, endpoint_url, region, state)
        acceptance = RunAcceptance(rules, open_state, accept or (), store, options)
        caller = make_caller(rules, client, calls_table, folder=rules_file.absolute().parent)
        stack.enter_context(lock_file(files.checkpoint))
        local = LocalRun(
            stream_arns=arns,
            rules_fingerprint=rules.fingerprint,
            reader=DynamoDBStreams(aws.dynamodbstreams(endpoint_url, region)),
            store=store,
            make_consumer=lambda world: Consumer(
                rules, world, THIS_PROCESS, limits=READ_ONCE if once else BY_TURNS, unaccepted=acceptance.unaccepted
            ),
            files=files,
            settings=settings,
            caller=caller,
            beginnings=RunBeginnings(rules, client, calls_table),
            acceptance=acceptance,
            concurrently=stack.enter_context(open_threads(parallelization)),
            share=dynamodb.share if store is dynamodb else map,  # a thread does not see what another one read
            latest_streams=lambda: list_stream_arns(client, rules.streamed_tables),
        )
        for notice in (
            *list_calls_notices(rules, calls_table),
            *list_acceptance_notices(acceptance),
            *local.begin(options),
        ):
            display.say(notice)
        run_loop(local, display, stopping=stack.enter_context(stop_signals()), once=once, notices=edited.notices)
        for notice in local.take_notices():
            display.say(notice)
        conclude(display, local.status, files, as_json=as_json)
    return 0


def make_settings(batch_size: int, parallelization: int, *, own_engine: bool) -> MappingSettings:
    """Make the settings of the mappings. A local engine is polled more often while records arrive. A run that ends at
    the end of the streams keeps the default, because several empty pages mark the end.
    """
    found = MappingSettings(batch_size=batch_size, parallelization_factor=parallelization)
    return replace(found, poll_busy_ms=POLL_BUSY_MS) if own_engine else found


def is_resumed(path: Path, rules: Rules) -> bool:
    """Return True if the checkpoint at `path` has the fingerprint of these rules. Then an earlier run
    sampled or accepted them.
    """
    text = read_if_there(path, "a checkpoint")
    try:
        return text is not None and json_bytes.parse_json(text).get("rules_fingerprint") == rules.fingerprint
    except (ValueError, AttributeError):
        return False  # `checkpoint.load` says what is wrong with the file


def list_link_notices(rules: Rules, documents: State, accepted: Collection[str], store: Store) -> list[str]:
    """Sample the links of new rules and return the notices, or a notice that the sample failed: a run needs no right to
    scan. Raises UserError if a rule would write wrong values.
    """
    try:
        return require_hits(
            sample_new_rules(rules, rules.keeper_names, find_applied_rules(documents, rules), accepted, store)
        )
    except StoreError as error:
        needs = "dynamodb:Scan on their tables, and GetItem on the state table"
        return [f"the links of new rules were not sampled: {error}. The sample needs {needs}."]


def list_acceptance_notices(acceptance: RunAcceptance) -> Iterator[str]:
    """Yield a notice about the rules that are not accepted, and how to accept them."""
    ways = list(dict.fromkeys(acceptance.unaccepted().values()))
    if ways:
        more = f" ({len(ways)} rules)" if len(ways) > 1 else ""
        notice = "a rule that is not accepted leaves values of others as they are, with a failure record"
        yield f"{notice}. To accept it, {ways[0]}{more}, or start again with --accept"


def list_calls_notices(rules: Rules, calls_table: str | None) -> Iterator[str]:
    """Yield a notice if only this process remembers which calls were made."""
    if rules.functions and not calls_table:
        yield (
            f"{', '.join(sorted(rules.functions))}: only this process remembers which calls were made, so a record that"
            " is delivered again after a restart calls the function again. Name a table with the string key 'id' with"
            " --calls-table."
        )


@contextmanager
def open_threads(parallelization: int) -> Iterator[Concurrently]:
    """Yield a function that processes batches in parallel threads; without threads if `parallelization` is 1."""
    if parallelization == 1:
        yield run_serially
        return
    with ThreadPoolExecutor(parallelization) as pool:

        def together(function: Callable[[A], B], things: Sequence[A], /) -> Iterable[B]:
            return list(pool.map(function, things))

        yield together


class Edited:
    """A watch on the rules file. It reports when the file differs from the start of the run. A run keeps the rules that
    it read: a half-saved file, or a mistake in it, must not reach the tables.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._look_at = clock() + LOOK_EVERY_SECONDS
        self._first = self._seen = self._read_content()

    def notices(self) -> list[str]:
        """Return a sentence for each change of the file; it reads the file every few seconds."""
        if self._clock() < self._look_at:
            return []
        self._look_at = self._clock() + LOOK_EVERY_SECONDS
        before, self._seen = self._seen, self._read_content()
        if self._seen == before:
            return []
        if self._seen == self._first:
            return [f"{self._path} is again what this run was started with."]
        now = "is gone or cannot be read" if self._seen is None else "has changed"
        cure = "stop it and start it again to apply the file"
        return [f"{self._path} {now}. This run applies the rules that it was started with: {cure}."]

    def _read_content(self) -> bytes | None:
        if not self._path.is_file():  # such as standard input, which can be read once
            return None
        try:
            return self._path.read_bytes()
        except OSError:
            return None


def run_loop(
    local: LocalRun,
    display: Display[RunStatus],
    *,
    stopping: Callable[[], bool],
    once: bool,
    sleep: Callable[[float], object] = time.sleep,
    notices: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Step until stopped or, with `once`, until everything was read; then save. Show each notice when it is new."""
    try:
        while not stopping():
            for notice in (*local.take_notices(), *notices()):
                display.say(notice)
            progressed = local.step().has_progress
            display.update(lambda: local.status)
            if once and local.pump.idle:
                return
            if not progressed:
                sleep(WAIT_SECONDS)
    finally:
        local.save()
