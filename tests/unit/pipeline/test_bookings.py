"""Booking a total as a whole: where the difference does not fit into one number, and never over another booking."""

from __future__ import annotations

import pytest

from sync_rules.model.items import ItemKey
from sync_rules.model.writes import Increment, Transaction
from tests.support.builders import m, n, s
from tests.support.every_kind import order, user
from tests.support.worlds import Scene, scene_of

SMALL, LARGE = "0.0000000001", "1" + 30 * "0"  # the difference of both takes 41 digits
SUM = "sum order.total into user.spent"


def spending(rule: str = SUM, *, others: str = "") -> tuple[Scene, ItemKey]:
    """A user with an order of the small amount, and another one."""
    scene = scene_of(spent=rule)
    key = scene.put("shop", user("1"))
    scene.put("shop", sold("a", SMALL), *([sold("b", others)] if others else []))
    scene.rest()
    return scene, key


def sold(order_id: str, total: str) -> dict:
    return order("1", order_id, 0) | {"total": n(total), "status": s("PAID")}


@pytest.mark.parametrize(("rule", "shown"), [(SUM, n), ("{sum: order.total, into: user.spent, per: status}", lambda x: m(PAID=n(x)))])  # fmt: skip
def test_a_step_that_does_not_fit_into_a_number_is_booked_as_the_new_total(rule, shown):
    """From 0.0000000001 to 1E+30 and back in one change each: the total is right, and nothing is parked."""
    scene, key = spending(rule)
    for amount in (LARGE, SMALL):
        scene.put("shop", sold("a", amount))
        scene.rest()
        assert scene.item(key)["spent"] == shown(amount)
    assert scene.parked.failures == []
    whole = [
        w
        for w in scene.tap.writes
        if isinstance(w, Transaction) and not any(isinstance(a, Increment) for a in w.actions)
    ]
    assert len(whole) == 2


@pytest.mark.parametrize(("others", "grows", "goes"), [(SMALL, "a", "b"), ("", "b", "a")], ids=["step", "amount"])
def test_a_total_that_does_not_fit_is_reported_and_comes_right_when_it_does(others, grows, goes):
    """1E+30 beside 0.0000000001 is no number of 38 digits: reported, and booked once one of both is gone. So it is if the
    amount itself is a number, and only the store knows that the sum is none: the reason is not the store's.
    """
    scene, key = spending(others=others)
    shown = scene.item(key)["spent"]
    scene.put("shop", sold(grows, LARGE))
    scene.rest()
    assert scene.parked.told == [("spent.ledger", "NumberTooLong")]
    assert scene.item(key)["spent"] == shown
    scene.memory.delete(scene.at("shop", "USER#1", f"ORDER#{goes}"))
    scene.rest()
    scene.receive()
    scene.rest()
    assert scene.item(key)["spent"] == n(LARGE)
