"""Waits end for want of progress, never for want of patience."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count

import pytest

from tests.deploy import tools
from tests.support import progress


def waited(marks, *, done_after: int = 10**6, still_max_seconds: float = 3.0) -> tuple[bool, float]:
    """Wait on a clock that each look moves by a second. Gives whether it was done, and the time."""
    now = [0.0]

    def sleep(_seconds: float) -> None:
        now[0] += 1

    moved = progress.wait_while_moving(
        lambda: now[0] >= done_after, lambda: next(marks), still_max_seconds, lambda: now[0], sleep
    )
    return moved, now[0]


def test_wait_lasts_as_long_as_something_moves():
    """Hours are no reason to end a wait: only marks that stay the same for the limit are."""
    assert waited(count(), done_after=10_000) == (True, 10_000)
    assert waited(iter(lambda: 1, 0)) == (False, 4)
    assert waited(iter([*range(50), *[50] * 9])) == (False, 54)
    assert waited(iter([1, 1, 1, 2, 2, 2, 3, 3]), done_after=8) == (True, 8)


def test_session_ticks_count_children_that_have_ended():
    """The CPU time of the children of a program is part of its progress, while they run and afterwards."""
    spin = "import time\nwhile time.process_time() < 0.2: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        process.stdout.readline()
        # user and system time are rounded down, each
        spent = progress.session_ticks(process.pid) / os.sysconf("SC_CLK_TCK")
        assert spent >= 0.1 or not progress.PROC.exists()
        process.stdin.close()
    assert progress.session_ticks(process.pid) == 0


def test_tool_runs_past_the_limit_while_it_works(monkeypatch):
    """A silent tool that computes is waited for, longer than the limit; one that does nothing is ended and named."""
    monkeypatch.setattr(progress, "STILL_MAX_SECONDS", 0.3)
    works = "import time\nwhile time.process_time() < 1: pass\nprint(input())"
    assert tools.finished(sys.executable, "-c", works, env=os.environ, stdin="all").stdout == "all\n"
    hangs = "import signal; print('begins', flush=True); signal.pause()"
    with pytest.raises(AssertionError, match="has not moved for 0 s\nbegins"):
        tools.finished(sys.executable, "-c", hangs, env=os.environ)
