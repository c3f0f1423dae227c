"""Capacity follows the load, and updates come through chains of copies."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sync_rules.extras.design.costs.estimate import EstimateOptions, estimate
from sync_rules.extras.design.costs.loads import Place
from sync_rules.jobs.dryrun.money import MONTH_HOURS
from sync_rules.jobs.dryrun.prices import own_prices
from sync_rules.language.load import parse_rules

VIRGINIA = own_prices().regions["us-east-1"]
HOURS = VIRGINIA.provisioned.write_unit_hour + VIRGINIA.provisioned.read_unit_hour
TABLE = """
tables:
  shop: {key: {PK: S, SK: S}, TABLE}
entities: {order: {table: shop, key: {PK: "O#{order_id}", SK: "{line_id}"}, size: 1KB, items: 1000}}
rules: {}
patterns: {place: {put: order, rate: 100/s}}
"""
SHOP = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "U#{user_id}", SK: A}, size: 1KB, items: 10}
  order: {table: shop, key: {PK: "U#{user_id}", SK: "O#{order_id}"}, size: 1KB, items: 40}
  line: {table: shop, key: {PK: "U#{user_id}", SK: "L#{order_id}#{line_id}"}, size: 1KB, items: 120}
rules:
  names: copy user.name into order.user_name
  cities: copy user.city into order.user_city
  lines: copy order.user_name into line.user_name
patterns:
  orders: {get: order, by: [user_id, order_id], attributes: [user_name, user_city], rate: 100/s}
  place: {put: order, rate: 1/s}
  rename: {update: user, sets: [name], rate: 1/s}
  move: {update: user, sets: [city], rate: 1/s}
"""


def made(text):
    return estimate(parse_rules(text, environ={}), EstimateOptions(VIRGINIA))


def of_table(given):
    return made(TABLE.replace("TABLE", given))


def named(lines, name):
    (found,) = (one for one in lines if one.name == name)
    return found


def test_rows_of_a_local_index_use_the_capacity_of_their_table():
    """Writes to the index come on top of those of the table, in one capacity; recovery keeps its rows too."""
    found = of_table("indexes: {by_total: {partition: {PK: S}, sort: {total: S}, local: true}}")
    (one,) = found.provisions
    assert one.place == Place("shop")
    assert one.write_units == 286, "200 writes a second, 70 % of the capacity"
    stored = found.stored[0]
    assert stored.indexes_gb > 0
    assert stored.recovery == VIRGINIA.storage.recovery_gb_month * (stored.table_gb + stored.indexes_gb)
    apart = of_table("indexes: {by_total: {partition: {total: S}}}").stored[0]
    assert apart.recovery == VIRGINIA.storage.recovery_gb_month * apart.table_gb


def test_line_alone_costs_as_much_as_the_whole():
    """A line has its share of capacity, at the use that autoscaling aims at."""
    found = estimate(parse_rules(TABLE.replace(", TABLE", "")), EstimateOptions(VIRGINIA))
    (line,) = found.patterns
    write = VIRGINIA.provisioned.write_unit_hour * MONTH_HOURS
    assert round(line.money.provisioned, 9) == round(Decimal(100) * 100 / 70 * write, 9)
    assert abs(found.whole.money.provisioned - line.money.provisioned) <= HOURS * MONTH_HOURS


def test_updates_come_through_chains_of_copies():
    """A copy of a copy follows what the first copy follows; its cure names what the application writes."""
    assert named(made(SHOP).rules, "lines").load.write_units == 12
    found = made(SHOP.replace("  rename: {update: user, sets: [name], rate: 1/s}\n", ""))
    cures = [gap for gap in found.gaps if "follows" in gap]
    assert [cure.partition("pattern such as ")[2] for cure in cures] == [
        "rename: {update: user, sets: [name], rate: 1/h}"
    ] * 2


@pytest.mark.parametrize(
    ("old", "new", "unsure"),
    [
        ("sets: [name], rate: 1/s", "sets: [name]", {"names", "lines"}),
        ("sets: [name], rate: 1/s", "sets: [last_seen], rate: 100/s", {"names", "lines"}),
        ("items: 10}", "items: 0}", {"names", "cities", "lines"}),
    ],
    ids=["rate", "another-attribute", "no-sources"],
)
def test_rules_are_not_stated_where_what_they_follow_is_not(old, new, unsure):
    """A rule whose writes are not known says so, and is not called free of cost."""
    assert old in SHOP
    found = made(SHOP.replace(old, new, 1))
    assert found.gaps
    assert {line.name for line in found.rules if not line.known} >= unsure - {"lines"}


def test_a_rate_of_none_at_all_is_a_rate():
    """Names that never change cost nothing, and that is known."""
    found = made(SHOP.replace("sets: [name], rate: 1/s", "sets: [name], rate: 0/s"))
    assert found.gaps == ()
    assert all(line.known for line in found.rules)
    assert named(found.rules, "lines").load.write_units == 0
