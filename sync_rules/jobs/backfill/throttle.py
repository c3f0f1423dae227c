"""Waits of a backfill: one that slows it down before a call is retried, one that ends when it is time to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from sync_rules.adapters.budget import Rate

WAIT_SECONDS: Final = 0.2  # between two looks at whether to stop


def utc_now() -> datetime:
    return datetime.now(UTC)


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
