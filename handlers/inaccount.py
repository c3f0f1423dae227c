"""What the functions of the state machines share: rules, store, failures, state, made once per cold start.

Law: nothing here decides anything; it is all read from environment variables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from handlers.runtime import ENDPOINT_URL, FAILURES_URL, RULES_FILE, LoggedFailures, deadline, notes
from sync_rules import aws
from sync_rules.batch import KeptOnce
from sync_rules.dynamodb import DynamoStore
from sync_rules.errors import UserError
from sync_rules.limits import Limits
from sync_rules.remote.documents import SharedTable
from sync_rules.rulefile import load_rules
from sync_rules.rules import Rules
from sync_rules.sqs import SqsFailures
from sync_rules.store import Failures

STATE_TABLE: Final = "SYNC_RULES_STATE_TABLE"  # how far a backfill, a verify, a redrive is
BUCKET: Final = "SYNC_RULES_BUCKET"  # reports of verify, and batches that were given up
DEAD_LETTERS_URL: Final = "SYNC_RULES_DEAD_LETTERS_URL"  # messages that nobody could handle
KEPT_SECONDS: Final = 30 * 24 * 3600  # the documents of a verify or a redrive


def endpoint() -> str | None:
    """An emulator's address; None for AWS."""
    return os.environ.get(ENDPOINT_URL)


def setting(name: str) -> str:
    """An environment variable that must be set. Raises UserError."""
    value = os.environ.get(name)
    if not value:
        raise UserError(f"{name} is not set: the template of the repository sets it")
    return value


@cache
def rules() -> Rules:
    """The rules that are deployed. Raises UserError."""
    return load_rules(Path(os.environ.get(RULES_FILE, "rules.yaml")))


def store(sleep: Callable[[float], None] = time.sleep) -> DynamoStore:
    """The tables of the rules; `sleep` waits before a call is tried again."""
    return DynamoStore(
        aws.dynamodb(endpoint()),
        rules().tables,
        sleep=sleep,
        remaining_seconds=deadline.remaining_seconds,
        on_throttle=notes.throttled,
    )


def state(keep_seconds: int | None = None) -> SharedTable:
    """The documents that all calls share. Raises UserError."""
    return SharedTable(aws.dynamodb(endpoint()), setting(STATE_TABLE), keep_seconds=keep_seconds)


@cache
def failures() -> Failures:
    """Where failure records go."""
    url = os.environ.get(FAILURES_URL)
    return KeptOnce(LoggedFailures(SqsFailures(aws.sqs(endpoint()), url) if url else None), Limits())
