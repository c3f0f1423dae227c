"""Settings from environment variables, the state and failure records: shared by the functions of the state machines."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from sync_rules.adapters import aws
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import TableState
from sync_rules.functions import runtime
from sync_rules.model.errors import UserError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.breaker import DeduplicatedFailures
from sync_rules.pipeline.requests import Failures

BUCKET: Final = runtime.BUCKET
DEAD_LETTERS_URL: Final = "SYNC_RULES_DEAD_LETTERS_URL"  # messages that no function could process
KEPT_SECONDS: Final = 30 * 24 * 3600  # the documents of a verify or a redrive


def setting(name: str) -> str:
    """An environment variable that must be set. Raises UserError."""
    value = os.environ.get(name)
    if not value:
        raise UserError(f"{name} is not set: the template of the repository sets it")
    return value


def state(keep_seconds: int | None = None) -> TableState:
    """The documents that all invocations share. Raises UserError."""
    return TableState(aws.dynamodb(runtime.endpoint()), setting(runtime.STATE_TABLE), keep_seconds=keep_seconds)


@cache
def failures() -> Failures:
    """The sink of failure records, without repetitions from this process."""
    return DeduplicatedFailures(runtime.failures(), Limits(), THIS_PROCESS)
