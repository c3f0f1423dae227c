"""The waits of a backfill: one that slows it down, one that ends when it is time to stop.

Law: no wait outlasts a word to stop by more than a moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from sync_rules.adapters.rate import Rate

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
