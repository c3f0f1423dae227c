"""The code that people write by hand: a loop over a boto3 resource, as tutorials show it, alone and with threads; and
25 statements to a request, as a good engineer writes them, with and without a guard.

Invariant: nothing here is slower than people write it. One client or resource for the process, with default settings
and a connection for each thread; all pages of a Query; in batches only the attributes that are needed, and statements
that are throttled are sent again. The loop's condition keeps it from creating a target, or writing one that moved.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Final

import boto3
from boto3.dynamodb.conditions import Key
from boto3.dynamodb.types import TypeDeserializer
from botocore.config import Config
from botocore.exceptions import ClientError

THREADS: Final = 16
CONFIG: Final = Config(max_pool_connections=THREADS)
BATCH: Final = 25  # statements that BatchExecuteStatement takes
ATTEMPTS: Final = 10
THROTTLES: Final = ("ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded")
Statement = dict[str, Any]


# ---------------------------------------------------------------- one request for each copy
def table_of(url: str, table: str) -> Any:
    """The table as tutorials get it."""
    return boto3.resource("dynamodb", endpoint_url=url, config=CONFIG).Table(table)


def orders_of(table: Any, user_id: str) -> Iterator[dict[str, Any]]:
    """The orders of a user, page by page: of the user's partition, or through the index."""
    asked: dict[str, Any] = {"KeyConditionExpression": Key("PK").eq(f"U#{user_id}") & Key("SK").begins_with("O#")}
    if table.name == "apart":
        asked = {"IndexName": "GSI1", "KeyConditionExpression": Key("GSI1PK").eq(f"U#{user_id}")}
    while True:
        page = table.query(**asked)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def rename(table: Any, user_id: str, order: Mapping[str, Any], name: str) -> None:
    """Copy a user's name into one order."""
    table.update_item(
        Key={"PK": order["PK"], "SK": order["SK"]},
        UpdateExpression="SET user_name = :name",
        ConditionExpression="user_id = :user",
        ExpressionAttributeValues={":name": name, ":user": user_id},
    )


def loop(table: Any, user_id: str, name: str) -> None:
    """Rename the user on one order after the other."""
    for order in orders_of(table, user_id):
        rename(table, user_id, order, name)


def pool(table: Any, user_id: str, name: str) -> int:
    """Rename the user on several orders at a time. Returns the number of copies given up."""
    with ThreadPoolExecutor(THREADS) as executor:
        futures = [executor.submit(rename, table, user_id, order, name) for order in orders_of(table, user_id)]
    return sum(isinstance(future.exception(), ClientError) for future in futures)


# ---------------------------------------------------------------- 25 copies with each request
def client_of(url: str) -> Any:
    """The client of a process."""
    return boto3.client("dynamodb", endpoint_url=url, config=CONFIG)


def blind(client: Any, user_id: str, name: str, threads: int = 1) -> int:
    """Rename the user on 25 orders at a time, whatever became of them since they were listed. Returns the number of
    copies given up.
    """
    text = 'UPDATE "together" SET "user_name"=? WHERE "PK"=? AND "SK"=?'
    orders = listed(client, user_id, "PK, SK")
    return written(
        client,
        ({"Statement": text, "Parameters": [{"S": name}, order["PK"], order["SK"]]} for order in orders),
        threads,
    )


def guarded(client: Any, user_id: str, name: str, threads: int = 1) -> int:
    """The same for orders whose copy differs, if they are as they were listed. Returns the number of copies that were
    refused or given up.
    """
    orders = listed(client, user_id, "PK, SK, user_id, user_name")
    return written(
        client, (compared(order, {"S": name}) for order in orders if order.get("user_name") != {"S": name}), threads
    )


def compared(order: Mapping[str, Any], name: dict[str, str]) -> Statement:
    """The statement that renames the user on an order which is still this user's, and has the name that was read."""
    text = 'UPDATE "together" SET "user_name"=? WHERE "PK"=? AND "SK"=? AND "user_id"=?'
    values = [name, order["PK"], order["SK"], order["user_id"]]
    if (seen := order.get("user_name")) is None:
        return {"Statement": f'{text} AND "user_name" IS MISSING', "Parameters": values}
    return {"Statement": f'{text} AND "user_name"=?', "Parameters": [*values, seen]}


def listed(client: Any, user_id: str, attributes: str) -> Iterator[dict[str, Any]]:
    """These attributes of all orders in the user's partition."""
    pages = client.get_paginator("query").paginate(
        TableName="together",
        KeyConditionExpression="PK = :user AND begins_with(SK, :order)",
        ExpressionAttributeValues={":user": {"S": f"U#{user_id}"}, ":order": {"S": "O#"}},
        ProjectionExpression=attributes,
    )
    for page in pages:
        yield from page["Items"]


def written(client: Any, statements: Iterator[Statement], threads: int) -> int:
    """Execute statements, 25 at a time. Returns the number of those that were refused or given up."""
    batches = iter(lambda: list(islice(statements, BATCH)), [])
    if threads == 1:
        return sum(execute(client, batch) for batch in batches)
    with ThreadPoolExecutor(threads) as executor:
        return sum(executor.map(lambda batch: execute(client, batch), batches))


def execute(client: Any, statements: list[Statement]) -> int:
    """Execute up to 25 statements, and the throttled ones again, with jitter. Returns how many failed."""
    refused = 0
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(random.uniform(0, min(2.0, 0.05 * 2**attempt)))
        answers = client.batch_execute_statement(Statements=statements)["Responses"]
        codes = [answer.get("Error", {}).get("Code") for answer in answers]
        refused += sum(code is not None and code not in THROTTLES for code in codes)
        statements = [one for one, code in zip(statements, codes, strict=True) if code in THROTTLES]
        if not statements:
            return refused
    return refused + len(statements)


# ---------------------------------------------------------------- a stream handler
def handle(event: Mapping[str, Any], prefixes: Sequence[str]) -> list[str]:
    """A stream handler that turns both images of each record into Python, then compares its key with each prefix."""
    wanted = []
    deserialize = TypeDeserializer().deserialize
    for record in event["Records"]:
        old, new = (
            {name: deserialize(value) for name, value in record["dynamodb"].get(image, {}).items()}
            for image in ("OldImage", "NewImage")
        )
        wanted += [prefix for prefix in prefixes if new.get("SK", "").startswith(prefix) and old != new]
    return wanted
