"""How a long job is processed: by several threads, at a rate that retries lower, until it must stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

from sync_rules.adapters.budget import Rate

T = TypeVar("T")
WORKER_GONE: Final = "NotFinished"  # the reason of work that a worker began and did not end
WAIT_SECONDS: Final = 0.2  # between two looks at whether to stop


@dataclass(eq=False)
class Crew:
    """Threads that process parts of a job. If a part fails (`broken`), every thread stops after its current part."""

    workers: int
    stopping: Callable[[], bool]
    broken: bool = False

    def is_halted(self) -> bool:
        """Return True if no further page should start."""
        return self.broken or self.stopping()

    def run(self, work: Callable[[T], bool], parts: Iterable[T]) -> bool:
        """Process the parts, several at a time. Return True if `work` finished all; raises what it raises."""

        def run_one(part: T) -> bool:
            try:
                return work(part)
            except BaseException:
                self.broken = True
                raise

        if self.workers == 1:  # without a thread: a browser has none
            return all(list(map(run_one, parts)))
        with ThreadPoolExecutor(self.workers) as pool:
            return all(list(pool.map(run_one, parts)))


def make_slowing_sleep(rate: Rate) -> Callable[[float], None]:
    """Return a sleep function for retries that also lowers the rate, because DynamoDB throttled most calls that
    retry.
    """

    def sleep(seconds: float) -> None:
        rate.slow_down()
        time.sleep(seconds)

    return sleep


def make_stoppable_sleep(stopping: Callable[[], bool]) -> Callable[[float], None]:
    """Return a sleep function that returns early once `stopping` returns True."""

    def sleep(seconds: float) -> None:
        until = time.monotonic() + seconds
        while not stopping() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, WAIT_SECONDS))

    return sleep
