"""`follow` does at once what the stream would do; what it leaves, the stream does."""

from __future__ import annotations

import pytest

from sync_rules.write import WriteError
from tests.support import every_kind
from tests.support.builders import s
from tests.support.every_kind import order, user
from tests.support.transacted import Shop
from tests.unit.write.test_every_kind import RULES


def test_follow_is_bounded_by_count():
    """A user with more orders than that: the rest is left to the stream, and told."""
    shop = Shop(every_kind.rules_of(*(name for name in every_kind.RULES if name != "names"), effects=False))
    shop.scene.there("shop", *(order("7", str(number), 1) for number in range(30)))
    before, after = user("7", name=s("Ada")), user("7", name=s("Bob"))
    shop.scene.there("shop", before)
    shop.scene.put("shop", after)
    noted = shop.follow(items_max=10)
    noted.change("user", before, after)
    result = noted.bring()
    assert result.writes == 10
    assert {one.rule for one in result.left} == {"names"}


def test_follow_nothing_is_no_request():
    """A block without a write asks nothing; a change of nothing is told."""
    shop = Shop(RULES)
    with shop.follow() as noted:
        pass
    assert noted.result.writes == 0
    with pytest.raises(WriteError, match="nothing to nothing"):
        shop.follow().change("order", None, None)


def test_follow_a_change_of_two_keys_is_two_changes():
    """An order that another user has now: one of the two items would not be followed."""
    with pytest.raises(WriteError, match="note two changes"):
        Shop(RULES).follow().change("order", order("7", "9", 1), order("8", "9", 1))
