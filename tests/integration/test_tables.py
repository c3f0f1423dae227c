"""A table that others have published, made by rules: it starts from what an application would write, and comes out exactly."""

from __future__ import annotations

import json
import random

from sync_rules.language.load import parse_rules
from tests.support.shared import case
from tests.support.worlds import Scene

SHOP = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {inverted: {SK: S, PK: S}}}
entities:
  customer: {table: shop, key: {PK: "c#{customer_id}", SK: "c#{customer_id}"}}
  product: {table: shop, key: {PK: "p#{product_id}", SK: "p#{product_id}"}}
  stock: {table: shop, key: {PK: "p#{product_id}", SK: "w#{warehouse_id}"}}
  order: {table: shop, key: {PK: "o#{order_id}", SK: "c#{customer_id}"}}
  order_item: {table: shop, key: {PK: "o#{order_id}", SK: "p#{product_id}"}}
rules:
  customer-of-orders: {copy: customer.Name, into: order.CustomerName, via: inverted}
  product-of-items: {copy: product.Detail.Name, into: order_item.ProductName, via: inverted}
  product-of-stock: copy product.Detail.Name into stock.ProductName
  places-of-products: {collect: stock, into: product.Warehouses, as: "{warehouse_id}"}
"""


def test_tables_an_online_shop_has_its_names():
    """AWS's single table of a shop, with the names its last step would have to query for, through the inverted index."""
    scene = Scene(parse_rules(SHOP))
    model = json.loads(case("models", "aws-design-patterns", "AnOnlineShop_9.json").read_text())
    (data,) = [table["TableData"] for table in model["DataModel"]]
    items = {(item["PK"]["S"], item["SK"]["S"]): item for item in data}
    scene.put("shop", *random.Random(7).sample(data, len(data)))
    scene.rest()
    copied = 0
    for item in scene.memory.items("shop"):
        at, sort = item["PK"]["S"], item["SK"]["S"]
        wanted = dict(items[at, sort])
        if wanted["EntityType"]["S"] == "order":
            wanted["CustomerName"] = items[sort, sort]["Name"]
        elif wanted["EntityType"]["S"] in ("orderItem", "warehouseItem"):
            product = sort if at.startswith("o#") else at
            wanted["ProductName"] = items[product, product]["Detail"]["M"]["Name"]
        elif wanted["EntityType"]["S"] == "product":
            places = {sort.removeprefix("w#") for product, sort in items if product == at and sort.startswith("w#")}
            assert set(item.pop("Warehouses")["SS"]) == places
        copied += len(item) - len(items[at, sort])
        assert item == wanted
    assert copied == 6
