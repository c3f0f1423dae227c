"""The memory store beyond the contract: what an application does to it, its indexes, its speed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.errors import StoreError
from sync_rules.model.writes import Condition, Status, Test
from sync_rules.pipeline.requests import Apply, List, Read, Scan
from tests.support.builders import (
    author_item,
    book_item,
    key,
    library,
    n,
    of_partition,
    order_item,
    s,
    shop,
    update,
    user_item,
)

SHOP = shop().tables
LIBRARY = library().tables
ORDER = key(SHOP["shop"], "USER#1", "ORDER#1")


def test_memory_application_writes_leave_records():
    """Put, update and delete call on_change with key, old and new image; what changes nothing does not."""
    seen = []
    store = MemoryStore(SHOP, lambda *change: seen.append(change))
    store.put("shop", order_item("1", "1", a=n(1)))
    store.update(ORDER, [(("a",), n("1.0"))])
    store.update(ORDER, [(("a",), n(2))], [("zzz",)])
    store.delete(ORDER)
    store.delete(ORDER)
    assert seen == [
        (ORDER, None, order_item("1", "1", a=n(1))),
        (ORDER, order_item("1", "1", a=n(1)), order_item("1", "1", a=n(2))),
        (ORDER, order_item("1", "1", a=n(2)), None),
    ]


def test_memory_application_update_creates():
    """An application's UpdateItem without a condition creates the item, as DynamoDB's does."""
    store = MemoryStore(SHOP)
    store.update(ORDER, [(("a",), n(1))])
    assert store.item(ORDER) == order_item("1", "1", a=n(1))


def test_memory_application_adds_and_discards_elements():
    """An application may add and discard elements without a condition, and an emptied set is removed."""
    store = MemoryStore(SHOP)
    store.update(ORDER, adds=[(("a",), {"SS": ["x", "y"]})])
    store.update(ORDER, [(("b",), n(1))], discards=[(("a",), {"SS": ["y"]})])
    assert store.item(ORDER) == order_item("1", "1", a={"SS": ["x"]}, b=n(1))
    store.update(ORDER, discards=[(("a",), {"SS": ["x"]})])
    assert store.item(ORDER) == order_item("1", "1", b=n(1))


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


def test_memory_images_stay_what_they_were():
    """An item that was handed out does not change with a later write, not even inside a map."""
    store = MemoryStore(SHOP)
    store.put("shop", order_item("1", "1", a={"M": {"b": n(1)}}))
    (image,) = store.read(Read((ORDER,)))
    store.update(ORDER, [(("a", "b"), n(2))])
    assert image == order_item("1", "1", a={"M": {"b": n(1)}})


def test_memory_indexes_lag_when_told_to():
    """A subclass keeps what `propagate` was called with, and calls it later."""
    later = []

    class Lagging(MemoryStore):
        def propagate(self, *row):
            later.append(row)

    store = Lagging(LIBRARY)
    listing = List("books", "by_author", of_partition("author_id", s("a")), 10)
    store.put("books", book_item("1", "a"))
    assert store.list(listing).items == ()
    for row in later:
        MemoryStore.propagate(store, *row)
    assert [row["book_id"] for row in store.list(listing).items] == [s("1")]


def test_memory_cursor_outlives_its_item():
    """A listing continues after its cursor's key even if that item is deleted."""
    store = MemoryStore(SHOP)
    for i in range(4):
        store.put("shop", order_item("1", str(i)))
    first = store.list(List("shop", None, of_partition("PK", s("USER#1")), 2))
    store.delete(key(SHOP["shop"], "USER#1", "ORDER#1"))
    rest = store.list(List("shop", None, of_partition("PK", s("USER#1")), 5, first.cursor))
    assert [item["SK"]["S"] for item in rest.items] == ["ORDER#2", "ORDER#3"]


def test_memory_cursor_backward_outlives_its_item():
    """A backward listing continues before its cursor's key even if that item is deleted."""
    store = MemoryStore(SHOP)
    for i in range(4):
        store.put("shop", order_item("1", str(i)))
    first = store.list(List("shop", None, of_partition("PK", s("USER#1")), 2, backward=True))
    store.delete(key(SHOP["shop"], "USER#1", "ORDER#2"))
    rest = store.list(List("shop", None, of_partition("PK", s("USER#1")), 5, first.cursor, backward=True))
    assert [item["SK"]["S"] for item in (*first.items, *rest.items)] == ["ORDER#3", "ORDER#2", "ORDER#1", "ORDER#0"]


