"""`sync-rules redrive`: retry failed work, from files, queues or buckets, and from the streams that batches name.

An entry that succeeds is removed from its place. An entry that fails again stays there with its reason; so does one
that cannot be read, or whose rule no longer exists.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from sync_rules.adapters import aws
from sync_rules.adapters.beginnings import CallsSince, list_beginnings, read_beginnings
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import make_caller
from sync_rules.adapters.kept_calls import CallsAnywhere, CallsInBucket, CallsInFolder
from sync_rules.adapters.meter import limit_store
from sync_rules.adapters.preflight import require_tables
from sync_rules.adapters.sqs import SqsQueue, require_queue_url
from sync_rules.cli import options as opt
from sync_rules.cli.account import Account, find_account
from sync_rules.cli.commands.failures import Places, list_titles
from sync_rules.cli.show.console import make_console, say
from sync_rules.cli.verb import Verb
from sync_rules.jobs.account.account_redrive import UNITS, add_counts, load_documents
from sync_rules.jobs.account.protocol import describe_rules
from sync_rules.jobs.failure_log import FailureLog, require_writable
from sync_rules.jobs.local_files import Files, read_wall_clock_ms
from sync_rules.jobs.redrive.entries import LeftEntry, RedriveCounts
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.values import escape_invisible
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.ruleset import Rules

PLACES: Final = ("--file", "--queue", "--bucket")

VERB: Final = Verb(
    excludes={"--remote": (*PLACES, "--function", "--dry-run", "--failures", "--fanout-queue", "--calls-table")}
)


def redrive(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    rule: opt.RuleNames = None,
    file: opt.FailureFiles = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="SQS queue of failure records, batches or dead letters. Repeatable."),
    ] = None,
    bucket: opt.Buckets = None,
    function: Annotated[
        str, typer.Option(metavar="NAME", help="Only batches of this Lambda function, by name or ARN.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be retried, and change nothing.")] = False,
    fanout_queue: Annotated[
        str | None,
        typer.Option(metavar="URL", help="SQS queue for second looks. Default: redrive waits and does them itself."),
    ] = None,
    calls_table: opt.CallsTable = None,
    failures: opt.Failures = Files.failures,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Lines = opt.LineForm.TEXT,
    remote: opt.Remote = False,
) -> int:
    """Retry failed work; safe at any later time. Only current values are written."""
    as_json = form is not opt.LineForm.TEXT
    rules = load_rules(rules_file)
    only = None if not rule else list_titles(rule, rules)
    if remote:
        account = find_account("RedriveMachineArn", endpoint_url, region)
        return redrive_in_account(account, rules, only, as_json=as_json)
    places = Places(file or [], queue or [], bucket or [], endpoint_url, region).places(peek=dry_run)
    console = make_console(stderr=True)
    with ExitStack() as stack:
        for place in places:
            stack.callback(place.close)
        status = stack.enter_context(console.status("redriving", spinner="dots"))

        def show_wait(words: str) -> None:
            status.update(words)
            if not console.is_terminal:  # a log would otherwise stay silent for minutes
                console.print(words, highlight=False)

        client = aws.dynamodb(endpoint_url, region)
        store = limit_store(DynamoStore(client, rules.tables), rules.tables)
        recorded = FailureLog(failures, read_wall_clock_ms)
        folder = CallsInFolder(Files.locate_calls(failures), [Files.locate_calls(path) for path in file or ()])
        kept = CallsAnywhere(CallsInBucket(lambda: aws.s3(endpoint_url, region)), folder)
        world = World(store, NULL_PORTS, recorded, kept=kept)
        if not dry_run:
            chosen = rules.select_titles(only)
            if not calls_table:
                _require_no_calls(chosen)
            require_tables(client, chosen, streams=False)
            require_writable(failures)
            caller = make_caller(chosen, client, calls_table, folder=rules_file.absolute().parent)
            known = read_beginnings(client, chosen, calls_table)
            world = replace(world, caller=CallsSince(caller, list_beginnings(chosen, known)))
        redriver = Redriver(
            rules,
            world,
            reader=DynamoDBStreams(aws.dynamodbstreams(endpoint_url, region)),
            queue=SqsQueue(aws.sqs(endpoint_url, region), require_queue_url(fanout_queue), on_small=show_wait)
            if fanout_queue
            else None,
            only=only,
            function=function,
            on_left=lambda left: print(
                json.dumps({"left": asdict(left)}) if as_json else format_left_entry(left), flush=True
            ),
            on_entry=lambda where: status.update(escape(escape_invisible(where))),
            on_wait=show_wait,
        )
        for place in places:
            if dry_run:
                for words in redriver.rehearse(place):
                    print(json.dumps({"would": words}) if as_json else f"would retry: {words}", flush=True)
            else:
                redriver.take(place)
        redriver.rest()
    folder.remove(redriver.list_called_places())  # now that no failure record names them
    tally = redriver.tally
    print(json.dumps(asdict(tally)) if as_json else format_summary(tally, failures, dry_run=dry_run))
    return 1 if tally.again or tally.unreadable else 0


def _require_no_calls(rules: Rules) -> None:
    """Raises UserError when a rule calls a function, as nothing tells which calls were already made."""
    if calls := sorted(rules.functions):
        raise UserError(
            f"{', '.join(calls)}: each change must call the function once, and redrive does not know which calls were "
            "already made. Name the table that remembers them with --calls-table, or choose other rules with --rule."
        )


# ---------------------------------------------------------------- in the account
def redrive_in_account(account: Account, rules: Rules, titles: frozenset[str] | None, *, as_json: bool) -> int:
    """Start a redrive, watch it to its end, and show its figures. Return the exit code of the command."""
    name = account.machine.start("redrive", {"rules": sorted(titles or ()), **describe_rules(rules)})
    console = make_console(stderr=True)
    with console.status("redriving", spinner="dots") as status:

        def look() -> None:
            tally = add_counts(load_documents(account.state, name, UNITS).values())
            status.update(f"{name}: {tally.done:,} retried, {tally.written + tally.acted:,} written or called")

        ended = account.machine.watch(name, look)
    done = ended.well()
    tally = add_counts(load_documents(account.state, name, UNITS).values())
    queue = account.stack.output("FailuresQueueUrl")
    print(json.dumps(asdict(tally)) if as_json else format_summary(tally, queue))
    if not done:
        say(console, ended.cause or ended.status)
    elif (tally.again or tally.unreadable) and not as_json:
        letters, bucket = account.stack.output("FanoutDeadLettersUrl"), account.stack.output("BucketName")
        where = account.format_failures_command("--queue", letters, "--bucket", f"s3://{bucket}/aws/")
        print(f"To see what remains, and why: {where}")
    return 1 if tally.again or tally.unreadable or not done else 0


# ---------------------------------------------------------------- output
def format_left_entry(left: LeftEntry) -> str:
    """Return an entry that remains as text for people."""
    again = "cannot be retried" if left.unreadable else "failed again"
    return escape_invisible(f"{left.where}: {again}: {left.reason} · {left.what}")


def format_summary(tally: RedriveCounts, failures: Path | str, *, dry_run: bool = False) -> str:
    if dry_run:
        parts = [f"{tally.done:,} would be retried"]
    else:
        parts = [f"{tally.done:,} retried and removed", f"{tally.written:,} written"]
    parts += [
        f"{count:,} {words}"
        for count, words in (
            (tally.acted, "called"),
            (tally.kept, "retried for some rules only, and kept"),
            (tally.again, "failed again, and kept"),
            (tally.unreadable, "cannot be retried, and kept"),
            (tally.skipped, "of other rules or functions, skipped"),
            (tally.parked, f"new failures, in {failures}"),
        )
        if count
    ]
    return ", ".join(parts)
