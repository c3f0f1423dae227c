"""`keep` of history on an engine: the listing from the end of a partition, and the delete of a version as it was read."""

from __future__ import annotations

import pytest

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
tables:
  shop: {{name: {prefix}shop, key: {{PK: S, SK: {kind}}}}}
  items: {{name: {prefix}items, key: {{id: S}}}}
entities:
  product: {{table: items}}
  version: {{table: shop, key: {{PK: "PRODUCT#{{id}}", SK: "{sort}"}}}}
rules:
  kept: {{history: product, into: version, keep: {{count: 2}}}}
"""
TEXTS = [s(f"V#{number:03}") for number in (2, 9, 10, 100)]
NUMBERS = [n(number) for number in (2, 9, 10, 100)]


@pytest.mark.parametrize(
    ("kind", "sort", "keys"), [("S", "V#{version:pad(3)}", TEXTS), ("N", "{version}", NUMBERS)], ids=["text", "number"]
)
def test_keep_deletes_what_is_beyond_the_newest(engine, kind, sort, keys):
    """By number, of text and number keys; an item that is no version, and another item's version, stay."""
    prefix = engines.unique_prefix()
    rules = parse_rules(RULES.format(prefix=prefix, kind=kind, sort=sort))
    engines.create(engine, rules.tables)
    client, parked, rule = aws.dynamodb(engine), Parked(), rules.rules["kept.keep"]
    versions = [{"PK": s("PRODUCT#7"), "SK": key, "box": m(a=n("1.50")), "tags": {"SS": ["b", "a"]}} for key in keys]
    others = [
        {"PK": s("PRODUCT#70"), "SK": keys[0]},
        *([{"PK": s("PRODUCT#7"), "SK": s("V#1")}] if kind == "S" else []),
    ]
    for item in (*versions, *others):
        client.put_item(TableName=f"{prefix}shop", Item=item)
    change = Change(rules.tables["shop"].key_of(versions[-1]), None, versions[-1])
    world = World(DynamoStore(client, rules.tables), NULL_PORTS, parked)
    for _ in range(2):  # and delivered again
        run_work(reconcile_parts([PartLook(part) for part in rule.parts(change, rule.target)], Bounds()), world)
        left = client.scan(TableName=f"{prefix}shop", ConsistentRead=True)["Items"]
        found = {(item["PK"]["S"], *item["SK"].values()) for item in left}
        assert found == {(item["PK"]["S"], *item["SK"].values()) for item in (*versions[2:], *others)}
    assert parked.told == []
