"""Least and greatest: an item for each child in the order of the amounts, and nothing that its child does not say."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from sync_rules.model.items import Change
from sync_rules.model.lookups import named_fields
from sync_rules.model.where import compile_where
from sync_rules.model.writes import Check, Condition, Delete, Put, Test, Transaction, equals_seen
from sync_rules.pipeline.requests import List
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.ledger import read_key
from sync_rules.rules.rule import Blocked
from tests.support.builders import key, n, s
from tests.support.ledgers import ALWAYS, COUNTS, LINK, NUMBERS, ORDER, ORDERS, USER, USERS, key_of, ledger, order, play

MADE = ledger()
OPEN = compile_where("status == 'OPEN'", "order")
MIXED = (*NUMBERS, s("soon"), n("1E-130"), n("-12345678901234567890"))


def ranked(rule_type=RankRule, **options):
    given = {"parent": USER, "marks": MADE.marks, "function": "min", "of": ("total",), "link": LINK}
    return rule_type("spent.rank", ORDER, MADE.ranks, **{**given, **options})


RULE = ranked()


def part_of(child, rule=RULE):
    """The one part that the insert of a child gives."""
    (part,) = rule.parts(Change(key_of(child), None, child), ORDER)
    return part


def item_of(child, rule=RULE):
    """The rank item that a child's first judgement puts."""
    return rule.write_for(part_of(child, rule), None, child).actions[-1].item


# ---------------------------------------------------------------- histories
def listed(store, user_id, *, backward=False):
    """The orders of a user by the ledger's listing, with their amounts."""
    conditions = MADE.find.conditions(named_fields(MADE.link, USER, key(USERS, user_id)))
    page = store.list(List("counts", None, conditions, 10, None, backward))
    return [(Decimal(row["n"]["N"]), order_of(row)) for row in page.items]


def order_of(row):
    return read_key("child", ORDER, MADE.ranks.fields(COUNTS.key_of(row))).values[0][2]


def sorted_orders(store, user_id, rule):
    """The same by sorting the orders that have a number."""
    orders = [o for o in store.items("orders") if o.get("user_id") == s(user_id) and "N" in o["total"]]
    orders = [o for o in orders if rule.where is None or o["status"] == s("OPEN")]
    return sorted((Decimal(o["total"]["N"]), o["order_id"]["S"]) for o in orders)


def is_right(store, rule):
    return all(listed(store, user_id) == sorted_orders(store, user_id, rule) for user_id in ("u", "v"))


@pytest.mark.parametrize("rule", [ranked(), ranked(where=OPEN)], ids=["all", "where"])
def test_rank_histories_come_to_the_sorted_children(rule):
    """After any history each user's rank items are the sorted orders."""
    for seed in range(300):
        store = play(rule, seed, totals=MIXED)
        assert is_right(store, rule), f"seed {seed}"
        assert listed(store, "u", backward=True) == sorted_orders(store, "u", rule)[::-1]


class Unchecked(RankRule):
    """Whose transactions ask nothing of the child, and whose items are not looked at again."""

    def write_for(self, part, target, source):
        write = super().write_for(part, target, source)
        if not isinstance(write, Transaction):
            return write
        return Transaction(tuple(replace(a, guard=(ALWAYS,)) if isinstance(a, Check) else a for a in write.actions))

    def parts(self, change, entity):
        return () if entity is self.target else super().parts(change, entity)


class OneSided(RankRule):
    """Whose parts are of the new image only."""

    def parts(self, change, entity):
        return super().parts(replace(change, old=None), entity)


@pytest.mark.parametrize("mutant", [Unchecked, OneSided])
def test_rank_histories_need_each_law(mutant):
    """Without one of the rule's looks, some history leaves rank items wrong."""
    assert not all(is_right(play(ranked(mutant), seed), RULE) for seed in range(1000))


