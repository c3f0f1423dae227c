"""The memory store beyond the contract: what an application does to it, its indexes, its speed."""

from __future__ import annotations

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import List
from tests.support.builders import (
    key,
    n,
    of_partition,
    order_item,
    s,
    shop,
)

SHOP = shop().tables
ORDER = key(SHOP["shop"], "USER#1", "ORDER#1")


def test_memory_application_write_that_dynamodb_rejects_raises():
    """A missing key, a path without its parent, an empty set, an item too large."""
    store = MemoryStore(SHOP)
    with pytest.raises(StoreError, match="lacks a key attribute"):
        store.put("shop", {"PK": s("x")})
    with pytest.raises(StoreError, match="ValidationException"):
        store.update(ORDER, [(("a", "b"), n(1))])
    with pytest.raises(StoreError, match="ValidationException"):
        store.update(ORDER, adds=[(("a",), {"SS": []})])
    with pytest.raises(StoreError, match="ValidationException"):
        store.put("shop", order_item("1", "1", a={"M": {"b": {"SS": []}}}))
    with pytest.raises(StoreError, match="ItemTooLarge"):
        store.put("shop", order_item("1", "1", a=s("x" * 500_000)))
    assert store.items("shop") == ()


@pytest.mark.parametrize("backward", [False, True])
def test_memory_cursor_outlives_its_item(backward):
    """A listing continues after its cursor's key even if that item is deleted."""
    store = MemoryStore(SHOP)
    for i in range(4):
        store.put("shop", order_item("1", str(i)))
    of_user = of_partition("PK", s("USER#1"))
    first = store.list(List("shop", None, of_user, 2, backward=backward))
    store.delete(key(SHOP["shop"], "USER#1", f"ORDER#{2 if backward else 1}"))
    rest = store.list(List("shop", None, of_user, 5, first.cursor, backward=backward))
    found = [item["SK"]["S"] for item in (*first.items, *rest.items)]
    assert found == sorted((f"ORDER#{i}" for i in range(4)), reverse=backward)
