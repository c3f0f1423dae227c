"""Bounds on repetition: an item that is written, checked or fanned out too often, or a failure that is reported too
often.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.limits import Limits
from sync_rules.pipeline.messages import Look, Message, PartMessage, PullMessage, PushMessage, format_message
from sync_rules.pipeline.requests import Failures, Host, Later, Queue

DUE_MARGIN_SECONDS: Final = 2.0  # clocks are not exact, and a queue may count in whole seconds


Key = TypeVar("Key")
Value = TypeVar("Value")


def _remember(memory: OrderedDict[Key, Value], key: Key, value: Value, max_items: int) -> None:
    """Note a value as the newest, and forget the oldest beyond `max_items`."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > max_items:
        memory.popitem(last=False)


@dataclass
class Breaker:
    """A counter of repeated work on an item, such as writes of one value, in windows of `window_seconds`. It remembers
    the latest `max_items`. If `allows` returns False, the caller parks the work: another program probably keeps
    writing the attribute back. A count that rises a thousand times gets another value each time, and is not parked.
    """

    max_times: int
    window_seconds: float
    max_items: int
    host: Host
    _windows: OrderedDict[int, tuple[float, int]] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._lock = self.host.lock()

    def allows(self, key: ItemKey, what: object = None) -> bool:
        """Count one more repetition of `what` on an item. Return False if the window had `max_times` of them before."""
        now, done = self.host.monotonic(), hash((key, repr(what)))  # a hash is small, and keeps no value
        with self._lock:
            since, count = self._windows.get(done, (now, 0))
            if now - since >= self.window_seconds:
                since, count = now, 0
            _remember(self._windows, done, (since, count + 1), self.max_items)
            return count < self.max_times


@dataclass
class DeduplicatedFailures:
    """Failure records without repetitions: the same rule, item and reason is recorded once in `failure_again_seconds`.
    An item that cannot take a copy goes on changing, and each change would record it again.
    """

    failures: Failures
    limits: Limits
    host: Host
    _kept: OrderedDict[tuple[object, ...], float] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._lock = self.host.lock()

    def park(self, failure: Failure) -> None:
        """Keep the failure, unless the same was kept lately. Raises StoreError."""
        if failure.key is None:
            self.failures.park(failure)
            return
        with self._lock:  # threads of a backfill share one
            self._park_once(failure, failure.key)

    def _park_once(self, failure: Failure, key: ItemKey) -> None:
        now = self.host.monotonic()
        apart = (failure.member, failure.element) if failure.apart else None
        known = (failure.rule, key, failure.reason, apart, failure.call)
        if now - self._kept.get(known, -math.inf) < self.limits.failure_again_seconds:
            return
        self.failures.park(failure)
        _remember(self._kept, known, now, self.limits.failures_remembered_max_items)


@dataclass
class LooksToCome:
    """The looks that this process sent and that are not due yet. A target that stays parked has one chain of looks. A
    look serves all requests made before it begins. A later request starts another chain.
    """

    limits: Limits
    host: Host
    _due: OrderedDict[Look, dict[str, float]] = field(default_factory=OrderedDict)  # when, by rule

    def __post_init__(self) -> None:
        self._lock = self.host.lock()

    def send(self, message: Look, request: Later, queue: Queue) -> None:
        """Send a look, unless a look at the same work is still to come for each of its rules. A look that continues a
        chain is always sent. Raises StoreError.
        """
        now, look = self.host.monotonic(), _drop_attempt(message)
        with self._lock:
            due = self._due.get(look, {})
            if message.attempt == 1 and all(due.get(rule, now) > now for rule in request.rules):
                return
        queue.send(message, request.delay_seconds)
        with self._lock:
            due = self._due.get(look, {}) | dict.fromkeys(request.rules, self.host.monotonic() + request.delay_seconds)
            _remember(self._due, look, due, self.limits.failures_remembered_max_items)

    def begins(self, message: Look) -> None:
        """Forget a look that begins now: it serves no later request."""
        with self._lock:
            self._due.pop(_drop_attempt(message), None)


