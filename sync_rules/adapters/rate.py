"""How fast a backfill may write: a bucket of write units that fills at a rate, shared by all threads.

Law: of any stretch of t seconds no more is let through than `ceiling * t` units and one burst, or one request, if that
is larger: that one waits for a full bucket, and who comes after it until it is paid for. A throttle multiplies the
rate down, at most once a second; from there it goes back up in equal steps. Stream lag puts a cap on it for as long as
it lasts. What is let through is in the order of asking.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from sync_rules.model.limits import Limits

BURST_SECONDS: Final = 1.0  # of the ceiling: what may be let through at once
SLOWER: Final = 0.7
SLOWER_AGAIN_SECONDS: Final = 1.0
RECOVERY_SECONDS: Final = 60.0  # from nothing to the ceiling
LEAST: Final = 0.01  # of the ceiling: it never stands still
WRITES_AT_ONCE_SECONDS: Final = 0.1  # of the rate
WAIT_MAX_SECONDS: Final = 0.5  # in one piece, as the rate may change meanwhile
ENOUGH: Final = 1e-9  # sums of floats


def writes_at_once(rate: float) -> int:
    """How many writes go out together: so few that the rate is kept from moment to moment, and stopping is quick."""
    most = Limits().apply_max_writes
    return max(1, min(most, int(rate * WRITES_AT_ONCE_SECONDS))) if rate else most


class Rate:
    """`ceiling` is in write units per second; 0 lets everything through. May be used by several threads."""

    def __init__(
        self,
        ceiling: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.ceiling = ceiling
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._rate = self._cap = ceiling
        self._seen = clock()
        self._slowed = self._seen - SLOWER_AGAIN_SECONDS
        self._asked = 0.0  # units, all in all
        self._credit = ceiling * BURST_SECONDS  # of them, so many may have been let through by now

    @property
    def units_per_second(self) -> float:
        """The rate at this moment."""
        with self._lock:
            self._go_on()
            return self._rate

    def take(self, units: float, within_seconds: float = math.inf) -> bool:
        """Returns once these units may be written; False, at once, when that would take longer than there is time."""
        if not self.ceiling:
            return True
        with self._lock:
            self._go_on()
            mine = self._asked + min(units, self.ceiling * BURST_SECONDS)  # the bucket never holds more
            if mine - self._credit > self._rate * within_seconds:
                return False
            self._asked += units
        while True:
            with self._lock:
                self._go_on()
                missing = mine - self._credit
                wait = missing / self._rate
            if missing <= ENOUGH * mine:
                return True
            self._sleep(min(wait, WAIT_MAX_SECONDS))

    def slow_down(self) -> None:
        """Somebody was throttled."""
        with self._lock:
            self._go_on()
            if self._seen - self._slowed >= SLOWER_AGAIN_SECONDS:
                self._slowed = self._seen
                self._rate = max(self._rate * SLOWER, self._least)

    def cap(self, units_per_second: float) -> None:
        """Not faster than this, until told otherwise; no more than the ceiling, no less than the least."""
        with self._lock:
            self._go_on()
            self._cap = min(max(units_per_second, self._least), self.ceiling)
            self._rate = min(self._rate, self._cap)

    @property
    def _least(self) -> float:
        return self.ceiling * LEAST

    def _go_on(self) -> None:
        """What came in since the last look: at the rate as it was then, for it may not have recovered at once."""
        now = self._clock()
        passed, self._seen = max(0.0, now - self._seen), now
        self._credit = min(self._credit + self._rate * passed, self._asked + self.ceiling * BURST_SECONDS)
        self._rate = min(self._cap, self._rate + passed * self.ceiling / RECOVERY_SECONDS)
