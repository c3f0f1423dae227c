"""How throttled the batches of a process are, and how long they pause for it.

Law: of a request that meets a throttle up to 25 writes are in vain. So that these are few of all, the pause after it is
doubled where too few went through since the one before, and halved where more than enough did. What the table would
take meanwhile is not lost: it keeps that for a burst.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
"""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Lock
from typing import Final

BATCH_WAIT_SECONDS: Final = 0.1  # longest first pause after a throttle: 25 writes wait for one of them
BATCH_WAIT_MAX_SECONDS: Final = 1.0  # longer, and the table would keep less than it could have taken
# Fewer written from one throttle to the next, and the pause is too short; more than twice as many, and it is too long.
BETWEEN_THROTTLES_STATEMENTS: Final = 50
CALM_STATEMENTS: Final = 1_000  # so many written without a throttle: as before the first of them


class Pressure:
    """Of one writer. May be used by several threads."""

    def __init__(self, spread: Callable[[float, float], float] = random.uniform) -> None:
        self._lock = Lock()
        self._spread = spread
        self._pause = 0.0
        self._written = 0  # since the last throttle

    @property
    def there(self) -> bool:
        """Whether there was a throttle lately."""
        return self._pause > 0

    def pause(self) -> float:
        """Seconds until the next try: between half of the pause and all of it."""
        return self._spread(self._pause / 2, self._pause)

    def took(self, written: int) -> None:
        """So many were written."""
        with self._lock:
            self._written += written
            if self._written >= CALM_STATEMENTS:
                self._pause = 0.0

    def refused(self) -> None:
        """Requests that went out together met throttles."""
        with self._lock:
            if self._written < BETWEEN_THROTTLES_STATEMENTS:
                self._pause = min(2 * self._pause, BATCH_WAIT_MAX_SECONDS)
            elif self._written > 2 * BETWEEN_THROTTLES_STATEMENTS:
                self._pause /= 2
            self._pause = max(self._pause, BATCH_WAIT_SECONDS)
            self._written = 0
