"""Reading a stream through a client: pages, places, errors; and records in the shape Lambda gives them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from botocore.exceptions import EndpointConnectionError

from sync_rules.jobs import streams
from sync_rules.jobs.streams import (
    DynamoDBStreams,
    IteratorExpiredError,
    RecordsTrimmedError,
    Shard,
    ShardGoneError,
    make_event_record,
    parse_region,
    read_span,
)
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.failed_entries import Span
from tests.support.fake_stream import ARN
from tests.unit.adapters.test_dynamodb import Client, failed


def described(*shards: dict, last: str | None = None) -> dict:
    return {"StreamDescription": {"Shards": list(shards), **({"LastEvaluatedShardId": last} if last else {})}}


def test_streams_lists_the_shards_of_every_page():
    """DescribeStream gives at most 100 shards at a time; all pages are read."""
    client = Client(
        described({"ShardId": "s1"}, last="s1"),
        described({"ShardId": "s2", "ParentShardId": "s1"}),
    )
    assert DynamoDBStreams(client).shards(ARN) == (Shard("s1"), Shard("s2", "s1"))
    assert client.calls[1] == ("describe_stream", {"StreamArn": ARN, "ExclusiveStartShardId": "s1"})


def test_streams_says_when_a_shard_is_read_to_its_end():
    """No next iterator means that the shard is closed and has no more records."""
    client = Client({"Records": [], "NextShardIterator": "it2"}, {"Records": []})
    reader = DynamoDBStreams(client)
    assert reader.records(ARN, "it", 10).iterator == "it2"
    assert reader.records(ARN, "it2", 5_000).iterator is None
    assert [parameters for _, parameters in client.calls] == [
        {"ShardIterator": "it", "Limit": 10},
        {"ShardIterator": "it2", "Limit": 1_000},
    ]


def test_streams_reads_a_span_over_empty_pages(monkeypatch):
    """Empty pages in the middle of a span are passed over: as many after each page with records."""
    monkeypatch.setattr(streams, "EMPTY_PAGES_MAX", 2)
    pages = [[], ["3"], [], ["4"], ["5"], [], ["6", "7"]]
    client = Client(
        {"ShardIterator": "it"},
        *({"Records": [{"dynamodb": {"Keys": {}, "SequenceNumber": at}} for at in page], "NextShardIterator": "it"}
          for page in pages),
    )  # fmt: skip
    found = read_span(DynamoDBStreams(client), Span(ARN, "s1", "3", "6"))
    assert [[record["dynamodb"]["SequenceNumber"] for record in page] for page in found] == [["3"], ["4"], ["5"], ["6"]]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (failed("ExpiredIteratorException"), IteratorExpiredError),
        (failed("TrimmedDataAccessException"), RecordsTrimmedError),
        (failed("ResourceNotFoundException"), ShardGoneError),
        (failed("LimitExceededException"), StoreError),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:1"), StoreError),
    ],
)
def test_streams_tells_errors_apart(error, kind):
    """Stream errors that a mapping must act on have their own class; all others are a StoreError and are retried."""
    with pytest.raises(kind):
        DynamoDBStreams(Client(error)).records(ARN, "it", 10)


def test_streams_takes_a_missing_stream_for_an_error_of_the_world():
    """A stream that is not there is not the same as a shard that was trimmed."""
    with pytest.raises(StoreError, match="ResourceNotFoundException"):
        DynamoDBStreams(Client(failed("ResourceNotFoundException"))).shards(ARN)


def test_streams_shapes_a_record_as_lambda_does():
    """Binary at any depth becomes base64 text, the time a number, userIdentity is respelled, the stream is named."""
    api = {
        "eventID": "e1",
        "eventName": "REMOVE",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-west-2",
        "userIdentity": {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"},
        "dynamodb": {
            "ApproximateCreationDateTime": datetime(2026, 11, 21, tzinfo=UTC),
            "Keys": {"PK": {"B": b"\x00\xff"}},
            "OldImage": {
                "PK": {"B": b"\x00\xff"},
                "deep": {"M": {"list": {"L": [{"B": b"x"}, {"BS": [b"y"]}, {"N": "1.50"}, {"BOOL": True}]}}},
            },
            "SequenceNumber": "800000000003126276362",
            "SizeBytes": 10,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }
    found = make_event_record(api, ARN)
    assert json.loads(json.dumps(found)) == found
    assert found["dynamodb"]["Keys"] == {"PK": {"B": "AP8="}}
    assert found["dynamodb"]["OldImage"]["deep"] == {
        "M": {"list": {"L": [{"B": "eA=="}, {"BS": ["eQ=="]}, {"N": "1.50"}, {"BOOL": True}]}}
    }
    assert found["dynamodb"]["ApproximateCreationDateTime"] == 1795219200
    assert found["userIdentity"] == {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
    assert (found["eventSource"], found["eventSourceARN"], found["awsRegion"]) == ("aws:dynamodb", ARN, "us-west-2")
    assert api["dynamodb"]["Keys"] == {"PK": {"B": b"\x00\xff"}}


def test_streams_fills_in_what_an_engine_leaves_out():
    """Without region, time or identity a record is still whole; the region is the stream's."""
    found = make_event_record({"eventName": "INSERT", "dynamodb": {"Keys": {}, "SequenceNumber": "1"}}, ARN)
    assert found["awsRegion"] == parse_region(ARN) == "eu-west-1"
    assert "userIdentity" not in found
    assert "ApproximateCreationDateTime" not in found["dynamodb"]
    assert parse_region("stream-1") == ""
