"""The simulated account: its clock, its limits, and its tables in docs/scale.md."""

from __future__ import annotations

import pytest

from benchmarks.scale import LAYOUTS, PAGE
from benchmarks.simulation import PACES, cells

PARTITION, NEW, WARM = LAYOUTS
TEXT = PAGE.read_text()


@pytest.mark.parametrize(("layout", "copies"), [(PARTITION, 1_000), (WARM, 1_000), (WARM, 10_000)])
def test_simulated_rows_are_those_of_the_page(layout, copies):
    """`python -m benchmarks.simulation` writes them; a run repeats exactly."""
    part = TEXT.partition(f"### {layout.title}, simulated")[2].partition("###")[0]
    units = 1_000 if layout.consistent else 40_000
    both = (*cells(copies, layout), *cells(copies, layout, PACES[units]))
    assert f"| {copies:,} | {' | '.join(both)} | each |" in part
