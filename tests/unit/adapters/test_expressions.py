"""Guards and updates as expressions; their meaning on items is in the contract suite."""

from __future__ import annotations

from sync_rules.adapters.expressions import Expressions
from sync_rules.model.writes import Condition, Test, Update
from tests.support.builders import key, n, s, table

AT = key(table("things", {"id": "S"}), "1")


def test_expressions_hold_placeholders_only():
    """Names and values stand beside the expression, whatever characters they hold."""
    expressions = Expressions()
    guard = expressions.guard(
        [
            Condition(Test.EXISTS, ("PK",)),
            Condition(Test.EQUALS, ("a.b", "c"), s("x' OR 1")),
            Condition(Test.ABSENT, ("size",)),
            Condition(Test.IS_MAP, ("a.b",)),
        ]
    )
    text = expressions.update(Update(AT, ((("a.b", "c"), n(1)),), (("size",),), ()))
    assert guard == "attribute_exists(#n0) AND #n1.#n2 = :v0 AND attribute_not_exists(#n3) AND attribute_type(#n1, :v1)"
    assert text == "SET #n1.#n2 = :v2 REMOVE #n3"
    assert expressions.parameters() == {
        "ExpressionAttributeNames": {"#n0": "PK", "#n1": "a.b", "#n2": "c", "#n3": "size"},
        "ExpressionAttributeValues": {":v0": s("x' OR 1"), ":v1": s("M"), ":v2": n(1)},
    }


def test_expressions_leave_out_what_is_empty():
    """DynamoDB refuses empty ExpressionAttributeValues."""
    expressions = Expressions()
    expressions.guard([Condition(Test.EXISTS, ("PK",))])
    assert expressions.parameters().keys() == {"ExpressionAttributeNames"}
