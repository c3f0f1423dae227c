"""`fresh_page` shows each item of a page as `fresh` does, and reads each source once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.pipeline.requests import Scan
from sync_rules.write import FreshPage, WriteError, fresh_page
from tests.support.builders import s
from tests.support.every_kind import order, user
from tests.support.transacted import Shop
from tests.unit.write.test_every_kind import RULES, begun, drawn, plainly
from tests.unit.write.test_fresh import counted, shown

QUERY = {"TableName": "shop", "KeyConditionExpression": "PK = :pk", "ExpressionAttributeValues": {":pk": s("USER#7")}}


class Asking:
    """A client whose Query and Scan show all items of a table, those of an index by their keys alone."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.asked: list[Any] = []

    def query(self, **parameters: Any) -> dict[str, Any]:
        return self.scan(**parameters) | {"LastEvaluatedKey": {"PK": s("x"), "SK": s("y")}}

    def scan(self, **parameters: Any) -> dict[str, Any]:
        self.asked.append(parameters)
        items = self._store.scan(Scan(parameters["TableName"], 1_000, consistent=True)).items
        keys = {one.name for one in RULES.tables[parameters["TableName"]].key}
        shown = (
            [{name: value for name, value in item.items() if name in keys} for item in items]
            if "IndexName" in parameters
            else items
        )
        return {"Items": list(shown)}


def page_of(shop: Shop, page: Any, **options: Any) -> FreshPage:
    client: Any = Asking(shop.scene.memory)
    return fresh_page(RULES, client, page, raw=True, store=shop.scene.memory, deadline_seconds=60.0, **options)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("form", ["query", "index", "items", "stale"])
def test_fresh_page_shows_each_item_as_fresh_does(seed, form):
    """A consistent page of the table, keys of an index, items that were read before, or only their keys."""
    random = Random(seed)
    shop = begun(random)
    for _ in range(4):
        plainly(shop, drawn(random))
    state = shop.state()
    for table in ("shop", "posts", "parts"):
        items = list(shop.scene.memory.items(table))
        keys = {one.name for one in RULES.tables[table].key}
        given: Any = {
            "query": {"TableName": table},
            "index": {"TableName": table, "IndexName": "by_any"},
            "items": items,
            "stale": [{name: value for name, value in item.items() if name in keys} for item in items],
        }[form]
        table_option = {} if isinstance(given, dict) else {"table": table}
        found = page_of(shop, given, **table_option).items
        wanted = []
        for item in items:
            key = RULES.tables[table].key_of(item)
            entity = None if key is None else RULES.entity_of(key)
            assert entity is not None
            wanted.append(shown(shop, entity.name, item))
        assert in_order(found) == in_order([one for one in wanted if one is not None])
    assert shop.state() == state


def in_order(items: Any) -> list[str]:
    return sorted(repr(sorted(item.items())) for item in items)


def full_shop() -> Shop:
    shop = Shop(RULES)
    shop.scene.there("shop", user("7", name=s("Ada")), user("8", name=s("Bob")))
    shop.scene.there("shop", *(order("7", str(number), 1) for number in range(60)))
    return shop


def test_fresh_page_reads_sources_once():
    """Sixty orders of one user: the user is read once, with the marks of books, and no order is read again."""
    shop = full_shop()
    asked = counted(shop)
    found = page_of(shop, {**QUERY, "FilterExpression": "begins_with(SK, :o)"}).items
    assert {repr(one["user_name"]) for one in found if "total" in one} == {repr(s("Ada"))}
    keys = [key for one in asked for key in one.keys]
    assert len({repr(key) for key in keys}) == len(keys)
    assert not any("ORDER" in repr(key) for key in keys)


def test_fresh_page_reads_the_table_consistently_and_an_index_as_it_can():
    """The parameters of the application's Query go out as they are, but for the consistency of a base table."""
    shop = full_shop()
    client: Any = Asking(shop.scene.memory)
    page = fresh_page(RULES, client, QUERY, store=shop.scene.memory, deadline_seconds=60.0)
    fresh_page(RULES, client, {**QUERY, "IndexName": "by_boss"}, store=shop.scene.memory, deadline_seconds=60.0)
    assert client.asked == [{**QUERY, "ConsistentRead": True}, {**QUERY, "IndexName": "by_boss"}]
    assert page.last_evaluated_key == {"PK": s("x"), "SK": s("y")}
    assert page.items[0]["user_name"] == "Ada"


def test_fresh_page_says_what_it_cannot_judge():
    """Items in part, a table that no rule knows, items without a key."""
    shop = full_shop()
    with pytest.raises(WriteError, match="ProjectionExpression out"):
        page_of(shop, {**QUERY, "ProjectionExpression": "SK"})
    with pytest.raises(WriteError, match="name one of ledger, parts, posts, shop"):
        page_of(shop, {**QUERY, "TableName": "shops"})
    with pytest.raises(WriteError, match="a dict"):
        page_of(shop, [None], table="shop")
    with pytest.raises(WriteError, match=r"PK \(S\), SK \(S\)"):
        page_of(shop, [{"PK": s("USER#7")}], table="shop")
