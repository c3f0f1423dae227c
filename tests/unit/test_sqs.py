"""The queue and the failure sink on SQS (moto, single-threaded)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import boto3
import pytest
from moto import mock_aws

from sync_rules import aws
from sync_rules.errors import StoreError
from sync_rules.messages import CallMessage, PullMessage, PushMessage, decode, encode
from sync_rules.model import Change, Failure, ItemKey
from sync_rules.sqs import MESSAGE_MAX_BYTES, SqsFailures, SqsQueue

KEY = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "B", b"\x00\xff")))
AT = datetime(2026, 11, 21, 12, 0, 0, 1000, UTC)


@pytest.fixture
def client(monkeypatch) -> Iterator:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


@pytest.fixture
def queue_url(client) -> str:
    return client.create_queue(QueueName="later")["QueueUrl"]


def received(client, queue_url):
    return [m["Body"] for m in client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages", [])]


def call(length: int) -> CallMessage:
    """A call whose image holds so much text."""
    return CallMessage("r", "f.g", Change(KEY, {"B": {"B": b"\xff"}, "S": {"S": "x" * length}}, None, "1"))


@pytest.mark.parametrize("message", [PushMessage(("r",), KEY, cursor={"PK": {"S": "x"}}), PullMessage(KEY, 2), call(3)])
def test_queue_carries_messages(client, queue_url, message):
    """What was sent is what is received."""
    SqsQueue(client, queue_url).send(message, 0)
    (body,) = received(client, queue_url)
    assert decode(body) == message


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (60, 60), (900, 900), (5000, 900)])
def test_queue_delays_at_most_900_seconds(asked, given):
    """The limit of SQS; a look may come early, never not at all."""
    calls = []

    class Client:
        def send_message(self, **parameters):
            calls.append(parameters)

    SqsQueue(Client(), "http://127.0.0.1/later").send(PullMessage(KEY), asked)
    assert calls[0]["DelaySeconds"] == given


def test_failures_are_json_records(client, queue_url):
    """Rule, table, key, reason, position and time; never a value of the item."""
    SqsFailures(client, queue_url, now=lambda: AT).park(Failure("r", KEY, "ItemTooLarge", "123"))
    (body,) = received(client, queue_url)
    assert json.loads(body) == {
        "rule": "r",
        "table": "shop",
        "key": {"PK": "USER#1", "SK": "00ff"},
        "reason": "ItemTooLarge",
        "position": "123",
        "member": None,
        "at": "2026-11-21T12:00:00.001+00:00",
    }


def test_queue_that_is_missing_raises(client):
    """A StoreError that names the queue: the record that asked for it is reported as failed."""
    with pytest.raises(StoreError, match="QueueNotFound: queue nowhere"):
        SqsQueue(client, "https://sqs.us-east-1.amazonaws.com/123456789012/nowhere").send(PullMessage(KEY), 0)


def test_queue_that_throttles_is_asked_again(client, queue_url):
    """With the same retries as the store."""
    answers = [aws.ClientError({"Error": {"Code": "RequestThrottled"}}, "SendMessage"), {}]

    class Client:
        def send_message(self, **_):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    SqsQueue(Client(), queue_url, retrying=aws.retrying(sleep=lambda _: None)).send(PullMessage(KEY), 0)
    assert answers == []


def test_queue_refuses_what_is_too_large(client, queue_url):
    """A call with large images is sent up to the limit of SQS; beyond it, MessageTooLarge, and its record is reported."""
    queue = SqsQueue(client, queue_url)
    largest = MESSAGE_MAX_BYTES - len(encode(call(0)))
    with pytest.raises(StoreError, match="MessageTooLarge"):
        queue.send(call(largest + 1), 0)
    queue.send(call(largest), 0)
    assert len(received(client, queue_url)) == 1
