"""The consequences of a write name what they leave to the stream."""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.messages import PartMessage, PushMessage
from sync_rules.write import consequences
from sync_rules.write.consequences import ENDLESS, MESSAGE, SECOND_LOOK, Consequences
from sync_rules.write.read_through import ReadThrough
from tests.support.builders import s
from tests.support.every_kind import RULES as RULE_TEXTS
from tests.support.every_kind import order, rules_of, text_of, user
from tests.support.transacted import Shop

RULES = rules_of(effects=False)


@pytest.mark.parametrize("kind", ["push", "part"])
@pytest.mark.parametrize(("delay_seconds", "why"), [(0, MESSAGE), (60, SECOND_LOOK)])
def test_consequences_leaves_the_rule_that_a_message_names(kind, delay_seconds, why):
    """Each message to the stream becomes one entry: its rule, then its reason."""
    scene = Shop(RULES).scene
    source, target = scene.at("shop", "U", "P"), scene.at("shop", "U", "O")
    message = {
        "push": PushMessage(("names",), source),
        "part": PartMessage("names", target, source),
    }[kind]
    left = Consequences(RULES, ReadThrough(scene.memory, RULES.tables), lambda: False)
    left.send(message, delay_seconds)
    assert [(one.rule, one.why) for one in left.leftovers] == [("names", why)]


def test_consequences_leaves_a_rule_whose_listing_fails(monkeypatch):
    """A user is renamed, and the Query of its orders is throttled."""
    shop = Shop(parse_rules(text_of({"names": RULE_TEXTS["names"]})))
    shop.scene.put("shop", user("7", name=s("Ada")), order("7", "1", 5))
    shop.rest()

    def throttled(_request):
        raise StoreError("ThrottlingException", "table shop")

    monkeypatch.setattr(shop.scene.memory, "list", throttled)
    with shop.transact() as tx:
        tx.update("user", user("7"), set={"name": s("Bob")})
    assert [(one.rule, one.why) for one in tx.result.left] == [("names", "ThrottlingException: table shop")]


def test_consequences_leaves_every_rule_if_they_do_not_end(monkeypatch):
    """More rounds than are allowed: it is unknown which rules are done."""
    monkeypatch.setattr(consequences, "ROUNDS_MAX", 1)
    shop = Shop(parse_rules(text_of({"names": RULE_TEXTS["names"]})))
    with shop.transact() as tx:
        tx.put("user", user("7", name=s("Ada")))
    assert [(one.rule, one.why) for one in tx.result.left] == [("names", ENDLESS)]


def test_consequences_mirrors_what_another_rule_takes_away():
    """A mirror of all attributes is looked at again if one of them goes in the same round as another changes."""
    rules = parse_rules("""
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  team:  {table: shop, key: {PK: "TEAM#{team_id}", SK: TEAM}}
  user:  {table: shop, key: {PK: "TEAM#{team_id}", SK: "USER#{user_id}"}}
  order: {table: shop, key: {PK: "TEAM#{team_id}", SK: "ORDER#{user_id}#{order_id}"}}
  by_email: {table: shop, key: {PK: "EMAIL#{email}", SK: MAIL}}
rules:
  user-by-email: {mirror: user, into: by_email, attributes: all}
  team-on-user: copy team.name into user.team_name
  team-on-order: copy team.state into order.team_state
  tags: {collect: order, into: user.orders, as: "{order_id}", where: "team_state == 'open'"}
""")
    shop = Shop(rules)
    team = {"PK": s("TEAM#1"), "SK": s("TEAM"), "name": s("A"), "state": s("open")}
    user = {"PK": s("TEAM#1"), "SK": s("USER#7"), "email": s("a@x")}
    shop.scene.put("shop", team, user, {"PK": s("TEAM#1"), "SK": s("ORDER#7#9")})
    shop.rest()
    with shop.transact() as tx:
        tx.update("team", {"team_id": s("1")}, set={"name": s("B"), "state": s("closed")})
    assert not tx.result.left
    mirror = shop.scene.memory.item(shop.scene.at("shop", "EMAIL#a@x", "MAIL"))
    assert (mirror["team_name"], mirror.get("orders")) == (s("B"), None)
    assert not shop.written_by_the_stream()
