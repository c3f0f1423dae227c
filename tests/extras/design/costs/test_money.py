"""Money by the worked examples that AWS publishes, to the cent."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.jobs.dryrun.money import (
    MONTH_HOURS,
    gigabytes,
    of_capacity,
    of_reserved,
    on_demand,
    scaled_units,
)
from sync_rules.jobs.dryrun.prices import own_prices
from sync_rules.model.units import index_write_units, read_units, stored_bytes, write_units

KB = 1_024
VIRGINIA = own_prices().regions["us-east-1"]
# awslabs/mcp, src/dynamodb-mcp-server/tests/cost_performance_calculator/test_integration.py: months of 30.5 days
AWSLABS_SECONDS = 30.5 * 24 * 3600


def cents(money) -> str:
    return f"{money.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"


def test_units_are_those_of_the_guide():
    """The examples of the Developer Guide: "Capacity unit consumption", for reads and writes."""
    assert write_units(500) == 1  # "writing a 500 byte item consumes the same throughput as writing a 1 KB item"
    assert write_units(round(1.6 * KB)) == 2
    assert read_units(3_500, consistent=True) == read_units(4 * KB, consistent=True) == 1
    assert [read_units(8 * KB, consistent=consistent) for consistent in (True, False)] == [2, 1]
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


USERS, EMAILS, ORDERS, STATUSES, DATES, SESSIONS = (200, 100, 500, 150, 200, 300)
WRITES = {"users": 20, "emails": 20, "orders": 70, "statuses": 70, "dates": 40, "sessions": 200}
READS = {"users": (100, 0.5), "emails": (50, 0.5), "orders": (80, 1), "statuses": (60, 0.5), "sessions": (150, 0.5)}
REPORT = {
    "users": "49.41", "emails": "41.18", "orders": "141.64", "statuses": "125.17", "dates": "65.88", "sessions": "354.11",
}  # fmt: skip


def test_money_is_that_of_the_report_of_awslabs():
    """The report of AWS's own modelling assistant: 837.69 USD, of which 16.47 for a hundred reads a second."""

    def month(reads: float, writes: float) -> Decimal:
        return on_demand(VIRGINIA, reads * AWSLABS_SECONDS, writes * AWSLABS_SECONDS)

    assert cents(month(100 * read_units(USERS, consistent=False), 0)) == "16.47"
    assert cents(month(0, 20 * write_units(USERS))) == "32.94"
    assert read_units(5 * ORDERS, consistent=True) == 1
    assert read_units(10 * STATUSES, consistent=False) == 0.5
    loads = {name: (rate * units, WRITES[name]) for name, (rate, units) in READS.items()} | {"dates": (0, 40)}
    requests = {name: month(*load) for name, load in loads.items()}
    assert {name: cents(money) for name, money in requests.items()} == REPORT
    stored = [(USERS, 50), (EMAILS, 50), (ORDERS, 200), (STATUSES, 200), (DATES, 200), (SESSIONS, 10)]
    amounts = [gigabytes(stored_bytes(size, millions * 1_000_000)) for size, millions in stored]
    assert [cents(amount) for amount in amounts] == ["13.97", "9.31", "111.76", "46.57", "55.88", "3.73"]
    storage = VIRGINIA.storage.gb_month * sum(amounts)
    assert (cents(storage), cents(sum(requests.values()))) == ("60.30", "777.38")
    assert cents(storage + sum(requests.values())) == "837.69"


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


@given(st.integers(0, 5_000), st.integers(0, 5_000))
def test_reserved_capacity_never_costs_more_than_provisioned(reads, writes):
    """As many hundreds are reserved as cost least; a price that is not known is not given."""
    plain = of_capacity(VIRGINIA.provisioned, reads, writes)
    for term in ("one_year", "three_years"):
        money = of_reserved(VIRGINIA, term, reads, writes)
        assert money is not None
        assert money <= plain
    assert of_reserved(own_prices().regions["eu-west-3"], "three_years", reads, writes) is None


@pytest.mark.parametrize(("term", "money"), [("one_year", "218.44"), ("three_years", "109.13")])
def test_reserved_capacity_spreads_what_is_paid_once(term, money):
    """A thousand write units: ten hundreds, their hours, and a month's part of what was paid at first."""
    assert cents(of_reserved(VIRGINIA, term, 0, 1_000)) == money
