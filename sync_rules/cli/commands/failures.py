"""`sync-rules failures`: recorded failures in groups: failure records, batches that were given up, messages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from sync_rules.adapters import aws
from sync_rules.adapters.kept_calls import CallsInFolder
from sync_rules.adapters.s3 import OnFailureObjects, parse_place
from sync_rules.adapters.sqs import PEEKED_MAX_MESSAGES, FailedMessages, require_queue_url
from sync_rules.cli import options as opt
from sync_rules.cli.show.console import make_console, make_grid, print_parts
from sync_rules.cli.show.text import format_count
from sync_rules.cli.verb import Verb
from sync_rules.jobs.failure_log import FailedLines
from sync_rules.jobs.local_files import Files
from sync_rules.jobs.redrive.work import DROP, is_gone, list_entry_names, list_entry_titles
from sync_rules.language.load import load_rules
from sync_rules.model import json_bytes
from sync_rules.model.errors import RecordError, UserError
from sync_rules.model.values import escape_invisible
from sync_rules.pipeline.failed_entries import (
    Failed,
    FailedEntry,
    FailureGroup,
    FailureStore,
    group_failures,
    read_entry,
)
from sync_rules.pipeline.failure_records import FailureRecord, format_time
from sync_rules.rules.ruleset import Rules

VERB: Final = Verb()


@dataclass(frozen=True)
class Places:
    """The places to read: those that the user named, else the local files that exist."""

    files: list[Path] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)
    endpoint_url: str | None = None
    region: str | None = None

    def places(self, *, peek: bool = False) -> list[FailureStore]:
        """Open the places. Raises UserError if a name does not fit its kind of place."""
        files = self.files
        if not (self.files or self.queues or self.buckets):
            here = Files()
            files = [path for path in (here.failures, here.batches) if path.exists()]
        for path in self.files:
            if not path.is_file():
                raise UserError(f"{path}: no such file. Expected a file of failure records or of batches, from `run`.")
        queues = [require_queue_url(url) for url in self.queues]
        buckets = [parse_place(text) for text in self.buckets]
        return [
            *map(FailedLines, files),
            *(FailedMessages(aws.sqs(self.endpoint_url, self.region), url, peek=peek) for url in queues),
            *(OnFailureObjects(aws.s3(self.endpoint_url, self.region), *place) for place in buckets),
        ]


def failures(
    rules_file: Annotated[
        Path | None,
        typer.Argument(metavar="RULES", help="The rules file, to mark failures of rules that no longer exist."),
    ] = None,
    *,
    rule: opt.RuleNames = None,
    file: opt.FailureFiles = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="SQS queue of failure records, batches or messages (at most 1,000 are sampled). Repeatable.",
        ),
    ] = None,
    bucket: opt.Buckets = None,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Remove failure records and messages of rules that no longer exist in RULES.")
    ] = False,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Show recorded failures by rule and reason, with count and time. Nothing is removed without --drop."""
    as_json = form is not opt.LineForm.TEXT
    rules = None if rules_file is None else load_rules(rules_file)
    given = Places(file or [], queue or [], bucket or [], endpoint_url, region)
    if drop:
        if rules is None:
            raise UserError("--drop: give the rules file too: it says which rules no longer exist")
        _drop_dead_entries(given, rules, _find_gone_titles(rule or [], rules), as_json=as_json)
        return 0
    only = None if not rule else list_titles(rule, rules)
    places = given.places(peek=True)
    try:
        groups = group_failures(_read_entries(places, only))
    finally:
        for place in places:
            place.close()
    about = {group.what for group in groups if group.sort == "failures"} if rules is not None else ()
    gone = frozenset(what for what in about if rules is not None and is_gone(what.split(", "), rules))
    if as_json:
        for group in groups:
            print(json.dumps({**_write_row(group), "gone": group.what in gone}))
    else:
        show(groups, gone, [place for place in places if isinstance(place, FailedMessages)])
    return 1 if groups else 0


def list_titles(names: list[str], rules: Rules | None) -> frozenset[str]:
    """Return the titles of the rules that a user named. Raises UserError for an unknown rule if `rules` is not None."""
    titles = frozenset(name.partition(".")[0] for name in names)
    if rules is not None:
        opt.require_titles(sorted(titles), rules)
    return titles


def _find_gone_titles(names: list[str], rules: Rules) -> frozenset[str] | None:
    """The titles of rules that no longer exist, as named; None for all. Raises UserError for a rule that exists."""
    for name in names:
        if not is_gone([name], rules):
            raise UserError(f"--drop: rule {name} exists, and its failures may still matter. Retry them with redrive")
    return frozenset(name.partition(".")[0] for name in names) or None


