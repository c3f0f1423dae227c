"""This process, as the pipeline is handed it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from sync_rules.pipeline.requests import Host

THIS_PROCESS: Final = Host(time.time, time.monotonic, threading.Lock)


def steady_clock() -> Callable[[], int]:
    """Make a clock of milliseconds since the epoch that runs on from now, and does not follow when the system's clock
    is set: what waits for a time waits as long as it was meant to.
    """
    ahead_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (ahead_ns + time.monotonic_ns()) // 1_000_000
