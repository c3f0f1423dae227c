"""Counts and sums: a child's contribution, the changes of totals, and totals after histories of every kind."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sync_rules.model.items import Change
from sync_rules.model.where import compile_where
from sync_rules.model.writes import Delete, Increment, Put
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.counted_rule import Weights
from sync_rules.rules.kinds.tally import choose_shard
from sync_rules.rules.ledger import read_contribution
from sync_rules.rules.rule import Blocked
from tests.support.builders import key, n, s
from tests.support.ledgers import COUNTS, key_of, order, tally

U, V = key(COUNTS, "spent/T/u", "-"), key(COUNTS, "spent/T/v", "-")
OPEN = compile_where("status == 'OPEN'", "order")
WEIGHTS = Weights(("status",), {"OPEN": "3", "PAID": "0.5"})
FULL = Weights(("status",), {"OPEN": "3", "true": "7", "null": "-1"}, {"true": "7", "null": "-1"}, "2")


def added(total, *amounts):
    """The increment of a total: the amounts, and one for its version."""
    return Increment(total, (*amounts, ("v", "1")))


def entry_key(order_id="a"):
    return key(COUNTS, f"spent/L/{order_id}", "-")


def judged(rule, child, entry=None, order_id="a"):
    return rule.write_for(Part(rule, entry_key(order_id), key_of(order(order_id))), entry, child)


def entry_of(rule, child):
    """The entry that a child's first judgement puts."""
    return judged(rule, child).actions[-1].item


# ---------------------------------------------------------------- contributions
@pytest.mark.parametrize(
    ("options", "child", "at", "amount"),
    [
        ({}, order("a", "u", total=n("2.50")), "n", "2.5"),
        ({"function": "count", "of": None}, order("a", "u"), "n", "1"),
        ({"weights": WEIGHTS}, order("a", "u", status=s("OPEN")), "n", "3"),
        ({"weights": FULL}, order("a", "u", status={"BOOL": True}), "n", "7"),
        ({"weights": FULL}, order("a", "u", status=s("true")), "n", "7"),
        ({"weights": FULL}, order("a", "u", status={"BOOL": False}), "n", "2"),
        ({"weights": FULL}, order("a", "u", status={"NULL": True}), "n", "-1"),
        ({"weights": FULL}, order("a", "u"), "n", "2"),
        ({"weights": replace(FULL, words={})}, order("a", "u", status={"BOOL": True}), "n", "2"),
        ({"per": ("status",)}, order("a", "u", total=n(1), status=s("n")), "=n", "1"),
        ({"per": ("year",)}, order("a", "u", total=n(1), year=n("2024.0")), "=2024", "1"),
        ({"where": OPEN}, order("a", "u", total=n(1), status=s("OPEN")), "n", "1"),
        ({"where": compile_where("order.status == 'OPEN'", "order")}, order("a", "u", total=n(1), status=s("OPEN")), "n", "1"),
    ],
)  # fmt: skip
def test_tally_enters_what_a_child_contributes(options, child, at, amount):
    """One transaction adds the amount to the total and puts the entry, if there still is none."""
    increment, put = judged(tally(**options), child).actions
    assert increment == added(U, (at, amount))
    assert isinstance(put, Put)
    contribution = read_contribution(COUNTS, put.item)
    assert (contribution.total, contribution.at, contribution.amount) == (U, at, Decimal(amount))


@pytest.mark.parametrize(
    ("options", "child"),
    [
        ({}, None),
        ({}, order("a", total=n(1))),
        ({}, order("a", "", total=n(1))),  # no user can have this key
        ({}, order("a", "u")),
        ({}, order("a", "u", total=n("0.0"))),
        ({"where": OPEN}, order("a", "u", total=n(1), status=s("PAID"))),
        ({"where": OPEN}, order("a", "u", total=s("soon"), status=s("PAID"))),
        ({"per": ("status",)}, order("a", "u", total=n(1))),
        ({"per": ("status",)}, order("a", "u", total=n(1), status=s(""))),  # no map has an empty key
        ({"weights": WEIGHTS}, order("a", "u", status=s("LOST"))),
        ({"weights": WEIGHTS}, order("a", "u", status={"BOOL": True})),
        ({"weights": replace(FULL, texts={"OPEN": "0"})}, order("a", "u", status=s("OPEN"))),
    ],
)
def test_tally_has_no_entry_for_a_child_that_adds_nothing(options, child):
    """Without a child, a parent, an amount, a group, or with an amount of zero there is no entry, and an old one goes."""
    rule = tally(**options)
    assert judged(rule, child) is None
    entry = entry_of(tally(), order("a", "v", total=n(2)))
    increment, delete = judged(rule, child, entry).actions
    assert increment == added(V, ("n", "-2"))
    assert isinstance(delete, Delete)


