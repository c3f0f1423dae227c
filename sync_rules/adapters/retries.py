"""When a call to AWS is tried again, and when it is not.

Invariant: tenacity is the only retry mechanism (botocore tries once), with full jitter and within the caller's
deadline. A request that the service refused on its merits is never sent again. A command waits longer, and shows it:
see `patience`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tenacity import (
    RetryCallState,
    Retrying,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    wait_random_exponential,
)

from sync_rules.adapters import aws_errors, patience
from sync_rules.model.errors import UserError

RemainingSeconds = Callable[[], float]

ATTEMPTS_MAX: Final = 8
FIRST_WAIT_SECONDS: Final = 0.025  # as in the AWS SDKs for DynamoDB
WAIT_MAX_SECONDS: Final = 2.0
FIRST_ATTEMPTS_MAX: Final = 2  # of a command's first call, where nothing answers
FIRST_MAX_SECONDS: Final = 5


def _is_alone(retry_state: RetryCallState, *, first: bool) -> bool:
    """True if no service answered before, and the call was tried for long enough: the address is more likely wrong than
    down. A throttle is an answer.

    A command stops so if nothing has answered it yet. A `first` call stops so if this call was not answered before.
    """
    soon = stop_any(stop_after_attempt(FIRST_ATTEMPTS_MAX), stop_after_delay(FIRST_MAX_SECONDS))
    command = patience.find_current()
    known = not first if command is None else command.has_answered(_format_call(retry_state) if first else None)
    return isinstance(_find_error(retry_state), aws_errors.UNANSWERED) and not known and soon(retry_state)


def _is_tried(retry_state: RetryCallState, attempts_max: int) -> bool:
    """True after the maximum of attempts, or when the patience of the running command ends."""
    tried = retry_state.attempt_number >= attempts_max
    command = patience.find_current()
    if command is None or attempts_max == 1:
        return tried
    return command.gives_up(_format_call(retry_state), retry_state.seconds_since_start or 0.0, tried=tried)


def make_retry(
    remaining_seconds: RemainingSeconds = lambda: math.inf,
    attempts_max: int = ATTEMPTS_MAX,
    sleep: Callable[[float], None] = time.sleep,
    *,
    first: bool = False,
    only_unprocessed: bool = False,
    on_throttle: Callable[[str], object] = lambda _kind: None,
) -> Retrying:
    """Make a retry that calls a function until it answers. Waits have full jitter from 25 ms, doubling to 2 s, while
    the next wait fits the deadline.

    Retries end after `attempts_max` attempts in a row without progress, or with the patience of the running command.
    With `first`, for the first call of a command, they end after seconds if nothing answers at all. `on_throttle` is
    called with the kind of each throttle, from the thread that met it. `only_unprocessed` leaves all other errors to a
    client that retries by itself. The last error is raised as it is. May be shared by threads.
    """

    def fails(retry_state: RetryCallState) -> bool:
        """Tell if an attempt may be made again. Counts its throttles, and notes it for the patience of the command."""
        error, command = _find_error(retry_state), patience.find_current()
        unprocessed = isinstance(error, aws_errors.UnprocessedError)
        failed = unprocessed or (not only_unprocessed and error is not None and aws_errors.is_transient(error))
        if error is not None and failed:
            for kind in aws_errors.list_throttles(error):
                on_throttle(kind)
        if isinstance(error, aws_errors.UnprocessedError) and error.progressed:
            retry_state.attempt_number = 0
        elif command is not None and error is not None and failed:
            command.note_failure(
                _format_call(retry_state), aws_errors.read_reason(error), retry_state.seconds_since_start or 0.0
            )
            return failed
        if command is not None:
            command.note_answer(_format_call(retry_state))
        return failed

    def stops(retry_state: RetryCallState) -> bool:
        """True if the attempts, the patience or the deadline end the retries, or no service is there."""
        late = retry_state.upcoming_sleep >= remaining_seconds()
        return late or _is_tried(retry_state, attempts_max) or _is_alone(retry_state, first=first)

    return Retrying(
        retry=fails,
        wait=wait_random_exponential(multiplier=FIRST_WAIT_SECONDS, max=WAIT_MAX_SECONDS),
        stop=stops,
        sleep=sleep,
        reraise=True,
    )


def _find_error(retry_state: RetryCallState) -> BaseException | None:
    return retry_state.outcome.exception() if retry_state.outcome is not None else None


def _format_call(retry_state: RetryCallState) -> str:
    """The operation of a call, and its table if it has one: Scan of books."""
    function = retry_state.fn
    name = getattr(function, "operation", "") or getattr(function, "__name__", type(function).__name__)
    table = retry_state.kwargs.get("TableName", "")
    return "".join(word[:1].upper() + word[1:] for word in name.split("_")) + (f" of {table}" if table else "")


def ask(
    retrying: Retrying,
    where: str,
    call: Callable[..., Any],
    cures: Mapping[str, str] | None = None,
    mistakes: Mapping[str, str] | None = None,
    **parameters: Any,
) -> Any:
    """Make a call with retries, and return its answer.

    Raises:
        UserError: if `mistakes` has a sentence for the reason of the error.
        StoreError: for any other error; see `make_store_error`.
    """
    try:
        return retrying(call, **parameters)
    except aws_errors.ERRORS as error:
        if mistake := (mistakes or {}).get(aws_errors.read_reason(error)):
            raise UserError(mistake) from error
        raise aws_errors.make_store_error(error, where, cures) from error
