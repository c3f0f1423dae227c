"""`sync-rules redrive`: put through again what failed, from files, queues, buckets, or out of the stream itself.

What succeeds is removed from its place. What fails again stays there, with its reason; so does what cannot be read, and
what is about rules that are gone.

Exit code 0 when nothing failed again, 1 when something did or could not be put through, 2 for the user's mistake.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from sync_rules.adapters import aws
from sync_rules.adapters.budget import within_budget
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import archive_of, caller_of, require_buckets
from sync_rules.adapters.failure_log import FailureLog, require_writable
from sync_rules.adapters.preflight import require
from sync_rules.adapters.sqs import SqsQueue, require_queue_url
from sync_rules.adapters.streams import DynamoDBStreams
from sync_rules.cli.account import (
    STACK,
    Account,
    Detach,
    Remote,
    StackName,
    account_of,
    left_alone,
    require_local,
    require_remote,
    typed,
)
from sync_rules.cli.commands.failures import Given, asked_titles
from sync_rules.jobs.account.protocol import as_here
from sync_rules.jobs.account.redrive import UNITS, total, unit_documents
from sync_rules.jobs.consume.run import Files, wall_clock_ms
from sync_rules.jobs.redrive.redriver import Left, Redriver, Tally
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.pipeline.failed_entries import Entry
from sync_rules.pipeline.failure_records import visible
from sync_rules.pipeline.records import STREAM_ARN
from sync_rules.pipeline.requests import NobodyLooksAgain, World
from sync_rules.rules.ruleset import Rules

VERB = "redrive"


def redrive_in_account(
    account: Account,
    rules: Rules,
    titles: frozenset[str] | None,
    *,
    detach: bool,
    as_json: bool,
    summary: Callable[[Tally, str], str],
) -> int:
    """Start it and watch it to its end; then what became of the entries. Exit codes as the command's."""
    name = account.machine.start(VERB, {"rules": sorted(titles or ()), **as_here(rules)})
    if detach:
        return left_alone(account, name, lambda: unit_documents(account.state, name, UNITS))
    console = Console(stderr=True)
    with console.status("redriving", spinner="dots") as status:

        def look() -> None:
            tally = total(unit_documents(account.state, name, UNITS).values())
            status.update(f"{name}: {tally.done:,} put through, {tally.written:,} written")

        ended = account.machine.watch(name, look)
    done = ended.well()
    tally = total(unit_documents(account.state, name, UNITS).values())
    queue = account.stack.output("FailuresQueueUrl")
    print(json.dumps(asdict(tally)) if as_json else summary(tally, queue))
    if not done:
        console.print(ended.cause or ended.status, markup=False, highlight=False, soft_wrap=True)
    elif (tally.again or tally.unreadable) and not as_json:
        letters, bucket = account.stack.output("FanoutDeadLettersUrl"), account.stack.output("BucketName")
        where = account.failures_command("--queue", letters, "--bucket", f"s3://{bucket}/aws/")
        print(f"What stays, and why: {where}")
    return 1 if tally.again or tally.unreadable or not done else 0


def redrive(
    context: typer.Context,
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")] = Path("rules.yaml"),
    *,
    rule: Annotated[list[str] | None, typer.Option(help="Only for this rule; may be given again.")] = None,
    file: Annotated[list[Path] | None, typer.Option(help="A file of failure records, as `run` keeps.")] = None,
    batches: Annotated[list[Path] | None, typer.Option(help="A file of given-up batches, as `run` keeps.")] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A queue of failure records, of batches, or of messages nobody handled."),
    ] = None,
    bucket: Annotated[
        list[str] | None, typer.Option(metavar="s3://BUCKET/PREFIX", help="Where Lambda puts given-up batches.")
    ] = None,
    stream: Annotated[str | None, typer.Option(metavar="ARN", help="A stream, to read records from again.")] = None,
    shard: Annotated[str | None, typer.Option(metavar="ID", help="The shard of that stream.")] = None,
    first: Annotated[str | None, typer.Option("--from", metavar="SEQ", help="The first sequence number.")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="SEQ", help="The last sequence number.")] = None,
    function: Annotated[
        str, typer.Option(metavar="NAME", help="Of batches, only those of this Lambda function; its name or ARN.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be put through; do nothing.")] = False,
    fanout_queue: Annotated[
        str | None, typer.Option(metavar="URL", help="Where second looks go; without, they are waited for.")
    ] = None,
    calls_table: Annotated[
        str | None, typer.Option(help="The table that remembers the calls made.", envvar="SYNC_RULES_CALLS_TABLE")
    ] = None,
    failures: Annotated[Path, typer.Option(help="Where to append failures that are new.")] = Files.failures,
    endpoint_url: Annotated[str | None, typer.Option(help="Another AWS than AWS's, such as an emulator.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON line per entry that stays, then the totals.")
    ] = False,
    remote: Remote = False,
    stack_name: StackName = STACK,
    detach: Detach = False,
) -> int:
    """Put through again what failed; late does no harm. What is true now is written, and nothing else."""
    rules = load_rules(rules_file)
    only = None if not rule else asked_titles(rule, rules)
    if remote:
        require_local({"--file": file, "--batches": batches, "--queue": queue, "--bucket": bucket, "--stream": stream})
        require_local({"--function": function, "--dry-run": dry_run, "--failures": failures != Files.failures})
        account = account_of(stack_name, "RedriveMachineArn", endpoint_url, region)
        return redrive_in_account(account, rules, only, detach=detach, as_json=as_json, summary=summary)
    require_remote({"--detach": detach, "--stack": typed(context, "stack_name")})
    span = _span(stream, shard, first, last)
    given = Given([*(file or ()), *(batches or ())], queue or [], bucket or [], endpoint_url, region)
    elsewhere = bool(file or batches or queue or bucket)
    places = given.places(peek=dry_run) if elsewhere or span is None else []
    places += [Told(span)] if span is not None else []
    tell = as_json_line if as_json else as_line
    console = Console(stderr=True)
    with ExitStack() as stack:
        for place in places:
            stack.callback(place.close)
        status = stack.enter_context(console.status("redriving", spinner="dots"))

        def waiting(words: str) -> None:
            status.update(words)
            if not console.is_terminal:  # or a log would stay silent for minutes
                console.print(words, highlight=False)

        client = aws.dynamodb(endpoint_url, region)
        store = within_budget(DynamoStore(client, rules.tables), rules.tables)
        recorded = FailureLog(failures, wall_clock_ms)
        world = World(store, NobodyLooksAgain(), recorded)
        if not dry_run:
            chosen = _chosen(rules, only)
            if not calls_table:
                _require_no_calls(chosen)
            require(client, chosen, streams=False)
            require_writable(failures)
            require_buckets(chosen, endpoint_url=endpoint_url, region=region)
            archive = archive_of(chosen, endpoint_url=endpoint_url, region=region)
            caller = caller_of(chosen, client, calls_table, folder=rules_file.absolute().parent)
            world = replace(world, archive=archive, caller=caller)
        redriver = Redriver(
            rules,
            world,
            reader=DynamoDBStreams(aws.dynamodbstreams(endpoint_url, region)),
            queue=SqsQueue(aws.sqs(endpoint_url, region), require_queue_url(fanout_queue)) if fanout_queue else None,
            only=only,
            function=function,
            on_left=lambda left: print(tell(left), flush=True),
            on_entry=lambda where: status.update(escape(visible(where))),
            on_wait=waiting,
        )
        for place in places:
            if dry_run:
                for words in redriver.rehearse(place):
                    print(json.dumps({"would": words}) if as_json else f"would put through: {words}", flush=True)
            else:
                redriver.take(place)
        redriver.rest()
    tally = redriver.tally
    print(json.dumps(asdict(tally)) if as_json else summary(tally, failures, dry_run=dry_run))
    return 1 if tally.again or tally.unreadable else 0


