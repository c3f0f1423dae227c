"""Throttles, counted by kind where calls are tried again: as DynamoDB says it, on the wire and in each exception."""

from __future__ import annotations

import json
from collections import Counter

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from sync_rules.adapters import aws, retries

HOT = "TableWriteKeyRangeThroughputExceeded"


class Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_):
        yield self._body


def refusal(kind: str, **more: object):
    """DynamoDB's answer, before botocore has read it."""
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{kind}", "message": "no", **more}
    return AWSResponse("http://x", 400, {"content-type": "application/x-amz-json-1.0"}, Raw(json.dumps(body).encode()))


def answering(*answers):
    """A client that is answered so, one after the other."""
    client = boto3.client(
        "dynamodb", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x",
        config=aws.Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip
    waiting = list(answers)
    client.meta.events.register("before-send.dynamodb.*", lambda **_: waiting.pop(0))
    return client


def reasons(*names: str) -> list[dict[str, str]]:
    return [{"reason": name, "resource": "arn:aws:dynamodb:us-east-1:1:table/shop"} for name in names]


FINE = AWSResponse("http://x", 200, {"content-type": "application/x-amz-json-1.0"}, Raw(b"{}"))
SAID = {
    "of a provisioned table": (
        refusal("ProvisionedThroughputExceededException", ThrottlingReasons=reasons(HOT)),
        {HOT: 1},
    ),
    "of an account": (refusal("RequestLimitExceeded", ThrottlingReasons=reasons("IndexReadAccountLimitExceeded")), {
        "IndexReadAccountLimitExceeded": 1
    }),
    "spelt in small letters": (refusal("ThrottlingException", throttlingReasons=reasons(HOT)), {HOT: 1}),
    "of several, each once": (
        refusal("ThrottlingException", throttlingReasons=reasons(HOT, "TableReadKeyRangeThroughputExceeded", HOT)),
        {HOT: 1, "TableReadKeyRangeThroughputExceeded": 1},
    ),
    "that we do not know": (refusal("ThrottlingException", throttlingReasons=reasons("MoonPhase")), {"Other": 1}),
    "without a reason": (refusal("ProvisionedThroughputExceededException"), {"Other": 1}),
    "of a transaction": (
        refusal("TransactionCanceledException", CancellationReasons=[{"Code": "None"}, {"Code": "ThrottlingError"}]),
        {"Other": 1},
    ),
    "that is a conflict": (
        refusal("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}]),
        {},
    ),
    "that is an error of the service": (refusal("InternalServerError"), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_throttles_are_counted_by_what_dynamodb_says(case):
    """A call that is refused and then answered counts the refusal by its reasons, whatever exception carries them."""
    answer, counted = SAID[case]
    found: Counter[str] = Counter()
    client = answering(answer, FINE)
    retrying = retries.make_retry(sleep=lambda _: None, on_throttle=lambda kind: found.update([kind]))
    retrying(client.get_item, TableName="shop", Key={"PK": {"S": "1"}})
    assert found == counted
