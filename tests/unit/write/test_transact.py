"""`transact`: what it sends, what it refuses, and when it tries again."""

from __future__ import annotations

from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr

from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.requests import Read
from sync_rules.rules import compiled_file
from sync_rules.write import Left, Rules, TransactionCanceled, WriteError
from sync_rules.write.consequences import BOOKS
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.every_kind import order, post, text_of, user
from tests.support.transacted import Shop
from tests.support.transacting import cancelled, failed

THREE = ("names", "tags", "counted")
RULES = every_kind.rules_of(*(name for name in every_kind.RULES if name not in THREE), effects=False)


def made() -> Shop:
    """A shop with a copy, a set and a number; user 7 is there."""
    shop = Shop(RULES)
    shop.scene.there("shop", user("7", name=s("Ada"), seen=n(0)))
    shop.rest()
    return shop


@pytest.fixture
def shop():
    return made()


def actions_in(request: list[dict[str, Any]]) -> list[str]:
    return [next(iter(action)) for action in request]


def item(shop: Shop, *values: str) -> Any:
    return shop.scene.memory.item(shop.scene.at("shop", *values))


def put_order(shop: Shop, **options: Any) -> Any:
    with shop.transact(**options) as tx:
        tx.put("order", order("7", "9", 12))
    return tx.result


def order_key(of: str, number: str) -> Any:
    return {"user_id": s(of), "order_id": s(number)}


def rename(shop: Shop, name: str = "Bob") -> None:
    shop.scene.memory.update(shop.scene.at("shop", "USER#7", "PROFILE"), [(("name",), s(name))])


def once(shop: Shop, what: Any) -> None:
    """Do this before the first request alone."""

    def before(_items: Any) -> None:
        if len(shop.client.requests) == 1:
            what()

    shop.client.before = before


# ---------------------------------------------------------------- what it sends
def test_transact_an_order_with_three_rules_is_two_requests(shop):
    """One read of all that rules name, and one transaction: the order, its user, the entry and the total."""
    asked: list[Read] = []
    read = shop.scene.memory.read
    shop.scene.memory.read = lambda request: (asked.append(request), read(request))[1]
    put_order(shop)
    assert len(asked) == len(shop.client.requests) == 1
    assert sorted(actions_in(shop.client.requests[0])) == ["Put", "Put", "Update", "Update"]
    assert item(shop, "USER#7", "ORDER#9")["user_name"] == s("Ada")
    assert (item(shop, "USER#7", "PROFILE")["orders"], item(shop, "USER#7", "PROFILE")["counted"]) == (
        {"SS": ["9"]},
        n(1),
    )
    assert shop.written_by_the_stream() == 0


def test_transact_reads_nothing_that_it_was_given(shop):
    """A source that is given, and an item that is new, are not read; they are checked all the same."""
    asked: list[str] = []
    read = shop.scene.memory.read
    shop.scene.memory.read = lambda request: (asked.extend(str(key) for key in request.keys), read(request))[1]
    with shop.transact() as tx:
        tx.source("user", item(shop, "USER#7", "PROFILE"))
        tx.put("order", order("7", "9", 12), new=True)
    assert not any("shop" in key for key in asked)
    with pytest.raises(TransactionCanceled), shop.transact() as tx:
        tx.put("order", order("7", "9", 12), new=True)


@pytest.mark.parametrize(
    "own",
    [lambda _tx: None, lambda tx: tx.check("post", {"post_id": s("p1")}, "attribute_exists(post_id)")],
    ids=["", "check"],
)
def test_transact_believes_no_old_image_of_what_an_index_lists(own):
    """An old image of a post, with another author, would leave its copy wrong and `left` empty."""
    shop = Shop(parse_rules(text_of({"authors": "{copy: user.name, into: post.user_name, settle_seconds: 0}"})))
    shop.scene.put("shop", user("7", name=s("Ada")))
    shop.scene.put("posts", post("p1", "7", "Post"))
    shop.rest()
    with shop.transact() as tx:
        tx.source("post", post("p1", "8", "Post"))
        own(tx)
        tx.update("user", user("7"), set={"name": s("Bob")})
    assert tx.result.left == ()
    assert shop.scene.memory.item(shop.scene.at("posts", "p1"))["user_name"] == s("Bob")
    assert shop.written_by_the_stream() == 0


