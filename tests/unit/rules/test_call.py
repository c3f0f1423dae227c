"""The call kind: the changes that make a rule call its function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.model.items import Call, Change
from sync_rules.model.where import compile_where
from sync_rules.rules.kinds.call import CallRule
from tests.support.builders import entity, key, order_item, s, table

SHOP = table("shop", {"PK": "S", "SK": "S"})
ORDER = entity("order", SHOP, PK="USER#{user_id}", SK="ORDER#{order_id}")
OPEN, DONE = order_item("1", "1", status=s("OPEN")), order_item("1", "1", status=s("DONE"))
NOTED = {**OPEN, "note": s("x")}
AT = key(SHOP, "USER#1", "ORDER#1")
CREATED, CHANGED, DELETED = Change(AT, None, OPEN, "1"), Change(AT, OPEN, DONE, "2"), Change(AT, DONE, None, "3")


def rule(**given: object) -> CallRule:
    return CallRule(name="notify", source=ORDER, target=ORDER, **{"function": "mypkg.notify", **given})


@pytest.mark.parametrize("when", [{"created"}, {"changed"}, {"deleted"}, {"created", "deleted"}, None])
@pytest.mark.parametrize(("change", "word"), [(CREATED, "created"), (CHANGED, "changed"), (DELETED, "deleted")])
def test_call_is_made_when_the_rule_says(when, change, word):
    """A call is made for the changes that `when` names, and for all changes without `when`."""
    one = rule() if when is None else rule(when=frozenset(when))
    expected = Call("notify", "mypkg.notify", change) if when is None or word in when else None
    assert one.effect(change) == expected


@pytest.mark.parametrize(
    ("watch", "change", "called"),
    [
        ((("status",),), CHANGED, True),
        ((("status",),), replace(CHANGED, new=NOTED), False),
        ((("note",), ("status",)), replace(CHANGED, new=NOTED), True),
        ((("order_id",),), CHANGED, False),  # inside the key: never changes
        ((("note",),), CREATED, True),  # `watch` is about changes alone
        ((("note",),), DELETED, True),
        ((), replace(CHANGED, new=NOTED), True),
    ],
)
def test_call_watches(watch, change, called):
    """A changed item matters when a watched path changed; with none watched, always."""
    assert (rule(watch=watch).effect(change) is not None) is called


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status == 'DONE'", [CHANGED, DELETED]),
        ("status == 'OPEN' && order_id == '1'", [CREATED]),
        ("user_id == '2'", []),
    ],
)
def test_call_where_is_of_the_item_as_it_is(text, expected):
    """`where` of a call reads the new image, or the old image of a deleted item, key fields included."""
    one = rule(where=compile_where(text, ""))
    assert [change for change in (CREATED, CHANGED, DELETED) if one.effect(change)] == expected


def test_call_is_not_made_without_an_image():
    """A record without images causes no call."""
    assert rule().effect(Change(AT, None, None, "4")) is None
