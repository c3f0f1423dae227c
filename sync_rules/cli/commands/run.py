"""`sync-rules run`: consume the streams of all tables from a terminal or a container until stopped, and resume later.

Exit code 0 when stopped or, with --once, when everything was read; 2 when a table, index, stream or bucket is missing,
or the checkpoint is another's. Ctrl-C or SIGTERM finishes the batches in flight and saves; a second one stops at once,
and what was in flight comes again at the next start.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.console import Console

from sync_rules.adapters import aws
from sync_rules.adapters.budget import within_budget
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import archive_of, caller_of, require_buckets
from sync_rules.adapters.failure_log import require_writable
from sync_rules.adapters.files import locked, require_own
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.preflight import require
from sync_rules.adapters.streams import DynamoDBStreams
from sync_rules.cli.show.run import Display, display_on
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.mapping import Concurrently, serially
from sync_rules.jobs.consume.run import WAIT_SECONDS, Files, LocalRun
from sync_rules.language.load import load_rules
from sync_rules.pipeline.consumer import Consumer
from sync_rules.rules.ruleset import Rules

INTERRUPTED: Final = 130
SAME_SIGNAL_SECONDS: Final = 0.5
SHOW_CURSOR: Final = "\x1b[?25h"
A = TypeVar("A")
B = TypeVar("B")


def run(
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")] = Path("rules.yaml"),
    *,
    endpoint_url: Annotated[str | None, typer.Option(help="Another DynamoDB than AWS's, such as an emulator.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region.")] = None,
    checkpoint: Annotated[Path, typer.Option(help="Where to keep how far everything is done.")] = Files.checkpoint,
    failures: Annotated[Path, typer.Option(help="Where to append what cannot succeed.")] = Files.failures,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Records per batch.")] = 100,
    parallelization: Annotated[int, typer.Option(min=1, max=10, help="Batches of a shard at the same time.")] = 1,
    calls_table: Annotated[
        str | None, typer.Option(help="The table that remembers the calls made.", envvar="SYNC_RULES_CALLS_TABLE")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when everything there is was read.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the status as JSON lines.")] = False,
) -> int:
    """Consume the streams and keep the copies true, until stopped. Start it again to resume."""
    require_own(checkpoint, rules_file, failures)
    require_own(failures, rules_file)
    for path in (checkpoint, failures):
        require_writable(path)
    files = Files(checkpoint, failures)
    require_writable(files.batches)
    rules = load_rules(rules_file)
    client = aws.dynamodb(endpoint_url, region)
    arns = stream_arns(client, rules)
    settings = MappingSettings(
        batch_size=batch_size, parallelization_factor=parallelization, bisect_on_function_error=True
    )
    archive = archive_of(rules, endpoint_url=endpoint_url, region=region)
    require_buckets(rules, endpoint_url=endpoint_url, region=region)
    caller = caller_of(rules, client, calls_table, folder=rules_file.absolute().parent)
    with ExitStack() as stack:
        stack.enter_context(locked(files.checkpoint))
        local = LocalRun(
            stream_arns=arns,
            rules_fingerprint=rules.fingerprint,
            reader=DynamoDBStreams(aws.dynamodbstreams(endpoint_url, region)),
            store=within_budget(DynamoStore(client, rules.tables), rules.tables),
            make_consumer=lambda world: Consumer(rules, world, THIS_PROCESS),
            files=files,
            settings=settings,
            archive=archive,
            caller=caller,
            concurrently=stack.enter_context(threads(parallelization)),
        )
        display = stack.enter_context(display_on(Console(), as_json=as_json))
        for notice in (*local.notices, *forgetful(rules, calls_table)):
            display.say(notice)
        loop(local, display, stopping=stack.enter_context(stop_signals()), once=once)
        display.summary(local.status, files)
    return 0


def stream_arns(client: Any, rules: Rules) -> list[str]:
    """The streams to read, as they are now. Raises UserError when tables, indexes or streams do not fit the rules."""
    return list(require(client, rules).stream_arns)


def forgetful(rules: Rules, calls_table: str | None) -> list[str]:
    """What to say when calls are remembered in this process only."""
    calls = sorted(rules.functions)
    if not calls or calls_table:
        return []
    notice = (
        f"{', '.join(calls)}: the calls made are remembered by this process only, and what comes again after a restart"
        " is called again. Give a table with the string key 'id' with --calls-table."
    )
    return [notice]


@contextmanager
def threads(parallelization: int) -> Iterator[Concurrently]:
    """As many threads as batches may run at the same time; none when it is one at a time."""
    if parallelization == 1:
        yield serially
        return
    with ThreadPoolExecutor(parallelization) as pool:

        def together(function: Callable[[A], B], things: Sequence[A], /) -> Iterable[B]:
            return list(pool.map(function, things))

        yield together


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether SIGINT or SIGTERM came. A second one ends the process at once; not one that
    follows on its heels, since a terminal and a wrapper may both pass the same one on.
    """
    came: list[float] = []

    def note(_number: int, _frame: object) -> None:
        if came and time.monotonic() - came[0] < SAME_SIGNAL_SECONDS:
            return
        if came:
            sys.stdout.write(SHOW_CURSOR if sys.stdout.isatty() else "")
            sys.stdout.flush()
            os._exit(INTERRUPTED)
        came.append(time.monotonic())  # no lock: the handler may run while this very thread holds it

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def loop(
    local: LocalRun,
    display: Display,
    *,
    stopping: Callable[[], bool],
    once: bool,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Step until told to stop, or with `once` until everything was read; then save."""
    try:
        while not stopping():
            progressed = local.step().progressed
            display.update(lambda: local.status)
            if once and local.pump.idle:
                return
            if not progressed:
                sleep(WAIT_SECONDS)
    finally:
        local.save()
