"""Forms of failed entries: failure records, batches with or without their records, messages; and their groups."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import RecordError
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.json_bytes import format_compact_json
from sync_rules.pipeline.failed_entries import FailedEntry, GivenUp, Span, group_failures, read_entry
from sync_rules.pipeline.failure_records import FailureRecord, make_failure_record
from sync_rules.pipeline.messages import (
    CallMessage,
    ChunkMessage,
    PartMessage,
    PullMessage,
    PushMessage,
    format_message,
)

KEY = ItemKey("shop", (("PK", "S", "USER#1"),))
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RECORDS = [{"dynamodb": {"Keys": {"PK": {"S": "USER#1"}}, "SequenceNumber": "7"}}]
MESSAGES = [
    PullMessage(KEY, 2),
    PushMessage(("names",), KEY, cursor={"PK": {"S": "x"}}),
    ChunkMessage(("names",), KEY, (KEY,)),
    PartMessage("tags", KEY, None, "a"),
    CallMessage("told", "f.g", Change(KEY, {"B": {"B": b"\xff"}}, None, "1")),
]

NAMES = st.text(max_size=2) | st.sampled_from(
    ["DDBStreamBatchInfo", "payload", "Records", "kind", "rule", "reason", "key", "at", "table", "member",
     "requestContext", "redriven", "streamArn", "shardId", "last", "source", "target"]
)  # fmt: skip


def batch(**changes) -> dict:
    """The document that Lambda leaves in a bucket for a failed batch, with some of its fields changed."""
    info = {
        "shardId": "shard-1",
        "startSequenceNumber": "7",
        "endSequenceNumber": "9",
        "approximateArrivalOfFirstRecord": "2026-11-21T12:00:00Z",
        "approximateArrivalOfLastRecord": "2026-11-21T12:00:05Z",
        "batchSize": 3,
        "streamArn": "arn:aws:dynamodb:eu-west-1:1:table/shop/stream/2026",
    }
    context = {"condition": "RetryAttemptsExhausted", "functionArn": "arn:f", "requestId": "r"}
    return {"requestContext": context, "version": "1.0", "DDBStreamBatchInfo": info, **changes}


def read(body: object):
    return read_entry(json.dumps(body).encode())


@pytest.mark.parametrize("payload", [json.dumps({"Records": RECORDS}), {"Records": RECORDS}], ids=["text", "map"])
def test_failed_batch_is_read_with_its_records(payload):
    """The payload is the event, as the JSON text that Lambda writes, or as the map that some recordings have."""
    found = read(batch(payload=payload))
    assert isinstance(found, GivenUp)
    assert found.event == {"Records": RECORDS}
    assert found.span == Span("arn:aws:dynamodb:eu-west-1:1:table/shop/stream/2026", "shard-1", "7", "9")
    assert (found.condition, found.function, found.records) == ("RetryAttemptsExhausted", "arn:f", 1)
    assert (found.first, found.last) == (AT, AT + timedelta(seconds=5))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "unknown form"),
        ('{"kind": "push"}', "not a message"),
        ('{"kind": "parcel"}', "unknown form"),
        ('{"rule": 1, "reason": "x"}', "'rule'"),
        (json.dumps(batch(payload="{")), "payload of a batch is not JSON"),
        (json.dumps(batch(payload="[]")), "not an event with Records"),
        (json.dumps(batch(payload={"Records": {}})), "not an event with Records"),
        (json.dumps(batch(DDBStreamBatchInfo={})), "neither a payload nor a range"),
        (json.dumps(batch(DDBStreamBatchInfo=[])), "neither a payload nor a range"),
        (json.dumps(batch(DDBStreamBatchInfo={**batch()["DDBStreamBatchInfo"], "endSequenceNumber": "x"})), "range"),
    ],
    ids=range(15),
)
def test_failed_what_is_no_entry_is_said_to_be_none(body, says):
    """With what is wrong with it, and nothing of what stands in it."""
    with pytest.raises(RecordError, match=says):
        read_entry(body)


GOOD = [
    batch(payload={"Records": RECORDS}),
    batch(),
    make_failure_record(Failure("names", KEY, "ItemTooLarge", "1", member=KEY, element="a"), AT),
    *(json.loads(format_message(message)) for message in MESSAGES),
    {},
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=15,
)


@given(st.sampled_from(GOOD), st.dictionaries(NAMES, ANYTHING, max_size=5))
def test_failed_entry_with_anything_in_it_is_read_or_refused(good, changes):
    """Any JSON raises RecordError, or is read as an entry, which is read as the same when it is written anew."""
    try:
        found = read(good | changes)
    except RecordError:
        assert changes or not good
        return
    if isinstance(found, FailureRecord | GivenUp):
        again = read_entry(format_compact_json(found.again("Why", AT)))
        assert (type(again), again.reason) == (type(found), "Why")
    else:
        assert read_entry(format_message(found)) == found


def test_grouped_tells_sorts_apart():
    """Batches by condition and shard with their records, messages by kind, what is not understood by why not."""
    bodies = [
        read(batch(payload={"Records": RECORDS * 4})), read(batch()), *MESSAGES[:1], RecordError("not JSON"),
        read(make_failure_record(Failure("", None, "no keys", "9"), AT)),
    ]  # fmt: skip
    batches, records, messages, unreadable = group_failures(
        [(FailedEntry(b"", f"p:{n}"), one) for n, one in enumerate(bodies)]
    )
    assert (batches.what, batches.count, batches.records) == ("RetryAttemptsExhausted in shard-1", 2, 7)
    assert (batches.function, batches.first, batches.last) == ("arn:f", AT, AT + timedelta(seconds=5))
    assert (records.what, records.reason, records.example) == ("", "no keys", "p:4")
    assert (messages.what, messages.count, messages.example) == ("pull message", 1, "p:2")
    assert (unreadable.reason, unreadable.example) == ("not JSON", "p:3")


@given(st.dictionaries(st.text(), st.text(st.characters(codec=None))))
def test_entry_is_written_anew_no_longer_than_it_was(body):
    """An entry is rewritten with the same content, in characters that SQS accepts, and no longer than before."""
    text = format_compact_json(body)
    assert json.loads(text) == body
    assert not any(one < " " or "\ud800" <= one <= "\udfff" or one in "\ufffe\uffff" for one in text)
    assert len(text.encode()) <= len(json.dumps(body, separators=(",", ":")))
    assert len(format_compact_json({"a": "ü" * 100}).encode()) == 200 + len('{"a":""}')