@pytest.mark.parametrize(
    ("options", "values", "reason"),
    [
        ({}, {"total": s("1")}, "NotANumber"),
        ({}, {"total": {"NULL": True}}, "NotANumber"),
        ({"per": ("status",)}, {"total": n(1), "status": {"BOOL": True}}, "NotAGroup"),
    ],
)
def test_tally_tells_what_cannot_be_added(options, values, reason):
    """A child that cannot be counted is blocked under its own key and loses its entry; once correct it is counted."""
    rule = tally(**options)
    good, bad = order("a", "u", total=n(2), status=s("OPEN")), order("a", "v", **values)
    at_entry, nowhere = rule.parts(Change(key_of(bad), good, bad), rule.source)
    assert rule.write_for(nowhere, None, bad) == Blocked(reason, member=key_of(bad))
    (at,) = entry_of(rule, good)["at"].values()
    increment, delete = rule.write_for(at_entry, entry_of(rule, good), bad).actions
    assert (increment, type(delete)) == (added(U, (at, "-2")), Delete)
    assert rule.write_for(at_entry, None, bad) is None
    assert list(rule.parts(Change(key_of(bad), bad, good), rule.source)) == [at_entry, nowhere]
    assert rule.write_for(nowhere, None, good) is None
    assert rule.write_for(nowhere, None, None) is None


def test_tally_tells_a_key_that_has_no_room_in_the_ledger():
    """A child or parent whose key is too long for the ledger is blocked."""
    rule = tally()
    long = order("x" * 2045, "u", total=n(1))
    (part,) = rule.parts(Change(key_of(long), None, long), rule.source)
    assert rule.write_for(part, None, long) == Blocked("KeyTooLong", member=key_of(long))
    assert rule.write_for(part, None, None) is None
    moved = order("a", "x" * 2045, total=n(1))
    at_entry, nowhere = rule.parts(Change(key_of(moved), None, moved), rule.source)
    assert rule.write_for(nowhere, None, moved) == Blocked("KeyTooLong", member=key_of(moved))
    assert isinstance(rule.write_for(at_entry, entry_of(rule, order("a", "u", total=n(1))), moved).actions[-1], Delete)


# ---------------------------------------------------------------- further sums
def summed(**options):
    return tally(function="count", of=None, sums=(("total",), ("size", "kg")), **options)


def test_tally_adds_further_sums_with_the_same_entry():
    """One entry and one increment hold all sums. What is missing or zero adds nothing, and the child counts."""
    rule, first = summed(), order("a", "u", total=n("2.50"), size={"M": {"kg": n(0)}})
    increment, put = judged(rule, first).actions
    assert increment == added(U, ("n", "1"), ("=total", "2.5"))
    assert judged(rule, order("a", "u", total=n("2.5")), put.item) is None
    moved = order("a", "v", size={"M": {"kg": n(3)}})
    back, forth, again = judged(rule, moved, put.item).actions
    assert (back, forth) == (added(U, ("n", "-1"), ("=total", "-2.5")), added(V, ("n", "1"), ("=size.kg", "3")))
    assert {path for condition in again.guard for path in (condition.path,)} >= {("=total",), ("=size.kg",)}
    assert judged(tally(function="count", of=None), moved, put.item).actions[0] == back  # other sums, or none


@pytest.mark.parametrize("value", [s("2"), {"NULL": True}])
def test_child_with_one_unfit_sum_counts_nowhere(value):
    """A child that one sum cannot add is reported, and adds to no number. An unreadable sum breaks its entry."""
    rule, good = summed(), order("a", "u", total=n(2))
    bad, entry = {**good, "total": value}, entry_of(summed(), good)
    _, nowhere = rule.parts(Change(key_of(bad), good, bad), rule.source)
    assert rule.write_for(nowhere, None, bad) == Blocked("NotANumber: total", member=key_of(bad))
    increment, delete = judged(rule, bad, entry).actions
    assert (increment, type(delete)) == (added(U, ("n", "-1"), ("=total", "-2")), Delete)
    assert judged(rule, good, {**entry, "=total": value}) == Blocked("EntryBroken", member=key_of(good))


# ---------------------------------------------------------------- moves
def test_tally_spreads_children_over_shards():
    """Every shard gets some of many children, and each child always the same one."""
    shards = [choose_shard(entry_key(str(order_id)), 4) for order_id in range(100)]
    assert set(shards) == {0, 1, 2, 3}
    assert choose_shard(entry_key("a"), 4) == 3  # a fixed value: another Python must agree
