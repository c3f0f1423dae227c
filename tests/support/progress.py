"""Waits that last as long as there is progress, however busy the machine is.

Invariant: a wait ends when nothing has moved for its limit, never because much time has passed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
STILL_MAX_SECONDS: Final = 120.0  # a process that gets no hundredth of a second of CPU in that time hangs
BLIND_MAX_SECONDS: Final = 1_200.0  # the limit where no CPU time can be read
LOOK_SECONDS: Final = 0.1
STAT_SESSION, STAT_TIMES = 3, slice(11, 15)  # proc_pid_stat(5), counted from the field after the name


def wait_while_moving(
    done: Callable[[], bool],
    mark: Callable[[], object],
    still_max_seconds: float = STILL_MAX_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Wait until `done`. True once it is; False if `mark` has not changed for `still_max_seconds`."""
    seen: object = None
    moved = -math.inf
    while not done():
        now, found = clock(), mark()
        if found != seen or moved == -math.inf:
            seen, moved = found, now
        elif now - moved > still_max_seconds:
            return False
        sleep(LOOK_SECONDS)
    return True


def still_max_seconds() -> float:
    """The limit on this machine for processes that do not move."""
    return STILL_MAX_SECONDS if (PROC / "self/stat").exists() else BLIND_MAX_SECONDS


def session_ticks(session: int) -> int:
    """The CPU time of all processes of a session, ended children included, in clock ticks; 0 where it cannot be read."""
    ticks = 0
    for process in PROC.iterdir() if PROC.exists() else ():
        if process.name.isdecimal():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if int(fields[STAT_SESSION]) == session:
                ticks += sum(map(int, fields[STAT_TIMES]))
    return ticks
