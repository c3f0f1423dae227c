"""What the handlers share: rules and clients, made once per cold start from environment variables.

Law: nothing here decides anything. What is printed is printed by `functions.logs` and `functions.metrics`.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.sqs import Receipts, SqsFailures, SqsQueue
from sync_rules.functions.logs import LOG_KEYS, CountedQueue, LoggedFailures, logger, notes, shown
from sync_rules.functions.metrics import emit, emit_drift
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.consumer import TIME_RESERVED_MS, Consumer
from sync_rules.pipeline.messages import CallMessage, Message
from sync_rules.pipeline.requests import NOBODY, Archive, Caller, Failures, Queue, Store, World
from sync_rules.pipeline.telemetry import METRIC_NAMES
from sync_rules.rules import compiled_file
from sync_rules.rules.rule import EffectRule
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from sync_rules.adapters.budget import Budget

RULES_FILE: Final = "SYNC_RULES_FILE"  # path of the rules file; default rules.yaml beside the handlers
QUEUE_URL: Final = "SYNC_RULES_QUEUE_URL"  # messages for later: second looks, the rest of a large fan-out
FAILURES_URL: Final = "SYNC_RULES_FAILURES_URL"  # failure records; without it they are only logged
CALLS_TABLE: Final = "SYNC_RULES_CALLS_TABLE"  # for `call` rules: where it is noted which calls were made
ENDPOINT_URL: Final = "SYNC_RULES_ENDPOINT_URL"  # an emulator's address; AWS when not set
WRITE_UNITS: Final = "SYNC_RULES_WRITE_UNITS_PER_SECOND"  # that this process may spend; without limit when not set or 0
WRITERS: Final = "SYNC_RULES_WRITERS"  # processes that share a table's limit, such as 4, or 4+2; 1 when not set
__all__ = ("LOG_KEYS", "METRIC_NAMES", "LoggedFailures", "emit", "emit_drift", "logger", "notes", "shown")


class Context(Protocol):
    """The part of Lambda's context object that is used."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops this invocation."""
        ...


class Deadline:
    """How long the current invocation may still take; the one thing here that changes, once per invocation: with its
    `context`. Log lines name the invocation from then on.
    """

    def __init__(self) -> None:
        self._context: Context | None = None

    @property
    def context(self) -> Context | None:
        """Lambda's context object; None outside of an invocation."""
        return self._context

    @context.setter
    def context(self, context: Context | None) -> None:
        self._context = context
        logger.append_keys(function_request_id=getattr(context, "aws_request_id", None))
        notes.begin()

    def remaining_ms(self) -> int:
        return 60_000 if self._context is None else self._context.get_remaining_time_in_millis()

    def remaining_seconds(self) -> float:
        return self.remaining_ms() / 1000

    def spare_seconds(self) -> float:
        """How long something may be waited for, so that there is time to answer."""
        return max(0.0, (self.remaining_ms() - TIME_RESERVED_MS) / 1000)


# Nothing can be looked at again: a fan-out is worked to its end, and what is parked has its failure record at once.
WITHOUT_QUEUE: Final = Limits(fan_out_inline_max_items=sys.maxsize, parked_max_looks=0)


class NoQueue:
    """Stands where no queue is set up. What is parked is left to its next change, or to verify; the rest of a fan-out
    that did not fit into one invocation, and a call that failed, are reported as failed.
    """

    def send(self, message: Message, _delay_seconds: int) -> None:
        """Raises StoreError: there is nobody to take it."""
        told = (
            "a call failed, and what it was told is nowhere else"
            if isinstance(message, CallMessage)
            else ("a fan-out did not fit into one invocation")
        )
        raise StoreError("NoQueue", f"set {QUEUE_URL}: {told}")


deadline = Deadline()


def endpoint() -> str | None:
    """An emulator's address; None for AWS."""
    return os.environ.get(ENDPOINT_URL)


def rules_file() -> Path:
    """Where the rules are."""
    return Path(os.environ.get(RULES_FILE, "rules.yaml"))


@cache
def rules() -> Rules:
    """The rules that are deployed: as the build compiled them, or out of the rules file where nothing was built.

    Raises:
        UserError: when they are wrong, or were compiled for something else.
    """
    built = compiled_file.beside(rules_file())
    if built.exists():
        return compiled_file.read(built.read_bytes(), str(built))
    try:
        from sync_rules.language.load import load_rules  # noqa: PLC0415 - slow to load, and not in a bundle
    except ModuleNotFoundError as error:
        raise UserError(f"{built}: no such file, and nothing here reads a rules file. {compiled_file.AGAIN}") from error
    return load_rules(rules_file())


def tables(sleep: Callable[[float], None] = time.sleep) -> DynamoStore:
    """The tables of the rules; `sleep` waits before a call is tried again. Raises UserError."""
    return DynamoStore(
        aws.dynamodb(endpoint()),
        rules().tables,
        sleep=sleep,
        remaining_seconds=deadline.spare_seconds,
        on_throttle=notes.throttled,
    )


