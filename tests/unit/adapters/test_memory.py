"""The memory store beyond the contract: what an application does to it, its indexes, its speed."""

from __future__ import annotations

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import List, Scan
from tests.support.builders import (
    author_item,
    key,
    library,
    n,
    of_partition,
    order_item,
    s,
    shop,
    user_item,
)

SHOP = shop().tables
LIBRARY = library().tables
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


def test_memory_pages_may_end_early():
    """With pages of any size, empty ones included, each item is listed once."""
    rooms = iter([2, 0, 1, 0, 0, 3, 5])

    class Short(MemoryStore):
        def page_items(self, limit):
            return min(next(rooms), limit)

    store = Short(SHOP)
    for i in range(5):
        store.put("shop", order_item("1", str(i)))
    of_user, found, cursor = of_partition("PK", s("USER#1")), [], None
    while not found or cursor:
        page = store.list(List("shop", None, of_user, 5, cursor))
        cursor = page.cursor
        found.append([item["SK"]["S"][-1] for item in page.items])
    assert found == [["0", "1"], [], ["2"], [], [], ["3", "4"]]


def test_memory_first_page_is_never_empty_with_a_cursor():
    """The first page holds at least one item, because an empty page without one would have no cursor."""

    class Empty(MemoryStore):
        def page_items(self, _limit):
            return 0

    store = Empty(SHOP)
    store.put("shop", user_item("1"))
    assert len(store.scan(Scan("shop", 9)).items) == 1


def test_memory_scan_is_the_same_every_time():
    """The order of a scan depends on keys alone, not on the order of writes."""
    one, other = MemoryStore(LIBRARY), MemoryStore(LIBRARY)
    for i in range(20):
        one.put("authors", author_item(str(i)))
        other.put("authors", author_item(str(19 - i)))
    assert one.scan(Scan("authors", 50)).items == other.scan(Scan("authors", 50)).items
