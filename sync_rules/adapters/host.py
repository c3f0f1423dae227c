"""This process as a `Host`: the clocks and locks that the pipeline receives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from sync_rules.pipeline.requests import Host

THIS_PROCESS: Final = Host(time.time, time.monotonic, threading.Lock)


def make_steady_clock() -> Callable[[], int]:
    """Make a clock of milliseconds since the epoch that runs on from now, even if the system's clock is set. Waits keep
    their length.
    """
    ahead_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (ahead_ns + time.monotonic_ns()) // 1_000_000
