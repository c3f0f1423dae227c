"""Run effects: archive an item or call a user's function, before the record of the change is acknowledged.

Invariant: an archived item is safe, or its record is delivered again. A call that fails is retried by a message of its
own, so that a user's function never holds up a copy; a call that fails each time ends as a failure record.
"""

from __future__ import annotations

from typing import Final

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import Call, Effect, Failure, ItemKey, Keep, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.messages import CallMessage
from sync_rules.pipeline.report import Report, Unfinished
from sync_rules.pipeline.requests import Later, Park, Work

TOO_LARGE: Final = "MessageTooLarge"


def run_effect(key: ItemKey, effect: Effect, bounds: Bounds, report: Report) -> Work[None]:
    """Run an effect; if it fails, schedule a retry or report the record as failed."""
    if bounds.out_of_time():
        _fail(key, effect, OUT_OF_TIME, report)
        return
    try:
        yield effect
    except StoreError as error:
        if isinstance(effect, Keep):
            _fail(key, effect, error.reason, report)
        else:
            report.calls_failed[f"{effect.rule} {error}"] += 1
            yield from _retry_call(key, effect, error.reason, bounds, report)
    else:
        report.outcomes[effect.rule, Outcome.DONE] += 1


def _retry_call(key: ItemKey, call: Call, reason: str, bounds: Bounds, report: Report) -> Work[None]:
    """Send a message that retries the call; after the last try, or for a change too large to send, keep a failure
    record.
    """
    if call.attempt + 1 < bounds.limits.call_max_tries:
        message = CallMessage(call.rule, call.function, call.change, call.attempt + 1)
        try:
            yield Later(message, bounds.limits.parked_delay_seconds(call.attempt))
        except StoreError as error:
            if error.reason != TOO_LARGE:
                _fail(key, call, error.reason, report)
                return
            reason = error.reason
        else:
            report.outcomes[call.rule, Outcome.PARKED] += 1
            return
    try:
        yield Park(Failure(call.rule, key, reason, call.change.position))
    except StoreError as error:
        _fail(key, call, error.reason, report)
    else:
        report.outcomes[call.rule, Outcome.FAILED] += 1


def _fail(key: ItemKey, effect: Effect, reason: str, report: Report) -> None:
    report.outcomes[effect.rule, Outcome.FAILED] += 1
    report.note(key, Unfinished((effect.rule,), reason))
