"""When a call to AWS is tried again, and when no more.

Invariant: tenacity is the one retry mechanism (botocore tries once), with full jitter and within the caller's deadline;
a request that was refused on its merits is never sent again.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    wait_random_exponential,
)
from tenacity.stop import stop_base

from sync_rules.adapters import aws_errors

RemainingSeconds = Callable[[], float]

ATTEMPTS_MAX: Final = 8
FIRST_WAIT_SECONDS: Final = 0.025  # as in the AWS SDKs for DynamoDB
WAIT_MAX_SECONDS: Final = 2.0
FIRST_ATTEMPTS_MAX: Final = 2  # of a command's first call, where nothing answers
FIRST_MAX_SECONDS: Final = 5


def uncounted(_kind: str) -> None:
    """Ignore a throttle: the default of `on_throttle`."""


def no_deadline() -> float:
    """Return infinity: the default of `remaining_seconds`."""
    return math.inf


class _NobodyThere(stop_base):
    """Stops soon when nothing answers: the address is more likely wrong than down. A throttle is an answer."""

    def __call__(self, retry_state: RetryCallState) -> bool:
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        soon = stop_any(stop_after_attempt(FIRST_ATTEMPTS_MAX), stop_after_delay(FIRST_MAX_SECONDS))
        return isinstance(error, aws_errors.UNANSWERED) and soon(retry_state)


class _BeforeDeadline(stop_base):
    """Stops when the next wait would outlast the deadline."""

    def __init__(self, remaining_seconds: RemainingSeconds) -> None:
        self._remaining_seconds = remaining_seconds

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.upcoming_sleep >= self._remaining_seconds()


def retrying(
    remaining_seconds: RemainingSeconds = no_deadline,
    attempts_max: int | None = ATTEMPTS_MAX,
    sleep: Callable[[float], None] = time.sleep,
    *,
    first: bool = False,
    on_throttle: Callable[[str], None] = uncounted,
) -> Retrying:
    """Calls a function until it answers: full jitter from 25 ms doubling to 2 s, while the next wait fits the deadline.

    Without `attempts_max` only the deadline ends the retries. With `first`, for the first call of a command, they end
    after seconds when nothing answers at all. `on_throttle` is called with the kinds of each throttle, from the thread
    that met it. The last error is raised as it is. May be shared by threads.
    """
    nobody = [_NobodyThere()] if first else []

    def count(retry_state: RetryCallState) -> None:
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        for kind in aws_errors.throttles(error) if error is not None else ():
            on_throttle(kind)

    return Retrying(
        after=count,
        retry=retry_if_exception(aws_errors.transient),
        wait=wait_random_exponential(multiplier=FIRST_WAIT_SECONDS, max=WAIT_MAX_SECONDS),
        stop=stop_any(stop_after_attempt(attempts_max or sys.maxsize), _BeforeDeadline(remaining_seconds), *nobody),
        sleep=sleep,
        reraise=True,
    )


def ask(
    retrying: Retrying, where: str, call: Callable[..., Any], cures: Mapping[str, str] | None = None, **parameters: Any
) -> Any:
    """The answer to a call that is retried. Raises StoreError: see `store_error`."""
    try:
        return retrying(call, **parameters)
    except aws_errors.ERRORS as error:
        raise aws_errors.store_error(error, where, cures) from error
