"""Values of children, from end to end: a scenario under every delivery, verify and repair, and what no report shows."""

from __future__ import annotations

import pytest

from sync_rules.lab.delivery import VARIANTS
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Outcome
from sync_rules.pipeline.failure_records import printable
from sync_rules.rules.kinds import gathered_rule
from tests.support.builders import s
from tests.support.verifying import require_scenario, verify
from tests.support.worlds import Scene

RULES = """
tables:
  shop:   {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  tags: collect order.tag into user.tags
  sizes: {collect: order.size, into: user.sizes, numbers: true, limit: 2}
  newest: {collect: order.title, into: user.newest, as: list, order: -at, limit: 2}
  titles: {collect: order.title, into: user.titles, join: ", ", where: "!gone"}
  once: {collect: order.title, into: user.once, join: ", ", distinct: true, order: at}
"""
SCENARIO = """
rules: rules.yaml
steps:
- say: a user without orders has an empty list, no set and no text
  put: {shop: [{PK: USER#1, SK: PROFILE}, {PK: USER#2, SK: PROFILE}]}
  expect: {shop: {PK: USER#1, SK: PROFILE, tags: <absent>, titles: <absent>, newest: []}}
- say: two orders have one tag, and two one title
  put:
    shop:
    - {PK: USER#1, SK: ORDER#1, tag: gift, title: Kettle, at: "2024", size: 10}
    - {PK: USER#1, SK: ORDER#2, tag: gift, title: Cup, at: "2025", size: 9}
    - {PK: USER#1, SK: ORDER#3, tag: late, title: Kettle, at: "2026", size: 8.0}
  expect:
    shop:
      PK: USER#1
      SK: PROFILE
      tags: !set [gift, late]
      sizes: !set [8, 9]
      newest: [Kettle, Cup]
      titles: Cup, Kettle, Kettle
      once: Kettle, Cup
- say: the first with the tag goes, and the tag stays
  delete: {shop: {PK: USER#1, SK: ORDER#1}}
  expect: {shop: {PK: USER#1, SK: PROFILE, tags: !set [gift, late], titles: "Cup, Kettle", once: "Cup, Kettle"}}
- say: the last with the tag has what is no tag; it is reported
  update: {shop: {key: {PK: USER#1, SK: ORDER#2}, set: {tag: true}}}
  expect: {shop: {PK: USER#1, SK: PROFILE, tags: !set [late]}}
  expect_failures: {tags.ledger: NotAValue}
- say: the user is overwritten as a whole, with a tag that is none
  put: {shop: {PK: USER#1, SK: PROFILE, tags: gift, newest: [Cup]}}
  expect: {shop: {PK: USER#1, SK: PROFILE, tags: !set [late], titles: "Cup, Kettle", newest: [Kettle, Cup]}}
- say: an order is left out of the titles alone
  update: {shop: {key: {PK: USER#1, SK: ORDER#2}, set: {gone: true}}}
  expect: {shop: {PK: USER#1, SK: PROFILE, titles: Kettle, newest: [Kettle, Cup]}}
- say: a user who comes after the order, deleted and created again
  put: {shop: [{PK: USER#3, SK: ORDER#9, tag: gift, title: Lid, at: "2020"}, {PK: USER#3, SK: PROFILE}]}
  expect: {shop: {PK: USER#3, SK: PROFILE, tags: !set [gift], newest: [Lid], titles: Lid, once: Lid, sizes: <absent>}}
"""
SECRET = "the-secret-title"


@pytest.mark.parametrize("delivery", VARIANTS, ids=str)
def test_values_follow_their_children_under_every_delivery(delivery, tmp_path):
    """Whatever is delivered twice, late or in another order: sets, lists and texts are what the orders have."""
    require_scenario(tmp_path, RULES, SCENARIO, delivery)


def order(name, **values):
    return {"PK": s("USER#1"), "SK": s(f"ORDER#{name}"), **values}


def at_rest(*orders):
    scene = Scene(parse_rules(RULES))
    scene.put("shop", {"PK": s("USER#1"), "SK": s("PROFILE")}, *orders)
    scene.rest()
    return scene


def differences(scene, *, repair=False):
    found = [one.difference for one in verify(scene, repair=repair)[0]]
    scene.rest()
    return found


def test_values_are_in_no_text_for_people():
    """Neither in what verify finds nor in what is reported, though an order by a text is in the ledger's keys."""
    scene = at_rest(order("a", tag={"BOOL": True}, title=s(SECRET), at=s(SECRET)))
    item = next(item for item in scene.memory.items("ledger") if SECRET in str(item["SK"]))
    scene.there("ledger", {**item, "n": s("x")})
    found = differences(scene)
    assert {one.rule for one in found} == {"tags.ledger", "newest", "newest.ledger"}
    said = [printable(key) for one in found for key in (one.target, one.source) if key is not None]
    said += [printable(failure.key) + failure.reason for failure in scene.parked.failures if failure.key is not None]
    assert said
    assert SECRET not in str(said)


def test_values_of_more_children_than_are_read_are_reported(monkeypatch):
    """The set stays as it was; the first few in an order are found among any number of children."""
    monkeypatch.setattr(gathered_rule, "MEMBERS_MAX_ITEMS", 5)  # and not 1,000
    scene = at_rest(*(order(f"{number}", tag=s("x"), title=s(f"{number}"), at=s(f"{number}")) for number in range(6)))
    user = scene.item(scene.at("shop", "USER#1", "PROFILE"))
    assert user["newest"] == {"L": [s("5"), s("4")]}
    assert {(one.rule, one.reason) for one in scene.parked.failures} == {
        (rule, "TooManyMembers") for rule in ("tags", "titles", "once")
    }
    assert scene.outcomes()[Outcome.PARKED]
