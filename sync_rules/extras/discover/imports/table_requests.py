"""JSON of DynamoDB itself: what DescribeTable answers and CreateTable takes, one table or a list of them, with items.

The model that the modelling server of AWS Labs validates, dynamodb_data_model.json, is a list of such tables with items
as BatchWriteItem takes them, and access patterns as commands of the AWS CLI.
https://github.com/awslabs/mcp/tree/main/src/dynamodb-mcp-server
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.extras.discover.imports import request_patterns
from sync_rules.extras.discover.imports.cli_requests import SCAN, requests_of
from sync_rules.extras.discover.imports.foreign_document import DocumentNode, quoted
from sync_rules.extras.discover.imports.identifiers import words
from sync_rules.extras.discover.imports.imported_model import FoundPattern, FoundTable, ImportedModel, whole_table
from sync_rules.extras.discover.imports.key_kinds import Sample
from sync_rules.extras.discover.imports.key_schemas import fill
from sync_rules.extras.discover.imports.request_expressions import NotReadError
from sync_rules.extras.discover.imports.sample_entities import entities_of

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


def read(root: DocumentNode) -> ImportedModel:
    """The tables of a document, and the entities of its items."""
    if not root["tables"]:
        table = table_of(root["Table"] or root)
        return ImportedModel(NAME, [table], [whole_table(table)])
    found = ImportedModel(MODEL)
    for node in root["tables"].list("a list of tables"):
        table = table_of(node)
        table.stream = table.stream if node["StreamSpecification"] else "unknown"
        items = root["items"][table.physical] if isinstance(root["items"].value, dict) else root.of(None)
        samples = [Sample(item) for item in _items(items)]
        found.tables.append(table)
        found.entities += entities_of(table, samples) or [whole_table(table)]
    for number, node in enumerate(root["access_patterns"].list("a list of access patterns"), start=1):
        found.patterns += _patterns(found, node.require_map("an access pattern: a map with pattern"), number)
    return found


def _patterns(found: ImportedModel, node: DocumentNode, number: int) -> list[FoundPattern]:
    """The patterns of an access pattern: those of its command, or one that says why there is none."""
    mark = node["pattern"].said or str(number)
    described = node["description"].said
    said = f"{mark}: {described}" if described else f"access pattern {mark}"
    called = "-".join(words(described)) or f"pattern-{mark}"
    command = node["implementation"].said
    try:
        requests = requests_of(command) if command else []
    except NotReadError as error:
        return [FoundPattern(called, said=said, refused=str(error))]
    if not requests:
        return [FoundPattern(called, said=said, refused=_without_command(node))]
    return request_patterns.patterns_of_all(requests, found.tables, found.entities, called, said)


def _without_command(node: DocumentNode) -> str:
    reason = node["reason"].said
    operation = node["dynamodb_operation"].said
    if reason:
        return f"its source says: {reason}"
    if operation.lower() == "scan":
        return SCAN
    return f"the source has no command for {quoted(operation)}" if operation else "the source has no command for it"


def table_of(node: DocumentNode) -> FoundTable:
    """A table of a request or an answer."""
    name = node.require_map(EXPECTED)["TableName"].text("the table's name")
    table = FoundTable(name, name, (), at=node["TableName"].place)
    fill(table, node)
    return table


def _items(node: DocumentNode) -> list[dict[str, dict[str, Any]]]:
    made = []
    for one in node.list("a list of PutRequests"):
        request = one.require_map()["PutRequest"]
        item = (request.require_map()["Item"] if request else one).require_map("an item in DynamoDB's JSON")
        made.append({str(name): value for name, value in item.value.items() if isinstance(value, dict)})
    return made