def test_transact_believes_no_old_image_of_what_it_writes():
    """An old image of an order, in another state, would leave out its copy."""
    shop = Shop(parse_rules(text_of({"names": "{copy: user.name, into: order.user_name, where: \"state == 'OPEN'\"}"})))
    shop.scene.put("shop", user("7", name=s("Ada")))
    with shop.transact() as tx:
        tx.put("order", order("7", "1", 5, state=s("DONE")))
    shop.scene.memory.update(shop.scene.at("shop", "USER#7", "ORDER#1"), [(("state",), s("OPEN"))])
    with shop.transact() as tx:
        tx.source("order", order("7", "1", 5, state=s("DONE")))
        tx.update("order", order_key("7", "1"), set={"total": n(6)})
    assert tx.result.left == ()
    assert item(shop, "USER#7", "ORDER#1")["user_name"] == s("Ada")


# ---------------------------------------------------------------- what is left
@pytest.mark.parametrize("orders", [100, 150])
def test_transact_more_orders_than_there_is_room_for_are_left_to_the_stream(shop, orders):
    """A push that does not fit is left as a whole, and told; with `require` nothing is written."""
    shop.scene.put("shop", *(order("7", str(number), 1) for number in range(orders)))
    shop.rest()
    with pytest.raises(WriteError, match="names"), shop.transact(require=True) as tx:
        tx.update("user", user("7"), set={"name": s("Bob")})
    assert shop.client.requests == []
    with shop.transact() as tx:
        tx.update("user", user("7"), set={"name": s("Bob")})
    assert {one.rule for one in tx.result.left} == {"names"}
    assert tx.result.actions == 1
    shop.rest()
    assert all(item(shop, "USER#7", f"ORDER#{number}")["user_name"] == s("Bob") for number in range(orders))


def test_transact_books_that_are_not_complete_are_left():
    """Without a backfill a total is unknown: the transaction books nothing, and the stream begins the books."""
    shop = Shop(RULES)
    for mark in shop.scene.memory.items("ledger"):
        shop.scene.memory.delete(RULES.tables["ledger"].key_of(mark))
    shop.scene.there("shop", user("7", name=s("Ada")))
    result = put_order(shop)
    assert {(one.rule, one.why, one.when) for one in result.left} == {
        ("counted", BOOKS, "when a backfill of the rule has completed its books")
    }
    assert shop.scene.memory.items("ledger") == ()


def test_transact_an_item_with_more_attributes_than_a_condition_has_room_for_is_left():
    """A copy of all attributes is compared with all of them: beyond that the application's action is written alone."""
    mirror = "{mirror: user, into: by_email, attributes: all}"
    everything = every_kind.rules_of(*every_kind.RULES, effects=False, whole=mirror)
    shop = Shop(everything)
    key = shop.scene.put("shop", user("7", email=s("a@x"), **{f"a{number}": n(number) for number in range(200)}))
    shop.rest()
    with shop.transact() as tx:
        tx.update("user", user("7"), set={"a7": n(0)})
    assert {one.rule for one in tx.result.left} == {"whole"}
    assert shop.scene.item(key)["a7"] == n(0)
    shop.rest()
    assert item(shop, "EMAIL#a@x", "EMAIL")["a7"] == n(0)


def test_transact_effects_are_left():
    """An object or a call is not part of a transaction."""
    shop = Shop(every_kind.rules_of(*every_kind.RULES))
    result = put_order(shop)
    assert result.left == (
        Left("called", "an effect outside the tables", 1, "by the stream, a moment after the write"),
    )


# ---------------------------------------------------------------- when it tries again


