"""JSON of DynamoDB itself: what DescribeTable answers and CreateTable takes, one table or a list of them, with items.

The model that the modelling server of AWS Labs validates, dynamodb_data_model.json, is a list of such tables with items
as BatchWriteItem takes them. Its access patterns are commands of the AWS CLI, which are not read: the same server's
schema.json has them in parts.
https://github.com/awslabs/mcp/tree/main/src/dynamodb-mcp-server
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode
from sync_rules.extras.discover.imports.identifiers import split_words
from sync_rules.extras.discover.imports.imported_model import (
    FoundPattern,
    FoundTable,
    ImportedModel,
    make_whole_table_entity,
)
from sync_rules.extras.discover.imports.key_kinds import Sample
from sync_rules.extras.discover.imports.key_schemas import fill_table
from sync_rules.extras.discover.imports.sample_entities import list_entities

NAME: Final = "table description of DynamoDB"
MODEL: Final = "data model of the DynamoDB modelling server"
EXPECTED: Final = "a map with KeySchema and AttributeDefinitions"
NOT_READ: Final = "commands of the AWS CLI are not read: write it as a pattern, or import the server's schema.json"


def fits(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    tables = document.get("tables")
    first = tables[0] if isinstance(tables, list) and tables else document.get("Table", document)
    return isinstance(first, dict) and "KeySchema" in first


def read(root: DocumentNode) -> ImportedModel:
    """The tables of a document, and the entities of its items."""
    if not root["tables"]:
        table = parse_table(root["Table"] or root)
        return ImportedModel(NAME, [table], [make_whole_table_entity(table)])
    found = ImportedModel(MODEL)
    for node in root["tables"].list("a list of tables"):
        table = parse_table(node)
        table.stream = table.stream if node["StreamSpecification"] else "unknown"
        items = root["items"][table.physical] if isinstance(root["items"].value, dict) else root.of(None)
        samples = [Sample(item) for item in _list_items(items)]
        found.tables.append(table)
        found.entities += list_entities(table, samples) or [make_whole_table_entity(table)]
    for number, node in enumerate(root["access_patterns"].list("a list of access patterns"), start=1):
        found.patterns.append(_make_pattern(node.require_map("an access pattern: a map with pattern"), number))
    return found


def _make_pattern(node: DocumentNode, number: int) -> FoundPattern:
    """An access pattern by its description, as a comment: its command is not read."""
    mark = node["pattern"].text_or_empty or str(number)
    described = node["description"].text_or_empty
    said = f"{mark}: {described}" if described else f"access pattern {mark}"
    called = "-".join(split_words(described)) or f"pattern-{mark}"
    reason = node["reason"].text_or_empty
    return FoundPattern(called, said=said, refused=f"its source says: {reason}" if reason else NOT_READ)


def parse_table(node: DocumentNode) -> FoundTable:
    name = node.require_map(EXPECTED)["TableName"].text("the table's name")
    table = FoundTable(name, name, (), at=node["TableName"].place)
    fill_table(table, node)
    return table


def _list_items(node: DocumentNode) -> list[dict[str, dict[str, Any]]]:
    made = []
    for one in node.list("a list of PutRequests"):
        request = one.require_map()["PutRequest"]
        item = (request.require_map()["Item"] if request else one).require_map("an item in DynamoDB's JSON")
        made.append({str(name): value for name, value in item.value.items() if isinstance(value, dict)})
    return made
