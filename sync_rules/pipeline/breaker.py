"""Bounds on repetition: one item written too often, one failure reported too often, one item looked at too often."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.limits import Limits
from sync_rules.pipeline.messages import Look, Message, PartMessage, PullMessage
from sync_rules.pipeline.requests import Failures, Host


@dataclass
class Breaker:
    """Counts how often the same value is written on a target, in windows of fixed length, for the latest writes. A
    value written again and again is parked, because something else keeps writing the attribute back. A parent whose
    count rises a thousand times gets another value each time, and is just busy.
    """

    limits: Limits
    monotonic: Callable[[], float]
    _windows: OrderedDict[int, tuple[float, int]] = field(default_factory=OrderedDict)

    def may_write(self, target: ItemKey, what: object = None) -> bool:
        """Count a write of this on a target; False when the window's share of it is used up."""
        now = self.monotonic()
        key = hash((target, repr(what)))  # a hash is small, and keeps no value
        since, count = self._windows.pop(key, (now, 0))
        if now - since >= self.limits.fixes_window_seconds:
            since, count = now, 0
        self._windows[key] = (since, count + 1)
        if len(self._windows) > self.limits.fixes_counted_max_items:
            self._windows.popitem(last=False)
        return count < self.limits.fixes_per_target_max_writes


@dataclass
class DeduplicatedFailures:
    """Failures that records the same rule, item and reason once in a while, not at every record of the item: an item
    that cannot take a copy goes on changing.
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
        self._kept[known] = now
        self._kept.move_to_end(known)
        if len(self._kept) > self.limits.failures_remembered_max_items:
            self._kept.popitem(last=False)


@dataclass
class LooksToCome:
    """The looks that this process sent and that are not due yet. A target that stays parked has one chain of looks,
    whatever else asks for one: a look serves all that asked before it begins. What is stuck after it has another.
    """

    limits: Limits
    host: Host
    _due: OrderedDict[Look, dict[str, float]] = field(default_factory=OrderedDict)  # when, by rule

    def __post_init__(self) -> None:
        self._lock = self.host.lock()

    def to_come(self, message: Look, rules: tuple[str, ...]) -> bool:
        """True if a look at the same work is still to come for each of these rules. The look that goes on with a chain
        is sent in any case.
        """
        now = self.host.monotonic()
        with self._lock:
            due = self._due.get(_same_look(message), {})
            return message.attempt == 1 and all(due.get(rule, now) > now for rule in rules)

    def sent(self, message: Look, rules: tuple[str, ...], delay_seconds: int) -> None:
        """Note when a look is due."""
        look = _same_look(message)
        with self._lock:
            self._due.setdefault(look, {}).update(dict.fromkeys(rules, self.host.monotonic() + delay_seconds))
            self._due.move_to_end(look)
            if len(self._due) > self.limits.failures_remembered_max_items:
                self._due.popitem(last=False)

    def begins(self, message: Message) -> None:
        """Forget a look, which begins: it no longer serves what asks from now on."""
        if isinstance(message, PullMessage | PartMessage):
            with self._lock:
                self._due.pop(_same_look(message), None)


def _same_look(message: Look) -> Look:
    return replace(message, attempt=0)
