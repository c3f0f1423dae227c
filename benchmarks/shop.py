"""A shop under rules of three kinds, its items, and a recording of a day in it: for the measures of the tools.

Users have orders and addresses, orders have lines, lines name products; copies, an embedded map and counters are kept.
Invariant: the same numbers give the same items and the same records.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sync_rules.jobs.streams import encode_binary
from sync_rules.lab.recording import Body, Header, open_recording
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import Action
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.ruleset import Rules

RULES: Final = """
tables:
  shop:   {key: {PK: S, SK: S}, indexes: {by_product: {product_id: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  product: {table: shop, key: {PK: "PRODUCT#{product_id}", SK: INFO}}
  user:    {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  address: {table: shop, key: {PK: "USER#{user_id}", SK: "ADDRESS#{address_id}"}}
  order:   {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  line:    {table: shop, key: {PK: "ORDER#{order_id}", SK: "LINE#{line_id}"}}
rules:
  user-on-orders: {copy: {user.name: user_name, user.email: user_email}, into: order}
  title-on-lines: copy product.title into line.title
  addresses: {embed: address, into: user.addresses, fields: [city], limit: {items: 20, bytes: 10KB}}
  order-count: count order into user.order_count
  spent: sum order.total into user.spent
"""
ITEMS_PER_USER: Final = 40  # a profile, addresses, orders and their lines
ADDRESSES: Final = 2
ORDERS: Final = 4
LINES: Final = 8
USERS_PER_PRODUCT: Final = 5
CREATED: Final = 1_767_225_600
ARN: Final = "arn:aws:dynamodb:us-east-1:111122223333:table/{}/stream/2026-01-01T00:00:00.000"


class Shop:
    """A shop of about so many items, those of the ledger not counted."""

    def __init__(self, items: int) -> None:
        self.users = max(items // ITEMS_PER_USER, 1)
        self.products = max(self.users // USERS_PER_PRODUCT, 1)
        self.random = random.Random(items)
        self._orders = 0

    def items(self) -> Iterator[Item]:
        """The items as the application puts them, without what rules keep."""
        for number in range(self.products):
            yield self.product(number)
        for number in range(self.users):
            yield self.user(number)
            for address in range(ADDRESSES):
                yield self.address(number, address)
            for _ in range(ORDERS):
                yield from self.order(number)

    def product(self, number: int) -> Item:
        text = f"thing {self.random.randrange(10**6)} of no particular kind"
        return {"PK": _s(f"PRODUCT#{number}"), "SK": _s("INFO"), "title": _s(text), "price": _n(self._cents())}

    def user(self, number: int) -> Item:
        name, mail = f"User {self.random.randrange(10**6)}", f"u{number}@example.com"
        return {"PK": _s(f"USER#{number}"), "SK": _s("PROFILE"), "name": _s(name), "email": _s(mail), "vip": _n(0)}

    def address(self, user: int, number: int) -> Item:
        city = f"City {self.random.randrange(1_000)}"
        return {
            "PK": _s(f"USER#{user}"),
            "SK": _s(f"ADDRESS#{number}"),
            "city": _s(city),
            "street": _s("Main Street 1"),
        }

    def order(self, user: int) -> Iterator[Item]:
        """An order and its lines."""
        number = self._orders
        self._orders += 1
        total = _n(self._cents())
        yield {"PK": _s(f"USER#{user}"), "SK": _s(f"ORDER#{number}"), "total": total, "status": _s("OPEN")}
        for line in range(LINES):
            product = _s(str(self.random.randrange(self.products)))
            at = {"PK": _s(f"ORDER#{number}"), "SK": _s(f"LINE#{line}")}
            yield {**at, "product_id": product, "quantity": _n(self.random.randrange(1, 9)), "note": _s("x" * 60)}

    def changes(self, stage: Rehearsal, table: str) -> Iterator[Action]:
        """Writes of an application without end: renames, new and deleted orders, other totals, moved addresses."""
        while True:
            for product in range(self.products):
                yield _put(table, self.product(product))
                for _ in range(9):
                    yield self._change(stage, table)

    def _change(self, stage: Rehearsal, table: str) -> Action:
        user = self.random.randrange(self.users)
        number = self.random.randrange(self._orders)
        order = _key(table, f"USER#{number // ORDERS}", f"ORDER#{number}")
        chance = self.random.random()
        if chance < 0.3:
            mail = _s(f"u{self.random.randrange(10**6)}@example.com")
            return Update(_key(table, f"USER#{user}", "PROFILE"), ((("email",), mail),), (), ())
        if chance < 0.5:
            return _put(table, self.address(user, self.random.randrange(ADDRESSES)))
        if chance < 0.6 or stage.item(order) is None:
            return _put(table, next(self.order(user)))
        if chance < 0.7:
            return Delete(order, ())
        return Update(order, ((("total",), _n(self._cents())),), (), ())

    def _cents(self) -> int:
        return self.random.randrange(100, 90_000)


def record_day(path: Path, rules: Rules, items: int, changes: int) -> int:
    """Write what `sync-rules record` would of a day in a shop: so many changes of the application, and the records of
    a pipeline at work. Returns the number of records.
    """
    shop, stage = Shop(items), Rehearsal(rules)
    for item in shop.items():
        stage.do(_put("shop", item))
    assert stage.rest()
    bodies: list[Body] = []
    told = stage.store.on_change
    assert told is not None

    def note(key: ItemKey, old: Item | None, new: Item | None) -> None:
        if key.table != "ledger":
            bodies.append(_body(rules, len(bodies), key, old, new))
        told(key, old, new)

    stage.store.on_change = note
    actions = shop.changes(stage, "shop")
    for _ in range(changes):
        stage.do(next(actions))
        assert stage.rest()
    with open_recording(path, Header({name: table.physical_name for name, table in rules.tables.items()})) as write:
        write(bodies)
    return len(bodies)


def _body(rules: Rules, number: int, key: ItemKey, old: Item | None, new: Item | None) -> Body:
    name = "REMOVE" if new is None else "INSERT" if old is None else "MODIFY"
    images = {"Keys": key.attributes()} | ({"OldImage": old} if old else {}) | ({"NewImage": new} if new else {})
    data = {
        "SequenceNumber": str(1_000 + number),
        "ApproximateCreationDateTime": CREATED + number,
        **encode_binary(images),
    }
    arn = ARN.format(rules.tables[key.table].physical_name)
    return {"eventID": str(number), "eventName": name, "eventSourceARN": arn, "dynamodb": data}


def _key(table: str, *values: str) -> ItemKey:
    return ItemKey(table, tuple((name, "S", value) for name, value in zip(("PK", "SK"), values, strict=True)))


def _put(table: str, item: Item) -> Put:
    return Put(_key(table, item["PK"]["S"], item["SK"]["S"]), item, ())


def _s(text: str) -> Any:
    return {"S": text}


def _n(number: int) -> Any:
    return {"N": str(number)}
