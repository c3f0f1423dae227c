"""A rehearsal in plain Python values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.plain_rehearsal import PlainRehearsal
from sync_rules.model.errors import UserError
from tests.support.every_kind import rules_of

USER = {"PK": "USER#1", "SK": "PROFILE"}
ORDER = {"PK": "USER#1", "SK": "ORDER#1"}


@pytest.fixture
def engine() -> PlainRehearsal:
    engine = PlainRehearsal(rules_of())
    engine.put("shop", {**USER, "name": "Ada", "rank": 1}, {**ORDER, "total": Decimal("9.90")})
    engine.rest()
    return engine


def test_plain_actions_are_those_of_an_application(engine):
    """Update at paths, delete, and expire; what a call rule called can be looked at. Values are plain."""
    assert [item["orders"] for item in engine.items("shop") if "orders" in item] == [{"1"}]
    engine.update("shop", USER, {"name": "Ada King"}, remove=["rank"])
    engine.rest()
    assert (engine.item("shop", ORDER) or {})["user_name"] == "Ada King"
    assert "rank" not in (engine.item("shop", USER) or {})
    engine.delete("shop", ORDER)
    engine.rest()
    assert engine.item("shop", ORDER) is None
    assert engine.calls("called") == 1
    engine.put("posts", {"post_id": "p", "user_id": "1", "title": "x"})
    engine.rest()
    engine.expire("posts", {"post_id": "p"})
    engine.rest()
    assert engine.failures() == []


def test_plain_call_stands_for_the_functions_of_the_rules():
    """The given function is called once for each change; an exception becomes a failure with its class name."""
    seen = []
    engine = PlainRehearsal(rules_of(), VARIANTS[-1], lambda change: seen.append((change.rule, change.new["total"])))
    engine.put("shop", {**ORDER, "total": 5})
    engine.rest()
    engine.rest()
    assert seen == [("called", 5)]

    def broken(_change: object) -> None:
        raise LookupError("Ada")

    engine = PlainRehearsal(rules_of(), call=broken)
    engine.put("shop", {**ORDER, "total": 5})
    engine.rest()
    assert engine.failures() == [("called", "LookupError")]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (lambda engine: engine.put("shp", {}), "no table 'shp'.*Did you mean 'shop'"),
        (lambda engine: engine.put("shop", {"PK": "x"}), r"table shop: expected the key PK \(S\), SK \(S\); found PK"),
        (lambda engine: engine.item("shop", {}), "found nothing"),
        (lambda engine: engine.put("shop", {**USER, "rank": 1.5}), "DynamoDB cannot store a value of type float"),
        (lambda engine: engine.update("shop", USER, {"a..b": 1}), "is not a path"),
        (lambda engine: engine.items("shp"), "no table 'shp'"),
    ],
    ids=["table", "key", "no-key", "float", "path", "items"],
)
def test_plain_mistakes_are_told(engine, action, said):
    """A table, key, value or path that cannot be is the user's mistake."""
    with pytest.raises(UserError, match=said):
        action(engine)
