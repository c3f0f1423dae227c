"""The tables of the rules as CreateTable parameters, their comparison with existing tables, and their creation. Tables
are billed on demand. Tables of sources and targets have a stream with both images; tables with expiring items have a
Time to Live. An existing table is described and never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_random_exponential

from sync_rules.adapters import aws, retries
from sync_rules.adapters.preflight import (
    IMAGES,
    TableProblem,
    describe_table,
    describe_time_to_live,
    format_cli_options,
    is_strong,
    list_table_problems,
    list_time_to_live_problems,
)
from sync_rules.deploy.vectors import list_vector_problems, make_definitions, make_projection, make_vector_parameters
from sync_rules.model.entities import Index, KeyAttribute, Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ACTIVE_MAX_SECONDS: Final = 300.0
WAIT_MAX_SECONDS: Final = 2.0
CALLS_KEY: Final = KeyAttribute("id", "S")  # of the table that remembers calls
CALLS_TTL: Final = "expiration"
INDEX_KINDS: Final = ("GlobalSecondaryIndexes", "VectorIndexes")  # the kinds that have a status


def make_table_parameters(table: Table, *, stream: bool) -> dict[str, Any]:
    """Make CreateTable's parameters for one table."""
    parameters: dict[str, Any] = {
        "TableName": table.physical_name,
        "AttributeDefinitions": make_definitions(
            (*table.key_attributes, *(a for one in table.vectors for a in one.index.attributes))
        ),
        "KeySchema": _make_key_schema((table.partition,), table.key[1:]),
        "BillingMode": "PAY_PER_REQUEST",
    }
    if table.vectors:
        parameters["VectorIndexes"] = [make_vector_parameters(one) for one in table.vectors]
    for kind, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        if found := [_make_index_parameters(index) for index in table.indexes if index.local is local]:
            parameters[kind] = found
    if stream:
        parameters["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": IMAGES}
    return parameters


def _make_index_parameters(index: Index) -> dict[str, Any]:
    schema, projection = _make_key_schema(index.partition, index.sort), make_projection(index)
    return {"IndexName": index.name, "KeySchema": schema, "Projection": projection}


def _make_key_schema(partition: Iterable[KeyAttribute], sort: Iterable[KeyAttribute]) -> list[dict[str, str]]:
    return [
        *({"AttributeName": attribute.name, "KeyType": "HASH"} for attribute in partition),
        *({"AttributeName": attribute.name, "KeyType": "RANGE"} for attribute in sort),
    ]


# ---------------------------------------------------------------- beside those that exist
@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A required table, compared with the DynamoDB table of that name. `exists` says if there is one; `problems` are
    its differences. `ttl`: its attribute of Time to Live, if it needs one.
    """

    table: Table
    parameters: Mapping[str, Any]
    exists: bool
    problems: tuple[TableProblem, ...] = ()
    ttl: str | None = None


def compare_tables(client: DynamoDBClient, rules: Rules, calls_table: str | None = None) -> tuple[ComparedTable, ...]:
    """Describe every table of the rules in their order, and the table that remembers calls.

    Raises:
        UserError: if the table of calls is a table of the rules.
        StoreError: if a table cannot be described.
    """
    retrying = retries.make_retry(first=True)
    wanted = {table: (rules.times_to_live.get(table.name), "expired items stay") for table in rules.tables.values()}
    if calls_table:
        calls = Table("calls", calls_table, CALLS_KEY)
        if calls.address.name in rules.by_physical_name:
            raise UserError(f"table {calls_table} is a table of the rules: name another one with --calls-table")
        wanted[calls] = CALLS_TTL, "remembered calls stay for ever"
    return tuple(_compare(client, rules, table, expiry, retrying) for table, expiry in wanted.items())


def _compare(
    client: DynamoDBClient, rules: Rules, table: Table, expiry: tuple[str | None, str], retrying: Retrying
) -> ComparedTable:
    """Describe one table. `expiry`: its Time to Live, and the harm without it."""
    parameters, (ttl, harm) = make_table_parameters(table, stream=table in rules.streamed_tables), expiry
    found = describe_table(client, table, retrying)
    if found is None:
        return ComparedTable(table, parameters, exists=False, problems=_check_place(table), ttl=ttl)
    problems, place = [*list_table_problems(rules, table, found)], format_cli_options(client)
    if ttl is not None and not is_strong(found):
        problems += list_time_to_live_problems(table, ttl, describe_time_to_live(client, table, retrying), harm, place)
    problems += list_vector_problems(table, found, place, emulated=not aws.is_aws(client))
    return ComparedTable(table, parameters, exists=True, problems=tuple(problems), ttl=ttl)


def _check_place(table: Table) -> tuple[TableProblem, ...]:
    """The problem of a missing table that is named by its ARN: it may be of another account or Region."""
    if not table.physical_name.startswith("arn:"):
        return ()
    found = "it does not exist, and is named by its ARN, which may be of another account or Region"
    return (TableProblem(table.physical_name, found, "Create it there, or name it without the ARN"),)


# ---------------------------------------------------------------- created
def create_missing_tables(
    client: DynamoDBClient, compared: Iterable[ComparedTable], *, active_max_seconds: float = ACTIVE_MAX_SECONDS
) -> tuple[ComparedTable, ...]:
    """Create the tables that do not exist, wait until they are active, and return them. Other tables stay unchanged.

    Raises:
        StoreError: if a table cannot be created or is not active in time. Tables created before it stay.
    """
    missing = tuple(one for one in compared if not one.exists and not one.problems)
    for one in missing:
        _create(client, one.parameters)
    for one in missing:
        _wait_until_active(client, one.table, active_max_seconds)
        if one.ttl is not None:
            _enable_time_to_live(client, one.table, one.ttl)
    return missing


def make_time_to_live(name: str) -> dict[str, Any]:
    """Make the TimeToLiveSpecification for an attribute."""
    return {"AttributeName": name, "Enabled": True}


def _enable_time_to_live(client: DynamoDBClient, table: Table, name: str) -> None:
    where, call = f"UpdateTimeToLive of {table.physical_name}", client.update_time_to_live
    specification: Any = make_time_to_live(name)
    retries.ask(retries.make_retry(), where, call, TableName=table.physical_name, TimeToLiveSpecification=specification)


def _create(client: DynamoDBClient, parameters: Mapping[str, Any]) -> None:
    retries.ask(retries.make_retry(), f"CreateTable of {parameters['TableName']}", client.create_table, **parameters)


def _wait_until_active(client: DynamoDBClient, table: Table, max_seconds: float) -> None:
    retrying = retries.make_retry()

    def active() -> bool:
        description = describe_table(client, table, retrying)
        if description is None:
            return False  # DescribeTable is eventually consistent
        states = [
            description["TableStatus"],
            *(i["IndexStatus"] for kind in INDEX_KINDS for i in description.get(kind, [])),
        ]
        return all(state == "ACTIVE" for state in states)

    waiting = Retrying(
        retry=retry_if_result(lambda ready: not ready),
        stop=stop_after_delay(max_seconds),
        wait=wait_random_exponential(multiplier=retries.FIRST_WAIT_SECONDS, max=WAIT_MAX_SECONDS),
    )
    try:
        waiting(active)
    except RetryError as error:
        raise StoreError("TableNotActive", f"{table.physical_name} after {max_seconds:g} s") from error
