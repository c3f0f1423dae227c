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
