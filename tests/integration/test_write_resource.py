"""A boto3 resource, its tables and its client are as good as a plain client, with plain Python values throughout."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr

from sync_rules.write import TransactionCanceled, follow, transact
from tests.integration import test_write_engine

ADA = {"PK": "USER#7", "SK": "PROFILE", "name": "Ada"}


class Site(test_write_engine.Site):
    def __init__(self, endpoint_url: str) -> None:
        super().__init__(endpoint_url)
        local = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
        self.resource: Any = boto3.resource("dynamodb", endpoint_url=endpoint_url, **local)
        self.name = self.rules.tables["shop"].physical_name
        self.table = self.resource.Table(self.name)

    def given(self, kind: str) -> Any:
        return {"resource": self.resource, "table": self.table, "client": self.table.meta.client}[kind]

    def order(self, number: str) -> dict[str, Any]:
        return self.table.get_item(Key={"PK": "USER#7", "SK": f"ORDER#{number}"}).get("Item") or {}

    def user(self) -> dict[str, Any]:
        found: dict[str, Any] = self.table.get_item(Key={"PK": "USER#7", "SK": "PROFILE"})["Item"]
        return found


@pytest.fixture
def site(engine):
    return Site(engine)


@pytest.mark.parametrize("kind", ["resource", "table", "client"])
def test_write_resource_transact_takes_all_of_them(site, kind):
    """Values in plain Python or attribute values; what a resource returned can be put again."""
    given = site.given(kind)
    with transact(site.rules, given) as tx:
        tx.put("user", {**ADA, "picture": b"\x00\x01", "at": Decimal("1.50")})
    with transact(site.rules, given, raw=True) as tx:
        tx.put("order", {"PK": {"S": "USER#7"}, "SK": {"S": "ORDER#9"}, "total": {"N": "12"}})
    assert site.order("9") == {"PK": "USER#7", "SK": "ORDER#9", "total": 12, "user_name": "Ada", "counted": 1}
    read = site.user()
    with transact(site.rules, given) as tx:
        tx.source("user", read)
        tx.put("user", {**read, "name": "Eve"})
    assert (site.user()["name"], site.user()["picture"], site.user()["at"]) == ("Eve", read["picture"], read["at"])
    assert site.order("9")["user_name"] == "Eve"
    tx = transact(site.rules, given)
    tx.update("user", {"PK": "USER#7", "SK": "PROFILE"}, set={"name": "Bob"}, condition="#n = :n", names={"#n": "name"},
              values={":n": "Ada"}, returns=True)  # fmt: skip
    with pytest.raises(TransactionCanceled) as raised:
        tx.commit()
    assert (raised.value.reasons[0].item or ADA)["name"] in ("Ada", "Eve")


@pytest.mark.parametrize("kind", ["resource", "table", "client"])
def test_write_resource_follow_notes_a_table(site, kind):
    """Each way to write by a resource is noted: copies are right after the block, and answers are as they were."""
    noting: Any = follow(site.rules, site.given(kind))
    table = {"resource": lambda: noting.Table(site.name), "table": lambda: noting, "client": lambda: None}[kind]()
    own = {} if table is not None else {"TableName": site.name}
    table = table or noting
    with noting:
        assert "Attributes" not in table.put_item(**own, Item=ADA)
        if own:
            noting.batch_write_item(RequestItems={site.name: [{"PutRequest": {"Item": order("9")}}]})
        else:
            with table.batch_writer(overwrite_by_pkeys=["PK", "SK"]) as batch:
                batch.put_item(Item=order("9"))
    assert site.order("9")["user_name"] == "Ada"
    assert site.user()["orders"] == {"9"}
    with noting:
        answer = table.update_item(
            **own, Key={"PK": "USER#7", "SK": "PROFILE"}, UpdateExpression="SET #n = :n", ReturnValues="UPDATED_NEW",
            ExpressionAttributeNames={"#n": "name"}, ExpressionAttributeValues={":n": "Bob"},
            ConditionExpression=Attr("name").eq("Ada"),
        )  # fmt: skip
        assert answer["Attributes"] == {"name": "Bob"}
    assert site.order("9")["user_name"] == "Bob"
    with noting:
        answer = table.delete_item(**own, Key={"PK": "USER#7", "SK": "ORDER#9"}, ReturnValues="ALL_OLD")
        assert answer["Attributes"]["total"] == 1
    assert "orders" not in site.user()
    assert table.get_item(**own, Key={"PK": "USER#7", "SK": "PROFILE"})["Item"]["name"] == "Bob"


def order(number: str) -> dict[str, Any]:
    return {"PK": "USER#7", "SK": f"ORDER#{number}", "total": 1}
