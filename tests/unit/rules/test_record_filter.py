"""The record_filter: what it leaves out is a reason for nothing, and it leaves out what most records are."""

from __future__ import annotations

import pytest

from tests.support.builders import n, s
from tests.support.every_kind import order, rules_of, user


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        (user("1", age=n(1)), user("1", age=n(2)), False),
        (user("1", name=s("a")), user("1", name=s("b")), True),
        (order("1", "1", 5), order("1", "1", 6), False),
        (order("1", "1", 5, user_name=s("a")), order("1", "1", 5, user_name=s("b")), True),
        (order("1", "1", 5, user_name=s("a")), order("1", "1", 5), True),
        (None, order("1", "1", 5), True),
        (order("1", "1", 5), None, True),
        ({"PK": s("CART#1"), "SK": s("x")}, {"PK": s("CART#1"), "SK": s("x"), "name": s("b")}, False),
        ({"PK": s("USER#1"), "SK": s("CART#1")}, {"PK": s("USER#1"), "SK": s("CART#1"), "name": s("b")}, False),
    ],
    ids=["unwatched", "source", "target-unwatched", "copy", "copy-gone", "came", "went", "stranger", "other-sort-key"],
)
def test_sieve_lets_pass_what_a_rule_watches(old, new, passes):
    """A change of an attribute that a rule goes by, and items that came or went; nothing of other entities."""
    copy = rules_of(*(name for name in rules_of().rules if name != "names"), effects=False)
    image = new or old
    data = {"Keys": {"PK": image["PK"], "SK": image["SK"]}, "OldImage": old, "NewImage": new}
    assert (copy.record_filters["shop"].find_watched_attributes(data) is not False) is passes
