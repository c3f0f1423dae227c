"""The code that people write by hand, as tutorials show it: a loop over a boto3 resource, alone and in a thread pool.

Invariant: nothing here is slower than in the tutorials: default settings, one Query page at a time, one conditional
update per target so that no target is created, or written after it moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import boto3
from boto3.dynamodb.conditions import Key
from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import ClientError

THREADS: Final = 10  # the connections that botocore keeps


def table_of(url: str, table: str) -> Any:
    """The table as tutorials get it."""
    return boto3.resource("dynamodb", endpoint_url=url).Table(table)


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
