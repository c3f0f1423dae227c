"""preview_write: the requests of a write; nothing is written."""

from __future__ import annotations

from random import Random

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.write.document import parse_document
from sync_rules.write.preview import preview_write
from tests.unit.write.test_document import as_document
from tests.unit.write.test_every_kind import RULES, actions_of, begun

ADA = {"user_id": "7", "name": "Ada"}
PUT = {"put": {"entity": "order", "item": {"user_id": "7", "order_id": "9", "total": 12}}}
FILE = """
tables:
  shop:   {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.user_name
  tags: {collect: order, into: user.orders, as: "{order_id}"}
  counted: count order into user.counted
"""


def test_preview_shows_reads_and_the_request():
    """The reads as operations with parameters, and the order with its copy, as an SDK takes them."""
    found = preview_write(parse_rules(FILE), {"actions": [PUT], "items": [{"entity": "user", "item": ADA}]})
    (parameters,) = (parameters for operation, parameters in found.reads if operation == "BatchGetItem")
    assert {"PK": {"S": "USER#7"}, "SK": {"S": "PROFILE"}} in parameters["RequestItems"]["shop"]["Keys"]
    assert found.actions[0]["Put"]["Item"]["user_name"] == {"S": "Ada"}


@pytest.mark.parametrize("seed", range(30))
def test_preview_shows_what_transact_sends(seed):
    """For every kind of rule: with the same items, the same actions and the same work for the stream."""
    random = Random(seed)
    shop = begun(random)
    actions = actions_of(random)
    entities = {entity.name: entity for entity in RULES.entities.values()}
    items = [
        {"entity": name, "item": item}
        for name, entity in entities.items()
        for item in shop.scene.memory.items(entity.table.name)
        if RULES.entity_of(entity.table.key_of(item)) is entity
    ]
    found = preview_write(RULES, as_document(actions, items=items))
    with shop.transact() as tx:
        parse_document(as_document(actions)).add_to(tx)
    assert [*found.actions] == shop.client.requests[-1]
    assert found.left == tx.result.left
