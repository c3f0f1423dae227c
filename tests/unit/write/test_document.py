"""A write as JSON: it says what `transact` takes, and whatever is wrong in it is refused with its place."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random

import pytest

from sync_rules.model import json_bytes
from sync_rules.write import TransactionCanceled, WriteError
from sync_rules.write.document import ITEMS_MAX_CHARACTERS, encode_binary, make_answer, make_refusal, parse_document
from sync_rules.write.errors import Cancelled
from tests.support.builders import n, s
from tests.support.every_kind import user
from tests.unit.write.test_every_kind import actions_of, key_in, transacted, two_begun
from tests.unit.write.test_transact import made, order

PUT = {"put": {"entity": "order", "item": {"user_id": "7", "order_id": "9", "total": 12.1}}}
RENAME = {"update": {"entity": "user", "key": {"user_id": "7"}, "set": {"name": "Bob"}}}


def as_document(actions, **options):
    """The JSON of these actions, as another language would send it."""
    found = []
    for verb, entity, item in actions:
        key = key_in(item, entity)
        rest = {name: value for name, value in item.items() if name not in key} or {"x": s("x")}
        arguments = {"put": {"item": item}, "delete": {"key": key}, "update": {"key": key, "set": rest}}[verb]
        found.append({verb: {"entity": entity, **arguments}})
    return json.loads(json.dumps(encode_binary({"actions": found, "raw": True, **options})))


@pytest.mark.parametrize("seed", range(5))
def test_document_says_what_the_methods_say(seed):
    """Random actions of every kind, given as JSON and by the methods, are the same requests with the same result."""
    random = Random(seed)
    shop, other = two_begun(random)
    actions = actions_of(random)
    with shop.transact() as tx:
        for action in actions:
            transacted(tx, action)
    with other.transact() as same:
        parse_document(as_document(actions)).add_to(same)
    assert other.client.requests == shop.client.requests
    assert make_answer(same.result) == make_answer(tx.result)


def test_document_takes_plain_values_as_they_are_spelt():
    """A number with a fraction keeps its digits, from a reader that makes floats too."""
    for body in ({"actions": [PUT]}, json_bytes.parse_json(json.dumps({"actions": [PUT]}), parse_float=Decimal)):
        shop = made()
        with shop.transact(raw=False) as tx:
            parse_document(body).add_to(tx)
        stored = shop.scene.memory.item(shop.scene.at("shop", "USER#7", "ORDER#9"))
        assert (stored["total"], stored["user_name"]) == (n("12.1"), s("Ada"))


def test_document_binary_is_base64():
    """Attribute values are those of DynamoDB's JSON."""
    shop = made()
    item = {**order("7", "9", 1), "seal": {"B": "AP8="}, "in": {"L": [{"BS": ["AA=="]}]}}
    with shop.transact() as tx:
        parse_document({"raw": True, "actions": [{"put": {"entity": "order", "item": item}}]}).add_to(tx)
    stored = shop.scene.memory.item(shop.scene.at("shop", "USER#7", "ORDER#9"))
    assert (stored["seal"], stored["in"]) == ({"B": b"\x00\xff"}, {"L": [{"BS": [b"\x00"]}]})


def test_document_gives_sources_that_are_not_read():
    """They have no number among the actions."""
    shop = made()
    ada = {"user_id": "7", **{name: next(iter(value.values())) for name, value in user("7", name=s("Ada")).items()}}
    shop.scene.memory.update(shop.scene.at("shop", "USER#7", "PROFILE"), [(("seen",), n(1))])
    tx = shop.transact(raw=False)
    refused = {"check": {"entity": "user", "key": {"user_id": "8"}, "condition": "attribute_exists(PK)"}}
    body = {"actions": [PUT, refused], "sources": [{"entity": "user", "item": ada}]}
    parse_document(body).add_to(tx)
    with pytest.raises(TransactionCanceled) as raised:
        tx.commit()
    said = make_refusal(raised.value, raw=False)["error"]
    assert (said["type"], said["reasons"]) == (
        "TransactionCanceled",
        [{"action": 1, "code": "ConditionalCheckFailed"}],
    )


