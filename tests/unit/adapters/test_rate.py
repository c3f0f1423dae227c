"""The write rate of a backfill: never more than asked for, less after throttles and under lag, and back again."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters.budget import BURST_SECONDS, RECOVERY_SECONDS, Rate


class Clock:
    """A clock that only tests and sleeps move."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def rate_of(ceiling: float) -> tuple[Rate, Clock]:
    clock = Clock()
    return Rate(ceiling, clock=clock, sleep=clock.sleep), clock


STEPS = st.lists(
    st.tuples(st.just("take"), st.floats(0.5, 400))
    | st.tuples(st.just("take now"), st.floats(0.5, 400))
    | st.tuples(st.just("take soon"), st.floats(0.5, 400))
    | st.tuples(st.just("pass"), st.floats(0, 30))
    | st.tuples(st.just("throttled"), st.just(0)),
    max_size=40,
)


WITHIN = {"take": math.inf, "take soon": 2.0, "take now": 0.0}


@given(st.floats(0.5, 150), STEPS)
def test_rate_never_lets_more_through_than_it_says(ceiling, steps):
    """Over any stretch of time no more is let through than rate * t and a burst, or one larger request."""
    rate, clock = rate_of(ceiling)
    let: list[tuple[float, float]] = []
    for step, amount in steps:
        if step in WITHIN:
            until = clock() + WITHIN[step]
            if rate.take(amount, WITHIN[step]):
                let.append((clock(), amount))
            assert step == "take" or clock() <= until + 1e-6
        elif step == "pass":
            clock.now += amount
        else:
            rate.slow_down()
        assert 0 < rate.units_per_second <= ceiling
    most = max([ceiling * BURST_SECONDS, *(amount for _, amount in let)])
    for i, (since, _) in enumerate(let):
        for (until, _), units in zip(let[i:], accumulate(amount for _, amount in let[i:]), strict=True):
            assert units <= ceiling * (until - since) + most + 1e-6


def test_rate_goes_down_once_a_second_and_comes_back():
    """Many throttles within a second lower the rate once; later the rate recovers up to its limit."""
    rate, clock = rate_of(100)
    for _ in range(20):
        rate.slow_down()
    assert rate.units_per_second == pytest.approx(70)
    clock.now += 1
    rate.slow_down()
    assert rate.units_per_second == pytest.approx((70 + 100 / RECOVERY_SECONDS) * 0.7)
    before = rate.units_per_second
    clock.now += RECOVERY_SECONDS / 10
    assert rate.units_per_second == pytest.approx(before + 10)
    clock.now += RECOVERY_SECONDS
    assert rate.units_per_second == 100


def test_rate_never_stands_still():
    """Throttles without end leave a hundredth of the ceiling."""
    rate, clock = rate_of(100)
    for _ in range(100):
        clock.now += 1
        rate.slow_down()
    assert 1 <= rate.units_per_second < 10


@given(st.floats(0.5, 150), st.floats(1.1, 1_000), st.floats(0.5, 100))
def test_rate_lets_a_large_request_through_and_is_paid_after(ceiling, larger, small):
    """One that no second's worth covers needs a full bucket and no more; who comes next waits until it is paid for."""
    rate, clock = rate_of(ceiling)
    units, small = ceiling * larger, min(small, ceiling)
    assert rate.take(units, within_seconds=0)
    assert clock.now == 1_000
    owed = units - ceiling * BURST_SECONDS + small
    assert not rate.take(small, within_seconds=owed / ceiling * 0.99)
    assert rate.take(small)
    assert clock.now - 1_000 == pytest.approx(owed / ceiling)
    assert not rate.take(units, within_seconds=0.99 * BURST_SECONDS)
    assert rate.take(units, within_seconds=1.01 * BURST_SECONDS)
