"""Slow a backfill down while the stream handler lags, by the metric IteratorAge of its Lambda function.

Invariant: the handler comes first. While it lags by more than the limit, each look at the metric halves the rate; once
it has caught up, the rate rises again step by step. A metric without a value changes nothing.
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import retries
from sync_rules.adapters.budget import Rate
from sync_rules.model.errors import StoreError

PERIOD_SECONDS: Final = 60  # the metric has one value a minute
LOOKED_AT_MINUTES: Final = 5  # values arrive late
SLOWER: Final = 0.5
FASTER: Final = 0.1  # of the ceiling
WAIT_SECONDS: Final = 0.2  # between two looks at whether to stop


class Statistics(Protocol):
    """The part of boto3's CloudWatch client that is used."""

    def get_metric_statistics(self, **parameters: Any) -> Any:
        """Values of one metric."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class IteratorAge:
    """The IteratorAge of one function: the age of the last record of a batch when the function gets it."""

    client: Statistics
    function_name: str
    now: Callable[[], datetime] = field(default=utc_now, kw_only=True)
    retrying: Retrying = field(default_factory=retries.retrying, kw_only=True)

    def seconds(self) -> float | None:
        """The maximum of the newest minute; None when the function was not called lately. Raises StoreError."""
        now = self.now()
        answer = retries.ask(
            self.retrying,
            f"metric IteratorAge of function {self.function_name}",
            self.client.get_metric_statistics,
            Namespace="AWS/Lambda",
            MetricName="IteratorAge",
            Dimensions=[{"Name": "FunctionName", "Value": self.function_name}],
            StartTime=now - timedelta(minutes=LOOKED_AT_MINUTES),
            EndTime=now,
            Period=PERIOD_SECONDS,
            Statistics=["Maximum"],
        )
        points = sorted(answer.get("Datapoints") or (), key=lambda point: point["Timestamp"])
        return float(points[-1]["Maximum"]) / 1000 if points else None


@dataclass(eq=False)
class Brake:
    """Caps a rate while a function lags by more than `max_lag_seconds`. May be used by several threads."""

    rate: Rate
    age: IteratorAge
    max_lag_seconds: float
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    lag_seconds: float | None = field(default=None, init=False)
    _looked_at: float | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        self._cap = self.rate.ceiling

    def look(self) -> None:
        """Read the metric, if a minute has passed. Raises StoreError the first time only."""
        if not self._lock.acquire(blocking=False):  # somebody else is looking
            return
        try:
            now = self.clock()
            if self._looked_at is not None and now - self._looked_at < PERIOD_SECONDS:
                return
            first, self._looked_at = self._looked_at is None, now
            try:
                self.lag_seconds = self.age.seconds()
            except StoreError:
                if first:
                    raise
                return
            if self.lag_seconds is not None:
                self._turn(self.lag_seconds)
        finally:
            self._lock.release()

    def _turn(self, lag_seconds: float) -> None:
        ceiling = self.rate.ceiling
        if lag_seconds > self.max_lag_seconds:
            self._cap = max(self._cap * SLOWER, ceiling * FASTER * SLOWER)
        else:
            self._cap = min(self._cap + ceiling * FASTER, ceiling)
        self.rate.cap(self._cap)


def slowing(rate: Rate) -> Callable[[float], None]:
    """A wait before a call is retried that also lowers the rate: most retries are of throttled calls."""

    def sleep(seconds: float) -> None:
        rate.slow_down()
        time.sleep(seconds)

    return sleep


def until(stopping: Callable[[], bool]) -> Callable[[float], None]:
    """A wait that ends when it is time to stop."""

    def sleep(seconds: float) -> None:
        until = time.monotonic() + seconds
        while not stopping() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, WAIT_SECONDS))

    return sleep
