"""A move on an engine: the transaction as DynamoDB takes it, and what it refuses."""

from __future__ import annotations

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Change
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.parts import reconcile_parts
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work
from sync_rules.pipeline.tasks import PartLook
from tests.support import engines
from tests.support.builders import m, n, s
from tests.support.worlds import Parked

RULES = """
tables: {{shop: {{name: {prefix}shop, key: {{PK: S, SK: S}}}}}}
entities:
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
  dept_order: {{table: shop, key: {{PK: "DEPT#{{dept_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  closed: {{mirror: order, into: dept_order, mode: move}}
"""
VALUES = {
    "dept_id": s("x"), "price": n("1.50"), "none": {"NULL": True}, "tags": {"SS": ["a", "b"]}, "blob": {"B": b"\x00"},
    "meta": m(deep={"L": [n(1), m(x=s(""))]}), "done": {"BOOL": False},
}  # fmt: skip


def test_move_of_values_of_every_type(engine):
    """Equal values compare as equal; the old item goes, the new one has them all; a taken key is parked."""
    prefix = engines.unique_prefix()
    rules = parse_rules(RULES.format(prefix=prefix))
    engines.create(engine, rules.tables)
    client, parked, rule = aws.dynamodb(engine), Parked(), rules.rules["closed"]
    item = {"PK": s("USER#a"), "SK": s("ORDER#1"), **VALUES}
    client.put_item(TableName=f"{prefix}shop", Item=item)
    world = World(DynamoStore(client, rules.tables), NULL_PORTS, parked)

    def work() -> None:
        looks = [
            PartLook(part) for part in rule.parts(Change(rules.tables["shop"].key_of(item), None, item), rule.source)
        ]
        run_work(reconcile_parts(looks, Bounds()), world)

    work()
    moved = {"PK": s("DEPT#x"), "SK": s("ORDER#1"), "user_id": s("a"), **VALUES}
    (found,) = client.scan(TableName=f"{prefix}shop", ConsistentRead=True)["Items"]
    assert {**found, "tags": {"SS": sorted(found["tags"]["SS"])}, "price": n("1.5")} == {**moved, "price": n("1.5")}
    work()  # delivered again
    assert parked.failures == []
    client.put_item(TableName=f"{prefix}shop", Item=item)
    work()
    assert [failure.reason for failure in parked.failures] == ["KeyTaken"]
    assert len(client.scan(TableName=f"{prefix}shop", ConsistentRead=True)["Items"]) == 2
