"""Run effects: call a user's function, before the record of the change is acknowledged.

Invariant: a call is done, or kept with its change where it is retried, or its record is delivered again. A call that
fails is retried by a message of its own, so that a user's function never holds up a copy; a call that fails each time
ends as a failure record that says where its change is kept. If a condition cannot be evaluated, the call may or may not
be due. It ends as a failure record too, and the function is not called.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import Call, Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.messages import CallMessage
from sync_rules.pipeline.report import Report, Unfinished
from sync_rules.pipeline.requests import FetchCall, KeepCall, Later, Park, Work
from sync_rules.rules.families import EffectRule
from sync_rules.rules.ruleset import Rules

TOO_LARGE: Final = "MessageTooLarge"
TIMED_OUT: Final = "CallTimedOut"
TOO_OFTEN: Final = "CalledTooOften"  # the function seems to change its own item
NO_RULE: Final = "NoSuchRule"  # no rule of this name calls a function for such an item
EXCLUDED: Final = "WhereExcludes"  # the rule is there, but its `where` does not admit the change any more


def run_effect(key: ItemKey, call: Call, bounds: Bounds, report: Report) -> Work[None]:
    """Make a call; if it fails, schedule a retry or report the record as failed."""
    try:
        yield from _run(key, call, bounds, report)
    except StoreError as error:
        _fail(key, call, error.reason, report)


def _run(key: ItemKey, call: Call, bounds: Bounds, report: Report) -> Work[None]:
    """Make a call. Raises StoreError when it is neither done nor kept for a retry."""
    if bounds.out_of_time():
        raise StoreError(OUT_OF_TIME)
    if call.rule in report.hanging:  # each call of this rule would take as long
        yield from _send(call, call.attempt, bounds.limits.parked_first_delay_seconds, report)
        return
    if call.attempt == 0 and not bounds.may_call(key, call.rule):
        call = replace(call, unsure=TOO_OFTEN)
    if call.unsure:
        yield from _give_up(key, call, call.unsure, report)
        return
    try:
        done = yield call
    except StoreError as error:
        report.calls_failed[f"{call.rule} {error}"] += 1
        if error.reason == TIMED_OUT:
            report.hanging.add(call.rule)
        yield from _retry_call(key, call, error.reason, bounds, report)
    else:
        report.outcomes[call.rule, Outcome.KEPT if done is False else Outcome.DONE] += 1


def run_message(message: CallMessage, rules: Rules, bounds: Bounds, report: Report) -> Work[None]:
    """Make the call that a message asks for. A call whose rule no longer exists is set aside with a failure record. A
    rule with `renamed_from` can still make it.
    """
    key = message.change.key
    asked = Call(message.rule, message.function, message.change, message.attempt, message.kept)
    try:
        if message.kept:
            stored: CallMessage = yield FetchCall(message.kept)
            asked = replace(asked, change=stored.change)
        rule = rules.find_rule_by_name(message.rule)
        call, reason = None, NO_RULE
        if isinstance(rule, EffectRule) and rules.entity_of(key) is rule.source:
            call, reason = rule.retry(asked), EXCLUDED if rule.calls else NO_RULE
        if call is None:
            yield from _give_up(key, asked, reason, report)
    except StoreError as error:
        _fail(key, asked, error.reason, report)
    else:
        if call is not None:
            yield from run_effect(key, call, bounds, report)


def _retry_call(key: ItemKey, call: Call, reason: str, bounds: Bounds, report: Report) -> Work[None]:
    """Send a message that retries the call; after the last try set it aside. Raises StoreError."""
    if call.attempt + 1 < bounds.limits.call_max_tries:
        yield from _send(call, call.attempt + 1, bounds.limits.compute_parked_delay_seconds(call.attempt), report)
    else:
        yield from _give_up(key, call, reason, report)


def _send(call: Call, attempt: int, delay_seconds: int, report: Report) -> Work[None]:
    """Send the message of the next try; for a change that is too large, one that says where it is kept.

    Raises:
        StoreError: when neither is safe.
    """
    message = CallMessage(call.rule, call.function, call.change, attempt)
    try:
        yield Later(message.move_images(call.kept) if call.kept else message, delay_seconds)
    except StoreError as error:
        if error.reason != TOO_LARGE or call.kept:
            raise
        place = yield KeepCall(message)
        yield Later(message.move_images(place), delay_seconds)
    report.outcomes[call.rule, Outcome.PARKED] += 1


def _give_up(key: ItemKey, call: Call, reason: str, report: Report) -> Work[None]:
    """Keep the call with its change, and a failure record that names the place. Raises StoreError."""
    place = call.kept or (yield KeepCall(CallMessage(call.rule, call.function, call.change)))
    yield Park(Failure(call.rule, key, reason, call.change.position, call=place))
    report.outcomes[call.rule, Outcome.FAILED] += 1


def _fail(key: ItemKey, call: Call, reason: str, report: Report) -> None:
    report.outcomes[call.rule, Outcome.FAILED] += 1
    report.note(key, Unfinished((call.rule,), reason))
