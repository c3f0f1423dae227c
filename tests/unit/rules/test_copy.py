"""The copy kind: what a copy must be, given the two items as they are now."""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.where import compile_where
from sync_rules.rules.rule import Blocked
from tests.support.builders import m, mapping, order_item, s, shop, user_item
from tests.support.worlds import Scene

USER = user_item("1", name=s("Ada"), address=m(city=s("Rome"), zip=s("1")))
ORDER = order_item("1", "1", status=s("OPEN"), user_name=s("old"))
NAME = ("user_name",)
SAYS_NOTHING, ABSENT = None, {NAME: None}


def rule(**given):
    return shop(**given).rules["user-name-on-orders"]


def where(text: str):
    return compile_where(text, "user")


@pytest.mark.parametrize(
    ("given", "source", "expected"),
    [
        ({}, USER, {NAME: s("Ada")}),
        ({}, user_item("1"), ABSENT),  # a removed attribute is removed from the copies
        ({}, None, SAYS_NOTHING),
        ({"on_delete": "clear"}, None, ABSENT),
        ({"on_delete": "delete"}, None, SAYS_NOTHING),  # only a REMOVE record deletes
        ({"where": where("status == 'OPEN'")}, USER, {NAME: s("Ada")}),
        ({"where": where("status == 'DONE'")}, USER, SAYS_NOTHING),
        ({"where": where("status == 'DONE'"), "on_delete": "clear"}, USER, ABSENT),
        ({"where": where("user.name == 'Bea'")}, USER, SAYS_NOTHING),
        ({"mode": "snapshot"}, USER, SAYS_NOTHING),  # it is there already
        ({"mapping": mapping(address="home", address__city="city")}, USER, {("home",): USER["address"], ("city",): s("Rome")}),
    ],
)  # fmt: skip
def test_copy_desires_what_the_source_holds_now(given, source, expected):
    """The copies are the source's values; without a source, or where `where` says no, the delete policy decides."""
    assert rule(**given).compute_values([source], ORDER) == expected


BARE = order_item("1", "1", status=s("OPEN"))
NOBODY = {NAME: s("nobody")}


@pytest.mark.parametrize(
    ("given", "sources", "target", "expected"),
    [
        ({}, [USER], BARE, {NAME: s("Ada")}),
        ({}, [user_item("1")], ORDER, NOBODY),  # the source lacks it: whatever the policy is
        ({}, [user_item("1", name={"NULL": True})], ORDER, {NAME: {"NULL": True}}),  # which is a value
        ({"on_delete": "clear"}, [None], ORDER, NOBODY),
        ({"on_delete": "clear"}, [], ORDER, NOBODY),  # it names no source
        ({"on_delete": "clear", "where": where("status == 'DONE'")}, [USER], ORDER, NOBODY),
        *[({"on_delete": policy}, some, ORDER, SAYS_NOTHING) for policy in ("keep", "delete", "restrict") for some in ([None], [])],
        *[({"on_delete": policy}, some, BARE, NOBODY) for policy in ("keep", "delete", "restrict") for some in ([None], [])],
        ({"where": where("status == 'DONE'")}, [USER], ORDER, SAYS_NOTHING),
        ({"where": where("status == 'DONE'")}, [USER], BARE, NOBODY),
        ({"where": where("length(total) > `2`")}, [USER], BARE, Blocked("WhereFailed: length() of nothing")),
    ],
)  # fmt: skip
def test_copy_of_nothing_is_the_default(given, sources, target, expected):
    """The default stands where there is nothing to copy; what a delete policy keeps is not replaced by it."""
    assert rule(defaults=NOBODY, **given).compute_values(sources, target) == expected


@pytest.mark.parametrize("rank", [{"N": "5"}, {"S": ""}, {"S": "x" * 1_025}, {"NULL": True}, None])
def test_copy_has_its_default_where_an_index_would_not_take_the_value(rank):
    """The index lists every target then: another rule that lists by it reaches them all."""
    scene = Scene(
        parse_rules("""
tables:
  users: {key: {user: S}}
  orders: {key: {order: S}, indexes: {plain: {user: S}, by_rank: {user: S, rank: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules:
  ranks: {copy: user.rank, into: order.rank, default: none, via: plain}
  names: {copy: user.name, into: order.name, via: by_rank}
""")
    )
    held = {} if rank is None else {"rank": rank}
    scene.put("users", {"user": s("u"), "name": s("old"), **held})
    scene.put("orders", {"order": s("o"), "user": s("u")})
    scene.rest()
    scene.put("users", {"user": s("u"), "name": s("new"), **held})
    scene.rest()
    order = scene.item(scene.at("orders", "o"))
    assert (order["rank"], order["name"], scene.parked.told) == (s("none"), s("new"), [])


@pytest.mark.parametrize("on_delete", ["delete", "restrict"])
def test_cascade_without_a_copy_is_what_on_delete_of_another_rule_makes(on_delete):
    """A copy of an entity alone has the body of the part that deletes or reports the items of a deleted parent."""
    rules = parse_rules(f"""
tables: {{shop: {{key: {{PK: S, SK: S}}}}, ledger: {{key: {{PK: S, SK: S}}}}}}
entities:
  user: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  flag: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "FLAG#{{flag_id}}"}}}}
rules:
  alone: {{copy: user, into: flag, on_delete: {on_delete}}}
  counted: {{count: flag, into: user.flags, on_delete: {on_delete}}}
""").rules
    assert rules["alone"].copies == ()
    assert rules["alone"].body() == rules["counted.parent"].body()
