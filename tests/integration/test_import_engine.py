"""Live tables of an engine: what is created from rules and filled comes back as those rules' tables and entities."""

from __future__ import annotations

import uuid

import pytest

from sync_rules.adapters import aws
from sync_rules.deploy.tables import table_parameters
from sync_rules.extras.discover.imports.live_tables import rules_from_account
from sync_rules.language.load import parse_rules
from tests.extras.discover.imports.test_round_trips import OVERLOADED, items_of, literals, of_table, owner, shapes


@pytest.mark.parametrize("endpoint", ["ministack", "dynoxide"])
def test_import_of_an_engine_s_tables_has_their_entities(endpoint, endpoints):
    """A single table with an overloaded index and four kinds of items, sampled in segments."""
    client = aws.dynamodb(endpoints.of(endpoint))
    name = f"app-{uuid.uuid4().hex[:8]}"
    rules = parse_rules(OVERLOADED.replace("app: {key", f"app: {{name: {name}, key"), environ={})
    (table,) = rules.tables.values()
    client.create_table(**table_parameters(table, stream=True))
    try:
        for entity in of_table(rules, table):
            for item in items_of(entity, 6):
                client.put_item(TableName=name, Item=item)
        made = parse_rules(rules_from_account(client, [name], 100).text, environ={})
    finally:
        client.delete_table(TableName=name)
    (found,) = made.tables.values()
    assert shapes(made) == shapes(rules)
    for entity in of_table(rules, table):
        (known,) = {owner(made, found, item) for item in items_of(entity, 6)}
        assert literals(made.entities[known]) == literals(entity)
