"""How far behind the stream handler is, by the metric IteratorAge of its Lambda function, and what that does to a rate.

Law: the handler comes first. While it is more than so many seconds behind, a backfill is slowed down by half each time
that the metric is looked at; once it has caught up, the rate goes up again step by step. A metric that cannot be read,
or says nothing, changes nothing.
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import aws
from sync_rules.adapters.budget import Rate
from sync_rules.model.errors import StoreError

PERIOD_SECONDS: Final = 60  # the metric has one value a minute
LOOKED_AT_MINUTES: Final = 5  # values arrive late
SLOWER: Final = 0.5
FASTER: Final = 0.1  # of the ceiling


class Statistics(Protocol):
    """The part of boto3's CloudWatch client that is used."""

    def get_metric_statistics(self, **parameters: Any) -> Any:
        """Values of one metric."""
        ...


def utc_now() -> datetime:
    """What time it is."""
    return datetime.now(UTC)


class IteratorAge:
    """The IteratorAge of one function: the age of the last record of a batch when the function was given it."""

    def __init__(
        self,
        client: Statistics,
        function_name: str,
        *,
        now: Callable[[], datetime] = utc_now,
        retrying: Retrying | None = None,
    ) -> None:
        self._client = client
        self._function_name = function_name
        self._now = now
        self._retrying = retrying or aws.retrying()

    def seconds(self) -> float | None:
        """The greatest of the newest minute there is; None when the function was not called lately. Raises
        StoreError.
        """
        now = self._now()
        try:
            answer = self._retrying(
                self._client.get_metric_statistics,
                Namespace="AWS/Lambda",
                MetricName="IteratorAge",
                Dimensions=[{"Name": "FunctionName", "Value": self._function_name}],
                StartTime=now - timedelta(minutes=LOOKED_AT_MINUTES),
                EndTime=now,
                Period=PERIOD_SECONDS,
                Statistics=["Maximum"],
            )
        except aws.ERRORS as error:
            raise aws.store_error(error, f"metric IteratorAge of function {self._function_name}") from error
        points = sorted(answer["Datapoints"], key=lambda point: point["Timestamp"])
        return float(points[-1]["Maximum"]) / 1000 if points else None


class Brake:
    """Caps a rate while a function lags by more than `max_lag_seconds`. May be used by several threads."""

    def __init__(
        self,
        rate: Rate,
        age: IteratorAge,
        max_lag_seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lag_seconds: float | None = None
        self._rate = rate
        self._age = age
        self._max_lag_seconds = max_lag_seconds
        self._clock = clock
        self._looked_at: float | None = None
        self._cap = rate.ceiling
        self._lock = Lock()

    def look(self) -> None:
        """Look at the metric, if a minute has passed. Raises StoreError the first time only: later it changes
        nothing.
        """
        if not self._lock.acquire(blocking=False):  # somebody else is looking
            return
        try:
            now = self._clock()
            if self._looked_at is not None and now - self._looked_at < PERIOD_SECONDS:
                return
            first, self._looked_at = self._looked_at is None, now
            try:
                self.lag_seconds = self._age.seconds()
            except StoreError:
                if first:
                    raise
                return
            if self.lag_seconds is not None:
                self._turn(self.lag_seconds)
        finally:
            self._lock.release()

    def _turn(self, lag_seconds: float) -> None:
        ceiling = self._rate.ceiling
        if lag_seconds > self._max_lag_seconds:
            self._cap = max(self._cap * SLOWER, ceiling * FASTER * SLOWER)
        else:
            self._cap = min(self._cap + ceiling * FASTER, ceiling)
        self._rate.cap(self._cap)


WAIT_SECONDS: Final = 0.2  # between two looks at whether to stop


def slowing(rate: Rate) -> Callable[[float], None]:
    """A wait before a call is tried again, most often for a throttle."""

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