class MadeWhenAsked:
    """Stands for a client that is made when it is first asked for something."""

    def __init__(self, make: Callable[[str | None], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(endpoint()), name)


def sqs() -> Any:
    """The client of the queues: most processes never ask for it."""
    return MadeWhenAsked(aws.sqs)


def failures() -> Failures:
    """Where failure records go. Raises UserError."""
    url = os.environ.get(FAILURES_URL)
    return LoggedFailures(SqsFailures(sqs(), url) if url else None)


@cache
def consumer() -> Consumer:
    """The pipeline of this process.

    Raises:
        UserError: when the rules file is wrong, or needs a queue, a table or a function that is not there.
    """
    store: Store = tables()
    queue = _queue()
    limits = Limits() if isinstance(queue, SqsQueue) else WITHOUT_QUEUE
    units = _write_units()
    _writers()  # what is wrong is told at the start, and not where a table first has a limit
    if units or any(table.max_write_units_per_second for table in rules().tables.values()):
        from sync_rules.adapters.budget import Rate, writes_at_once  # noqa: PLC0415
        from sync_rules.adapters.metered import MeteredStore  # noqa: PLC0415 - only where there is a limit

        rate = Rate(units)
        paid = (lambda cost: rate.take(cost, deadline.spare_seconds())) if units else None
        store = MeteredStore(store, rules().tables, paid, budget())
        limits = replace(limits, apply_max_writes=writes_at_once(units))
    return Consumer(rules(), World(store, CountedQueue(queue), failures(), *_outside()), THIS_PROCESS, limits=limits)


def budget(at_once: int = 1) -> Budget:
    """What this process may write on tables with a limit, where so many of its kind work at once. Raises UserError."""
    from sync_rules.adapters.budget import Budget  # noqa: PLC0415 - only where there is a limit

    return Budget(rules().tables, max(_writers(), at_once), within_seconds=deadline.spare_seconds)


def _writers() -> int:
    given = os.environ.get(WRITERS) or "1"
    try:
        numbers = [int(number) for number in given.split("+")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or not sum(numbers):
        raise UserError(f"{WRITERS} is {given!r}: expected a number of processes, or several to be added, such as 4+2")
    return sum(numbers)


def _write_units() -> float:
    given = os.environ.get(WRITE_UNITS) or "0"
    try:
        units = float(given)
    except ValueError:
        units = -1.0
    if not 0 <= units < math.inf:
        raise UserError(f"{WRITE_UNITS} is {given!r}: expected write units per second, or 0 for no limit")
    return units


def _queue() -> Queue:
    url = os.environ.get(QUEUE_URL)
    if url:
        return SqsQueue(sqs(), url)
    looks_twice = [
        rule.name
        for rule in rules().rules.values()
        if rule.find is not None and rule.find.index is not None and rule.settle_seconds
    ]
    if looks_twice:
        raise UserError(
            f"{QUEUE_URL} is not set, but rules that find their targets through an index need a queue for the second"
            f" look ({', '.join(looks_twice)}): set it to the URL of a standard SQS queue"
        )
    if calls := rules().functions:
        raise UserError(
            f"{QUEUE_URL} is not set, but rules that call a function need a queue for calls that fail"
            f" ({', '.join(calls)}): set it to the URL of a standard SQS queue"
        )
    return NoQueue()


@cache
def receipts() -> Receipts | None:
    """Of the messages of the queue; None where there is none."""
    url = os.environ.get(QUEUE_URL)
    if not url:
        return None
    return Receipts(sqs(), url, retrying=aws.retrying(deadline.remaining_seconds))


def _outside() -> tuple[Archive, Caller]:
    """What rules need outside the tables, if one does anything there."""
    if not any(isinstance(rule, EffectRule) for rule in rules().rules.values()):
        return NOBODY, NOBODY
    from sync_rules.adapters.effects import archive_of, caller_of  # noqa: PLC0415 - slow to load, and few rules are such

    table = os.environ.get(CALLS_TABLE)
    if not table and (calls := rules().functions):
        raise UserError(
            f"{CALLS_TABLE} is not set, but a rule that calls a function once per change needs a table to remember that"
            f" ({', '.join(calls)}): set it to the name of a table with the string key 'id', and Time to Live on"
            " 'expiration'"
        )
    retrying = aws.retrying(deadline.remaining_seconds)
    caller = caller_of(
        rules(),
        aws.dynamodb(endpoint()),
        table,
        folder=rules_file().absolute().parent,
        retrying=retrying,
        remaining_ms=deadline.remaining_ms,
    )
    return archive_of(rules(), endpoint_url=endpoint(), retrying=retrying), caller


def answer(failed: list[str]) -> dict[str, Any]:
    """Lambda's partial batch response."""
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}
