"""Live tables: keys, indexes and streams as DynamoDB describes them, entities from a few of their items.

Invariant: only the form of keys and the names of attributes are taken from an item. No value is written or shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.extras.discover.imports.foreign_document import DocumentNode
from sync_rules.extras.discover.imports.imported_model import (
    FoundTable,
    ImportedModel,
    RulesDraft,
    make_whole_table_entity,
)
from sync_rules.extras.discover.imports.key_kinds import Sample
from sync_rules.extras.discover.imports.rules_writer import draft_rules
from sync_rules.extras.discover.imports.sample_entities import list_entities
from sync_rules.extras.discover.imports.table_requests import parse_table
from sync_rules.model.entities import TABLE_ARN, check_table_name
from sync_rules.model.errors import UserError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NAME: Final = "live tables"
SEGMENTS: Final = 4  # a scan begins where a hash says: items of several places are less alike
PAGES_MAX: Final = 8  # of a segment: a page of deleted items is empty


def rules_from_account(client: DynamoDBClient, tables: Sequence[str], samples: int) -> RulesDraft:
    """Make the rules file of live tables, given by name or ARN. At most `samples` items of each are read.

    Raises:
        UserError: if a table does not exist, or no table is named.
        StoreError: if a request is refused; the message names the request.
    """
    if not tables:
        raise UserError("no table is named: name the tables that rules shall know")
    found = ImportedModel(NAME)
    for name in dict.fromkeys(tables):
        if check_table_name(name):
            raise UserError(check_table_name(name))
        table, _ = describe_table(client, name)
        items = [Sample(item) for item in _read_items(client, name, samples)]
        found.tables.append(table)
        found.entities += list_entities(table, items, live=True) or [make_whole_table_entity(table)]
        if not items:
            found.notes.append(f"table {name}: no item was {'found' if samples > 0 else 'read'}")
    return draft_rules(found, aws.format_place(client))


def describe_table(client: DynamoDBClient, name: str) -> tuple[FoundTable, Mapping[str, Any]]:
    """Return a live table, given by name or ARN, and DynamoDB's description. Raises like `rules_from_account`."""
    try:
        answer: Any = retries.make_retry(first=True)(client.describe_table, TableName=name)["Table"]
    except aws_errors.ERRORS as error:
        if aws_errors.read_reason(error) == "TableNotFound":
            cure = "Correct the name, the Region, the credentials or the endpoint"
            raise UserError(f"table {name} does not exist at {aws.format_place(client)}. {cure}.") from error
        raise aws_errors.make_store_error(error, f"dynamodb:DescribeTable of {name}", client=client) from error
    table = parse_table(DocumentNode(answer, name))
    if TABLE_ARN.fullmatch(name):
        table.physical = name
    return table, answer


def _read_items(client: DynamoDBClient, name: str, samples: int) -> Iterator[dict[str, Any]]:
    """Some items, of several places of the table."""
    segments = min(SEGMENTS, samples)
    for segment in range(segments):
        most = samples // segments + (segment < samples % segments)
        yield from _read_segment(client, name, most, Segment=segment, TotalSegments=segments)


def _read_segment(client: DynamoDBClient, name: str, most: int, **part: int) -> Iterator[dict[str, Any]]:
    start: dict[str, Any] = {}
    for _ in range(PAGES_MAX):
        request = {"TableName": name, "Limit": most, **part, **start}
        page = retries.ask(retries.make_retry(), f"dynamodb:Scan of {name}", client.scan, **request)
        yield from page["Items"][:most]
        most -= len(page["Items"])
        if most <= 0 or not page.get("LastEvaluatedKey"):
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
