"""The simulated account: its clock, its limits, and its tables in docs/scale.md."""

from __future__ import annotations

import pytest

from benchmarks import often, simulation
from benchmarks.endurance import run
from benchmarks.scale import LAYOUTS, LISTED_COPIES_SECOND, PAGE
from benchmarks.simulated import Setting
from benchmarks.simulation import PACES, Throughput, cells, each, pace, pieces
from benchmarks.turns import Clock

PARTITION, NEW, WARM = LAYOUTS
TEXT = PAGE.read_text()


def test_clock_lets_who_is_due_first_go_on():
    """Threads take turns by simulated time, and none waits for the wall clock."""
    clock, seen = Clock(), []

    def work(name, seconds):
        for _ in range(3):
            clock.sleep(seconds)
            seen.append((round(clock.now), name))

    clock.start(lambda: work("slow", 500))
    clock.start(lambda: work("fast", 300), after_seconds=100)
    clock.play()
    assert seen == [(400, "fast"), (500, "slow"), (700, "fast"), (1000, "slow"), (1000, "fast"), (1500, "slow")]


def test_clock_raises_what_a_thread_raised():
    """Also where others still wait."""
    clock = Clock()

    def fail():
        clock.sleep(1)
        raise LookupError("here")

    clock.start(lambda: clock.park([]))
    clock.start(fail)
    with pytest.raises(LookupError, match="here"):
        clock.play()


@pytest.mark.parametrize(("layout", "copies"), [(PARTITION, 1_000), (WARM, 1_000), (WARM, 10_000)])
def test_simulated_rows_are_those_of_the_page(layout, copies):
    """`python -m benchmarks.simulation` writes them; a run repeats exactly."""
    part = TEXT.partition(f"### {layout.title}, simulated")[2].partition("###")[0]
    units = 1_000 if layout.consistent else 40_000
    both = (*cells(copies, layout), *cells(copies, layout, PACES[units]))
    assert f"| {copies:,} | {' | '.join(both)} | each |" in part


def test_simulated_partition_throttles_and_loses_nothing():
    """Two workers are faster than a partition: some writes are refused, and all copies are made at its pace."""
    ran = each(5_000, PARTITION, Setting(2))
    assert ran.counts["throttled"] > 0
    assert 0.9 < (5_000 - 1_000) / ran.seconds / 1_000 < 1.02  # a second's worth is there at first


def test_simulated_planner_lists_at_the_pace_of_the_formula():
    """The computed tables have the pace of one process that lists from what the planner does in the simulation."""
    listed = pace(WARM, Setting(8)).listed_second
    assert listed == pytest.approx(LISTED_COPIES_SECOND, rel=simulation.EXPLAINED)


def test_simulated_workers_in_one_partition_read_each_target_once():
    """A quarter of a unit for a target of 1 KB, and its source once in 500 targets."""
    for setting in (Setting(2), PACES[500]):
        ran = each(10_000, PARTITION, setting)
        assert ran.counts["read units"] / 10_000 < 0.26
        assert not ran.counts["again"]


def test_simulated_pieces_of_a_partition_agree_with_items():
    """Also where each worker lists what it makes."""
    for setting in (Setting(2), PACES[500]):
        assert pieces(10_000, PARTITION, setting).seconds == pytest.approx(
            each(10_000, PARTITION, setting).seconds, rel=0.15
        )


def test_simulated_split_by_heat_helps_no_ordered_writes():
    """The writes go on in one half of a split partition."""
    throughput = Throughput(PARTITION, 5_000_000)
    now = 0.0
    for number in range(0, 5_000_000, 50_000):
        now = throughput.take(number, now, 50_000, 0)
    assert len(throughput.flows) > 1
    assert now == pytest.approx(5_000)


def test_simulated_table_takes_twice_its_peak_after_half_an_hour():
    """From 4,000 write units a second to the quota."""
    throughput = Throughput(NEW, 10**6)
    rates = []
    for half_hour in range(6):
        throughput.take(0, half_hour * 1_800.0, 0, 0)
        rates.append(throughput.flows[0][0].rate)
        throughput.flows[0][0].passed = rates[-1] * 1_800
    assert rates == [4_000, 8_000, 16_000, 32_000, 40_000, 40_000]


def test_simulated_pieces_agree_with_items():
    """The time is nearly the same where both can be simulated."""
    setting = Setting(2)
    assert pieces(10_000, NEW, setting).seconds == pytest.approx(each(10_000, NEW, setting).seconds, rel=0.25)


def test_source_that_changes_all_the_time_makes_few_fan_outs():
    """The first at once, then after 5 and 10 seconds; without the wait each batch makes one."""
    counts = [int(often.row("", limits, 3_000, 12).split("|")[2]) for limits in (often.AT_ONCE, often.Limits())]
    assert counts == [12, 3]


def test_endurance_makes_each_copy_in_processes_of_their_own():
    """The handlers, a queue in a file, and a byte for each target: none is lost."""
    ran = run(2_600, 2)
    assert ran.lost == 0
    assert sum(worker.messages for worker in ran.workers) > 2
