"""The display of a run: one live line on a terminal, plain lines elsewhere, JSON lines for machines.

Invariant: it shows counts and names of errors, never a key or a value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sync_rules.cli.show.text import say
from sync_rules.jobs.consume.run import Files, Status, wall_clock_ms

LIVE_EVERY_MS: Final = 250
LINE_EVERY_MS: Final = 5_000
ALWAYS: Final = ("copied", "right", "refused", "failed", "parked")
COUNTED: Final = ("copied", "done", "right", "refused", "failed", "again", "parked")  # in the order of the line


class Display(Protocol):
    """Shows the status."""

    def say(self, text: str) -> None:
        """Show a sentence at once."""
        ...

    def update(self, status: Callable[[], Status]) -> None:
        """Show the status, if it is time to."""
        ...

    def summary(self, status: Status, files: Files) -> None:
        """Show the last status, then a summary."""
        ...


@contextmanager
def display_on(console: Console, *, as_json: bool) -> Iterator[Display]:
    """JSON lines on request; one live line on a terminal; plain lines elsewhere."""
    if as_json:
        yield JsonDisplay()
    elif not console.is_terminal:
        yield LineDisplay(console)
    else:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield LiveDisplay(live)


class LineDisplay:
    """A plain line every few seconds."""

    every_ms = LINE_EVERY_MS

    def __init__(self, console: Console) -> None:
        self.console = console
        self._shown_ms = 0
        self._before = Status()

    def say(self, text: str) -> None:
        say(self.console, text)

    def update(self, status: Callable[[], Status]) -> None:
        now_ms = wall_clock_ms()
        if now_ms - self._shown_ms < self.every_ms:
            return
        self._shown_ms = now_ms
        self._show_status(status())

    def _show_status(self, now: Status) -> None:
        seconds = now.seconds - self._before.seconds
        self.show(line(now, (now.records - self._before.records) / seconds if seconds > 0 else 0.0))
        self._before = now

    def show(self, text: str) -> None:
        self.say(text)

    def summary(self, status: Status, files: Files) -> None:
        self._show_status(status)
        for text in summary_lines(status, files):
            self.say(text)


class LiveDisplay(LineDisplay):
    """One line that is rewritten."""

    every_ms = LIVE_EVERY_MS

    def __init__(self, live: Live) -> None:
        super().__init__(live.console)
        self._live = live

    def show(self, text: str) -> None:
        self._live.update(Text(text), refresh=True)


class JsonDisplay:
    """One JSON object per line: {"status": ...}, {"notice": ...}, at last {"summary": ...}."""

    def __init__(self) -> None:
        self._shown_ms = 0

    def say(self, text: str) -> None:
        self._print(notice=text)

    def update(self, status: Callable[[], Status]) -> None:
        now_ms = wall_clock_ms()
        if now_ms - self._shown_ms >= LINE_EVERY_MS:
            self._shown_ms = now_ms
            self._print(status=asdict(status()))

    def summary(self, status: Status, files: Files) -> None:
        self._print(status=asdict(status))
        self._print(summary={**asdict(status), "checkpoint": str(files.checkpoint)})

    def _print(self, **content: Any) -> None:
        print(json.dumps(content), flush=True)


def line(status: Status, records_per_second: float) -> str:
    lag = "-" if status.lag_ms is None else f"{status.lag_ms:,} ms"
    parts = [
        f"{records_per_second:,.0f} records/s",
        f"{status.records:,} records",
        *(f"{name} {getattr(status, name):,}" for name in COUNTED if getattr(status, name) or name in ALWAYS),
        f"lag {lag}",
        f"later {status.messages_due:,} due, {status.messages_waiting:,} waiting",
        f"{status.shards:,} shards",
        *warnings(status),
    ]
    return " · ".join(parts)


def warnings(status: Status) -> list[str]:
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


def summary_lines(status: Status, files: Files) -> list[str]:
    """The summary: counts, the checkpoint, and the files of failures."""
    done = (
        f"{status.records:,} records in {status.seconds:,.1f} s: {status.copied:,} copied, "
        f"{status.right:,} already right, {status.refused:,} refused by a guard, "
        f"{status.failed:,} to be delivered again, {status.parked:,} parked."
        + (f" {status.done:,} archived or called." if status.done else "")
        + (f" {status.again:,} to be retried." if status.again else "")
    )
    later = status.messages_due + status.messages_waiting
    lines = [done, f"Checkpoint: {files.checkpoint}, with {later:,} messages for later."]
    if status.parked:
        lines.append(f"Failure records: {files.failures}.")
    if status.given_up:
        lines.append(f"Batches given up: {files.batches}.")
    return [*lines, *warnings(status)]
