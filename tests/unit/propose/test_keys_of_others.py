"""Keys that widely used services and libraries make: the kinds of items in them, and the copies between them."""

from __future__ import annotations

import random
import string

import pytest

from sync_rules.propose.find import propose
from tests.support.gathering import PlainTable, gathered

LETTERS = string.ascii_letters + string.digits


def of_stripe(rand: random.Random) -> list[PlainTable]:
    """Ids with a word: some of them have letters alone after it."""
    ids = ["cus_AbCdEfGhIjKlMn", *("cus_" + "".join(rand.choices(LETTERS, k=14)) for _ in range(79))]
    customers = [{"id": one, "name": f"N{rand.random()}"} for one in ids]
    orders = [
        {"id": f"sub_{rand.getrandbits(60):x}", "customer": one["id"], "payer": one["name"]} for one in customers * 2
    ]
    return [PlainTable("customers", {"id": "S"}, customers), PlainTable("subscriptions", {"id": "S"}, orders)]


def of_electro(rand: random.Random) -> list[PlainTable]:
    """An entity whose sort key is its name and version alone."""
    users = [{"pk": f"$app#userid_{n}", "sk": "$user_1", "name": f"N{rand.random()}"} for n in range(80)]
    orders = [
        {"pk": one["pk"], "sk": f"$order_1#orderid_{number}", "buyer": one["name"]}
        for one in users
        for number in range(3)
    ]
    return [PlainTable("app", {"pk": "S", "sk": "S"}, [*users, *orders])]


@pytest.mark.parametrize(
    ("made", "copy"),
    [
        (of_stripe, {"copy": "customer.name", "into": "subscription.payer", "link": {"id": "customer"}}),
        (of_electro, {"copy": "user.name", "into": "order.buyer"}),
    ],
)
def test_keys_of_others_name_every_item(tmp_path, made, copy):
    """No item is left out for the form of its key, and what it holds of others is found."""
    found = propose(gathered(tmp_path / "in", *made(random.Random(5))), tmp_path / "work")
    assert [dict(one.rule) for one in found.rules if one.held_back is None] == [copy]
