"""Keys that widely used services and libraries make: the kinds of items in them, and the copies between them."""

from __future__ import annotations

import random
import string

import pytest

from sync_rules.extras.discover.commands.show_proposal import format_entities
from sync_rules.extras.discover.propose.search import propose
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


def test_keys_of_others_that_are_times_have_a_latest(tmp_path):
    """The latest of a sort key that is a time is kept by the parent; a time is never added up."""
    rand = random.Random(5)
    readings = [
        {"device": f"d{number % 40}", "ts": 1_700_000_000_000 + rand.randrange(10**9), "ok": rand.random() < 0.5}
        for number in range(500)
    ]
    devices = [{"device": f"d{number}"} for number in range(40)]
    for one in devices:
        one["last"] = max(each["ts"] for each in readings if each["device"] == one["device"])
    tables = [
        PlainTable("devices", {"device": "S"}, devices),
        PlainTable("readings", {"device": "S", "ts": "N"}, readings),
    ]
    found = propose(gathered(tmp_path / "in", *tables), tmp_path / "work")
    assert [dict(one.rule) for one in found.rules] == [{"max": "reading.ts", "into": "device.last"}]


def test_keys_of_others_are_named_where_an_index_reaches(tmp_path):
    """An order names its user in a map and beside it: the rule goes along the name that can be indexed."""
    rand = random.Random(5)
    users = [{"uid": number + 1000, "name": f"N{rand.random()}"} for number in range(60)]
    orders = []
    for number in range(240):
        user = rand.choice(users)
        inner = {"id": str(user["uid"]), "name": user["name"]}
        orders.append({"oid": f"{rand.getrandbits(60):x}-{number}", "customer": inner, "user_no": user["uid"]})
    tables = [PlainTable("users", {"uid": "N"}, users), PlainTable("orders", {"oid": "S"}, orders)]
    found = propose(gathered(tmp_path / "in", *tables), tmp_path / "work")
    rules = [dict(one.rule) for one in found.rules if one.held_back is None]
    assert {"copy": "user.name", "into": "order.customer.name", "link": {"uid": "user_no"}} in rules


def test_keys_of_others_that_cannot_be_told_apart_are_said(tmp_path):
    """A kind of items that no rules file can have beside another one is named, with the reason."""
    items = [{"pk": f"org#{org}", "sk": f"team#{team}", "label": "x"} for org in range(9) for team in range(4)]
    items += [one | {"sk": f"{one['sk']}#member#{number}", "role": "y"} for one in items for number in range(3)]
    tables = gathered(tmp_path / "in", PlainTable("orgs", {"pk": "S", "sk": "S"}, items))
    (table,) = propose(tables, tmp_path / "work").tables
    assert table.checks == (
        "team is left out: a key of table orgs may be of member and of team",
        "36 items are of no entity: see team",
    )
    assert format_entities(table) == "table orgs: 144 items: member 108, 36 of no entity"