@given(
    st.sets(st.text("ab", max_size=3), max_size=9), st.text("ab", max_size=2), st.integers(1, 4), st.booleans()
)  # fmt: skip
def test_memory_pages_are_the_sorted_keys_cut_up(keys, beginning, limit, backward):
    """Forwards and backwards, for every beginning and every page size."""
    store = MemoryStore(SHOP)
    for sort in keys:
        store.put("shop", {"PK": s("p"), "SK": s(f"K{sort}")})
    found, cursor = [], None
    while True:
        conditions = of_partition("PK", s("p"), ("SK", f"K{beginning}"))
        page = store.list(List("shop", None, conditions, limit, cursor, backward))
        found += [item["SK"]["S"] for item in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    expected = sorted((f"K{sort}" for sort in keys if sort.startswith(beginning)), reverse=backward)
    assert found == expected


def test_memory_full_page_has_a_cursor():
    """Every full page has a cursor, even the last one, as in DynamoDB."""
    store = MemoryStore(SHOP)
    store.put("shop", user_item("1"))
    page = store.scan(Scan("shop", 1))
    assert page.cursor is not None
    assert store.scan(Scan("shop", 1, page.cursor)).items == ()


def test_memory_pages_may_end_early():
    """With pages of any size, empty ones included, each item is listed once."""
    rooms = iter([2, 0, 1, 0, 0, 3, 5])

    class Short(MemoryStore):
        def page_items(self, limit):
            return min(next(rooms), limit)

    store = Short(SHOP)
    for i in range(5):
        store.put("shop", order_item("1", str(i)))
    found = [store.list(List("shop", None, of_partition("PK", s("USER#1")), 5))]
    while found[-1].cursor is not None:
        found.append(store.list(List("shop", None, of_partition("PK", s("USER#1")), 5, found[-1].cursor)))
    assert [[item["SK"]["S"][-1] for item in page.items] for page in found] == [
        ["0", "1"],
        [],
        ["2"],
        [],
        [],
        ["3", "4"],
    ]


def test_memory_first_page_is_never_empty_with_a_cursor():
    """The first page holds at least one item, because an empty page without one would have no cursor."""

    class Empty(MemoryStore):
        def page_items(self, _limit):
            return 0

    store = Empty(SHOP)
    store.put("shop", user_item("1"))
    assert len(store.scan(Scan("shop", 9)).items) == 1


@pytest.mark.parametrize("author_id", ["", "x" * 2049, "é" * 1025])
def test_memory_application_cannot_write_impossible_keys(author_id):
    """An application cannot write an item with an impossible key, of the table or of an index."""
    store = MemoryStore(LIBRARY)
    with pytest.raises(StoreError, match="ValidationException"):
        store.put("authors", author_item(author_id))
    with pytest.raises(StoreError, match="ValidationException"):
        store.put("books", book_item("1", author_id))
    assert store.items("authors") == store.items("books") == ()


def test_memory_scan_is_the_same_every_time():
    """The order of a scan depends on keys alone, not on the order of writes."""
    one, other = MemoryStore(LIBRARY), MemoryStore(LIBRARY)
    for i in range(20):
        one.put("authors", author_item(str(i)))
        other.put("authors", author_item(str(19 - i)))
    assert one.scan(Scan("authors", 50)).items == other.scan(Scan("authors", 50)).items


def test_memory_pages_through_a_large_partition():
    """10,000 targets in pages of 100, each updated: every one once, and the work does not grow with the square."""
    calls = 0

    class Counting(MemoryStore):
        def list(self, request):
            nonlocal calls
            calls += 1
            return super().list(request)

    store, cursor, written = Counting(SHOP), None, 0
    for i in range(10_000):
        store.put("shop", order_item("1", f"{i:05}"))
    while True:
        page = store.list(List("shop", None, of_partition("PK", s("USER#1"), ("SK", "ORDER#")), 100, cursor))
        keys = [SHOP["shop"].key_of(item) for item in page.items]
        guard = Condition(Test.ABSENT, ("user_name",))
        results = store.apply(Apply(tuple(update(SHOP["shop"], at, guard, user_name=s("x")) for at in keys if at)))
        written += sum(result.status is Status.WRITTEN for result in results)
        cursor = page.cursor
        if cursor is None:
            break
    assert (written, calls) == (10_000, 101)
