"""The simulated account: its clock, its limits, and its tables in docs/scale.md."""

from __future__ import annotations

import pytest

from benchmarks import often
from benchmarks.endurance import run
from benchmarks.scale import LAYOUTS, PAGE
from benchmarks.simulated import Setting
from benchmarks.simulation import PACES, cells, each

PARTITION, NEW, WARM = LAYOUTS
TEXT = PAGE.read_text()


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


def test_source_that_changes_all_the_time_makes_few_fan_outs():
    """The first at once, then after 5 and 10 seconds; without the wait each batch makes one."""
    counts = [int(often.row("", limits, 3_000, 12).split("|")[2]) for limits in (often.AT_ONCE, often.Limits())]
    assert counts == [12, 3]


def test_endurance_makes_each_copy_in_processes_of_their_own():
    """The handlers, a queue in a file, and a byte for each target: none is lost."""
    ran = run(2_600, 2)
    assert ran.lost == 0
    assert sum(worker.messages for worker in ran.workers) > 2
