"""The time limit for all requests of one call, the waits within it, and a store that obeys it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Final

from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.plain_client import make_plain_client
from sync_rules.pipeline.requests import Store
from sync_rules.rules.ruleset import Rules

DEADLINE_SECONDS: Final = 5.0
FIRST_WAIT_SECONDS: Final = 0.025
WAIT_MAX_SECONDS: Final = 1.0


class Deadline:
    """A time limit, in seconds from the moment it is made."""

    def __init__(
        self,
        seconds: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.seconds = seconds
        self._now = now
        self._sleep = sleep
        self._until = now() + seconds

    def count_seconds(self) -> float:
        """Return the seconds until the deadline; negative after it."""
        return self._until - self._now()

    def is_over(self) -> bool:
        """Return True if no time is left."""
        return self.count_seconds() <= 0

    def wait(self, times: int) -> bool:
        """Wait a random time before the retry number `times`; the maximum doubles with each retry. Return False at once
        if the wait would end after the deadline.
        """
        seconds = random.uniform(0, min(WAIT_MAX_SECONDS, FIRST_WAIT_SECONDS * 2**times))  # noqa: S311 - jitter
        if seconds >= self.count_seconds():
            return False
        self._sleep(seconds)
        return True

    def store(self, client: Any, rules: Rules) -> Store:
        """Make a store over the rules' tables on this client, with this time limit for each request."""
        return DynamoStore(
            make_plain_client(client), rules.tables, remaining_seconds=self.count_seconds, write_mode="update"
        )
