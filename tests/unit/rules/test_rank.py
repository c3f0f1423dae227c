"""Least and greatest: an item for each child in the order of the amounts, and nothing that its child does not say."""

from __future__ import annotations

from sync_rules.model.items import Change
from sync_rules.model.where import compile_where
from sync_rules.model.writes import Check, Condition, Delete, Test, Transaction, expect_value
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.rule import Blocked
from tests.support.builders import key, n, s
from tests.support.ledgers import COUNTS, LINK, ORDER, USER, key_of, ledger, order

MADE = ledger()
OPEN = compile_where("status == 'OPEN'", "order")


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


# ---------------------------------------------------------------- places
def test_rank_puts_a_child_where_its_amount_belongs():
    """One transaction checks the child as it was read and puts an item that carries the amount."""
    child = order("a", "u", total=n("2.50"), note=s("x"))
    check, put = RULE.write_for(part_of(child), None, child).actions
    there = Condition(Test.EXISTS, ("order_id",))
    assert check == Check(
        key_of(child), (there, expect_value(("user_id",), s("u")), expect_value(("total",), n("2.50")))
    )
    assert put.guard == (Condition(Test.ABSENT, ("PK",)),)
    assert put.item["n"] == n("2.5")
    assert RULE.write_for(part_of(child), put.item, child) is None


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
def test_rank_deletes_an_item_whose_key_names_no_child():
    """A check of no item would fail the whole batch, so the transaction has the delete alone."""
    at = key(COUNTS, "spent/R/u", "-")
    write = RULE.write_for(Part(RULE, at, None), {**at.attributes(), "n": n(1)}, None)
    assert write == Transaction((Delete(at, (Condition(Test.EXISTS, ("PK",)), expect_value(("n",), n(1)))),))