@pytest.mark.parametrize(("writers", "again"), [(0, True), (1, False)])
def test_transact_a_token_is_good_for_the_first_attempt(shop, writers, again):
    """An error without an answer says if you may send the token again: a rebuilt transaction has a new token."""

    def lose(_items: Any) -> None:
        if len(shop.client.requests) > writers:
            raise failed("ServiceUnavailable", 503)

    once(shop, lambda: rename(shop) if writers else None)
    shop.client.after = lose
    with pytest.raises(StoreError) as raised:
        put_order(shop, token="mine", deadline_seconds=0.2, now=lambda: sum(shop.slept))
    assert ("again with its token" in str(raised.value)) is again


@pytest.mark.parametrize("token", ["", "t" * 33, 5])
def test_transact_a_token_that_cannot_be_one_is_told(shop, token):
    """Before anything is read."""
    with pytest.raises(WriteError, match="1 to 32"):
        shop.transact(token=token)


def with_names() -> Shop:
    """A shop where orders have their user's name."""
    shop = Shop(every_kind.rules_of(*(name for name in every_kind.RULES if name != "names"), effects=False))
    shop.scene.there("shop", user("7", name=s("Ada")))
    shop.scene.put("shop", order("7", "9", 1))
    shop.rest()
    return shop


@pytest.mark.parametrize("verb", ["put", "update"])
def test_transact_what_is_said_again_as_it_was_read_is_compared(verb):
    """An application gives an order with an old copy that it read, and the stream corrects the copy meanwhile. The old
    copy does not come back. The application gets an error, as if its request had come later.
    """
    shop = with_names()
    key = shop.scene.at("shop", "USER#7", "ORDER#9")
    shop.scene.memory.update(key, [(("user_name",), s("Bob"))])
    read = item(shop, "USER#7", "ORDER#9")
    once(shop, shop.rest)
    tx = shop.transact()
    if verb == "put":
        tx.put("order", read)
    else:
        tx.update("order", {"PK": read["PK"], "SK": read["SK"]}, set={"user_name": s("Bob")})
    with pytest.raises(WriteError, match="rule names"):
        tx.commit()
    assert item(shop, "USER#7", "ORDER#9")["user_name"] == s("Ada")


def test_transact_a_lost_answer_is_asked_for_again(shop):
    """The same request with the same token: it is done once."""

    def lose(_items: Any) -> None:
        if len(shop.client.requests) == 1:
            raise failed("InternalServerError", 500)

    shop.client.after = lose
    assert put_order(shop).attempts == 1
    assert len(shop.client.requests) == 2
    assert len(shop.client.tokens) == 1
    assert item(shop, "USER#7", "PROFILE")["counted"] == n(1)


def test_transact_conflicts_are_tried_until_the_deadline(shop):
    """Another transaction on the same item is no error, unless it lasts."""

    def conflict(items: Any) -> None:
        if len(shop.client.requests) < 4:
            raise cancelled([{"Code": "TransactionConflict"}, *({"Code": "None"} for _ in items[1:])])

    shop.client.before = conflict
    assert put_order(shop).attempts == 4
    shop.client.before = lambda items: (_ for _ in ()).throw(
        cancelled([{"Code": "TransactionConflict"} for _ in items])
    )
    shop.slept.clear()
    with pytest.raises(WriteError, match="other writers changed the items"):  # noqa: SIM117
        with shop.transact(deadline_seconds=0.5, now=lambda: sum(shop.slept)) as tx:
            tx.put("order", order("7", "10", 12))
    assert 0 < sum(shop.slept) < 0.5


def test_transact_an_item_that_goes_after_a_conflict_refuses_no_condition_of_the_application(shop):
    """A conflict, then an item that is gone: the guard of the rules is refused, and not the application's condition,
    which then holds. It was told as the application's.
    """
    put_order(shop)
    shop.rest()
    shop.client.requests.clear()

    def meanwhile(items: Any) -> None:
        if len(shop.client.requests) == 1:
            raise cancelled([{"Code": "TransactionConflict"} for _ in items])
        if len(shop.client.requests) == 2:
            shop.scene.memory.delete(shop.scene.at("shop", "USER#7", "ORDER#9"))

    shop.client.before = meanwhile
    with shop.transact() as tx:
        tx.delete("order", order_key("7", "9"), condition="attribute_not_exists(#own)", names={"#own": "gone"})
    assert tx.result.attempts == 3


