"""`fresh` shows an item as the rules want it now, and writes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import Read
from sync_rules.write import WriteError, fresh
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.every_kind import order, part, user
from tests.support.transacted import Shop
from tests.unit.write.test_every_kind import RULES


def counted(shop: Shop) -> list[Read]:
    asked: list[Read] = []
    read = shop.scene.memory.read
    shop.scene.memory.read = lambda request: (asked.append(request), read(request))[1]  # type: ignore[method-assign]
    return asked


def shown(shop: Shop, entity: str, item: Any, **options: Any) -> Any:
    options = {"deadline_seconds": 60.0, **options}  # the machine may be slow
    return fresh(RULES, None, entity, item, raw=True, store=shop.scene.memory, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("entity", "keys"), [("user", 1), ("by_email", 2)])
def test_fresh_reads_no_key_twice_and_no_element_of_a_listed_set(entity, keys):
    """A Query lists the elements of a user, so the read names none. A mirror is read together with its source."""
    rules = every_kind.parse_rules(every_kind.text_of({name: every_kind.RULES[name] for name in ("tags", "mails")}))
    shop = Shop(rules)
    shop.scene.put("shop", user("7", name=s("Ada"), email=s("a@x")), order("7", "1", 1), order("7", "2", 1))
    shop.rest()
    place = {"user": ("USER#7", "PROFILE"), "by_email": ("EMAIL#a@x", "EMAIL")}[entity]
    stored = shop.scene.item(shop.scene.at("shop", *place))
    asked = counted(shop)
    fresh(rules, None, entity, stored, raw=True, store=shop.scene.memory, deadline_seconds=60.0)  # type: ignore[arg-type]
    assert [len(one.keys) for one in asked] == [keys]


def test_fresh_repairs_sets_and_mirrors():
    """Elements that are missing or too much, and a mirror that says something else."""
    shop = Shop(RULES)
    ada = user("7", name=s("Ada"), email=s("a@x"))
    key = shop.scene.put("shop", ada)
    shop.rest()
    shop.scene.memory.update(key, [(("orders",), {"SS": ["8"]}), (("name",), s("Eve"))])
    shop.scene.memory.put("shop", order("7", "9", 12))
    shown(shop, "user", ada, repair=True)
    assert shop.scene.item(key)["orders"] == {"SS": ["9"]}
    mirror = {"PK": s("EMAIL#a@x"), "SK": s("EMAIL")}
    shown(shop, "by_email", mirror, repair=True)
    there = RULES.tables["shop"].key_of(mirror)
    assert there is not None
    assert shop.scene.item(there)["name"] == s("Eve")


def test_fresh_leaves_a_set_that_is_too_large_to_be_listed():
    """More edges, or more elements, than one page: the set is shown as it stands, all else as it must be."""
    shop = Shop(RULES)
    shop.scene.there("shop", *(order("7", str(number), 1) for number in range(101)))
    shop.scene.there("shop", user("7", name=s("Ada"), rank=n(1), orders={"SS": ["5", "x"]}))
    seen = shown(shop, "user", user("7"))
    assert (seen["orders"], seen["head"]) == ({"SS": ["5", "x"]}, s("Ada-1"))
    many = {"SS": [f"x{number}" for number in range(101)]}
    shop.scene.there("shop", user("8", name=s("Bob"), rank=n(1), orders=many), order("8", "1", 1))
    asked = counted(shop)
    assert shown(shop, "user", user("8"))["orders"] == many
    assert max(len(one.keys) for one in asked) < 20


@pytest.mark.parametrize(("method", "entity", "field"), [("list", "user", "user_id"), ("read", "part", "part_id")])
def test_fresh_raises_what_it_could_not_read(method, entity, field):
    """A listing, or the read of a parent, fails: nothing old is shown as if it were fresh."""
    shop = Shop(RULES)
    shop.scene.there("shop", user("2", name=s("Ada")))
    shop.scene.put("parts", part("1"), part("2", "1"))
    shop.rest()
    real, asked = getattr(shop.scene.memory, method), []

    def fails(request: Any) -> Any:
        asked.append(request)
        if method == "list" or len(asked) > 1:
            raise StoreError("ThrottlingException", "the table")
        return real(request)

    setattr(shop.scene.memory, method, fails)
    with pytest.raises(StoreError, match="Throttling"):
        shown(shop, entity, {field: s("2")})


def test_fresh_says_that_its_time_is_up():
    """An expired deadline raises an error that names the cure; `fresh` returns no half-right item."""
    shop = Shop(RULES)
    shop.scene.there("shop", user("7", name=s("Ada")), order("7", "9", 12))
    with pytest.raises(WriteError, match="deadline_seconds="):
        shown(shop, "order", order("7", "9", 12), deadline_seconds=0.0)
