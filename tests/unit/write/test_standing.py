"""`transact` compares what stood as it should when it was read: somebody may make it wrong until it is written.

In most stories an item was changed, and the transaction changes it back. What follows from it is as it was before both,
so the rules have nothing to write. But the stream has the first change to bring, and brings it in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.pipeline.requests import Page
from sync_rules.write import Transact
from sync_rules.write.consequences import SECOND_LOOK
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.every_kind import order, post, user
from tests.support.transacted import Shop
from tests.unit.write.test_transact import once

USER, FIRST, SECOND = ("USER#7", "PROFILE"), ("USER#7", "ORDER#1"), ("USER#7", "ORDER#2")
Act = Callable[[Shop], Any]


def shop_with(rules: dict[str, str]) -> Shop:
    """A shop at rest with these rules: a user with two orders."""
    shop = Shop(parse_rules(every_kind.text_of(rules)))
    shop.scene.put(
        "shop", user("7", name=s("Ada"), nick=s("A"), email=s("a@x")), order("7", "1", 5), order("7", "2", 5)
    )
    shop.rest()
    return shop


def change(*key: str, **values: Any) -> Act:
    return lambda shop: shop.scene.memory.update(
        shop.scene.at("shop", *key), [((name,), value) for name, value in values.items()]
    )


def key_of(*key: str) -> dict[str, Any]:
    return dict(zip(("PK", "SK"), map(s, key), strict=True))


@dataclass(frozen=True)
class Story:
    """The rules, what was changed first, the transaction, and what happens before it is written: the stream, if nothing
    else. `then` has the attributes of an item in the end.
    """

    rules: dict[str, str]
    first: Act
    transact: Callable[[Transact], Any]
    meanwhile: Act = Shop.rest
    then: tuple[tuple[str, ...], dict[str, Any]] = (USER, {})


def named(*names: str) -> dict[str, str]:
    return {name: every_kind.RULES[name] for name in names}


def back(tx: Transact) -> None:
    tx.update("user", key_of(*USER), set={"name": s("Bob"), "nick": s("A")})


def late(*key: str, **values: Any) -> Act:
    """A worker that read the first change writes one value of it."""
    return change(*key, **values)


def other_goes(shop: Shop) -> None:
    """Another transaction takes the other order away: each finds the least of the one that the other takes."""
    before, shop.client.before = shop.client.before, lambda _items: None
    with shop.transact() as tx:
        tx.delete("order", key_of(*SECOND))
    shop.client.before = before


def in_order(value: Any) -> Any:
    return {kind: sorted(content) if kind == "SS" else content for kind, content in value.items()}


def put(table: str, *items: Any, rest: bool = True) -> Act:
    """Items that come, with what the stream makes of them."""

    def act(shop: Shop) -> None:
        shop.scene.put(table, *items)
        if rest:
            shop.rest()

    return act


def in_turn(*acts: Act) -> Act:
    return lambda shop: [act(shop) for act in acts]


STATES = {"states": "{collect: order, into: user.states, as: '{order_id}-{status}'}"}
AUTHORS = {"authors": "{copy: user.name, into: post.author, on_delete: clear}"}
NICK = change(*USER, nick=s("B"))
STORIES = {
    "a copy, while another rule writes on its item": Story(
        named("names") | {"nicks": "copy user.nick into order.user_nick"}, NICK, back, late(*FIRST, user_nick=s("B"))
    ),
    "a copy, while another one of its rule is written": Story(
        {"both": "{copy: {user.name: user_name, user.nick: user_nick}, into: order}"},
        NICK,
        back,
        late(*FIRST, user_nick=s("B")),
    ),
    "an attribute of a mirror, while another one is written": Story(
        {"mails": "{mirror: user, into: by_email, attributes: [name, nick]}"},
        NICK,
        back,
        late("EMAIL#a@x", "EMAIL", nick=s("B")),
    ),
    "a mirror of all attributes": Story(
        {"mails": "{mirror: user, into: by_email, attributes: all}"},
        NICK,
        lambda tx: tx.update("user", key_of(*USER), set={"nick": s("A")}),
    ),
    "an entry of a map, while another one is written": Story(
        {"entries": "{embed: order, into: user.entries, fields: [total], limit: {items: 20}}"},
        change(*SECOND, total=n(6)),
        lambda tx: [
            tx.update("order", key_of(*key), set={"total": n(total)}) for key, total in ((FIRST, 9), (SECOND, 5))
        ],
        lambda shop: shop.scene.memory.update(shop.scene.at("shop", *USER), [(("entries", "2", "total"), n(6))]),
    ),
    "an entry of the ledger": Story(
        named("spent"),
        change(*FIRST, total=n(6)),
        lambda tx: tx.update("order", key_of(*FIRST), set={"total": n(5)}),
    ),
    "no mirror": Story(
        named("mails"),
        lambda shop: shop.scene.put("shop", user("8", email=s("b@x"))),
        lambda tx: tx.delete("user", key_of("USER#8", "PROFILE")),
    ),
    "no entry in the ledger": Story(
        named("counted"),
        lambda shop: shop.scene.memory.put("shop", order("7", "3", 1)),
        lambda tx: tx.delete("order", key_of("USER#7", "ORDER#3")),
    ),
    "the least, of which the next one goes": Story(
        named("least"), lambda _shop: None, lambda tx: tx.delete("order", key_of(*FIRST)), other_goes
    ),
    "what else an updated item has": Story(
        {"paid": "{sum: order.total, into: user.paid, where: \"status == 'PAID'\"}"},
        lambda _shop: None,
        lambda tx: tx.update("order", key_of(*FIRST), set={"status": s("PAID")}),
        change(*FIRST, total=n(20)),
        (USER, {"paid": n(20)}),
    ),
    "no element of a set": Story(
        named("tags"),
        put("shop", order("7", "3", 1), rest=False),
        lambda tx: tx.delete("order", key_of("USER#7", "ORDER#3")),
        then=(USER, {"orders": {"SS": ["1", "2"]}}),
    ),
    "no old element, while another one moves": Story(
        STATES,
        in_turn(change(*FIRST, status=s("NEW")), change(*SECOND, status=s("NEW"))),
        lambda tx: tx.update("order", key_of(*FIRST), set={"status": s("PAID")}),
        then=(USER, {"states": {"SS": ["1-PAID", "2-NEW"]}}),
    ),
    "no copy, on an item that is put": Story(
        named("names"),
        put("shop", order("8", "1", 1)),
        lambda tx: tx.put("order", {"user_id": s("8"), "order_id": s("1"), "total": n(5)}),
        put("shop", user("8", name=s("Eve"))),
        (("USER#8", "ORDER#1"), {"user_name": s("Eve")}),
    ),
    "a source of the same value": Story(
        AUTHORS,
        in_turn(put("shop", user("1", name=s("Ada"))), put("posts", post("1", "1", "x"))),
        lambda tx: tx.update("post", {"post_id": s("1")}, set={"user_id": s("7")}),
        change(*USER, name=s("Bob")),
        (("1",), {"author": s("Bob")}),
    ),
    "no copy, while its link changes": Story(
        AUTHORS,
        put("posts", post("1", "8", "x")),
        lambda tx: tx.update("post", {"post_id": s("1")}, set={"user_id": s("9")}),
        put("shop", user("8", name=s("Eve"))),
        (("1",), {"author": None}),
    ),
    "a copy that is right by mistake": Story(
        named("names"),
        change(*FIRST, user_name=s("Bob")),
        lambda tx: tx.update("user", key_of(*USER), set={"name": s("Bob")}),
        then=(FIRST, {"user_name": s("Bob")}),
    ),
    "a number that is right by mistake": Story(
        named("counted"),
        change(*USER, counted=n(1)),
        lambda tx: tx.delete("order", key_of(*FIRST)),
        then=(USER, {"counted": n(1)}),
    ),
    "another item than the listing shows": Story(
        {"vips": "{copy: user.name, into: order.vip_name, where: \"status == 'VIP'\"}"},
        in_turn(change(*FIRST, status=s("VIP")), Shop.rest),
        lambda tx: [tx.source("order", order("7", "1", 5)), back(tx)],
        lambda _shop: None,
        (FIRST, {"vip_name": s("Bob")}),
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_transact_what_stands_is_compared(story):
    """A transaction relies on a value that another writer then makes wrong. The second attempt writes it right."""
    told = STORIES[story]
    shop = shop_with(told.rules)
    told.first(shop)
    once(shop, lambda: told.meanwhile(shop))
    with shop.transact() as tx:
        told.transact(tx)
    assert (tx.result.attempts, tx.result.left) == (2, ())
    key, values = told.then
    item = shop.scene.memory.item(shop.scene.at("shop" if len(key) > 1 else "posts", *key))
    assert {name: item.get(name) and in_order(item[name]) for name in values} == values
    assert shop.written_by_the_stream() == 0


def test_transact_a_map_that_is_put_away_is_left_for_as_long_as_its_index_may_lag():
    """A user is put without the map of its posts, which named one that the index does not show yet."""
    shop = shop_with(named("posts"))
    shop.scene.put("posts", {"post_id": s("1"), "user_id": s("7"), "title": s("one")})
    shop.rest()
    listed, shop.scene.memory.list = shop.scene.memory.list, lambda request: Page((), None)
    with shop.transact() as tx:
        tx.put("user", user("7", name=s("Ada"), nick=s("A"), email=s("a@x")))
    assert [(one.rule, one.why) for one in tx.result.left] == [("posts", SECOND_LOOK)]
    shop.scene.memory.list = listed
    with shop.transact() as tx:
        tx.update("user", key_of(*USER), set={"name": s("Bob")})
    assert tx.result.left == ()


def test_transact_a_set_of_numbers_holds_no_text():
    """An application wrote a set of numbers where a rule keeps texts: the element is not in it, and nothing breaks."""
    shop = shop_with(STATES)
    change(*FIRST, status=s("NEW"))(shop)
    change(*USER, states={"NS": ["1", "2"]})(shop)
    with shop.transact() as tx:
        tx.put("order", {**shop.scene.memory.item(shop.scene.at("shop", *FIRST)), "total": n(6)})
        tx.put("user", {**shop.scene.memory.item(shop.scene.at("shop", *USER)), "nick": s("B")}, override=True)
    assert shop.scene.memory.item(shop.scene.at("shop", *USER))["nick"] == s("B")