# ---------------------------------------------------------------- the application's own conditions
def test_transact_a_condition_may_be_one_of_boto3(shop):
    """`Attr` makes text, names and values in plain Python; any other object is refused, and `Attr` with names or values."""
    tx = shop.transact()
    tx.update("user", user("7"), set={"rank": n(1)}, condition=Attr("name").eq("Eve"))
    with pytest.raises(TransactionCanceled):
        tx.commit()
    with shop.transact(raw=False) as tx:
        tx.update(
            "user", {"user_id": "7"}, set={"rank": 1}, condition=Attr("name").eq("Ada") & Attr("none").not_exists()
        )
    assert item(shop, "USER#7", "PROFILE")["rank"] == n(1)
    exists = Attr("name").exists()
    beside: tuple[dict[str, Any], ...] = ({"names": {"#n": "name"}}, {"values": {":n": s("Ada")}})
    for given in ({"condition": 7}, *({"condition": exists, **one} for one in beside)):
        with pytest.raises(WriteError, match="cannot be read"):
            shop.transact().update("user", user("7"), set={"rank": n(1)}, **given)


NUMBERED = """
tables:
  heads: {key: {head: N}}
  lines: {key: {head: N, at: N}}
entities:
  head: {table: heads}
  line: {table: lines}
rules:
  most: {max: line.qty, into: head.most, mode: recount}
  ids: {collect: line, into: head.lines, as: "{at}"}
"""


@pytest.mark.parametrize("way", ["transact", "follow"])
def test_transact_numbers_are_what_they_are_however_they_are_spelt(way):
    """A line under another spelling of its head's key: the listing has both, as DynamoDB would store them."""
    shop = Shop(parse_rules(NUMBERED))
    shop.scene.put("heads", {"head": n(8)})
    shop.scene.put("lines", {"head": n(8), "at": n(1), "qty": n(5)})
    shop.rest()
    line = {"head": {"N": "8.00"}, "at": {"N": "2E0"}, "qty": {"N": "1.0"}}
    if way == "transact":
        with shop.transact() as tx:
            tx.put("line", line)
    else:
        shop.scene.memory.put("lines", {"head": n(8), "at": n(2), "qty": n(1)})
        with shop.follow() as noted:
            noted.change("line", None, line)
    (head,) = shop.scene.memory.items("heads")
    assert (head["most"], sorted(head["lines"]["SS"])) == (n(5), ["1", "2"])
    assert shop.written_by_the_stream() == 0


