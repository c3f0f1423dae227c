"""What the handlers log, as lines of JSON: what failed, what goes on elsewhere, what became of a message.

Law: no value of an item, and a key only where SYNC_RULES_LOG_KEYS is 1, else a digest stands for it. A change is
followed by the digest of its source. So many lines per invocation and no more: what happens often is noted, and summed
up when the invocation is done.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from aws_lambda_powertools import Logger

from sync_rules.model.items import Failure, ItemKey, Outcome
from sync_rules.pipeline.messages import (
    KINDS,
    CallMessage,
    ChunkMessage,
    Message,
    PartMessage,
    PullMessage,
    PushMessage,
)
from sync_rules.pipeline.requests import Failures, Queue
from sync_rules.pipeline.telemetry import SECOND_LOOK, SERVICE, Telemetry

LOG_KEYS: Final = "SYNC_RULES_LOG_KEYS"
LINES_MAX: Final = 100  # of one invocation, beside the one that sums up; what has no other place is always logged

SERVICE_NAME: Final = os.environ.get("POWERTOOLS_SERVICE_NAME") or SERVICE  # two stacks are told apart by it
logger = Logger(service=SERVICE_NAME)


def shown(key: ItemKey) -> str:
    """A key as the log may show it."""
    return str(key) if os.environ.get(LOG_KEYS) == "1" else key.digest()


# ---------------------------------------------------------------- noted on the way
@dataclass
class GoesOn:
    """A push that goes on as messages: so many targets in so many chunks; `more`: of the rest nobody knows yet."""

    rules: tuple[str, ...]
    targets: int = 0
    chunks: int = 0
    more: bool = False


@dataclass
class Noted:
    """What happened in one invocation beside what telemetry counts."""

    throttles: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    pushes: dict[ItemKey, GoesOn] = field(default_factory=dict)
    lines: int = 0
    unlogged: int = 0


class Notes:
    """Takes notes from all threads of the process, until they are written out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._noted = Noted()

    def throttled(self, kind: str) -> None:
        """A call was throttled: the `on_throttle` of a store."""
        with self._lock:
            self._noted.throttles[kind] += 1

    def kept(self, rule: str) -> None:
        """A failure record was kept."""
        with self._lock:
            self._noted.failures.update(rule.split(", "))  # of what cannot be read, all that would have looked at it

    def sent(self, message: Message) -> None:
        """A message is in the queue."""
        with self._lock:
            later = getattr(message, "delay_seconds", 0) > 0
            self._noted.sent[SECOND_LOOK if later else KINDS[type(message)]] += 1
            if isinstance(message, PushMessage | ChunkMessage) and not later:
                push = self._noted.pushes.setdefault(message.source, GoesOn(message.rules))
                push.chunks += isinstance(message, ChunkMessage)
                push.targets += len(message.targets) if isinstance(message, ChunkMessage) else 0
                push.more |= isinstance(message, PushMessage)

    def may_log(self) -> bool:
        """Whether this invocation may have another line. Counts it, or that it was left out."""
        with self._lock:
            room = self._noted.lines < LINES_MAX
            self._noted.lines += room
            self._noted.unlogged += not room
            return room

    def begin(self) -> None:
        """Another invocation has its own lines, even if the one before did not write out what was noted."""
        with self._lock:
            self._noted.lines = self._noted.unlogged = 0

    def take(self) -> Noted:
        """All notes; from now on they begin anew."""
        with self._lock:
            noted, self._noted = self._noted, Noted()
            return noted


notes = Notes()


class LoggedFailures:
    """Failure records into the log, and onto the queue behind it when there is one."""

    def __init__(self, behind: Failures | None) -> None:
        self._behind = behind

    def park(self, failure: Failure) -> None:
        """Raises StoreError when the queue does not take the record."""
        if self._behind is not None:
            self._behind.park(failure)
        notes.kept(failure.rule)
        if self._behind is None or notes.may_log():
            source = failure.source or (failure.member if failure.element is not None else None)
            keys = {"item": failure.key, "member": failure.member, "source": source}
            told: dict[str, Any] = {name: shown(key) for name, key in keys.items() if key is not None}
            logger.error("parked", rule=failure.rule, reason=failure.reason, position=failure.position, **told)


class CountedQueue:
    """The queue for later, with a note of each message."""

    def __init__(self, behind: Queue) -> None:
        self._behind = behind

    def send(self, message: Message, delay_seconds: int) -> None:
        """Raises StoreError when the queue does not take it."""
        self._behind.send(message, delay_seconds)
        notes.sent(message)


# ---------------------------------------------------------------- one message
@contextmanager
def following(message: Message) -> Iterator[None]:
    """While it is worked on, each line says which message it is about: its kind, rules, source and target."""
    about = _about(message)
    logger.append_keys(**about)
    try:
        yield
    finally:
        logger.remove_keys(about)


def _about(message: Message) -> dict[str, Any]:
    about: dict[str, Any] = {"kind": KINDS[type(message)]}
    match message:
        case PushMessage() | ChunkMessage():
            about |= {"rules": list(message.rules), "source": shown(message.source)}
            if isinstance(message, ChunkMessage):
                about["targets"] = len(message.targets)
            elif message.delay_seconds:
                about["kind"] = SECOND_LOOK
        case PullMessage():
            about |= {"target": shown(message.target), "attempt": message.attempt}
        case PartMessage():
            about |= {"rules": [message.rule], "target": shown(message.target), "attempt": message.attempt}
            if message.source is not None:
                about["source"] = shown(message.source)
        case CallMessage():
            about |= {"rules": [message.rule], "source": shown(message.change.key), "attempt": message.attempt}
    return about


def done(telemetry: Telemetry, before: Mapping[tuple[str, Outcome], int]) -> None:
    """A line for a message that is done: what came of it, given what had been counted before it."""
    logger.info("message done", outcomes=summed(telemetry.outcomes - Counter(before)))


def summed(counted: Mapping[tuple[str, Outcome], int]) -> dict[str, int]:
    """How often each outcome, over all rules."""
    summed: Counter[str] = Counter()
    for (_, outcome), count in counted.items():
        summed[outcome.value] += count
    return dict(summed)


# ---------------------------------------------------------------- one invocation
def sum_up(telemetry: Telemetry, noted: Noted) -> None:
    """What is to be followed, and one line that sums up; nothing where nothing happened."""
    failed = [
        (logger.warning, "not finished, comes again", {"item": shown(key), "rules": one.rules, "reason": one.reason})
        for key, one in telemetry.failed.items()
    ]
    going_on = [
        (logger.info, "push goes on", {"source": shown(key), **vars(push)}) for key, push in noted.pushes.items()
    ]
    lines, room = [*failed, *going_on], max(0, LINES_MAX - noted.lines)
    for log, message, fields in lines[:room]:
        log(message, **fields)
    figures: dict[str, Any] = {
        "records": telemetry.records,
        "unreadable": telemetry.unreadable_records,
        "outcomes": summed(telemetry.outcomes),
        "failed": len(telemetry.failed),
        "failure_records": noted.failures.total(),
        "sent": dict(noted.sent),
        "throttles": dict(noted.throttles),
        "unlogged": noted.unlogged + max(0, len(lines) - room),
    }
    told = {name: figure for name, figure in figures.items() if figure}
    if told:
        told |= {"lag_ms": max(telemetry.lag_ms.values())} if telemetry.lag_ms else {}
        logger.info("invocation done", **told)
