"""Log lines of the handlers, as JSON: what failed, what continues in another invocation, the outcome of a message.

Invariant: no line holds a value of an item, and keys only where SYNC_RULES_LOG_KEYS is 1; elsewhere their digests, so
that the lines of one process about one item can be found. Each process draws the secret of its digests and never shows
it: a reader of the logs cannot test a guessed key. The number of lines per invocation is limited: frequent events are
counted in `notes`, and summed up when the invocation ends.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from aws_lambda_powertools import Logger

from sync_rules.model.items import Failure, ItemKey, Outcome
from sync_rules.pipeline.messages import KINDS, CallMessage, ChunkMessage, Message, PushMessage, list_rule_names
from sync_rules.pipeline.requests import Failures, Queue
from sync_rules.pipeline.telemetry import SECOND_LOOK, SERVICE, Telemetry, parse_title, sum_over_rules
from sync_rules.rules.ledger import hide_amount

LOG_KEYS: Final = "SYNC_RULES_LOG_KEYS"
SECRET: Final = os.urandom(32)  # of this process: in no environment, and of no use after it
LINES_MAX: Final = 100  # per invocation, without the summary; a failure that no queue keeps is always logged

SERVICE_NAME: Final = os.environ.get("POWERTOOLS_SERVICE_NAME") or SERVICE  # distinguishes stacks
logger = Logger(service=SERVICE_NAME)


def format_log_key(key: ItemKey) -> str:
    """Return the key if the log may hold it, else twelve hexadecimal digits that represent it in this process."""
    if os.environ.get(LOG_KEYS) == "1":
        return str(hide_amount(key))
    return hmac.digest(SECRET, str(key).encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:12]


# ---------------------------------------------------------------- counted during an invocation
@dataclass
class Continuation:
    """A push that continues as messages: chunks of known targets; `more`: further targets are not listed yet."""

    rules: tuple[str, ...]
    targets: int = 0
    chunks: int = 0
    more: bool = False


@dataclass
class InvocationCounts:
    """The counts of one invocation that telemetry does not have."""

    throttles: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    pushes: dict[ItemKey, Continuation] = field(default_factory=dict)
    lines: int = 0
    unlogged: int = 0


class Notes:
    """The counts from all threads of the process, until they are written."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts = InvocationCounts()

    def count_throttle(self, kind: str) -> None:
        """Count a throttle: the `on_throttle` of a store."""
        with self._lock:
            self._counts.throttles[kind] += 1

    def count_failure(self, rule: str) -> None:
        """Count a failure record. The record of an unreadable stream record names all rules that would have read it."""
        with self._lock:
            self._counts.failures.update(rule.split(", "))

    def count_message(self, message: Message) -> None:
        with self._lock:
            later = getattr(message, "delay_seconds", 0) > 0
            self._counts.sent[SECOND_LOOK if later else KINDS[type(message)]] += 1
            if isinstance(message, PushMessage | ChunkMessage) and not later:
                push = self._counts.pushes.setdefault(message.source, Continuation(message.rules))
                push.chunks += isinstance(message, ChunkMessage)
                push.targets += len(message.targets) if isinstance(message, ChunkMessage) else 0
                push.more |= isinstance(message, PushMessage)

    def may_log(self) -> bool:
        """Reserve a log line of this invocation. Return False, and count the line as unlogged, if there are too
        many.
        """
        with self._lock:
            room = self._counts.lines < LINES_MAX
            self._counts.lines += room
            self._counts.unlogged += not room
            return room

    def begin(self) -> None:
        """Start the lines of an invocation, even if the one before did not write its notes."""
        with self._lock:
            self._counts.lines = self._counts.unlogged = 0

    def take(self) -> InvocationCounts:
        """Return all counts, and reset them."""
        with self._lock:
            counts, self._counts = self._counts, InvocationCounts()
            return counts


notes = Notes()


