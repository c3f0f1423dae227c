"""Tables that others have published, made by rules: the parts of a car, goals with their edges, keys made of fields.

Each starts from what an application would write, and must come out exactly; in memory, and on the embedded engine.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import pytest
from ruamel.yaml import YAML

from sync_rules.adapters import aws
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import plain_of, raw_of
from sync_rules.model.values import Item
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import Read, World
from sync_rules.read import Hierarchy
from tests.peers.bench import EngineBench, Failures, MemoryBench, Queue
from tests.support.engines import Endpoints, chosen
from tests.support.shared import case
from tests.support.worlds import Scene
from tests.unit.read.test_read import Fake

ENGINES = [engine for engine in chosen() if engine in ("memory", "ministack")]
Plain = dict[str, Any]


class Play:
    """Tables in memory or on an engine, and a pipeline whose messages are due as soon as nothing else is left to do."""

    def __init__(self, text: str, engine: str, endpoints: Endpoints) -> None:
        self.endpoint_url = None if engine == "memory" else endpoints.of(engine)
        self.bench = MemoryBench(text) if self.endpoint_url is None else EngineBench(text, self.endpoint_url)
        self.rules = self.bench.rules
        self.queue, self.failures = Queue(), Failures()
        self.world = World(self.bench.store, self.queue, self.failures)
        self.consumer = Consumer(self.rules, self.world, THIS_PROCESS)
        self.touched: list[Item] = []  # the keys of all records so far
        self.keys: dict[str, dict[ItemKey, None]] = defaultdict(dict)

    def key(self, table: str, item: Plain) -> ItemKey:
        key = self.rules.tables[table].key_of({name: raw_of(value) for name, value in item.items()})
        assert key is not None
        return key

    def put(self, table: str, *items: Plain) -> None:
        for item in items:
            self.bench.put(self.rules.tables[table], {name: raw_of(value) for name, value in item.items()})
            self.keys[table][self.key(table, item)] = None

    def delete(self, table: str, item: Plain) -> None:
        self.bench.delete(self.key(table, item))

    def rest(self) -> None:
        while True:
            if records := [record for _, record in self.bench.records()]:
                self.touched += [record["dynamodb"]["Keys"] for record in records]
                event = json.loads(json.dumps({"Records": records}))
                assert self.consumer.handle_event(event, lambda: 900_000) == {"batchItemFailures": []}
            elif message := self.queue.next():
                self.consumer.handle_message(message)
            else:
                return

    def items(self, table: str) -> list[Plain]:
        """The items now stored under the keys that were put."""
        found = self.bench.store.read(Read(tuple(self.keys[table])))
        return [{name: plain_of(value) for name, value in item.items()} for item in found if item is not None]

    def client(self, table: str) -> Any:
        """A client for an application's reads."""
        if self.endpoint_url is not None:
            return aws.dynamodb(self.endpoint_url)
        items = [{name: raw_of(value) for name, value in item.items()} for item in self.items(table)]
        return Fake(self.rules.tables[table]).put(self.rules.tables[table].physical_name, *items)


@pytest.fixture(params=ENGINES)
def play(request, endpoints):
    """Gives a function that makes tables for a rules file."""
    return lambda text: Play(text, request.param, endpoints)


def published(name: str) -> Plain:
    return YAML(typ="safe").load(case("tables", name))


# ---------------------------------------------------------------- the parts of a car
CAR = """
tables:
  components:
    name: "${PEER_PREFIX}components"
    key: {ComponentId: S}
    indexes: {GSI1: {ParentId: S, ComponentId: S}, GSI2: {GraphId: S, Path: S}}
entities: {component: {table: components}}
rules:
  composition: {path: component.Path, parent: ParentId, graph: GraphId, via: GSI1, on_delete: ON_DELETE}
"""


