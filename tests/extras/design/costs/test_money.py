"""Money by the worked examples that AWS publishes, to the cent."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from hypothesis import given
from hypothesis import strategies as st

from sync_rules.jobs.dryrun.money import (
    MONTH_HOURS,
    of_capacity,
    on_demand,
    scaled_units,
)
from sync_rules.jobs.dryrun.prices import own_prices
from sync_rules.model.units import index_write_units, read_units, write_units

KB = 1_024
VIRGINIA = own_prices().regions["us-east-1"]


def cents(money) -> str:
    return f"{money.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"


def test_units_are_those_of_the_guide():
    """The examples of the Developer Guide: "Capacity unit consumption", for reads and writes."""
    assert write_units(500) == 1  # "writing a 500 byte item consumes the same throughput as writing a 1 KB item"
    assert write_units(round(1.6 * KB)) == 2
    assert write_units(3 * KB, transactional=True) == 6
    assert read_units(3_500, consistent=True) == read_units(4 * KB, consistent=True) == 1
    assert [read_units(8 * KB, consistent=consistent) for consistent in (True, False)] == [2, 1]
    assert read_units(8 * KB, consistent=True, transactional=True) == 4
    # BatchGetItem rounds each: 1.5 KB and 6.5 KB are 4 KB and 8 KB; Query rounds the sum: 40.8 KB are 44 KB.
    assert sum(read_units(round(size * KB), consistent=True) for size in (1.5, 6.5)) == 3
    assert read_units(round(40.8 * KB), consistent=True) == 11


@given(st.integers(1, 400 * KB), st.integers(1, 400 * KB))
def test_units_of_an_index_row_are_of_none_one_or_two_writes(before, after):
    """The Developer Guide, "Write capacity units" of global secondary indexes: its five cases."""
    assert index_write_units(None, after) == write_units(after)
    assert index_write_units(before, after) == write_units(after)
    assert index_write_units(before, after, moved=True) == write_units(before) + write_units(after)
    assert index_write_units(before, None) == write_units(before)
    assert index_write_units(None, None) == 0


def test_money_is_that_of_the_game_of_the_guide():
    """Prescriptive Guidance, "Data modeling with DynamoDB", at the prices since November 2024: 1.8 billion writes of
    less than a KB a day, and 307 GB.
    """
    assert cents(on_demand(VIRGINIA, 0, 1_800_000_000 * 30 * write_units(KB))) == "33,750.00"
    assert cents(307 * VIRGINIA.storage.gb_month) == "76.75"


def test_money_of_provisioned_capacity_is_of_730_hours():
    """1,000 write units and 10,000 read units for a month of 730 hours."""
    assert MONTH_HOURS == 730
    assert cents(of_capacity(VIRGINIA.provisioned, 10_000, 1_000)) == "1,423.50"


@given(st.floats(0, 1e6), st.integers(20, 90))
def test_autoscaling_keeps_the_share_in_use(load, target):
    """Capacity is the least that keeps the share in use, and one unit at least."""
    units = scaled_units(load, target)
    assert units >= 1
    if units > 1:
        assert (units - 1) * target <= load * 100 + 1e-4
        assert load * 100 <= units * target + 1e-4
