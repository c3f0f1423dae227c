"""The measure itself: rules written by hand score what they deserve."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from sync_rules.extras.discover.propose.proposal import Proposal, Proposed
from tests.extras.discover.datasets.dataset import DataSet
from tests.extras.discover.datasets.drawn import drawn
from tests.extras.discover.datasets.generated import GENERATED, shop
from tests.extras.discover.datasets.held_out import HELD_OUT
from tests.extras.discover.datasets.measure import Score, measure
from tests.extras.discover.datasets.shared_sets import SHARED

HEAD = """
tables:
  shop:
    key: {PK: S, SK: S}
    indexes:
      GSI1: {GSI1PK: S, GSI1SK: S}
      by_product: {product_id: S}
      by_order: {partition: {PK: S}, sort: {SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  product: {table: shop, key: {PK: "PRODUCT#{product_id}", SK: INFO}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}", GSI1PK: "ORDER#{order_id}", GSI1SK: HEAD}}
  line: {table: shop, key: {PK: "ORDER#{order_id}", SK: "LINE#{line}"}}
  address: {table: shop, key: {PK: "USER#{user_id}", SK: "ADDRESS#{address_id}"}}
rules:
"""
RULES = {
    "names": "copy user.name into order.user_name",
    "mails": "copy user.email into order.email",
    "titles": "copy product.title into line.product_title",
    "prices": "{copy: product.price, into: line.unit_price, mode: snapshot}",
    "orders": "count order into user.order_count",
    "open": "{count: order, into: user.open_orders, where: \"status == 'OPEN'\"}",
    "lower": '{derive: user.name_lower, as: "{name:lower}"}',
    "statuses": "collect order.status into user.statuses",
    "addresses": "{embed: address, into: user.addresses, fields: [street, city, zip], limit: {items: 50}}",
}


def said(data: DataSet, rules: dict[str, str], differ: dict[str, int]) -> Score:
    """The score of a rules file by hand, whose rules tell these numbers of differences."""
    one = Proposed("", "copy", {}, "", "", 0, 0, 0, "high")
    proposal = Proposal((), tuple(replace(one, name=name, differ=differ.get(name, 0)) for name in rules))
    return measure(data, proposal, HEAD + "".join(f"  {name}: {text}\n" for name, text in rules.items()))


def test_measure_right_rules_are_right():
    """Each rule is found with its drift, and a backfill brings back what was there before."""
    data = shop()
    data.plant(0.1)
    drifted = {truth.into: min(data.differing(number)) for number, truth in enumerate(data.truths)}
    into = {"names": "order.user_name", "mails": "order.email", "titles": "line.product_title", "orders": "user.order_count", "open": "user.open_orders", "lower": "user.name_lower", "statuses": "user.statuses", "addresses": "user.addresses", "prices": "line.unit_price"}  # fmt: skip
    score = said(data, RULES, {name: drifted[ref] for name, ref in into.items()})
    assert (score.right, score.rules, score.found, score.exact) == (9, 9, 9, 9), str(score)
    assert (score.expected, score.entities, score.refused, score.spoiled) == (11, [], [], []), str(score)
    assert any("product.sold" in one for one in score.missed)
    assert drifted["order.user_name"] == round(0.1 * 620)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("names", "copy user.email into order.user_name", "no such truth"),
        ("names", "{copy: user.name, into: order.user_name, mode: snapshot}", "no such truth"),
        ("names", "{copy: user.name, into: order.user_name, link: {user_id: order_id}, via: GSI1}", None),
        ("titles", "{copy: product.title, into: line.product_title, where: quantity > `1`}", "after a backfill"),
        ("open", "{count: order, into: user.open_orders, where: \"status == 'PAID'\"}", "after a backfill"),
        ("back", "copy user.v into order.v", "no such truth"),
    ],
)
def test_measure_a_wrong_rule_is_wrong(name, text, told):
    """Another source, another condition, another mode, and a rule for what only looks alike."""
    data = shop()
    data.plant(0.05)
    score = said(data, {**RULES, name: text}, {})
    if told is None:
        assert score.refused or score.wrong
    else:
        assert len(score.wrong) == 1, str(score)
        assert told in score.wrong[0]


DRAWN = {f"drawn-{seed}": partial(drawn, seed) for seed in range(5)}
EACH = {**GENERATED, **SHARED, **HELD_OUT, **DRAWN}


@pytest.mark.parametrize("made", EACH.values(), ids=EACH)
def test_measure_data_sets_are_as_they_say(made):
    """At no drift every truth holds, and at one of ten the wrong ones are about as many; equal calls make equal data."""
    data, again, drifted = made(), made(), made()
    data.plant(0), again.plant(0), drifted.plant(0.1)
    for table in data.tables:
        assert data.items(table) == again.items(table)
        keys = {tuple(str(item[name]) for name in data.tables[table].key) for item in data.items(table)}
        assert len(keys) == len(data.items(table)), "each key is of one item"
    for number, truth in enumerate(data.truths):
        if not truth.snapshot and not truth.natural:
            assert data.differing(number) == {0}, truth.into
            drifting = len(drifted.clean[number])
            assert drifting < 20 or max(drifted.differing(number)) >= 0.05 * drifting, truth.into