def _drop_attempt(message: Look) -> Look:
    return replace(message, attempt=0)


@dataclass(frozen=True, slots=True)
class FanOut:
    """A fan-out that was sent: when its message is due, by both clocks, and how long the next one waits."""

    due: float
    due_monotonic: float
    next_seconds: int


@dataclass
class FanOutsToCome:
    """The large fan-outs that this process handed to workers. While a source changes all the time, each fan-out waits
    twice as long as the one before it. It serves all requests until it is due, because it lists and reads everything
    then. After a pause of that length the next fan-out is sent at once.

    A fan-out is still to come only if both clocks say so, with two seconds to spare: a process may have been frozen.
    It stays in the queue when this process dies. Another process does not know of it, and sends its own.
    """

    limits: Limits
    host: Host
    _last: OrderedDict[str, FanOut] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._lock = self.host.lock()

    def read_clocks(self) -> tuple[float, float]:
        """Read both clocks: seconds since the epoch, and monotonic seconds."""
        return self.host.now(), self.host.monotonic()

    def send(self, message: PushMessage, queue: Queue) -> None:
        """Send a fan-out, unless one like it is still to come. Raises StoreError."""
        began, delay_seconds = self.read_clocks(), self.delay_seconds(message)
        if delay_seconds is not None:
            queue.send(message, delay_seconds)
            self.note_fan_out(message, delay_seconds, began)

    def begins(self, message: PushMessage) -> None:
        """Note that a fan-out begins now: it serves no later request."""
        with self._lock:
            same = _format_fan_out(message)
            if same in self._last:
                self._last[same] = replace(self._last[same], due=self.host.now())

    def delay_seconds(self, message: PushMessage) -> int | None:
        """Compute the delay before a fan-out is sent. Return None if it need not be sent, because a fan-out like it is
        still to come.
        """
        with self._lock:
            last, (now, monotonic) = self._last.get(_format_fan_out(message)), self.read_clocks()
            if last is None or monotonic - last.due_monotonic >= last.next_seconds:
                return 0
            if min(last.due - now, last.due_monotonic - monotonic) > DUE_MARGIN_SECONDS:
                return None
            return last.next_seconds

    def note_fan_out(self, message: PushMessage, delay_seconds: int, began: tuple[float, float]) -> None:
        """Note a fan-out that is safe in the queue. `began`: both clocks before it was sent."""
        longer = min(2 * delay_seconds, self.limits.fan_out_again_max_seconds)
        due, due_monotonic = (clock + delay_seconds for clock in began)
        with self._lock:
            sent = FanOut(due, due_monotonic, max(longer, self.limits.fan_out_again_first_seconds))
            _remember(self._last, _format_fan_out(message), sent, self.limits.fan_outs_remembered_max_items)


def _format_fan_out(message: PushMessage) -> str:
    """The same for fan-outs that serve each other: of the same source and rules, from the same target on."""
    return format_message(replace(message, found=False, spread=True))


class PendingWork:
    """The looks and the large fan-outs that this process sent and that are not due yet."""

    def __init__(self, limits: Limits, host: Host) -> None:
        self._looks, self._fan_outs = LooksToCome(limits, host), FanOutsToCome(limits, host)

    def send(self, request: Later, queue: Queue) -> None:
        """Send a message, unless one that is still to come serves it. Raises StoreError."""
        match request.message:
            case PushMessage():
                self._fan_outs.send(request.message, queue)
            case PullMessage() | PartMessage():
                self._looks.send(request.message, request, queue)
            case _:
                queue.send(request.message, request.delay_seconds)

    def begins(self, message: Message) -> None:
        """Note that the work of a message begins."""
        match message:
            case PushMessage():
                self._fan_outs.begins(message)
            case PullMessage() | PartMessage():
                self._looks.begins(message)