# ---------------------------------------------------------------- what it refuses
@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda tx: tx.put("ordr", {}), "Did you mean 'order'"),
        (lambda tx: tx.put("order", {"order_id": s("9")}), "user_id, order_id"),
        (lambda tx: tx.put("order", user("7")), "none of entity 'order'"),
        (lambda tx: tx.put("order", order("7", "9", 1, user_name=s("Eve"))), "user_name of order is kept by rule names"),
        (lambda tx: tx.update("user", user("7"), set={"orders": {"SS": ["1"]}}), "kept by rule tags"),
        (lambda tx: tx.update("user", user("7"), set={"PK": s("x")}), "part of the key"),
        (lambda tx: tx.update("user", user("7")), "changes nothing"),
        (lambda tx: tx.put("order", order("7", "9", 1, tags={"SS": []})), "no item can hold"),
        (lambda tx: (tx.put("order", order("7", "9", 1)), tx.delete("order", order_key("7", "9"))), "one action"),
        (lambda tx: tx.put("order", {"PK": "USER#7"}), "raw=True"),
        (lambda tx: tx.update("user", user("7"), set={"name.first": s("x")}), "not a map: one of name.first of user: set the whole"),
        (lambda tx: tx.update("user", user("7"), add={"name": n(1)}), "taken out: one of name of user: set the attribute"),
        (lambda tx: tx.update("user", user("7"), delete={"name": {"SS": ["x"]}}), "taken out: one of name of user"),
        (lambda tx: [tx.put("order", order("7", str(number), 1)) for number in range(101)], "at most 100"),
        (lambda tx: tx.update("user", user("7"), set={"counted": n(5)}), "kept by rule counted"),
        (lambda tx: tx.update("user", user("7"), add={"counted": n(5)}), "kept by rule counted"),
        (lambda tx: tx.put("user", user("7", counted=n(5))), "kept by rule counted"),
        (lambda tx: tx.put("order", None), "a dict"),
        (lambda tx: tx.put("order", {**order("7", "9", 1), "": s("x")}), "a dict with a name"),
        (lambda tx: tx.put("order", {"PK": n(7), "user_id": s("7"), "order_id": s("9")}), "PK is not the string"),
        (lambda tx: tx.update("user", user("7"), delete={"rank": n(1)}), "takes elements out of a set"),
        (lambda tx: tx.update("user", user("7"), set={"rank": n(1)}, values={":n": n(1)}), "no condition"),
    ],
)  # fmt: skip
def test_transact_what_cannot_be_is_told_and_nothing_is_written(shop, ask, says):
    """One error class, with the cure."""
    before = shop.state()
    with pytest.raises(WriteError, match=says), shop.transact() as tx:
        ask(tx)
    assert (shop.state(), shop.client.requests) == (before, [])


@pytest.mark.parametrize(
    "value",
    [
        "x", {}, {"S": 5}, {"N": 5}, {"Q": "x"}, {"B": "x"}, {"BOOL": "true"}, {"NULL": False}, {"M": 5}, {"L": None},
        {"M": {"a": "x"}}, {"M": {5: {"S": "x"}}}, {"L": ["x"]}, {"SS": "ab"}, {"NS": [1]}, {"S": "x", "N": "1"},
    ],
)  # fmt: skip
def test_transact_what_is_no_attribute_value_is_told(shop, value):
    """With its cure, wherever it is inside the item."""
    with pytest.raises(WriteError, match="raw=True"):
        shop.transact().put("order", order("7", "9", 1, given=value))


@pytest.mark.parametrize("value", [1.5, set(), {5: "x"}, [{"a": {1.5}}], object()])
def test_transact_what_dynamodb_has_no_type_for_is_told(shop, value):
    """With its cure, wherever it is inside the item."""
    with pytest.raises(WriteError, match="DynamoDB cannot store"):
        shop.transact(raw=False).put("order", {"user_id": "7", "order_id": "9", "given": value})


def test_transact_one_path_to_remove_may_be_given_alone(shop):
    """A text is one path, and not one for each of its letters."""
    shop.scene.put("shop", order("7", "9", 1, ab=s("x"), a=s("y")))
    with shop.transact() as tx:
        tx.update("order", order_key("7", "9"), remove="ab")
    assert item(shop, "USER#7", "ORDER#9")["a"] == s("y")
    assert "ab" not in item(shop, "USER#7", "ORDER#9")


def test_transact_is_made_once(shop):
    """A commit inside the block is the only one; another action needs another transaction."""
    tx = shop.transact()
    with tx:
        tx.update("user", user("7"), add={"visits": n(1)})
        result = tx.commit()
    assert (tx.result, item(shop, "USER#7", "PROFILE")["visits"]) == (result, n(1))
    with pytest.raises(WriteError, match="made already"):
        tx.update("user", user("7"), add={"visits": n(1)})


def test_transact_nothing_is_written_after_an_error_in_the_block(shop):
    """An exception of the application's own ends it."""
    with pytest.raises(KeyError), shop.transact() as tx:  # noqa: PT012 - the block is what is tested
        tx.put("order", order("7", "9", 1))
        raise KeyError
    assert shop.client.requests == []