# ---------------------------------------------------------------- places
def test_rank_puts_a_child_where_its_amount_belongs():
    """One transaction checks the child as it was read and puts an item that carries the amount."""
    child = order("a", "u", total=n("2.50"), note=s("x"))
    check, put = RULE.write_for(part_of(child), None, child).actions
    there = Condition(Test.EXISTS, ("order_id",))
    assert check == Check(key_of(child), (there, equals_seen(("user_id",), s("u")), equals_seen(("total",), n("2.50"))))
    assert put.guard == (Condition(Test.ABSENT, ("PK",)),)
    assert put.item["n"] == n("2.5")
    assert RULE.write_for(part_of(child), put.item, child) is None


def test_rank_clears_the_place_that_a_child_left():
    """A change of the amount is a part at the old place and one at the new; both check the child alike."""
    old, new = order("a", "u", total=n(1)), order("a", "u", total=n(2))
    before, after = RULE.parts(Change(key_of(old), old, new), ORDER)
    check, delete = RULE.write_for(before, item_of(old), new).actions
    assert delete == Delete(before.target, delete.guard)
    same_check, put = RULE.write_for(after, None, new).actions
    assert isinstance(put, Put)
    assert check == same_check


@pytest.mark.parametrize("child", [None, order("a", total=n(1)), order("a", "u"), order("a", "v", total=n(1)), order("a", "u", total=n(2))])  # fmt: skip
def test_rank_keeps_nothing_that_its_child_does_not_say(child):
    """A child that is gone, points elsewhere or has another amount has no item here."""
    part = part_of(order("a", "u", total=n(1)))
    assert isinstance(RULE.write_for(part, item_of(order("a", "u", total=n(1))), child).actions[-1], Delete)
    assert RULE.write_for(part, None, child) is None


def test_rank_tells_what_is_no_number_and_clears_the_place_it_had():
    """A child without a number is blocked once, and its old rank item is deleted."""
    old, new = order("a", "u", total=n(1)), order("a", "u", total=s("soon"))
    before, trouble = RULE.parts(Change(key_of(old), old, new), ORDER)
    assert isinstance(RULE.write_for(before, item_of(old), new).actions[-1], Delete)
    assert RULE.write_for(trouble, None, new) == Blocked("NotANumber", member=key_of(new))
    assert RULE.write_for(trouble, None, old) is None


def test_rank_tells_a_key_that_has_no_room():
    """A child whose key does not fit behind its amount is blocked."""
    long = order("x" * 1024, "u", total=n(1))
    assert RULE.write_for(part_of(long), None, long) == Blocked("KeyTooLong", member=key_of(long))


# ---------------------------------------------------------------- records
def test_rank_looks_at_every_record_of_an_item():
    """Every record of a rank item looks at the child named in its key."""
    child = order("a", "u", total=n(1))
    item = item_of(child)
    at = COUNTS.key_of(item)
    for old, new in ((None, item), (item, None), (item, {**item, "n": n(7)})):
        assert list(RULE.parts(Change(at, old, new), MADE.ranks)) == [Part(RULE, at, key_of(child))]
    put = RULE.write_for(part_of(child), {**item, "n": n(7)}, child).actions[-1]
    assert put.item == item
    assert equals_seen(("n",), n(7)) in put.guard


def test_rank_looks_at_a_child_only_for_what_decides():
    """A change of other attributes of a child is not looked at; a child without parent or amount has no part."""
    child = order("a", "u", total=n(1), status=s("OPEN"))
    assert list(RULE.parts(Change(key_of(child), child, {**child, "status": s("PAID")}), ORDER)) == []
    assert len(list(ranked(where=OPEN).parts(Change(key_of(child), child, {**child, "status": s("PAID")}), ORDER))) == 1
    for nowhere in (order("a"), order("a", total=n(1)), order("a", "u")):
        assert list(RULE.parts(Change(key_of(child), None, nowhere), ORDER)) == []


def test_rank_tells_the_house_what_it_reads_and_writes():
    """A rank rule reads amount, link, key and `where`, and writes the rank items; `min` and `max` are two rules."""
    (node,) = ranked(where=OPEN).nodes()
    assert node.writes == (MADE.ranks, ("n",))
    assert {path for _, path in node.reads} == {("order_id",), ("total",), ("user_id",), ("status",)}
    assert RULE.copies == ()
    assert RULE.streamed_tables == (ORDERS, COUNTS)
    assert ranked(function="max").body() != RULE.body()
