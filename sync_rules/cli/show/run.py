"""The display of a run: one live line on a terminal, plain lines elsewhere, JSON lines for machines.

Invariant: it shows counts and names of errors, never a key or a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from sync_rules.cli.show.display import Display, open_display
from sync_rules.cli.show.text import bracket_alterations, format_count, format_duration
from sync_rules.jobs.consume.local_run import RunStatus
from sync_rules.jobs.local_files import Files
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


def beginning(rules_file: Path, rules: Rules, place: str, files: Files) -> list[str]:
    """The sentences before the first request: which rules, which tables and where, and from which position on."""
    titles = {rule.title for rule in rules.rules.values()}
    names = [table.physical_name for table in rules.streamed_tables]
    more = f" and {len(names) - TABLES_MAX:,} more" if len(names) > TABLES_MAX else ""
    what = f"{rules_file}: {format_count(len(titles), 'rule')} over {format_count(len(names), 'table')} at {place}"
    since = "reads the streams from their beginning, up to 24 hours back, as there is no"
    if files.checkpoint.exists():
        since = "resumes from"
    return [f"{what}: {', '.join(names[:TABLES_MAX])}{more}.", f"This run {since} {files.checkpoint}."]


@contextmanager
def display_on(console: Console, *, as_json: bool) -> Iterator[Display[RunStatus]]:
    """JSON lines on request; one live line on a terminal; plain lines elsewhere."""
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
    for text in summary_lines(status, files):
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
        return line(now, (now.records - before.records) / seconds if seconds > 0 else 0.0)


def line(status: RunStatus, records_per_second: float) -> str:
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
        *warnings(status),
    ]
    return " · ".join(parts)


def warnings(status: RunStatus) -> list[str]:
    """Texts about lost records, given-up records and errors; empty when all is well."""
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


def summary_lines(status: RunStatus, files: Files) -> list[str]:
    """The summary: counts, the checkpoint, and the files of failures."""
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
    return [*lines, *warnings(status)]
