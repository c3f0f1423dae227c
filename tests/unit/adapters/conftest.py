"""AWS as moto plays it, for tests of one service each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Makes clients of services in an empty account."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield lambda service: boto3.client(service, region_name="us-east-1")


@pytest.fixture
def table_of_ids(moto: Callable[[str], Any]) -> Callable[..., Any]:
    """Makes a table whose key is the string `id`, or another key, and a client."""

    def make(name: str, **key: str) -> Any:
        client, given = moto("dynamodb"), key or {"id": "S"}
        kinds = zip(given, ("HASH", "RANGE"), strict=False)
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": one, "KeyType": kind} for one, kind in kinds],
            AttributeDefinitions=[{"AttributeName": one, "AttributeType": kind} for one, kind in given.items()],
            BillingMode="PAY_PER_REQUEST",
        )
        return client

    return make
