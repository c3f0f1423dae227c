"""JSON of DynamoDB itself: what DescribeTable answers and CreateTable takes, one table or a list of them, with items.

The model that the modelling server of AWS Labs validates, dynamodb_data_model.json, is a list of such tables with items
as BatchWriteItem takes them.
https://github.com/awslabs/mcp/tree/main/src/dynamodb-mcp-server
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.imports.clusters import Sample
from sync_rules.imports.document import Node
from sync_rules.imports.found import Found, FoundTable
from sync_rules.imports.keys import fill
from sync_rules.imports.samples import entities_of
from sync_rules.imports.workbench import unseen

NAME: Final = "table description of DynamoDB"
MODEL: Final = "data model of the DynamoDB modelling server"
EXPECTED: Final = "a map with KeySchema and AttributeDefinitions"


def fits(document: Any) -> bool:
    """True if a document looks like one table, or a list of tables, of DynamoDB's requests."""
    if not isinstance(document, dict):
        return False
    tables = document.get("tables")
    first = tables[0] if isinstance(tables, list) and tables else document.get("Table", document)
    return isinstance(first, dict) and "KeySchema" in first


def read(root: Node) -> Found:
    """The tables of a document, and the entities of its items."""
    if not root["tables"]:
        table = table_of(root["Table"] or root)
        return Found(NAME, [table], [unseen(table)])
    found = Found(MODEL)
    for node in root["tables"].list("a list of tables"):
        table = table_of(node)
        table.stream = table.stream if node["StreamSpecification"] else "unknown"
        items = root["items"][table.physical] if isinstance(root["items"].value, dict) else root.of(None)
        samples = [Sample(item) for item in _items(items)]
        found.tables.append(table)
        found.entities += entities_of(table, samples) or [unseen(table)]
    return found


def table_of(node: Node) -> FoundTable:
    """A table of a request or an answer."""
    name = node.require_map(EXPECTED)["TableName"].text("the table's name")
    table = FoundTable(name, name, (), at=node["TableName"].place)
    fill(table, node)
    return table


def _items(node: Node) -> list[dict[str, dict[str, Any]]]:
    made = []
    for one in node.list("a list of PutRequests"):
        request = one.require_map()["PutRequest"]
        item = (request.require_map()["Item"] if request else one).require_map("an item in DynamoDB's JSON")
        made.append({str(name): value for name, value in item.value.items() if isinstance(value, dict)})
    return made
