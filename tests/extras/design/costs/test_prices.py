"""Prices: a file of a date, errors that name the place in it, and arithmetic to the last digit."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from sync_rules.jobs.dryrun.money import on_demand, provisioned
from sync_rules.jobs.dryrun.prices import own_prices, read_prices
from sync_rules.model.errors import UserError

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
    """Function that writes a price file: OWN, with the value at one path replaced, or any text."""

    def write(*road, text=None):
        body = json.loads(json.dumps(OWN))
        at = body
        for step in road[:-2]:
            at = at[step]
        if road and road[-1] is None:
            del at[road[-2]]
        elif road:
            at[road[-2]] = road[-1]
        path = tmp_path / "prices.json"
        path.write_text(json.dumps(body) if text is None else text)
        return path

    return write


COMMERCIAL = {
    "af-south-1", "ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1",
    "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-north-1", "eu-south-1", "eu-west-1", "eu-west-2", "eu-west-3",
    "il-central-1", "me-central-1", "me-south-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
}  # fmt: skip


def test_prices_of_the_package_have_a_date_and_say_where_they_are_from():
    """The price file of the package has a date, names its secondary sources, and each group of each Region names one."""
    prices = own_prices()
    assert prices.date >= date(2026, 11, 21)
    assert "secondary" in prices.source
    assert "check" in prices.source
    assert prices.regions.keys() == COMMERCIAL
    for region in prices.regions.values():
        given = {
            name for name, group in region.model_dump(by_alias=True).items() if name != "how" and group is not None
        }
        assert region.how.keys() == given
        assert set(region.how.values()) <= prices.sources.keys()
    assert {name for region in prices.regions.values() for name in region.how.values()} == prices.sources.keys()


def test_prices_on_demand_are_of_a_million_units():
    """A million writes and ten million reads cost their prices, exactly."""
    region = own_prices().regions["us-east-1"]
    assert on_demand(region, 10_000_000, 1_000_000) == Decimal("0.625") + Decimal("1.25")


def test_prices_of_provisioned_capacity_are_of_whole_hours():
    """Provisioned capacity is the units per second needed, rounded up, for each hour begun."""
    region = own_prices().regions["us-east-1"]
    capacity = provisioned(region, reads=3_601, writes=7_202, seconds=3_601)
    assert (capacity.write_units_second, capacity.read_units_second, capacity.hours) == (2, 1, 2)
    assert capacity.money == 2 * (2 * Decimal("0.00065") + Decimal("0.00013"))
    assert provisioned(region, 0, 0, 0).money == 0


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


def test_prices_without_the_region_are_refused(file):
    """A file that lacks the Region is named with those it has, and the likeliest meant."""
    with pytest.raises(UserError, match=r"prices\.json · regions: no region 'eu-west-2'.*Did you mean 'eu-west-1'"):
        read_prices(file(), "eu-west-2")


def test_prices_that_are_no_file_are_refused(file, tmp_path):
    """A price file that is missing or is not JSON is refused with its name."""
    with pytest.raises(UserError, match="expected a price file, found No such file"):
        read_prices(tmp_path / "none.json", "eu-west-1")
    for text in ("date: 2026", "[]", "\xff"):
        with pytest.raises(UserError, match=r"prices\.json"):
            read_prices(file(text=text), "eu-west-1")


def test_prices_are_as_the_page_shows_them(tmp_path):
    """The price file of docs/plan.md is one."""
    page = (Path(__file__).parents[4] / "docs/plan.md").read_text()
    (example,) = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    path = tmp_path / "prices.json"
    path.write_text(example)
    assert read_prices(path, "eu-west-1").currency == "EUR"