def test_transact_override_takes_away_what_a_rule_gave(shop):
    """The copy is gone until the stream brings it back; the result lists nothing else as left."""
    put_order(shop)
    with shop.transact() as tx:
        tx.update("order", order_key("7", "9"), remove=["user_name"], override=True)
    assert [one.rule for one in tx.result.left] == ["names"]
    assert "user_name" not in item(shop, "USER#7", "ORDER#9")
    with shop.transact() as tx:
        tx.update("user", user("7"), set={"orders": {"SS": ["1"]}}, override=True)
    assert [one.rule for one in tx.result.left] == ["tags"]
    shop.rest()
    assert item(shop, "USER#7", "ORDER#9")["user_name"] == s("Ada")
    assert item(shop, "USER#7", "PROFILE")["orders"] == {"SS": ["9"]}


def test_transact_two_actions_on_one_item_are_one_where_they_can_be(shop):
    """A put and an update, two updates of different paths, a change and a check."""
    with shop.transact() as tx:
        tx.put("order", order("7", "9", 1))
        tx.update("order", order_key("7", "9"), set={"total": n(2)})
        tx.update("user", user("7"), set={"name": s("Bob")})
        tx.update("user", user("7"), add={"visits": n(2)})
        tx.check("user", user("7"), "attribute_exists(PK)")
    assert item(shop, "USER#7", "ORDER#9")["total"] == n(2)
    assert item(shop, "USER#7", "PROFILE")["visits"] == n(2)
    assert item(shop, "USER#7", "ORDER#9")["user_name"] == s("Bob")


def test_transact_a_check_that_is_one_with_a_change_is_told_by_its_own_number(shop):
    """The action that has the condition is the one that was refused, with the item that it asked for."""
    tx = shop.transact()
    tx.put("order", order("7", "9", 12))
    tx.check("user", user("7"), "#n = :n", names={"#n": "name"}, values={":n": s("Eve")}, returns=True)
    tx.update("user", user("7"), set={"rank": n(1)})
    with pytest.raises(TransactionCanceled) as raised:
        tx.commit()
    (reason,) = raised.value.reasons
    assert (reason.action, reason.code, reason.item) == (1, "ConditionalCheckFailed", item(shop, "USER#7", "PROFILE"))
    assert len(shop.client.requests) == 1


# ---------------------------------------------------------------- rules


def test_transact_refuses_a_compiled_file_of_other_rules_than_those_beside_it(tmp_path):
    """Rules that were changed and not built again are never left out silently; the cure reads them."""
    file = tmp_path / "rules.yaml"
    file.write_text(text_of(every_kind.RULES))
    built = compiled_file.name_compiled_file(file)
    built.write_bytes(compiled_file.dump(Rules.load(file), {}, source=file.read_bytes()))
    file.write_text(text_of({}))
    with pytest.raises(UserError, match=r"Build again.*Or remove .*rules\.compiled"):
        Rules.load(file)
    built.unlink()
    assert Rules.load(file).rules == {}


CUT = "cut \ud83d"


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("place", ["value", "nested", "name", "inner name", "element", "key", "remove", "condition"])
def test_transact_half_a_surrogate_pair_is_the_callers_mistake(shop, place, raw):
    """Half an emoji is refused by every road, and the error does not show it."""
    text = s(CUT) if raw else CUT
    key = user("7") if raw else {"user_id": "7"}
    inner = {"a": text}, {CUT: s("x") if raw else "x"}
    maps = [{"M": one} if raw else one for one in inner]
    elements = {"SS": [CUT]} if raw else {CUT}
    value = {"value": text, "nested": maps[0], "inner name": maps[1], "element": elements}.get(place)
    tx = shop.transact(raw=raw)
    act = {
        "key": lambda: tx.delete("user", {"user_id": text}),
        "remove": lambda: tx.update("user", key, remove=[CUT]),
        "condition": lambda: tx.delete("user", key, condition=f"attribute_exists({CUT})"),
        "name": lambda: tx.update("user", key, set={CUT: s("x") if raw else "x"}),
    }.get(place, lambda: tx.update("user", key, set={"seen": value}))
    with pytest.raises(WriteError, match="surrogate") as raised:
        act()
    assert CUT not in str(raised.value)
    assert shop.client.requests == []