def _chosen(rules: Rules, only: frozenset[str] | None) -> Rules:
    if only is None:
        return rules
    return replace(rules, rules={name: rule for name, rule in rules.rules.items() if rule.title in only})


def _require_no_calls(rules: Rules) -> None:
    """Raises UserError when a rule calls a function: whether it was called already must be known."""
    if calls := sorted(rules.functions):
        raise UserError(
            f"{', '.join(calls)}: a function is called once per change, and nobody would know which calls were made "
            "already. Give the table that remembers them with --calls-table, or only other rules with --rule."
        )


# ---------------------------------------------------------------- a span that the user tells
class Told:
    """A Place with one entry, a span of sequence numbers. It cannot be removed: it lies in the command line."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def entries(self) -> Iterator[Entry]:
        yield self._entry

    def remove(self, entry: Entry) -> None:
        pass

    def replace(self, entry: Entry, text: str) -> None:
        pass

    def close(self) -> None:
        pass


def _span(stream: str | None, shard: str | None, first: str | None, last: str | None) -> Entry | None:
    """The span that four options name together.

    Raises:
        UserError: when some of them are missing, or are not what they should be.
    """
    options = {"--stream": stream, "--shard": shard, "--from": first, "--to": last}
    if not any(options.values()):
        return None
    missing = [name for name, value in options.items() if not value]
    if missing or not (stream and shard and first and last):
        raise UserError(f"{', '.join(missing)} is missing: --stream, --shard, --from and --to go together")
    if STREAM_ARN.match(stream) is None:
        raise UserError(f"{stream!r} is no stream: expected arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL")
    if not (first.isdigit() and last.isdigit() and int(first) <= int(last)):
        raise UserError(f"--from {first} --to {last}: expected two sequence numbers, the lower one first")
    info = {"streamArn": stream, "shardId": shard, "startSequenceNumber": first, "endSequenceNumber": last}
    return Entry(json.dumps({"DDBStreamBatchInfo": info}).encode(), f"{shard}, {first} to {last}")


# ---------------------------------------------------------------- output
def as_line(left: Left) -> str:
    """An entry that stays, for people."""
    again = "cannot be put through" if left.unreadable else "failed again"
    return visible(f"{left.where}: {again}: {left.reason} · {left.what}")


def as_json_line(left: Left) -> str:
    """An entry that stays, for machines."""
    return json.dumps({"left": asdict(left)})


def summary(tally: Tally, failures: Path | str, *, dry_run: bool = False) -> str:
    """The last word."""
    if dry_run:
        said = [f"{tally.done:,} would be put through"]
    else:
        said = [f"{tally.done:,} put through and removed", f"{tally.written:,} written"]
    said += [
        f"{count:,} {words}"
        for count, words in (
            (tally.kept, "put through for some rules only, and kept"),
            (tally.again, "failed again, and stay"),
            (tally.unreadable, "cannot be put through, and stay"),
            (tally.skipped, "of other rules or functions, left alone"),
            (tally.parked, f"new failures, in {failures}"),
        )
        if count
    ]
    return ", ".join(said)
