"""`fresh` shows an item as the rules want it now, and writes nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sync_rules.pipeline.requests import Read
from sync_rules.write import fresh
from tests.support.builders import n, s
from tests.support.every_kind import order, user
from tests.support.transacted import Shop
from tests.unit.write.test_every_kind import RULES, begun, drawn, plainly


def counted(shop: Shop) -> list[Read]:
    asked: list[Read] = []
    read = shop.scene.memory.read
    shop.scene.memory.read = lambda request: (asked.append(request), read(request))[1]  # type: ignore[method-assign]
    return asked


def shown(shop: Shop, entity: str, item: Any, **options: Any) -> Any:
    return fresh(RULES, None, entity, item, raw=True, store=shop.scene.memory, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(60))
def test_fresh_shows_what_a_look_would_make_of_an_item(seed):
    """Whatever was written and not followed yet: it is what the pipeline would make of the item now."""
    random = Random(seed)
    shop = begun(random)
    for _ in range(4):
        plainly(shop, drawn(random))
    _, entity, item = drawn(random)
    key = RULES.entities[entity].table.key_of(item)
    assert key is not None
    before = shop.state()
    seen = shown(shop, entity, item)
    assert shop.state() == before
    if shop.scene.memory.item(key) is None:
        assert seen is None
        return
    for _ in range(3 if RULES.into_target(RULES.entities[entity]) else 0):
        shop.scene.pull(key)
    assert seen == shop.scene.memory.item(key)


def test_fresh_is_one_request():
    """An order and its user are read together, by the order's key."""
    shop = Shop(RULES)
    shop.scene.there("shop", user("7", name=s("Ada")))
    shop.scene.put("shop", order("7", "9", 12))
    asked = counted(shop)
    seen = shown(shop, "order", {"user_id": s("7"), "order_id": s("9")})
    assert (seen["user_name"], seen["total"]) == (s("Ada"), n(12))
    assert len(asked) == 1


def test_fresh_repairs_where_that_is_asked_for():
    """A copy that differs is written, under guard."""
    shop = Shop(RULES)
    shop.scene.there("shop", user("7", name=s("Ada")))
    key = shop.scene.put("shop", order("7", "9", 12))
    shown(shop, "order", order("7", "9", 12), repair=True)
    assert shop.scene.item(key)["user_name"] == s("Ada")
