"""The lines of a command that waits for a service: what it waits for, since when, until when."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

from sync_rules.adapters.patience import Wait

ENDLESS = "This command keeps trying until you stop it"


def format_wait(wait: Wait, now: datetime) -> str:
    """Describe a wait, or its end, in local time."""
    since = f"since {now - timedelta(seconds=wait.seconds):%H:%M:%S} ({wait.seconds:.0f} s)"
    if not wait.reason:
        return f"{wait.call} is answered again: the command waited {since}"
    until = ENDLESS
    if wait.first and wait.left_seconds is not None:
        until = "No call was answered yet: the next attempts are the last"
    elif wait.left_seconds is not None:
        until = f"Without an answer this command stops at {now + timedelta(seconds=wait.left_seconds):%H:%M:%S}"
    return f"waiting {since} for {wait.call}: {wait.reason}. {until}."


def show_wait(wait: Wait) -> None:
    """Print a wait to standard error, above a progress bar or spinner."""
    print(format_wait(wait, datetime.now().astimezone()), file=sys.stderr, flush=True)
