"""An account in memory, for what reads live tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from sync_rules.adapters import aws


@pytest.fixture
def client(monkeypatch) -> Iterator:
    """A client of the account."""
    for name, value in (("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-central-1")):
        monkeypatch.setenv(name, value)
    aws._make_client.cache_clear()
    with mock_aws():
        yield aws.dynamodb(None, "eu-central-1")
    aws._make_client.cache_clear()
