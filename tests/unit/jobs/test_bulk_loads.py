"""Bulk loads since a backfill, as botocore's service model has them: it checks each request and answer below."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from botocore.stub import Stubber

from sync_rules.adapters import aws
from sync_rules.jobs.backfill.bulk_loads import CALLS, list_bulk_loads
from tests.support.builders import table

SINCE = datetime(2026, 11, 20, 12, tzinfo=UTC)
TABLES = (table("shop", {"PK": "S"}), table("books", {"book_id": "S"}))
PLACE = "arn:aws:dynamodb:eu-west-1:111122223333:"


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    client = aws.dynamodb(None, "eu-west-1")
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def load(number, hours, status="COMPLETED", ended=True):
    """A bulk load that ended, or began, some hours after the backfill."""
    moment = SINCE + timedelta(hours=hours)
    arn = f"{PLACE}bulk-operation/{number:032}"
    return {"BulkOperationArn": arn, "BulkOperationStatus": status, "StartTime": moment - timedelta(hours=1)} | (
        {"EndTime": moment} if ended else {}
    )


def describes(stub, one, name):
    answer = {"BulkOperationDescription": one | {"TableDetails": [{"TableName": name}]}}
    stub.add_response("describe_bulk_operation", answer, {"BulkOperationArn": one["BulkOperationArn"]})


def test_bulk_loads_that_a_backfill_did_not_see_are_those_of_its_tables_that_ended_later(stub):
    """Over several pages, by name or ARN, whatever their status; one that ended before is not even described."""
    running, mine, theirs, failed, before = (
        load(1, 9, "IN_PROGRESS", ended=False), load(2, 3), load(3, 2), load(4, 1, "FAILED"), load(5, -1),
    )  # fmt: skip
    first = {"BulkOperationsSummaryList": [running, mine, theirs], "NextToken": "0" * 16}
    stub.add_response("list_bulk_operations", first, {"MaxResults": 25})
    describes(stub, running, "books")
    describes(stub, mine, f"{PLACE}table/shop")
    describes(stub, theirs, "others")
    second = {"BulkOperationsSummaryList": [failed, before]}
    stub.add_response("list_bulk_operations", second, {"MaxResults": 25, "NextToken": "0" * 16})
    describes(stub, failed, "books")
    loads, unknown = list_bulk_loads(stub.client, TABLES, SINCE)
    then = "and the last backfill of all rules began at 2026-11-20T12:00:00Z"
    assert unknown == ""
    assert [one.describe(SINCE) for one in loads] == [
        f"table books: a bulk load runs since 2026-11-20T20:00:00Z (IN_PROGRESS), {then}",
        f"table shop: a bulk load ended at 2026-11-20T15:00:00Z (COMPLETED), {then}",
        f"table books: a bulk load ended at 2026-11-20T13:00:00Z (FAILED), {then}",
    ]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("AccessDeniedException", f"allow {CALLS} for your credentials"),
        ("UnknownOperationException", "UnknownOperationException: run it again later"),
    ],
)
def test_bulk_loads_that_are_refused_are_unknown_with_the_reason(stub, code, reason):
    """Also where a load is listed and may not be described."""
    stub.add_client_error("list_bulk_operations", code)
    assert list_bulk_loads(stub.client, TABLES, SINCE) == ((), reason)
    stub.add_response("list_bulk_operations", {"BulkOperationsSummaryList": [load(1, 1)]})
    stub.add_client_error("describe_bulk_operation", code)
    assert list_bulk_loads(stub.client, TABLES, SINCE) == ((), reason)


def test_bulk_loads_are_unknown_to_an_old_client_and_none_on_an_emulator():
    """Neither is asked: the one lacks the call, the other lacks bulk loads."""
    old = SimpleNamespace(meta=SimpleNamespace(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com"))
    loads, unknown = list_bulk_loads(old, TABLES, SINCE)
    assert (loads, unknown.endswith("cannot list bulk loads: upgrade boto3")) == ((), True)
    emulated = SimpleNamespace(meta=SimpleNamespace(endpoint_url="http://127.0.0.1:8000"), list_bulk_operations=None)
    assert list_bulk_loads(emulated, TABLES, SINCE) == ((), "")
