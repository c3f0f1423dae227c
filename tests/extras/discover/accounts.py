"""Tables of an account in memory, and its pages made small."""

from __future__ import annotations

from collections.abc import Sequence


def create_table(client, name: str, key: dict[str, str], index: dict[str, str] | None = None, view: str = "") -> None:
    """Make a table with this key, and with GSI1 where an index is given, and a stream of this view."""

    def schema(of: dict[str, str]) -> list[dict[str, str]]:
        return [{"AttributeName": one, "KeyType": kind} for one, kind in zip(of, ("HASH", "RANGE"), strict=False)]

    more: dict = {}
    if index:
        more["GlobalSecondaryIndexes"] = [
            {"IndexName": "GSI1", "KeySchema": schema(index), "Projection": {"ProjectionType": "ALL"}}
        ]
    if view:
        more["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    types = {**key, **(index or {})}
    client.create_table(
        TableName=name,
        KeySchema=schema(key),
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": kind} for one, kind in types.items()],
        BillingMode="PAY_PER_REQUEST",
        **more,
    )


def fill_table(client, name: str, items: Sequence[dict]) -> None:
    """Put items, 25 in a request: one by one they take most of a test's time."""
    for first in range(0, len(items), 25):
        puts = [{"PutRequest": {"Item": item}} for item in items[first : first + 25]]
        assert not client.batch_write_item(RequestItems={name: puts})["UnprocessedItems"]


def limit_pages(client, monkeypatch, items: int) -> list[dict]:
    """Make the pages of scans small. Gives the requests."""
    asked: list[dict] = []
    inner = client.scan

    def scan(**request: object) -> dict:
        asked.append(request)
        return inner(**{**request, "Limit": items})

    monkeypatch.setattr(client, "scan", scan)
    return asked
