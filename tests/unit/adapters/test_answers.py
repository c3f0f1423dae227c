"""Answers with one missing or odd part: each reader answers as usual, or its error says whose answer was bad."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from sync_rules.adapters import aws, retries
from sync_rules.adapters.beginnings import note_in_table
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import require_calls_table
from sync_rules.adapters.preflight import list_stream_arns, survey_tables
from sync_rules.adapters.s3 import S3Bucket
from sync_rules.adapters.sqs import FailedMessages, SqsQueue
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.doctor import Site
from sync_rules.deploy.examination import Examination, NotSeenError, list_resources
from sync_rules.deploy.permissions import FUNCTIONS
from sync_rules.jobs.account.stack import Machine, read_stack
from sync_rules.jobs.consume.shards import make_stream_record
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import SyncRulesError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.pipeline.requests import List, Read, Scan
from tests.support.depth import spread_over_night

URL = "http://127.0.0.1:9"
ARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/authors/stream/x"
RULES = parse_rules("""
tables: {authors: {key: {author_id: S}}, books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}}
entities: {author: {table: authors}, book: {table: books}}
rules:
  name: copy author.name into book.author_name
  tell: {call: warehouse.changed, on: book, watch: [title]}
""")
ONCE = retries.make_retry(attempts_max=1)
KEYS = tuple(ItemKey("authors", (("author_id", "S", name),)) for name in "ab")
BY_AUTHOR = KeyConditions((("author_id", {"S": "a"}),), None)


def records(client: Any) -> list[Any]:
    page = DynamoDBStreams(client).records(ARN, "i", 10)
    return [make_stream_record(record, 0) for record in page.records]


def store(client: Any) -> DynamoStore:
    return DynamoStore(client, RULES.tables, attempts_max=1)


def largest(client: Any) -> int:
    return SqsQueue(client, f"{URL}/q", on_small=lambda _: None, retrying=ONCE)._takes()


def calls_table(client: Any) -> None:
    with suppress(UserError):  # its key is another one
        require_calls_table(client, RULES, "calls", ONCE)


def examined(area: str) -> Callable[[Any], Any]:
    """Looks at one area of a stack, whose functions and tables are as they should be."""

    def read(client: Any) -> None:
        it = Examination(SITE, lambda _service: client, NOW)
        it.__dict__["_descriptions"] = dict.fromkeys(RULES.streamed_tables, TABLE)
        if area != "versions":
            it.__dict__["_configurations"] = {name: {"Role": ARN, "Timeout": 180} for name in FUNCTIONS}
        with suppress(NotSeenError):  # a finding
            list(it.areas[area]())

    return read


STACK = "arn:aws:cloudformation:eu-west-1:111122223333:stack/s/1"
NAMES = {"A": ("AWS::CloudWatch::Alarm", "a"), **{name: ("AWS::Lambda::Function", name) for name in FUNCTIONS}}
SITE = Site("s", STACK, "", {}, NAMES, Deployment(RULES), RULES, Path("rules.yaml"))
READ = DynamoDBStreams
TABLE = {
    "TableName": "books",
    "TableArn": ARN,
    "ItemCount": 5,
    "KeySchema": [{"AttributeName": "book_id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("book_id", "author_id")],
    "GlobalSecondaryIndexes": [
        {"IndexName": "by_author", "KeySchema": [{"AttributeName": "author_id", "KeyType": "HASH"}]}
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "LatestStreamArn": ARN,
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ITEM = {"author_id": {"S": "a"}}
RECORD = {"eventID": "1", "dynamodb": {"SequenceNumber": "1", "Keys": ITEM, "ApproximateCreationDateTime": NOW}}
MESSAGE = {"MessageId": "m", "ReceiptHandle": "r", "Body": "{}", "Attributes": {"SentTimestamp": "1"}}
# Of each operation a good answer, and all that reads it.
ANSWERS: Mapping[tuple[str, str], tuple[dict[str, Any], list[Callable[[Any], Any]]]] = {
    ("dynamodb", "DescribeTable"): (
        {"Table": TABLE},
        [
            lambda client: survey_tables(client, RULES, retrying=ONCE),
            lambda client: list_stream_arns(client, RULES.streamed_tables),
            calls_table,
        ],
    ),
    ("dynamodb", "GetItem"): (
        {"Item": {**ITEM, "rule:tell": {"N": "1"}}},
        [lambda client: store(client).read(Read(KEYS[:1]))],
    ),
    ("dynamodb", "UpdateItem"): (
        {"Attributes": {"id": {"S": "x"}}},
        [lambda client: note_in_table(client, RULES, "calls", lambda: 1, retrying=ONCE)],
    ),
    ("dynamodb", "BatchGetItem"): (
        {"Responses": {"authors": [ITEM]}, "UnprocessedKeys": {"authors": {"Keys": [ITEM]}}},
        [lambda client: store(client).read(Read(KEYS))],
    ),
    ("dynamodb", "Query"): (
        {"Items": [ITEM], "LastEvaluatedKey": ITEM},
        [lambda client: store(client).list(List("books", "by_author", BY_AUTHOR, 1))],
    ),
    ("dynamodb", "Scan"): (
        {"Items": [ITEM], "LastEvaluatedKey": ITEM},
        [lambda client: store(client).scan(Scan("books", 1))],
    ),
    ("dynamodbstreams", "DescribeStream"): (
        {"StreamDescription": {"Shards": [{"ShardId": "s", "ParentShardId": "p"}]}},
        [lambda client: READ(client).shards(ARN)],
    ),
    ("dynamodbstreams", "GetShardIterator"): ({"ShardIterator": "i"}, [lambda client: READ(client).latest(ARN, "s")]),
    ("dynamodbstreams", "GetRecords"): ({"Records": [RECORD], "NextShardIterator": "j"}, [records]),
    ("sqs", "GetQueueAttributes"): (
        {"Attributes": {"MaximumMessageSize": "2048", "VisibilityTimeout": "9", "RedrivePolicy": "{}"}},
        [largest, examined("queues")],
    ),
    ("sqs", "ReceiveMessage"): (
        {"Messages": [MESSAGE]},
        [lambda client: list(FailedMessages(client, f"{URL}/q", mark="", retrying=ONCE).entries())],
    ),
    ("s3", "ListObjectsV2"): (
        {"Contents": [{"Key": "k", "Size": 1}], "IsTruncated": False, "NextContinuationToken": "t"},
        [lambda client: [one["Key"] * one["Size"] for one in islice(S3Bucket(client, "b", ONCE).list(""), 3)]],
    ),
    ("cloudformation", "DescribeStacks"): (
        {
            "Stacks": [
                {
                    "StackName": "s",
                    "StackId": STACK,
                    "StackStatus": "CREATE_COMPLETE",
                    "Outputs": [{"OutputKey": "k", "OutputValue": "v"}],
                    "Parameters": [{"ParameterKey": "k", "ParameterValue": "v"}],
                }
            ]
        },
        [lambda client: read_stack(client, "s").output("k")],
    ),
    ("cloudformation", "ListStackResources"): (
        {"StackResourceSummaries": [{"LogicalResourceId": "A", "ResourceType": "t", "PhysicalResourceId": "p"}]},
        [lambda client: list_resources(lambda _service: client, "s")],
    ),
    ("cloudwatch", "DescribeAlarms"): (
        {"MetricAlarms": [{"AlarmName": "a", "AlarmActions": [], "StateValue": "ALARM", "AlarmDescription": "d"}]},
        [examined("alarms")],
    ),
    ("lambda", "GetFunctionConfiguration"): (
        {"Role": ARN, "Environment": {"Variables": {"SYNC_RULES_VERSION": "1"}}},
        [examined("versions")],
    ),
    ("lambda", "ListEventSourceMappings"): (
        {
            "EventSourceMappings": [
                {
                    "UUID": "u",
                    "State": "Enabled",
                    "EventSourceArn": ARN,
                    "LastProcessingResult": "OK",
                    "FilterCriteria": {"Filters": [{"Pattern": "{}"}]},
                }
            ]
        },
        [examined("mappings")],
    ),
    ("cloudwatch", "GetMetricStatistics"): (
        {"Datapoints": [{"Timestamp": NOW, "Maximum": 5.0}]},
        [examined("lag")],
    ),
    ("stepfunctions", "ListExecutions"): (
        {"executions": [{"name": "n"}]},
        [lambda client: Machine(client, "arn:aws:states:eu-west-1:1:stateMachine:m").list_running_executions()],
    ),
    ("stepfunctions", "DescribeExecution"): (
        {"status": "SUCCEEDED", "output": "{}"},
        [lambda client: Machine(client, "arn:aws:states:eu-west-1:1:stateMachine:m").execution("n")],
    ),
    ("sts", "GetCallerIdentity"): ({"Account": "111122223333"}, [lambda client: ask(client.get_caller_identity)]),
}  # fmt: skip


def ask(call: Callable[..., Any], **parameters: Any) -> Any:
    return retries.ask(ONCE, "here", call, **parameters)


ODD = ({}, [], [{}], "", "x", 5, True)


def damaged(answer: Any) -> Iterator[Any]:
    """The answer with one of its parts left out, null, or replaced by each odd value."""
    if isinstance(answer, dict | list) and answer != {"S": "a"}:  # no reader here parses values of items
        for place, part in answer.items() if isinstance(answer, dict) else enumerate(answer):
            for one in (None, *ODD, *damaged(part)):
                copy: Any = deepcopy(answer)
                if one is None and isinstance(copy, dict):  # the parser leaves such members out
                    del copy[place]
                else:
                    copy[place] = one
                yield copy


@pytest.fixture
def client(monkeypatch) -> Callable[[str, dict[str, Any]], Any]:
    """A client that gets one answer to each operation, from its own machinery behind the parser."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    def make(service: str, given: Mapping[str, dict[str, Any]]) -> Any:
        aws._make_client.cache_clear()
        made = aws._make_client(service, URL, None)

        def answer(model: Any, **_: Any) -> Any:
            return SimpleNamespace(status_code=200, headers={}), deepcopy(given.get(model.name, {}))

        made.meta.events.register_first("before-call", answer)
        return made

    yield make
    aws._make_client.cache_clear()


