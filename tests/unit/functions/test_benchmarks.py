"""The benchmarks: their pages have what they measure and simulate. Nothing here is timed."""

from __future__ import annotations

import pytest

from benchmarks import scale
from benchmarks.scale import LAYOUTS
from benchmarks.simulation import PACES, cells
from sync_rules.extras.design.costs import pipeline_costs
from sync_rules.model.limits import Limits

PAGE = scale.PAGE.read_text()
PARTITION, _, WARM = LAYOUTS


def test_scale_page_has_the_tables_of_the_code():
    """`python -m benchmarks.scale` writes them."""
    assert scale.page_with(PAGE) == PAGE


@pytest.mark.night
@pytest.mark.parametrize(("layout", "copies"), [(PARTITION, 1_000), (WARM, 1_000), (WARM, 10_000)])
def test_simulated_rows_are_those_of_the_page(layout, copies):
    """`python -m benchmarks.simulation` writes them; a run repeats exactly."""
    part = PAGE.partition(f"### {layout.title}, simulated")[2].partition("###")[0]
    units = 1_000 if layout.consistent else 40_000
    both = (*cells(copies, layout), *cells(copies, layout, PACES[units]))
    assert f"| {copies:,} | {' | '.join(both)} | each |" in part


def test_costs_know_the_limits_of_the_pipeline():
    """The numbers of copies that costs are computed with are those of the pipeline."""
    limits = Limits()
    assert limits.fan_out_inline_max_items == pipeline_costs.INLINE_COPIES
    assert limits.fan_out_relay_max_items == pipeline_costs.PAGE_COPIES
    assert limits.fan_out_chunk_max_items == pipeline_costs.CHUNK_COPIES
