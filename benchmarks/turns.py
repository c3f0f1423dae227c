"""A simulated clock for threads that take turns.

Invariant: one thread runs at a time, until it waits; then the one goes on that is due first, at its time. So a run
repeats exactly, whatever the machine does.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count
from threading import Semaphore, Thread, local


class OverError(BaseException):
    """Ends a thread that waits when nothing can happen any more."""


class Clock:
    """Simulated seconds. Threads that were started here run one at a time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Semaphore]] = []
        self._order = count()
        self._mine = local()
        self._ended = Semaphore(0)
        self._over = False
        self._until = math.inf
        self._threads: list[tuple[Thread, Semaphore]] = []
        self._errors: list[BaseException] = []

    def time(self) -> float:
        return self.now

    def start(self, work: Callable[[], object], after_seconds: float = 0) -> None:
        """Run `work` in a thread of its own."""
        turn = Semaphore(0)
        thread = Thread(target=self._run, args=(work, turn), daemon=True)
        self._threads.append((thread, turn))
        self._at(self.now + after_seconds, turn)
        thread.start()

    def sleep(self, seconds: float) -> None:
        """Let this much time pass for this thread."""
        self._at(self.now + seconds, self._mine.turn)
        self._wait()

    def park(self, where: list[Semaphore]) -> None:
        """Wait until somebody wakes this thread, which is noted there."""
        where.append(self._mine.turn)
        self._wait()

    def wake(self, turn: Semaphore) -> None:
        self._at(self.now, turn)

    def play(self, until: float = math.inf) -> None:
        """Run all threads until none is due any more, or not `until` then; end those that still wait. Raises the first
        error of one.
        """
        self._until = until
        self._next()
        self._ended.acquire()
        self._over = True
        for thread, turn in self._threads:
            turn.release()
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _at(self, time: float, turn: Semaphore) -> None:
        heapq.heappush(self._due, (time, next(self._order), turn))

    def _next(self, mine: Semaphore | None = None) -> bool:
        """Let the thread go on that is due first. True if that is this one."""
        if not self._due or self._errors or self._due[0][0] > self._until:
            self._ended.release()
            return False
        self.now, _, turn = heapq.heappop(self._due)
        if turn is not mine:
            turn.release()
        return turn is mine

    def _wait(self) -> None:
        turn = self._mine.turn
        if not self._next(turn):
            turn.acquire()
            if self._over:
                raise OverError

    def _run(self, work: Callable[[], object], turn: Semaphore) -> None:
        self._mine.turn = turn
        turn.acquire()
        if self._over:
            return
        try:
            work()
        except OverError:
            return
        except BaseException as error:  # noqa: BLE001 -- raised by `play`
            self._errors.append(error)
        self._next()