@pytest.mark.parametrize(("service", "operation"), spread_over_night(ANSWERS), ids=lambda of: of)
def test_answer_with_an_odd_part_is_read_or_refused(service, operation, client):
    """No odd part of an answer is an error of ours: whatever reads it is well, or raises a StoreError or UserError."""
    good, readers = ANSWERS[service, operation]
    given = {"Scan": {"Items": []}, operation: good}
    made = client(service, given)
    for read in readers:
        if operation != "BatchGetItem":  # whose good answer is one of many
            read(made)
        for one in damaged(good):
            given[operation] = one
            try:
                read(made)
            except SyncRulesError:
                continue
            except Exception as error:
                raise AssertionError(one) from error
        given[operation] = good


def test_answers_leave_no_cycles():
    """A request leaves nothing to the garbage collector: one parser for each protocol reads all answers."""
    client = aws.dynamodb("http://127.0.0.1:1")
    headers = {"content-type": "application/x-amz-json-1.0"}

    def answer(request: Any, **_: Any) -> AWSResponse:
        raw: Any = SimpleNamespace(stream=lambda *_args, **_named: iter([b'{"TableNames": []}']))
        return AWSResponse(request.url, 200, headers, raw)

    client.meta.events.register("before-send.dynamodb", answer)
    client.list_tables()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            client.list_tables()
        assert gc.collect() == 0
    finally:
        gc.enable()