@pytest.mark.parametrize("verb", ["put", "delete", "check", "update"])
@pytest.mark.parametrize("field", [{"user_id": s("8")}, {"order_id": s("10")}, {"tenant": s("x")}])
def test_transact_a_field_that_contradicts_its_key_is_refused(shop, verb, field):
    """An application checks `user_id`: a key of another user's cannot come with it. A key has no other fields."""
    given = {"PK": s("USER#7"), "SK": s("ORDER#9"), **field}
    if verb == "put" and "tenant" in field:
        return
    tx = shop.transact()
    act = {
        "put": lambda: tx.put("order", given),
        "update": lambda: tx.update("order", given, set={"a": s("b")}),
        "delete": lambda: tx.delete("order", given),
        "check": lambda: tx.check("order", given, "attribute_exists(PK)"),
    }[verb]
    with pytest.raises(WriteError, match=r"contradicts|no field of the key"):
        act()
    with shop.transact() as again:
        again.put("order", {"PK": s("USER#7"), "SK": s("ORDER#9"), "user_id": s("7"), "order_id": s("9")})


@pytest.mark.parametrize(
    "condition",
    ["a = :v) OR (a <> :v", "(a = :v", "a = :v)", "attribute_exists(#sync_0)", "a = :sync_0", "a.#sync_1 = :v"],
)
def test_transact_a_condition_stays_in_its_place(shop, condition):
    """A condition closes no parenthesis of ours, and names no placeholder of ours."""
    with pytest.raises(WriteError, match=r"parentheses|placeholder"), shop.transact() as tx:
        tx.update("user", user("7"), set={"seen": n(1)}, condition=condition, values={":v": n(1)})
    assert shop.client.requests == []


@pytest.mark.parametrize(
    ("condition", "begins"),
    [
        (Attr("name").eq("Ada") & Attr("seen").eq(0), "(#n0 = :v0 AND #n1 = :v1) AND "),
        (Attr("name").eq("Ada") | Attr("seen").eq(0), "(#n0 = :v0 OR #n1 = :v1) AND "),
        (~Attr("name").eq("Bob"), "(NOT #n0 = :v0) AND "),
        ("(attribute_exists(PK))", "(attribute_exists(PK)) AND "),
        ("attribute_exists(PK) or attribute_exists(SK)", "(attribute_exists(PK) or attribute_exists(SK)) AND "),
        ("(attribute_exists(PK)) OR (attribute_exists(SK))", "((attribute_exists(PK)) OR (attribute_exists(SK))) AND "),
        ("#or = :or", "#or = :or AND "),
    ],
)
def test_transact_no_parentheses_are_redundant(shop, condition, begins):
    """DynamoDB refuses a condition in two pairs of parentheses; an OR needs one beside the rules' guard."""
    seen = []

    def stop(items):
        seen.extend(items)
        raise failed("ValidationException")

    shop.client.before = stop
    options = {"names": {"#or": "seen"}, "values": {":or": n(0)}} if condition == "#or = :or" else {}
    with pytest.raises(WriteError), shop.transact() as tx:
        tx.update("user", user("7"), set={"name": s("Bob")}, condition=condition, **options)
    (own,) = (one["Update"] for one in seen if "Update" in one)
    assert own["ConditionExpression"].startswith(begins)


def test_transact_nothing_is_written_if_its_reads_outlast_the_deadline(shop):
    """A rehearsal that ends after the deadline is not sent, and the caller may try again."""
    clock = iter([0.0, 0.0, *[61.0] * 1_000])
    with pytest.raises(WriteError, match="were not enough") as raised, shop.transact(now=lambda: next(clock)) as tx:
        tx.put("user", user("8", name=s("Bob")))
    assert raised.value.again
    assert shop.client.requests == []
