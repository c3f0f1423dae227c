"""Functions that hang: stopped in the main thread, abandoned in another, and otherwise left alone."""

from __future__ import annotations

import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sync_rules.adapters.function_calls import TimeLimitError, run_within

LONG_SECONDS = 60


@pytest.fixture(params=["main thread", "another thread"])
def limited(request):
    """`within`, in each kind of thread."""
    if request.param == "main thread":
        yield run_within
        return
    with ThreadPoolExecutor(1) as pool:
        yield lambda seconds, function: pool.submit(run_within, seconds, function).result()


def test_time_limit_stops_waiting_for_a_function_that_hangs(limited):
    """A function that hangs fails after its time, and the next one is called as if nothing had been."""
    ended = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeLimitError):
        limited(0.05, lambda: ended.wait(LONG_SECONDS))
    assert time.monotonic() - began < LONG_SECONDS / 2
    ended.set()
    seen = []
    limited(LONG_SECONDS, lambda: seen.append(1))
    assert seen == [1]


def test_time_limit_interrupts_a_function_that_catches_everything_once(monkeypatch):
    """A function that swallows the interruption is interrupted again."""
    monkeypatch.setattr("sync_rules.adapters.function_calls.AGAIN_SECONDS", 0.05)
    caught = []

    def stubborn():
        try:
            time.sleep(LONG_SECONDS)
        except BaseException as error:  # noqa: BLE001
            caught.append(error)
        time.sleep(LONG_SECONDS)

    with pytest.raises(TimeLimitError):
        run_within(0.05, stubborn)
    assert len(caught) == 1


def rings_at(place: int) -> tuple[str, bool]:
    """Let the alarm ring before one line of the limit; the outcome, and if it rang."""
    lines, rang, traced = 0, False, sys.gettrace()

    def trace(frame, event, _):
        nonlocal lines, rang
        if frame.f_code.co_name != "_run_with_alarm":
            return None
        if event == "line" and signal.getsignal(signal.SIGALRM) is not nobody:
            lines += 1
            if lines == place:
                rang = True
                signal.raise_signal(signal.SIGALRM)
        return trace

    sys.settrace(trace)
    try:
        run_within(LONG_SECONDS, lambda: None)
    except TimeLimitError:
        return "late", rang
    finally:
        sys.settrace(traced)
    return "ended", rang


def nobody(*_):
    """The handler of somebody else."""


def test_time_limit_may_be_over_at_any_line():
    """Whenever the alarm rings, the function ended or was late; no timer is left, and the handler is as before."""
    before, seen = signal.signal(signal.SIGALRM, nobody), []
    others = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        while not seen or seen[-1][1]:
            seen.append(rings_at(len(seen) + 1))
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
            assert signal.getsignal(signal.SIGALRM) is nobody
    finally:
        signal.setitimer(signal.ITIMER_REAL, *others)
        signal.signal(signal.SIGALRM, before)
    assert {outcome for outcome, _ in seen} == {"ended", "late"}