class LoggedFailures:
    """A sink of failure records: the log, and the queue behind it if there is one."""

    def __init__(self, behind: Failures | None) -> None:
        self._behind = behind

    def park(self, failure: Failure) -> None:
        if self._behind is not None:
            self._behind.park(failure)
        notes.count_failure(failure.rule)
        if self._behind is None or notes.may_log():
            source = failure.source or (failure.member if failure.element is not None else None)
            keys = {"item": failure.key, "member": failure.member, "source": source}
            texts: dict[str, Any] = {name: format_log_key(key) for name, key in keys.items() if key is not None}
            logger.error("parked", rule=failure.rule, reason=failure.reason, position=failure.position, **texts)


class CountedQueue:
    """A queue whose messages are counted."""

    def __init__(self, behind: Queue) -> None:
        self._behind = behind

    def send(self, message: Message, delay_seconds: int) -> None:
        self._behind.send(message, delay_seconds)
        notes.count_message(message)


# ---------------------------------------------------------------- one message
def describe_message(message: Message) -> dict[str, Any]:
    """Describe a message for each log line about it: kind, rules, source and target."""
    source = message.change.key if isinstance(message, CallMessage) else getattr(message, "source", None)
    target = getattr(message, "target", None)
    second_look = isinstance(message, PushMessage) and message.delay_seconds > 0
    about = {
        "kind": SECOND_LOOK if second_look else KINDS[type(message)],
        "rules": [*list_rule_names(message)] or None,
        "source": source and format_log_key(source),
        "target": target and format_log_key(target),
        "targets": len(message.targets) if isinstance(message, ChunkMessage) else None,
        "attempt": getattr(message, "attempt", None),
    }
    return {name: value for name, value in about.items() if value is not None}


def log_message_end(telemetry: Telemetry, before: Mapping[tuple[str, Outcome], int]) -> None:
    """Log the outcomes of a message: the difference to the counts before it."""
    logger.info("message done", outcomes=sum_over_rules(telemetry.outcomes - Counter(before)))


# ---------------------------------------------------------------- one invocation
def sum_up(telemetry: Telemetry, counts: InvocationCounts) -> None:
    """Log the unfinished items, the pushes that continue, and one line of totals. Log nothing if nothing happened."""
    failed = [
        (
            logger.warning,
            "item not finished, delivered again",
            {"item": format_log_key(key), "rules": one.rules, "reason": one.reason},
        )
        for key, one in telemetry.failed.items()
    ]
    continued = [
        (logger.info, "push continues", {"source": format_log_key(key), **vars(push)})
        for key, push in counts.pushes.items()
    ]
    lines, room = [*failed, *continued], max(0, LINES_MAX - counts.lines)
    for log, message, fields in lines[:room]:
        log(message, **fields)
    waiting = Counter[str]()
    for (rule, outcome), count in telemetry.outcomes.items():
        waiting[parse_title(rule)] += count if outcome is Outcome.WAITING else 0
    for title, count in sorted((+waiting).items()):
        log_waiting_rule(title, times=count)
    figures: dict[str, Any] = {
        "records": telemetry.records,
        "unreadable": telemetry.unreadable_records,
        "outcomes": sum_over_rules(telemetry.outcomes),
        "failed": len(telemetry.failed),
        "failure_records": counts.failures.total(),
        "sent": dict(counts.sent),
        "throttles": dict(counts.throttles),
        "unlogged": counts.unlogged + max(0, len(lines) - room),
    }
    figures = {name: figure for name, figure in figures.items() if figure}
    if figures:
        figures |= {"lag_ms": max(lags.values())} if (lags := telemetry.read_lags_ms()) else {}
        logger.info("invocation done", **figures)


def log_waiting_rule(title: str, **more: Any) -> None:
    """Log that a rule waits for a backfill, and the command that ends it."""
    command = f"sync-rules backfill --remote --rule {title}"
    logger.warning("waits for a backfill", rule=title, cure=command, **more)
