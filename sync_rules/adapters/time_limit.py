"""A time limit for a function of a user, which may hang.

In the main thread, where Lambda and `sync-rules run` call functions, an alarm signal interrupts the function. In
another thread Python cannot interrupt anything: the function then runs in a thread of its own, which is abandoned.
"""

from __future__ import annotations

import contextvars
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

AGAIN_SECONDS: Final = 1.0  # a function that catches everything is interrupted again
LEAST_SECONDS: Final = 0.001  # 0 would switch a timer off


class TimeLimitError(Exception):
    """The function did not end within its time."""


class _InterruptError(BaseException):
    """Raised in the function, which catches no such error by mistake."""


def within(seconds: float, function: Callable[[], object]) -> None:
    """Call a function that may take so long. Raises TimeLimitError, and what the function raises."""
    limited = _interrupted if threading.current_thread() is threading.main_thread() else _abandoned
    limited(max(seconds, LEAST_SECONDS), function)


def _interrupted(seconds: float, function: Callable[[], object]) -> None:
    armed = False
    ended = False

    def interrupt(_number: int, _frame: object) -> None:
        if armed:
            raise _InterruptError

    began = time.monotonic()
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:  # the alarm may also ring on the way in or out: all that runs while it is armed is inside
            armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
            function()
            ended = True
        finally:
            armed = False
    except _InterruptError:
        armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:  # somebody else's timer goes on
            signal.setitimer(signal.ITIMER_REAL, max(LEAST_SECONDS, left - (time.monotonic() - began)), interval)
    if not ended:
        raise TimeLimitError


def _abandoned(seconds: float, function: Callable[[], object]) -> None:
    raised: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            raised.append(error)
        finally:
            ended.set()

    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    if not ended.wait(seconds):
        raise TimeLimitError
    if raised:
        raise raised[0]
