"""The caller of functions, made only if some rule needs it.

Invariant: before the first record is read, everything that a rule needs exists, or an error names what is missing.
Modules that no rule needs are not imported, so that a process starts faster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tenacity import Retrying

from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.model.errors import UserError
from sync_rules.pipeline.requests import NULL_PORTS, Caller
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CALLS_KEY: Final = [{"AttributeName": "id", "KeyType": "HASH"}]
FORBIDDEN: Final = aws_errors.NOT_ALLOWED | {"Forbidden", "403"}


def make_caller(
    rules: Rules,
    client: DynamoDBClient,
    calls_table: str | None,
    *,
    folder: Path | None = None,
    retrying: Retrying | None = None,
    remaining_ms: Callable[[], int] | None = None,
) -> Caller:
    """Make the caller of the rules' functions; without such rules, a caller that fails. `calls_table` remembers the
    calls; without it, this process does. Modules are imported from Python's path, and then from `folder`.

    Raises:
        UserError: when a function cannot be called, or the table cannot remember calls.
        StoreError: when the table cannot be described.
    """
    functions = rules.functions
    if not functions:
        return NULL_PORTS
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: a file beside the rules must not stand in for an installed module
    if calls_table:
        require_calls_table(client, rules, calls_table, retrying or retries.make_retry())
    from sync_rules.adapters.function_calls import FunctionCaller, RememberedInMemory, RememberedInTable  # noqa: PLC0415

    memory = RememberedInTable(client, calls_table, retrying=retrying) if calls_table else RememberedInMemory()
    caller = FunctionCaller(memory, remaining_ms=remaining_ms)
    caller.require(functions)
    return caller


def require_calls_table(client: DynamoDBClient, rules: Rules, name: str, retrying: Retrying) -> None:
    """Check that this table can remember calls, and that its items trigger no rule. A table that may not be described
    passes.

    Raises:
        UserError: when it is a table of the rules, does not exist or has another key.
        StoreError: when it cannot be described.
    """
    try:
        found: Mapping[str, Any] = retrying(client.describe_table, TableName=name)["Table"]
    except aws_errors.ERRORS as error:
        if aws_errors.read_reason(error) == "TableNotFound":
            message = f"table {name}, which is to remember the calls, does not exist at {aws.format_place(client)}."
            cure = "Create it with the string key 'id', or correct its name, the Region or the endpoint."
            raise UserError(f"{message} {cure}") from error
        if aws_errors.read_reason(error) not in FORBIDDEN:
            raise aws_errors.make_store_error(error, f"DescribeTable of {name}") from error
        found = {"TableName": name}
    if parse_table_name(found["TableName"]) in {
        parse_table_name(table.physical_name) for table in rules.tables.values()
    }:
        message = f"table {name} is a table of the rules: each call remembered in it would be a change itself."
        raise UserError(f"{message} Give the calls a table of their own, with the string key 'id'.")
    types = {one["AttributeName"]: one["AttributeType"] for one in found.get("AttributeDefinitions", ())}
    if "KeySchema" in found and (found["KeySchema"] != CALLS_KEY or types.get("id") != "S"):
        key = ", ".join(
            f"{one['AttributeName']} ({types.get(one['AttributeName'], '?')})" for one in found["KeySchema"]
        )
        message = f"table {name} cannot remember the calls: its key is {key}, and must be the string 'id' alone."
        raise UserError(f"{message} Give another table.")


def parse_table_name(table: str) -> str:
    """Return the name of a table, given its name or ARN."""
    return table.rpartition("/")[2]
