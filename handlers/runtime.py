"""What the handlers share: rules, clients, logger and metrics, made once per cold start from environment variables.

Law: nothing here decides anything. Values of items are never logged; keys only when SYNC_RULES_LOG_KEYS is 1, else a
short digest stands for them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from sync_rules import aws
from sync_rules.batch import Consumer
from sync_rules.dynamodb import DynamoStore
from sync_rules.errors import StoreError, UserError
from sync_rules.kinds.call import functions_of
from sync_rules.limits import Limits
from sync_rules.messages import CallMessage, Message
from sync_rules.model import Failure, ItemKey, Outcome
from sync_rules.outside import archive_of, caller_of
from sync_rules.rulefile import load_rules
from sync_rules.rules import Rules
from sync_rules.sqs import SqsFailures, SqsQueue
from sync_rules.store import Caller, Failures, Queue, World
from sync_rules.telemetry import Telemetry

RULES_FILE: Final = "SYNC_RULES_FILE"  # path of the rules file; default rules.yaml beside the handlers
QUEUE_URL: Final = "SYNC_RULES_QUEUE_URL"  # messages for later: second looks, the rest of a large fan-out
FAILURES_URL: Final = "SYNC_RULES_FAILURES_URL"  # failure records; without it they are only logged
CALLS_TABLE: Final = "SYNC_RULES_CALLS_TABLE"  # for `call` rules: where it is noted which calls were made
ENDPOINT_URL: Final = "SYNC_RULES_ENDPOINT_URL"  # an emulator's address; AWS when not set
LOG_KEYS: Final = "SYNC_RULES_LOG_KEYS"

METRIC_NAMES: Final[Mapping[Outcome, str]] = {
    Outcome.COPIED: "Copied",
    Outcome.DELETED: "Deleted",
    Outcome.RIGHT: "AlreadyRight",
    Outcome.KEPT: "Kept",
    Outcome.SUPERSEDED: "RefusedSuperseded",
    Outcome.RELINKED: "RefusedRelinked",
    Outcome.GONE: "RefusedGone",
    Outcome.FAILED: "Failed",
    Outcome.PARKED: "Parked",
    Outcome.DONE: "Done",
}

logger = Logger(service="sync-rules")


class Context(Protocol):
    """The part of Lambda's context object that is used."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops this invocation."""
        ...


class Deadline:
    """How long the current invocation may still take; the one thing here that changes, once per invocation."""

    def __init__(self) -> None:
        self.context: Context | None = None

    def remaining_ms(self) -> int:
        return 60_000 if self.context is None else self.context.get_remaining_time_in_millis()

    def remaining_seconds(self) -> float:
        return self.remaining_ms() / 1000


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


class LoggedFailures:
    """Failure records into the log, and onto the queue behind it when there is one."""

    def __init__(self, behind: Failures | None) -> None:
        self._behind = behind

    def park(self, failure: Failure) -> None:
        """Raises StoreError when the queue does not take the record."""
        if self._behind is not None:
            self._behind.park(failure)
        item, member = (None if key is None else shown(key) for key in (failure.key, failure.member))
        logger.error(
            "parked", rule=failure.rule, item=item, member=member, reason=failure.reason, position=failure.position
        )


def shown(key: ItemKey) -> str:
    """A key as the log may show it."""
    return str(key) if os.environ.get(LOG_KEYS) == "1" else key.digest()


deadline = Deadline()


@cache
def consumer() -> Consumer:
    """The pipeline of this process.

    Raises:
        UserError: when the rules file is wrong, or needs a queue, a table or a function that is not there.
    """
    file = Path(os.environ.get(RULES_FILE, "rules.yaml"))
    rules = load_rules(file)
    endpoint = os.environ.get(ENDPOINT_URL)
    store = DynamoStore(aws.dynamodb(endpoint), rules.tables, remaining_seconds=deadline.remaining_seconds)
    queue = _queue(rules, endpoint)
    limits = Limits() if isinstance(queue, SqsQueue) else WITHOUT_QUEUE
    archive = archive_of(rules, endpoint_url=endpoint, retrying=aws.retrying(deadline.remaining_seconds))
    caller = _caller(rules, endpoint, file.absolute().parent)
    return Consumer(rules, World(store, queue, _failures(endpoint), archive, caller), limits=limits)


def _queue(rules: Rules, endpoint: str | None) -> Queue:
    url = os.environ.get(QUEUE_URL)
    if url:
        return SqsQueue(aws.sqs(endpoint), url)
    looks_twice = [
        rule.name
        for rule in rules.rules.values()
        if rule.find is not None and rule.find.index is not None and rule.settle_seconds
    ]
    if looks_twice:
        raise UserError(
            f"{QUEUE_URL} is not set, but rules that find their targets through an index need a queue for the second"
            f" look ({', '.join(looks_twice)}): set it to the URL of a standard SQS queue"
        )
    if calls := functions_of(rules.rules.values()):
        raise UserError(
            f"{QUEUE_URL} is not set, but rules that call a function need a queue for calls that fail"
            f" ({', '.join(calls)}): set it to the URL of a standard SQS queue"
        )
    return NoQueue()


def _caller(rules: Rules, endpoint: str | None, folder: Path) -> Caller:
    table = os.environ.get(CALLS_TABLE)
    if not table and (calls := functions_of(rules.rules.values())):
        raise UserError(
            f"{CALLS_TABLE} is not set, but a rule that calls a function once per change needs a table to remember that"
            f" ({', '.join(calls)}): set it to the name of a table with the string key 'id', and Time to Live on"
            " 'expiration'"
        )
    return caller_of(
        rules,
        aws.dynamodb(endpoint),
        table,
        folder=folder,
        retrying=aws.retrying(deadline.remaining_seconds),
        remaining_ms=deadline.remaining_ms,
    )


def _failures(endpoint: str | None) -> Failures:
    url = os.environ.get(FAILURES_URL)
    return LoggedFailures(SqsFailures(aws.sqs(endpoint), url) if url else None)


def emit(telemetry: Telemetry) -> None:
    """Write what was counted as CloudWatch metrics (embedded metric format), one set per rule, and start anew."""
    for rule in sorted({rule for rule, _ in telemetry.outcomes} | telemetry.lag_ms.keys()):
        metrics = EphemeralMetrics(namespace="SyncRules", service="sync-rules")
        metrics.add_dimension("rule", rule)
        for outcome, name in METRIC_NAMES.items():
            if count := telemetry.outcomes[rule, outcome]:
                metrics.add_metric(name, MetricUnit.Count, count)
        if rule in telemetry.lag_ms:
            metrics.add_metric("Lag", MetricUnit.Milliseconds, telemetry.lag_ms[rule])
        metrics.flush_metrics()
    for key, unfinished in telemetry.failed.items():
        logger.warning(
            "not finished, comes again", item=shown(key), rules=list(unfinished.rules), reason=unfinished.reason
        )
    if telemetry.unreadable_records:
        metrics = EphemeralMetrics(namespace="SyncRules", service="sync-rules")
        metrics.add_metric("UnreadableRecords", MetricUnit.Count, telemetry.unreadable_records)
        metrics.flush_metrics()
    telemetry.clear()


def answer(failed: list[str]) -> dict[str, Any]:
    """Lambda's partial batch response."""
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}