def _drop_dead_entries(given: Places, rules: Rules, only: frozenset[str] | None, *, as_json: bool) -> None:
    """Remove the failure records and messages of rules that no longer exist, and print their number by rule."""
    places = given.places()
    dropped: Counter[str] = Counter()
    calls: set[str] = set()
    try:
        for place in places:
            for entry, body in _read_entries([place], only):
                names = None if isinstance(body, RecordError) else list_entry_names(body)
                if names is not None and is_gone(names, rules):
                    place.remove(entry)
                    calls |= {body.call} if isinstance(body, FailureRecord) and body.call else set()
                    dropped[", ".join(sorted(names))] += 1
    finally:
        for place in places:
            place.close()
    CallsInFolder(Files.locate_calls(Files.failures), [Files.locate_calls(path) for path in given.files]).remove(calls)
    for name, count in sorted(dropped.items()):
        print(
            json.dumps({"dropped": name, "count": count})
            if as_json
            else escape_invisible(f"dropped: {count:,} of {name}")
        )
    if not dropped and not as_json:
        print("no failures of rules that no longer exist")


def _read_entries(
    places: list[FailureStore], only: frozenset[str] | None
) -> Iterator[tuple[FailedEntry, Failed | RecordError]]:
    for place in places:
        for entry in place.entries():
            try:
                body: Failed | RecordError = read_entry(entry.text)
            except RecordError as error:
                body = error
            titles = None if isinstance(body, RecordError) else list_entry_titles(body)
            if only is None or (titles is not None and not titles.isdisjoint(only)):
                yield entry, body


def _write_row(group: FailureGroup) -> dict[str, Any]:
    """A group for machines. The example of a failure record, a key, is JSON; other examples are text."""
    row = {name: format_time(one) if isinstance(one, datetime) else one for name, one in asdict(group).items()}
    items = row.pop("items")
    if group.sort == "failures":
        row["items"] = len(items)
        with suppress(ValueError):
            row["example"] = json_bytes.parse_json(group.example)
    return row


# ---------------------------------------------------------------- for people
HEADINGS = {
    "failures": ("failure records", ("rule", "reason", "items", "count", "first seen", "last seen", "example")),
    "batches": (
        "batches given up",
        ("condition and shard", "count", "records", "from", "to", "function", "failed again"),
    ),
    "messages": ("messages not processed", ("kind", "count", "example")),
    "unreadable": ("entries that cannot be read", ("why", "count", "example")),
}


NEXT = "to retry them: `sync-rules redrive`, with the same files, queues and buckets"
RENAMED = "if such a rule was renamed, say `renamed_from: OLD` in the new one, and `sync-rules redrive` retries them"


def show(groups: list[FailureGroup], gone: frozenset[str], queues: list[FailedMessages]) -> None:
    """Print a table for each sort of failure, with one line per group."""
    console = make_console()
    for sort, (title, headings) in HEADINGS.items():
        rows = [_list_cells(group, gone) for group in groups if group.sort == sort]
        if rows:
            table = make_grid(headings)
            for row in rows:
                table.add_row(*map(escape, map(escape_invisible, row)))
            print_parts(console, [title, table])
    if not groups:
        print("no failures are recorded")
    for queue in queues:
        sample = "the first " if queue.count >= PEEKED_MAX_MESSAGES else ""
        print(f"queue {queue.name}: {sample}{format_count(queue.count, 'message')} received; the queue may hold more")
    if any(group.what in gone for group in groups):
        print(RENAMED)
        print(f"to remove those of rules that no longer exist: `{DROP}`, with the same files, queues and buckets")
    if any(group.what not in gone for group in groups):
        print(NEXT)


def _list_cells(group: FailureGroup, gone: frozenset[str]) -> tuple[str, ...]:
    first, last = (at.strftime("%Y-%m-%d %H:%M:%S") if at else "-" for at in (group.first, group.last))
    count = f"{group.count:,}"
    match group.sort:
        case "failures":
            rule = f"{group.what or '-'}{' (gone)' if group.what in gone else ''}"
            return rule, group.reason, f"{len(group.items):,}", count, first, last, group.example
        case "batches":
            return group.what, count, f"{group.records:,}", first, last, group.function or "-", group.reason or "-"
        case "messages":
            return group.what, count, group.example
    return group.reason, count, group.example
