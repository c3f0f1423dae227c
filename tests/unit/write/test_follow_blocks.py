"""`follow` in blocks: `with`, decorated functions, `async`, threads; what it leaves, the stream does."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.write import Follow, WriteError
from tests.support import every_kind
from tests.support.builders import s
from tests.support.every_kind import order, user
from tests.support.transacted import Shop

RULES = every_kind.rules_of(effects=False)


class Putting:
    """A client that puts items into a store in memory."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def put_item(self, *, TableName: str, Item: Any, ReturnValues: str = "NONE") -> dict[str, Any]:  # noqa: N803
        TableName = TableName.rpartition("/")[2]  # noqa: N806 - as the client has it
        key = RULES.tables[TableName].key_of(Item)
        if key is None:
            raise ValueError
        before = self._store.item(key)
        self._store.put(TableName, Item)
        return {"Attributes": before} if before and ReturnValues == "ALL_OLD" else {}


class Site:
    def __init__(self) -> None:
        self.shop = Shop(RULES)
        self.store = self.shop.scene.memory
        self.noting: Any = Follow(RULES, Putting(self.store), store=self.store, deadline_seconds=60.0)
        self.shop.scene.there("shop", *(user(one, name=s(f"user {one}")) for one in "1234"))

    def put(self, user_id: str, order_id: str = "1") -> None:
        self.noting.put_item(TableName="shop", Item=order(user_id, order_id, 1))

    def copied(self, user_id: str, order_id: str = "1") -> bool:
        key = RULES.tables["shop"].key_of(order(user_id, order_id, 1))
        item = None if key is None else self.store.item(key)
        return item is not None and item.get("user_name") == s(f"user {user_id}")


@pytest.fixture
def site() -> Site:
    return Site()


def test_follow_a_block_within_a_block_follows_its_own(site):
    """The inner block ends first, with what was written in it; the outer one still has its own."""
    with site.noting:
        site.put("1")
        with site.noting:
            site.put("2")
        assert site.copied("2")
        assert not site.copied("1")
    assert site.copied("1")


def test_follow_blocks_of_threads_are_apart(site):
    """A block that ends does not follow what another thread's block has written."""
    written, ended = threading.Event(), threading.Event()

    @site.noting
    def slowly() -> None:
        site.put("1")
        written.set()
        assert ended.wait(60)
        assert not site.copied("1")

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(slowly)
        assert slowly.__name__ == "slowly"
        assert written.wait(60)
        with site.noting:
            site.put("2")
        assert site.copied("2")
        ended.set()
        slow.result(60)
    assert site.copied("1")


def test_follow_a_block_may_end_in_another_context(site):
    """Some frameworks run the beginning and the end of a block in contexts of their own."""
    begun = contextvars.copy_context()
    begun.run(site.noting.__enter__)
    begun.run(site.put, "1")
    contextvars.copy_context().run(site.noting.__exit__, None, None, None)
    assert site.copied("1")


def test_follow_async_blocks_and_functions_work_in_a_thread(site):
    """The event loop goes on while copies are brought in line, and tasks at once have blocks of their own."""
    loop_thread = threading.get_ident()
    of_requests: set[int] = set()
    read = site.store.read

    def noted(request: Any) -> Any:
        of_requests.add(threading.get_ident())
        return read(request)

    site.store.read = noted

    @site.noting
    async def place(user_id: str) -> str:
        await asyncio.to_thread(site.put, user_id)
        assert not site.copied(user_id)
        return user_id

    async def failing() -> None:
        async with site.noting:
            await asyncio.to_thread(site.put, "4")
            raise LookupError

    async def main() -> list[str]:
        async with site.noting as same:
            assert same is site.noting
            await asyncio.to_thread(site.put, "3")
        assert site.copied("3")
        with pytest.raises(LookupError):
            await failing()
        return await asyncio.gather(place("1"), place("2"))

    assert asyncio.run(main()) == ["1", "2"]
    assert all(map(site.copied, "1234"))
    assert of_requests
    assert loop_thread not in of_requests


def test_follow_knows_a_table_by_its_arn(site):
    """DynamoDB takes it instead of the name."""
    with site.noting:
        arn = "arn:aws:dynamodb:us-east-1:123456789012:table/shop"
        site.noting.put_item(TableName=arn, Item=order("1", "1", 1))
    assert site.copied("1")


@pytest.mark.parametrize("given", [None, {"PK": "USER#1", "SK": "ORDER#1"}, {"PK": None}, "x"])
def test_follow_gives_a_wrong_item_to_the_client(site, given):
    """The error is the client's own."""
    site.noting._original.client.put_item = lambda **_given: (_ for _ in ()).throw(ValueError("the client's"))
    with pytest.raises(ValueError, match="the client's"), site.noting:
        site.noting.put_item(TableName="shop", Item=given)


def test_follow_refuses_what_it_cannot_decorate_and_a_result_that_is_not_there(site):
    """A generator may never be read to its end; a result is that of a block that has ended."""

    def rows() -> Any:
        yield 1

    with pytest.raises(WriteError, match="generator"):
        site.noting(rows)
    with pytest.raises(WriteError, match="no block has ended"):
        _ = site.noting.result


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
    """A block without a write sends no request; a change of nothing is an error."""
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
