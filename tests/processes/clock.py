"""A wall clock that may jump, for processes: it replaces time.time before others import it. The monotonic one goes on."""

from __future__ import annotations

import random
import time

JUMP_EVERY_SECONDS = 3
JUMPS_SECONDS = (0, 0, -5, 5)  # a message waits by the clock of the process that sent it
_read, _read_ns = time.time, time.time_ns
_seed = ""


def move(seed: str) -> None:
    """Let the clock of this process jump now and then; "": not any more."""
    global _seed  # noqa: PLW0603 - a process has one clock
    _seed = seed


def _offset() -> int:
    if not _seed:
        return 0
    return random.Random(f"{_seed}/{time.monotonic() // JUMP_EVERY_SECONDS}").choice(JUMPS_SECONDS)


def install() -> None:
    """Replace the clock of this process, and of those that are forked from it."""
    time.time = lambda: _read() + _offset()
    time.time_ns = lambda: _read_ns() + _offset() * 1_000_000_000