class Car:
    """The table of AWS's guide, made from the ids and parents in it."""

    def __init__(self, play, on_delete: str = "keep", seed: int = 1, more: list[Plain] | None = None) -> None:
        self.guide = published("pg_hierarchical_components.yaml")
        self.wanted = {item["ComponentId"]: item for item in (*self.guide["items"], *(more or ()))}
        self.play = play(CAR.replace("ON_DELETE", on_delete))
        self.put(*random.Random(seed).sample(list(self.wanted), len(self.wanted)))
        self.play.rest()
        assert self.items == self.wanted

    def put(self, *idents: str, **changed: Plain) -> None:
        """Whole items as an application has them, without what was made of them."""
        for ident in idents:
            item = {**self.wanted[ident], **changed}
            self.play.put("components", {n: v for n, v in item.items() if n in ("ComponentId", "ParentId") and v})

    @property
    def items(self) -> dict[str, Plain]:
        return {item["ComponentId"]: item for item in self.play.items("components")}

    def case(self, word: str) -> Plain:
        """The derived case whose name has this word in it."""
        (found,) = [one for one in self.guide["derived_cases"] if word in one["name"]]
        return found

    def change(self, derived: Plain) -> None:
        """Change an item as a case says, keeping its other attributes, and let the pipeline come to rest."""
        change = derived["change"]
        item = self.items[change["ComponentId"]] | change.get("set", {})
        self.play.put("components", {n: v for n, v in item.items() if n not in change.get("remove", ())})
        self.play.rest()

    @property
    def reports(self) -> set[tuple[str, str]]:
        return {(failure.reason, failure.key.values[0][2]) for failure in self.play.failures}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tables_the_car_comes_out_exactly(play, seed):
    """All ten rows from ids and parents, in whatever order they are written, and the answers to the guide's questions."""
    car = Car(play, seed=seed)
    parts = Hierarchy.of(car.play.rules, "composition", car.play.client("components"))
    (two,) = parts.items(["CM2"])
    answers = [
        parts.children("CM2"),
        parts.children("CM4"),
        parts.descendants(two),
        parts.descendants(two, itself=True),
    ]
    for query, answer in zip(car.guide["queries"], answers, strict=True):
        assert {item["ComponentId"] for item in answer} == set(query["result"]), query["name"]


def test_tables_the_car_refuses_a_cycle(play):
    """A part under its own grandchild is reported; every path stays as it was, and mending the parent ends it."""
    car = Car(play)
    car.change(car.case("cycle"))
    assert {ident: item["Path"] for ident, item in car.items.items()} == {
        ident: item["Path"] for ident, item in car.wanted.items()
    }
    assert car.reports == {("Cycle", "CM2")}
    car.put("CM2")
    car.play.rest()
    assert car.items == car.wanted


# ---------------------------------------------------------------- goals, users and teams
RECORDS = """
tables:
  records:
    name: "${PEER_PREFIX}records"
    key: {source: S, target: S}
    indexes: {by_rank: {source: S, gsi0: S}}
entities:
  node: {table: records, key: {source: "{id}", target: "{id}"}}
  edge: {table: records, key: {source: "{from}", target: "EDGE#{label}#{to}"}}
rules:
  edge-sets: {collect: edge, into: node.edges, link: {id: from}, as: "{label}#{to}"}
  ranks:
    derive: edge.gsi0
    as: "{label:rank}-{label}"
    map: {rank: {LEAD: 500, CONTRIBUTOR: 400, TEAM: 300}}
"""


def test_tables_the_goals_come_out_exactly(play):
    """Nodes are edges to themselves in the table of their edges, and each carries the set of its edges: exactly those of
    the fixture, written in any order, without a node's edges when it comes anew, and after each edge went and came back.
    """
    fixture = published("koan_records_table.yaml")["fixture"]
    nodes = [{"source": node["id"], "target": node["id"], **node} for node in fixture["nodes"]]
    edges = [{"source": e["from"], "target": f"EDGE#{e['label']}#{e['to']}", **e} for e in fixture["edges"]]
    goals = play(RECORDS)

    def edge_sets() -> dict[str, dict[str, list[str]]]:
        found: dict[str, dict[str, list[str]]] = {}
        for item in goals.items("records"):
            for element in sorted(item.get("edges", ())):
                label, _, to = element.partition("#")
                found.setdefault(item["source"], {}).setdefault(label, []).append(to)
        return found

    goals.put("records", *random.Random(5).sample([*nodes, *edges], len(nodes) + len(edges)))
    goals.rest()
    assert edge_sets() == fixture["expected_edge_sets"]
    ranks = {(item["label"], item.get("gsi0")) for item in goals.items("records") if "label" in item}
    assert ranks == {("LEAD", "500-LEAD"), ("PARENT", None)}
    for edge in edges:
        goals.delete("records", edge)
    goals.rest()
    assert edge_sets() == {}
    goals.put("records", *edges, *nodes)
    goals.rest()
    assert edge_sets() == fixture["expected_edge_sets"]


# ---------------------------------------------------------------- keys made of fields


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
