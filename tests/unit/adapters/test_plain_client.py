"""A plain client of whatever the application has takes attribute values, and is the same client in all else."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from sync_rules.adapters.plain_client import (
    find_table_name,
    is_converting,
    is_resource,
    make_plain_client,
    unwrap_client,
)
from sync_rules.read import requests_of

PLACE: dict[str, Any] = {"region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "y"}
KEY = {"id": {"S": "1"}}


@pytest.fixture
def resource():
    return boto3.resource("dynamodb", endpoint_url="http://127.0.0.1:9", **PLACE)


def test_plain_client_of_a_client_is_itself():
    """A boto3 client, and any other object, is taken as it is."""
    client, other = boto3.client("dynamodb", **PLACE), object()
    assert make_plain_client(client) is client
    assert make_plain_client(other) is other
    assert (is_resource(client), is_converting(client), find_table_name(client)) == (False, False, None)


@pytest.mark.parametrize("part", ["resource", "table", "client"])
def test_plain_client_of_a_resource_is_that_of_the_resource_without_conversion(resource, part):
    """Connections, endpoint and signer are shared; a Stubber on the resource answers, in attribute values."""
    given = {"resource": resource, "table": resource.Table("shop"), "client": resource.meta.client}[part]
    own = unwrap_client(given)
    found = make_plain_client(given)
    assert find_table_name(given) == ("shop" if part == "table" else None)
    assert (is_converting(own), is_converting(found)) == (True, False)
    assert found.meta.endpoint_url == own.meta.endpoint_url
    assert found._endpoint is own._endpoint
    with Stubber(own) as stub:
        answer = {"Item": {**KEY, "n": {"N": "1"}}}
        stub.add_response("get_item", answer, {"TableName": "shop", "Key": KEY})
        assert make_plain_client(given).get_item(TableName="shop", Key=KEY)["Item"] == answer["Item"]
        stub.add_response("get_item", answer)
        assert own.get_item(TableName="shop", Key={"id": "1"})["Item"]["id"] == "1"
        stub.assert_no_pending_responses()


def test_plain_client_keeps_the_handlers_of_the_application(resource):
    """A handler that was registered on the resource's client sees our requests, and counts them."""
    seen: list[str] = []
    resource.meta.client.meta.events.register(
        "provide-client-params.dynamodb", lambda model, **_: seen.append(model.name)
    )
    with Stubber(resource.meta.client) as stub, requests_of(resource) as requests:
        stub.add_response("get_item", {})
        make_plain_client(resource).get_item(TableName="shop", Key=KEY)
    assert seen == ["GetItem"]
    assert requests.operations == ["GetItem"]
