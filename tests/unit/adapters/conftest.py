"""AWS as moto plays it, for tests of one service each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sync_rules.deploy.tables import make_table_parameters
from tests.support.builders import table


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
        client = moto("dynamodb")
        client.create_table(**make_table_parameters(table(name, key or {"id": "S"}), stream=False))
        return client

    return make
