"""Prices: a file of a date, errors that name the place in it, and arithmetic to the last digit."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.jobs.dryrun.money import (
    MONTH_HOURS,
    compute_capacity_price,
    compute_on_demand_price,
    compute_scaled_units,
    plan_capacity,
)
from sync_rules.jobs.dryrun.prices import read_own_prices, read_prices
from sync_rules.model.errors import UserError
from sync_rules.model.sizes import count_index_write_units, count_read_units, count_write_units

VIRGINIA = read_own_prices().regions["us-east-1"]
OWN = {
    "date": "2026-01-31",
    "source": "our contract",
    "currency": "EUR",
    "regions": {
        "eu-west-1": {
            "on_demand": {"write_units_million": 0.7, "read_units_million": 0.14},
            "provisioned": {"write_unit_hour": 0.0007, "read_unit_hour": 0.00014},
        }
    },
}


@pytest.fixture
def file(tmp_path):
    """Function that writes a price file: OWN, with the value at one path replaced."""

    def write(*road):
        body = json.loads(json.dumps(OWN))
        at = body
        for step in road[:-2]:
            at = at[step]
        if road and road[-1] is None:
            del at[road[-2]]
        elif road:
            at[road[-2]] = road[-1]
        path = tmp_path / "prices.json"
        path.write_text(json.dumps(body))
        return path

    return write


def test_prices_of_the_package_have_a_date_and_say_where_they_are_from():
    """The price file of the package has a date, names its secondary sources, and each group of each Region names one."""
    prices = read_own_prices()
    assert prices.date >= date(2026, 11, 21)
    assert "secondary" in prices.source
    assert "check" in prices.source
    assert len(prices.regions) > 20
    for region in prices.regions.values():
        given = {
            name for name, group in region.model_dump(by_alias=True).items() if name != "how" and group is not None
        }
        assert region.how.keys() == given
        assert set(region.how.values()) <= prices.sources.keys()
    assert {name for region in prices.regions.values() for name in region.how.values()} == prices.sources.keys()


def test_prices_of_provisioned_capacity_are_of_whole_hours():
    """Provisioned capacity is the units per second needed, rounded up, for each hour begun."""
    capacity = plan_capacity(VIRGINIA, reads=3_601, writes=7_202, seconds=3_601)
    assert (capacity.write_units_second, capacity.read_units_second, capacity.hours) == (2, 1, 2)
    assert capacity.money == 2 * (2 * Decimal("0.00065") + Decimal("0.00013"))
    assert plan_capacity(VIRGINIA, 0, 0, 0).money == 0


def test_prices_are_read_from_a_file(file):
    """A file of the user's gives other Regions, prices and currencies, to the last digit."""
    prices = read_prices(file(), "eu-west-1")
    assert (prices.currency, prices.date) == ("EUR", date(2026, 1, 31))
    assert prices.regions["eu-west-1"].on_demand.write_units_million == Decimal("0.7")


REGION = ("regions", "eu-west-1")


@pytest.mark.parametrize(
    ("road", "words"),
    [
        (("date", None), ["date", "required"]),
        (("date", "soon"), ["date: expected a day such as 2026-01-31"]),
        (("date", "2026-01-31T10:00:00"), ["date: expected a day such as 2026-01-31"]),
        (("currency", "euro"), ["currency: expected a currency such as USD"]),
        (("regions", "eu-west-1", []), ["regions · eu-west-1: expected an object with the keys of a price file"]),
        (
            (*REGION, "on_demand", "read_units_million", 1e40),
            ["read_units_million", "less than or equal to 1000000000"],
        ),
        (("regions", {}), ["regions"]),
        ((*REGION, "on_demand", None), ["regions · eu-west-1 · on_demand", "required"]),
        ((*REGION, "on_demand", "read_units_million", "cheap"), ["read_units_million", "valid decimal"]),
        ((*REGION, "on_demand", "read_units_million", -1), ["read_units_million", "greater than or equal to 0"]),
        ((*REGION, "on_demand", "read_units_million", float("nan")), ["price file in JSON"]),
        ((*REGION, "provisioned", "write_units_hour", 1), ["write_units_hour", "not permitted"]),
    ],
    ids=lambda value: "-".join(map(str, value[-3:])) if isinstance(value, tuple) else "",
)
def test_prices_that_are_malformed_are_refused(file, road, words):
    """A malformed price file is refused with file, path and expected form."""
    path = file(*road)
    with pytest.raises(UserError) as raised:
        read_prices(path, "eu-west-1")
    assert all(word in str(raised.value) for word in [str(path), *words])


def test_prices_are_as_the_page_shows_them(tmp_path):
    """The price file of docs/plan.md is one."""
    page = (Path(__file__).parents[4] / "docs/plan.md").read_text()
    (example,) = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    path = tmp_path / "prices.json"
    path.write_text(example)
    assert read_prices(path, "eu-west-1").currency == "EUR"


# ---------------------------------------------------------------- money by the examples that AWS publishes
KB = 1_024


def cents(money) -> str:
    return f"{money.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"


def test_units_are_those_of_the_guide():
    """The examples of the Developer Guide: "Capacity unit consumption", for reads and writes."""
    assert count_write_units(500) == 1  # "writing a 500 byte item consumes the same throughput as writing a 1 KB item"
    assert count_write_units(round(1.6 * KB)) == 2
    assert count_read_units(3_500, consistent=True) == count_read_units(4 * KB, consistent=True) == 1
    assert [count_read_units(8 * KB, consistent=consistent) for consistent in (True, False)] == [2, 1]
    # BatchGetItem rounds each: 1.5 KB and 6.5 KB are 4 KB and 8 KB; Query rounds the sum: 40.8 KB are 44 KB.
    assert sum(count_read_units(round(size * KB), consistent=True) for size in (1.5, 6.5)) == 3
    assert count_read_units(round(40.8 * KB), consistent=True) == 11


@given(st.integers(1, 400 * KB), st.integers(1, 400 * KB))
def test_units_of_an_index_row_are_of_none_one_or_two_writes(before, after):
    """The Developer Guide, "Write capacity units" of global secondary indexes: its five cases."""
    assert count_index_write_units(None, after) == count_write_units(after)
    assert count_index_write_units(before, after) == count_write_units(after)
    assert count_index_write_units(before, after, moved=True) == count_write_units(before) + count_write_units(after)
    assert count_index_write_units(before, None) == count_write_units(before)
    assert count_index_write_units(None, None) == 0


def test_money_is_that_of_the_game_of_the_guide():
    """Prescriptive Guidance, "Data modeling with DynamoDB", at the prices since November 2024: 1.8 billion writes of
    less than a KB a day, and 307 GB.
    """
    assert cents(compute_on_demand_price(VIRGINIA, 0, 1_800_000_000 * 30 * count_write_units(KB))) == "33,750.00"
    assert cents(307 * VIRGINIA.storage.gb_month) == "76.75"


def test_money_of_provisioned_capacity_is_of_730_hours():
    """1,000 write units and 10,000 read units for a month of 730 hours."""
    assert MONTH_HOURS == 730
    assert cents(compute_capacity_price(VIRGINIA.provisioned, 10_000, 1_000)) == "1,423.50"


@given(st.floats(0, 1e6), st.integers(20, 90))
def test_autoscaling_keeps_the_share_in_use(load, target):
    """Capacity is the least that keeps the share in use, and one unit at least."""
    units = compute_scaled_units(load, target)
    assert units >= 1
    if units > 1:
        assert (units - 1) * target <= load * 100 + 1e-4
        assert load * 100 <= units * target + 1e-4
