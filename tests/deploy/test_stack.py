"""The whole pipeline as it is deployed: a write, its stream, the function in a process of its own, the copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sync_rules.cli import main
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Change, ItemKey, Outcome
from sync_rules.pipeline.telemetry import METRIC_NAMES, VERIFIED
from tests.deploy.conftest import RULES
from tests.deploy.stacks import STAGE, Stack, eventually
from tests.support.builders import author_item, book_item, order_item, s, user_item
from tests.support.worlds import event_of

MANY = 2_000


def test_stack_copies_through_an_index_and_counts(stack: Stack):
    """An author's name reaches the books that an index finds, and a second look follows; each book is counted once."""
    stack.put("authors", author_item("a1", name=s("Ada")))
    stack.put("books", *(book_item(f"b{number}", "a1") for number in range(3)))
    eventually(lambda: stack.item("authors", author_id="a1"), lambda item: item.get("books") == {"N": "3"})
    eventually(lambda: stack.item("books", book_id="b1"), lambda item: item.get("author_name") == s("Ada"))
    eventually(lambda: stack.counted("fanout", "author-name-on-books"), lambda sums: sums[METRIC_NAMES[Outcome.RIGHT]])
    stack.client("dynamodb").delete_item(TableName=f"{STAGE}-books", Key={"book_id": s("b1")})
    eventually(lambda: stack.item("authors", author_id="a1"), lambda item: item["books"] == {"N": "2"})


@pytest.mark.night
def test_stack_continues_a_large_fan_out_through_the_queue(stack: Stack):
    """Two thousand targets are more than one invocation takes: workers do the rest, and every target is right."""
    stack.put("shop", user_item("many", name=s("Ada")))
    stack.put("shop", *(order_item("many", f"{number:04}", user_name=s("Ada")) for number in range(MANY)))
    rule = "user-name-on-orders"
    eventually(
        lambda: stack.counted("stream", rule), lambda sums: sums[METRIC_NAMES[Outcome.RIGHT]] >= MANY
    )  # nothing to do yet
    stack.put("shop", user_item("many", name=s("Eve")))

    def wrong() -> int:
        pages = (
            stack.client("dynamodb")
            .get_paginator("query")
            .paginate(
                TableName=f"{STAGE}-shop",
                KeyConditionExpression="PK = :pk AND begins_with(SK, :order)",
                ExpressionAttributeValues={":pk": s("USER#many"), ":order": s("ORDER#")},
                ConsistentRead=True,
            )
        )
        names = [item["user_name"] for page in pages for item in page["Items"]]
        assert len(names) == MANY
        return sum(name != s("Eve") for name in names)

    eventually(wrong, lambda count: count == 0)
    eventually(lambda: stack.counted("fanout", rule), lambda sums: sums[METRIC_NAMES[Outcome.COPIED]] >= MANY / 4)
    queues = ("FanoutQueueUrl", "FanoutDeadLettersUrl", "FailuresQueueUrl")
    eventually(lambda: [_waiting(stack, stack.outputs[queue]) for queue in queues], lambda left: left == [0, 0, 0])


def _waiting(stack: Stack, url: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(map(int, found.values()))


@pytest.mark.night
def test_stack_verifies_by_schedule(quiet_stack: Stack):
    """The schedule is there, and its input makes the function look at a sample of everything."""
    client = quiet_stack.client("scheduler")
    (schedule,) = client.list_schedules()["Schedules"]
    target = client.get_schedule(Name=schedule["Name"])["Target"]
    assert target["Arn"].endswith(quiet_stack.resources()["VerifyFunction"])
    assert "DeadLetterConfig" in target
    book, author = book_item("b4", "a6", author_name=s("Fay")), author_item("a6", name=s("Fay"))
    quiet_stack.put("authors", author)
    quiet_stack.put("books", book)
    eventually(lambda: quiet_stack.item("authors", author_id="a6"), lambda item: item.get("books") == {"N": "1"})
    asked = json.loads(target["Input"])
    assert quiet_stack.invoke("VerifyFunction", asked).keys() >= {"items", "drift"}
    assert quiet_stack.invoke("VerifyFunction", {**asked, "percent": 100})["items"]
    eventually(lambda: quiet_stack.counted("verify", "author-name-on-books"), lambda sums: sums[VERIFIED])


# ---------------------------------------------------------------- in the account, started from a terminal
@pytest.fixture
def sync_rules(everybodys_stack: Stack, built: Path, monkeypatch, capsys) -> Callable[..., tuple[int, str]]:
    """A command on the deployed stack: its exit code, and what it printed."""
    monkeypatch.setenv("STAGE", STAGE)

    def command(verb: str, *options: str) -> tuple[int, str]:
        fixed = [str(built / "rules.yaml"), "--remote", "--endpoint-url", everybodys_stack.url, "--format", "jsonl"]
        return main.main([verb, *fixed, *options]), capsys.readouterr().out

    return command


@contextmanager
def unseen(stack: Stack, function: str) -> Iterator[None]:
    """Keep writes from a stream function until the end of the block."""
    client = stack.client("lambda")
    mappings = client.list_event_source_mappings(FunctionName=stack.resources()[function])["EventSourceMappings"]
    try:
        for mapping in mappings:
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
        yield
    finally:
        for mapping in mappings:
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)


@pytest.mark.night
def test_stack_backfills_in_the_account(stack: Stack, sync_rules):
    """A backfill in the account writes copies although no stream record arrived, one function call per segment."""
    with unseen(stack, "StreamFunction"):
        books = [f"old{number}" for number in range(30)]
        stack.put("authors", author_item("a3", name=s("Cyd")))
        stack.put("books", *(book_item(book, "a3") for book in books))
        code, printed = sync_rules("backfill", "--rule", "author-name-on-books")
        assert code == 0, printed
        assert {json.dumps(stack.item("books", book_id=book).get("author_name")) for book in books} == {'{"S": "Cyd"}'}
    assert stack.client("stepfunctions").list_executions(stateMachineArn=stack.outputs["BackfillMachineArn"])[
        "executions"
    ]


@pytest.mark.night
def test_stack_redrives_in_the_account(stack: Stack, sync_rules):
    """The state machine processes a batch that a mapping gave up, and deletes its object."""
    stack.put("shop", order_item("u2", "o1"))
    rules = parse_rules(RULES.read_text(), environ={"STAGE": STAGE})
    key = ItemKey("shop", (("PK", "S", "USER#u2"), ("SK", "S", "PROFILE")))
    lost = event_of(rules, Change(key, None, user_item("u2", name=s("Dot")), "1"))
    with unseen(stack, "StreamFunction"):
        stack.put("shop", user_item("u2", name=s("Dot")))
        given_up = {
            "DDBStreamBatchInfo": {"streamArn": lost["Records"][0]["eventSourceARN"]},
            "payload": json.dumps(lost),
        }
        place = {"Bucket": stack.outputs["BucketName"], "Key": "aws/lambda/0b1c/shardId-1/2026/11/21/x"}
        stack.client("s3").put_object(**place, Body=json.dumps(given_up))
        code, printed = sync_rules("redrive")
        assert code == 0, printed
        assert stack.item("shop", PK="USER#u2", SK="ORDER#o1")["user_name"] == s("Dot")
    listed = stack.client("s3").list_objects_v2(Bucket=place["Bucket"], Prefix="aws/lambda/0b1c/")
    assert not listed.get("Contents")
