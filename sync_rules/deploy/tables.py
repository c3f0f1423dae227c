"""The tables of the rules as CreateTable parameters, and their creation.

Tables have on-demand capacity, and those of sources and targets a stream with both images.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_random_exponential

from sync_rules.adapters import aws
from sync_rules.adapters.preflight import IMAGES, describe
from sync_rules.model.entities import Index, KeyAttribute, Table
from sync_rules.model.errors import StoreError
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ACTIVE_MAX_SECONDS: Final = 300.0
WAIT_MAX_SECONDS: Final = 2.0
PROJECTIONS: Final = {"all": "ALL", "keys": "KEYS_ONLY"}


def table_parameters(table: Table, *, stream: bool) -> dict[str, Any]:
    """CreateTable's parameters for one table."""
    parameters: dict[str, Any] = {
        "TableName": table.physical_name,
        "AttributeDefinitions": [{"AttributeName": a.name, "AttributeType": a.type} for a in table.key_attributes],
        "KeySchema": _schema((table.partition,), table.key[1:]),
        "BillingMode": "PAY_PER_REQUEST",
    }
    if table.indexes:
        parameters["GlobalSecondaryIndexes"] = [_index(index) for index in table.indexes]
    if stream:
        parameters["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": IMAGES}
    return parameters


def all_parameters(rules: Rules) -> tuple[dict[str, Any], ...]:
    """CreateTable's parameters for every table of the rules."""
    return tuple(table_parameters(table, stream=table in rules.streamed_tables) for table in rules.tables.values())


def _index(index: Index) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": "ALL"}  # as the console creates it, if the rules do not say
    if isinstance(index.projection, tuple):
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    elif index.projection is not None:
        projection = {"ProjectionType": PROJECTIONS[index.projection]}
    return {"IndexName": index.name, "KeySchema": _schema(index.partition, index.sort), "Projection": projection}


def _schema(partition: Iterable[KeyAttribute], sort: Iterable[KeyAttribute]) -> list[dict[str, str]]:
    return [
        *({"AttributeName": attribute.name, "KeyType": "HASH"} for attribute in partition),
        *({"AttributeName": attribute.name, "KeyType": "RANGE"} for attribute in sort),
    ]


def create_tables(client: DynamoDBClient, rules: Rules, *, active_max_seconds: float = ACTIVE_MAX_SECONDS) -> None:
    """Create every table of the rules and wait until each is active.

    Raises:
        StoreError: when a table cannot be created (ResourceInUseException: it exists) or is not active in time.
    """
    retrying = aws.retrying()
    for parameters in all_parameters(rules):
        aws.ask(retrying, f"CreateTable of {parameters['TableName']}", client.create_table, **parameters)
    for table in rules.tables.values():
        _wait_until_active(client, table, retrying, active_max_seconds)


def _wait_until_active(client: DynamoDBClient, table: Table, retrying: Retrying, max_seconds: float) -> None:
    def active() -> bool:
        description = describe(client, table, retrying)
        if description is None:
            return False  # DescribeTable is eventually consistent
        states = [
            description["TableStatus"],
            *(i["IndexStatus"] for i in description.get("GlobalSecondaryIndexes", [])),
        ]
        return all(state == "ACTIVE" for state in states)

    waiting = Retrying(
        retry=retry_if_result(lambda ready: not ready),
        stop=stop_after_delay(max_seconds),
        wait=wait_random_exponential(multiplier=aws.FIRST_WAIT_SECONDS, max=WAIT_MAX_SECONDS),
    )
    try:
        waiting(active)
    except RetryError as error:
        raise StoreError("TableNotActive", f"{table.physical_name} after {max_seconds:g} s") from error
