"""Values of children: what no report shows."""

from __future__ import annotations

from sync_rules.language.load import parse_rules
from sync_rules.pipeline.failure_records import format_key
from tests.support.builders import s
from tests.support.verifying import verify
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
  newest: {collect: order.title, into: user.newest, as: list, order: -at, limit: 2}
"""
SECRET = "the-secret-title"


def test_values_are_in_no_text_for_people():
    """Neither in what verify finds nor in what is reported, though an order by a text is in the ledger's keys."""
    scene = Scene(parse_rules(RULES))
    order = {"PK": s("USER#1"), "SK": s("ORDER#a"), "tag": {"BOOL": True}, "title": s(SECRET), "at": s(SECRET)}
    scene.put("shop", {"PK": s("USER#1"), "SK": s("PROFILE")}, order)
    scene.rest()
    item = next(item for item in scene.memory.items("ledger") if SECRET in str(item["SK"]))
    scene.there("ledger", {**item, "n": s("x")})
    found = [one.difference for one in verify(scene)[0]]
    assert {one.rule for one in found} == {"tags.ledger", "newest", "newest.ledger"}
    said = [format_key(key) for one in found for key in (one.target, one.source) if key is not None]
    said += [format_key(failure.key) + failure.reason for failure in scene.parked.failures if failure.key is not None]
    assert said
    assert SECRET not in str(said)
