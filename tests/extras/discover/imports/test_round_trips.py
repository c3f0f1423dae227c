"""Rules, written as the tables and items of a data model and imported again: the same tables, keys and entities."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sync_rules.deploy.tables import make_table_parameters
from sync_rules.extras.discover.imports.importer import rules_from_text
from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import ItemKey
from sync_rules.rules.ruleset import Rules
from tests.support.engines import ROOT

ODD = """
tables:
  readings: {name: device-readings.v2, key: {"State#Date": S, N: N}, indexes: {by_tenant: {partition: {tenant: S, region: S}, sort: {N: N, day: S}, projection: keys}}}
  blobs: {key: {id: B}, indexes: {GSI1: {kind: S, id: B}}}
  "on": {name: "on.off", key: {"null": S, "a b": S}, indexes: {x.y-z: {partition: {"{}": S}, projection: [name, "true"]}}}
entities:
  reading: {table: readings}
  blob: {table: blobs}
  switch: {table: "on"}
rules: {}
"""
OVERLOADED = """
tables:
  app: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S, GSI1SK: S}}}
entities:
  organisation: {table: app, key: {PK: "ORG#{org_id}", SK: "ORG#{org_id}", GSI1PK: ORGS, GSI1SK: "ORG#{org_id}"}}
  user: {table: app, key: {PK: "ORG#{org_id}", SK: "USER#{user_id}", GSI1PK: "USER#{user_id}", GSI1SK: PROFILE}}
  ticket: {table: app, key: {PK: "TICKET#{ticket_id}", SK: TICKET, GSI1PK: "USER#{user_id}", GSI1SK: "TICKET#{ticket_id}"}}
  friend: {table: app, key: {PK: "USER#{user_id}", SK: "FRIEND#{friend_id}"}}
rules: {}
"""
FILES = {
    **{path.parent.name: path.read_text() for path in sorted((ROOT / "examples").glob("*/rules.yaml"))},
    "demo": (ROOT / "sync_rules/lab/demo/rules.yaml").read_text(),
    "odd": ODD,
    "overloaded": OVERLOADED,
}


def of_table(rules: Rules, table: Table) -> list[Entity]:
    return [entity for entity in rules.entities.values() if "." not in entity.name and entity.table == table]


def items_of(entity: Entity, number: int = 3) -> Iterator[dict[str, dict[str, Any]]]:
    """Items of an entity, with each field in its key and nowhere else."""
    attributes = {one.name: one.type for one in entity.table.key_attributes}
    for count in range(1, number + 1):
        item: dict[str, dict[str, Any]] = {"title": {"S": f"Title {count}"}}
        fields = itertools.count(count * 100)
        values: dict[str, str] = {}
        for name in dict.fromkeys([*(one.name for one in entity.table.key), *entity.templates]):
            template = entity.templates[name]
            text = template.literals[0]
            for field, after in zip(template.fields, template.literals[1:], strict=True):
                text += values.setdefault(field, str(next(fields))) + after
            item[name] = {attributes[name]: text.encode() if attributes[name] == "B" else text}
        yield item


def shapes(rules: Rules) -> dict[str, object]:
    return {
        table.physical_name: (
            table.key,
            {one.name: (one.partition, one.sort, one.projection or "all") for one in table.indexes},
        )
        for table in rules.tables.values()
    }


@pytest.mark.parametrize("name", FILES)
def test_import_of_items_finds_their_entities(name):
    """Entities are read off sample items: each item belongs to one entity, items of a kind to the same one."""
    before = parse_rules(FILES[name], environ={})
    held = {
        table.physical_name: [
            {"PutRequest": {"Item": item}} for entity in of_table(before, table) for item in items_of(entity)
        ]
        for table in before.tables.values()
    }
    tables = [make_table_parameters(table, stream=True) for table in before.tables.values()]
    model = {"tables": tables, "items": held, "access_patterns": []}
    text = json.dumps(model, default=bytes.decode)
    after = parse_rules(rules_from_text(text, "source").text, environ={})
    assert shapes(after) == shapes(before)
    there = {table.physical_name: table for table in after.tables.values()}
    for table in before.tables.values():
        found: dict[str, str] = {}
        for entity in of_table(before, table):
            owners = {owner(after, there[table.physical_name], item) for item in items_of(entity)}
            assert len(owners) == 1, f"{entity.name}: {owners}"
            found[entity.name] = owners.pop()
        assert "" not in found.values()
        assert len(set(found.values())) == len(found)
        for known, made in found.items():
            assert literals(after.entities[made]) == literals(before.entities[known])


def owner(rules: Rules, table: Table, item: dict) -> str:
    key = table.key_of(item)
    assert isinstance(key, ItemKey)
    return ",".join(entity.name for entity in of_table(rules, table) if entity.has(key))


def literals(entity: Entity) -> dict[str, tuple[str, ...]]:
    """The texts around the fields of each template that says something."""
    return {name: t.literals for name, t in entity.templates.items() if t.literals != ("", "")}
