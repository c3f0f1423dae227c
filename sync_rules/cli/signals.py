"""SIGINT and SIGTERM: the first asks a command to stop after the work in hand, the second ends the process."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sync_rules.adapters import patience
from sync_rules.cli.exit_codes import ExitCode

SAME_SIGNAL_SECONDS: Final = 0.5
SHOW_CURSOR: Final = "\x1b[?25h"


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True after a signal. A second signal within SAME_SIGNAL_SECONDS is ignored: a
    terminal and a wrapper may both pass the same signal on.
    """
    came: list[float] = []

    def note(_number: int, _frame: object) -> None:
        if came and time.monotonic() - came[0] < SAME_SIGNAL_SECONDS:
            return
        if came:
            terminal = sys.__stdout__  # sys.stdout escapes what moves a cursor
            if terminal is not None and terminal.isatty():
                terminal.write(SHOW_CURSOR)
                terminal.flush()
            os._exit(ExitCode.INTERRUPTED)
        came.append(time.monotonic())  # no lock: the handler may run while this very thread holds it

    command = patience.find_current() or patience.Patience(lambda _wait: None)
    command.stopping = lambda: bool(came)
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(came)
    finally:
        command.stopping = lambda: False
        for number, handler in before.items():
            signal.signal(number, handler)
