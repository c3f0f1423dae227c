"""Rules to CreateTable parameters, and tables created from them."""

from __future__ import annotations

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.preflight import survey_tables
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.language.load import parse_rules
from sync_rules.pipeline.requests import List
from tests.support.builders import index, s, table
from tests.support.created import create_tables
from tests.support.engines import unique_prefix

LISTED_LOCALLY = """
tables:
  orders: {name: PREFIXorders, key: {tenant: S, order: S}}
  lines:
    name: PREFIXlines
    key: {tenant: S, line: S}
    indexes: {by_order: {partition: {tenant: S}, sort: {order: S}, local: true}}
entities: {order: {table: orders}, line: {table: lines}}
rules: {names: {copy: order.name, into: line.order_name, via: by_order}}
"""


def test_table_parameters_of_an_index_with_several_attributes():
    """Each attribute in order, defined once even where two keys share it."""
    place = index("by_place", {"country": "S", "zip": "N"}, {"city": "S", "id": "S"}, ("note",))
    parameters = make_table_parameters(table("many", {"id": "S"}, place), stream=False)
    (found,) = parameters["GlobalSecondaryIndexes"]
    assert [(e["AttributeName"], e["KeyType"]) for e in found["KeySchema"]] == [
        ("country", "HASH"), ("zip", "HASH"), ("city", "RANGE"), ("id", "RANGE"),
    ]  # fmt: skip
    assert found["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note"]}
    assert [(a["AttributeName"], a["AttributeType"]) for a in parameters["AttributeDefinitions"]] == [
        ("id", "S"), ("country", "S"), ("zip", "N"), ("city", "S"),
    ]  # fmt: skip
    assert "StreamSpecification" not in parameters


def test_create_tables_makes_local_indexes_that_rules_list_by(engine):
    """A local index is made with its table; preflight finds it; its rows lead to the items, as of any index."""
    client, prefix = aws.dynamodb(engine), unique_prefix()
    rules = parse_rules(LISTED_LOCALLY.replace("PREFIX", prefix))
    create_tables(client, rules)
    assert survey_tables(client, rules).problems == ()
    store = DynamoStore(client, rules.tables)
    for number in "21":
        item = {"tenant": s("t"), "line": s(number), "order": s("o")}
        client.put_item(TableName=f"{prefix}lines", Item=item)
    (rule,) = rules.rules.values()
    order = rules.tables["orders"].key_of({"tenant": s("t"), "order": s("o")})
    page = store.list(List("lines", rule.find.index, rule.conditions(order), 10, None))
    assert sorted(item["line"]["S"] for item in page.items) == ["1", "2"]