@pytest.mark.parametrize("raw", [False, True])
def test_document_gives_back_the_item_that_stands_there(raw):
    """In the values that the document is in; plain ones are as JSON can say them."""
    shop = made()
    shop.scene.memory.update(
        shop.scene.at("shop", "USER#7", "PROFILE"), [(("tags",), {"NS": ["2", "1"]}), (("b",), {"B": b"x"})]
    )
    changed = {"entity": "user", "key": {"user_id": s("7")} if raw else {"user_id": "7"}, "set": {"a": s("1") if raw else 1},
               "condition": "attribute_not_exists(PK)", "returns": True}  # fmt: skip
    tx = shop.transact(raw=raw)
    parse_document({"actions": [{"update": changed}], "raw": raw}).add_to(tx)
    with pytest.raises(TransactionCanceled) as raised:
        tx.commit()
    (reason,) = json.loads(json.dumps(make_refusal(raised.value, raw=raw)))["error"]["reasons"]
    seen = (reason["item"]["seen"], reason["item"]["tags"], reason["item"]["b"])
    assert seen == (({"N": "0"}, {"NS": ["2", "1"]}, {"B": "eA=="}) if raw else (0, [1, 2], "eA=="))


@pytest.mark.parametrize(("number", "left_out"), [(6, False), (7, True)])
def test_document_leaves_items_out_of_an_answer_that_is_too_large(number, left_out):
    """All items go, and the answer says so. The reasons stay, also those that never had an item."""
    item = user("7", note=s("x" * 390_000))
    reasons = (Cancelled(0, "TransactionConflict"), *(Cancelled(one, "x", item) for one in range(1, number + 1)))
    answer = make_refusal(TransactionCanceled(reasons), raw=True)
    assert len(json_bytes.format_compact_json(answer)) <= ITEMS_MAX_CHARACTERS
    assert answer["error"].get("items_left_out", False) is left_out
    assert ["item" in one for one in answer["error"]["reasons"]] == [False, *([not left_out] * number)]


WRONG = [
    (None, r"expected a map, found nothing"),
    ({}, r"actions is missing"),
    ({"actions": []}, r"actions: expected at least one"),
    ({"actions": {}}, r"actions: expected a list, found a map"),
    ({"actions": [PUT], "tokn": "x"}, r"no option 'tokn'.*Did you mean 'token'"),
    ({"actions": [PUT], "items": []}, r"no option 'items'"),
    ({"actions": [PUT], "token": 7}, r"token: expected text, found a number"),
    ({"actions": [PUT], "deadline_seconds": 0}, r"deadline_seconds: expected a number above 0"),
    ({"actions": [PUT], "deadline_seconds": 10**400}, r"deadline_seconds: expected a number above 0"),
    ({"actions": [PUT], "deadline_seconds": True}, r"deadline_seconds: expected a number above 0, found true or false"),
    ({"actions": [PUT, {"pot": {}}]}, r"actions\[1\]: no action 'pot'.*Did you mean 'put'"),
    ({"actions": [{**PUT, **RENAME}]}, r"actions\[0\]: expected a map with one action"),
    ({"actions": [{"put": []}]}, r"actions\[0\]\.put: expected a map, found a list"),
    ({"actions": [{"put": {"entity": "order"}}]}, r"actions\[0\]\.put: item is missing"),
    ({"actions": [{"check": {"entity": "user", "key": {}}}]}, r"actions\[0\]\.check: condition is missing"),
    ({"actions": [{"update": {**RENAME["update"], "remove": "x"}}]}, r"remove: expected a list of texts, found text"),
    ({"actions": [{"update": {**RENAME["update"], "sett": {}}}]}, r"no option 'sett'.*Did you mean 'set'"),
    ({"actions": [PUT], "raw": True}, r"actions\[0\]\.put\.item: 'user_id' is no attribute value"),
    ({"actions": [PUT], "sources": [{"item": {}}]}, r"sources\[0\]: entity is missing"),
    ({"actions": [{"put": {"entity": "ordr", "item": {}}}]}, r"actions\[0\]: no entity 'ordr'.*Did you mean 'order'"),
    ({"actions": [PUT, {"put": {"entity": "order", "item": {"user_id": "7"}}}]}, r"actions\[1\]: no key of entity"),
    ({"actions": [PUT], "sources": [{"entity": "x", "item": {}}]}, r"sources\[0\]: no entity 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "said"), WRONG, ids=range(len(WRONG)))
def test_document_that_is_wrong_is_refused_with_its_place(body, said):
    """Each mistake is a WriteError with a cure, before anything is read; no message has a value."""
    shop = made()
    with pytest.raises(WriteError, match=said) as raised:
        parse_document(body).add_to(shop.transact(raw=False))
    assert raised.value.cure
    assert "12.1" not in str(raised.value)
    assert shop.client.requests == []


def test_document_that_nests_without_end_is_refused():
    """The depth of values is bounded, whichever program read the JSON."""
    deep: list = []
    for _ in range(200):
        deep = [deep]
    for raw, value in ((False, deep), (True, {"L": deep})):
        with pytest.raises(WriteError):
            parse_document({"actions": [{"put": {"entity": "order", "item": {"a": value}}}], "raw": raw})
