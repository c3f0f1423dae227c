"""Users, their orders, and a ledger, for tests of rules that keep books."""

from __future__ import annotations

from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.ledger import Ledger, make_ledger_entities
from tests.support.builders import entity, s, table

USERS = table("users", {"user_id": "S"})
ORDERS = table("orders", {"order_id": "S"})
COUNTS = table("counts", {"PK": "S", "SK": "S"})
USER = entity("user", USERS)
ORDER = entity("order", ORDERS)
LINK = (("user_id", ORDER.ref("user_id")),)
TABLES = {table.name: table for table in (USERS, ORDERS, COUNTS)}


def ledger(shards: int = 1) -> Ledger:
    return make_ledger_entities("spent", ORDER, USER, COUNTS, shards)


def order(order_id: str, user_id: str | None = None, **values: object) -> Item:
    item: dict[str, object] = {"order_id": s(order_id), **values}
    return item if user_id is None else {**item, "user_id": s(user_id)}


def key_of(item: Item) -> ItemKey:
    """The key of a user or an order."""
    key = (ORDERS if "order_id" in item else USERS).key_of(item)
    assert key is not None
    return key


def tally(rule_type: type[TallyRule] = TallyRule, shards: int = 1, **options: object) -> TallyRule:
    """The sum of a user's orders, or what `options` make of it."""
    made = ledger(shards)
    given = {"function": "sum", "of": ("total",), "link": LINK, "shards": shards, "marks": made.marks}
    return rule_type("spent.ledger", ORDER, made.entries, parent=USER, totals=made.totals, **{**given, **options})
