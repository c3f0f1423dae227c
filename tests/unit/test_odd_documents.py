"""Odd documents: every reader of what others wrote answers deep, broken and strange input within its own errors.

Each value of a document that is well is replaced by each odd one. A reader takes the document or refuses it as it
always does; the rest of the work goes on.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import FileState
from sync_rules.jobs.consume import checkpoint
from sync_rules.lab import recording
from sync_rules.model.errors import RecordError, StoreError, UserError
from sync_rules.model.item_change import make_item_change
from sync_rules.model.items import Call, Change
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.failed_entries import read_entry
from sync_rules.pipeline.failure_records import FailureRecord
from sync_rules.pipeline.messages import (
    CallMessage,
    ChunkMessage,
    PartMessage,
    PullMessage,
    PushMessage,
    format_message,
    parse_message,
)
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.key_json import parse_key
from tests.support import every_kind
from tests.support.builders import key, n, s
from tests.support.depth import spread_over_night
from tests.support.fake_stream import ARN

RULES = every_kind.rules_of()
SHOP = RULES.tables["shop"]
ODD = {
    "null": "null",
    "true": "true",
    "negative": "-1",
    "digits": "1" + "0" * 400,
    "thousands of digits": "9" * 5_000,
    "infinite": "1e400",
    "not a number": "NaN",
    "text": '"x"',
    "empty text": '""',
    "half a pair": '"\\ud800"',
    "named by half a pair": '{"\\ud800": {"S": "x"}}',
    "map": "{}",
    "list": "[]",
    "no number": '{"N": "many"}',
    "a number out of range": '{"N": "1E400"}',
    "40 levels": '{"M": {"a": ' * 40 + '{"S": "x"}' + "}}" * 40,
    "150 lists": "[" * 150 + "]" * 150,
    "150 maps": '{"L": ' * 150 + "1" + "}" * 150,
    "5,000 lists": "[" * 5_000 + "]" * 5_000,
    "100,000 maps": '{"a": ' * 100_000 + "1" + "}" * 100_000,
}
HERE = "@@ here @@"


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value of a document."""
    yield path
    inner = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for name, value in inner:
        yield from places(value, (*path, name))


def changed(body: Any, path: tuple[Any, ...], odd: str) -> str:
    """The text of a document with one value replaced."""

    def put(value: Any, path: tuple[Any, ...]) -> Any:
        if not path:
            return HERE
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        new = {name: put(inner, path[1:]) if name == path[0] else inner for name, inner in pairs}
        return new if isinstance(value, dict) else list(new.values())

    return json.dumps(put(body, path)).replace(json.dumps(HERE), odd)


def odd_texts(body: Any) -> Iterator[str]:
    """A document with each value replaced by each odd one."""
    for path in places(body):
        for odd in ODD.values():
            yield changed(body, path, odd)


# ---------------------------------------------------------------- what is read
ITEM = {"PK": s("USER#1"), "SK": s("ORDER#1"), "total": n(1), "tags": {"L": [s("a")]}, "raw": {"B": "AA=="}}
NAMES = "arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-01-01T00:00:00.000"
RECORD = {
    "eventSourceARN": NAMES,
    "eventName": "MODIFY",
    "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
    "dynamodb": {
        "Keys": {"PK": s("USER#1"), "SK": s("ORDER#1")},
        "OldImage": {**ITEM, "total": n(2)},
        "NewImage": ITEM,
        "SequenceNumber": "100",
        "ApproximateCreationDateTime": 1_700_000_000,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    },
}
GOOD = json.loads(json.dumps(RECORD).replace('"100"', '"101"').replace("ORDER#1", "ORDER#2"))
AT = key(SHOP, "USER#1", "ORDER#1")
CHANGE = Change(AT, {**ITEM, "raw": {"B": b"a"}}, None, "1", 1_700_000_000_000)
MESSAGES = [
    PushMessage(("names",), AT, cursor={"PK": s("USER#1"), "SK": s("ORDER#1")}),
    ChunkMessage(("names",), AT, (AT,)),
    PullMessage(AT),
    PartMessage("tags", key(SHOP, "USER#1", "PROFILE"), AT, "1"),
    CallMessage("called", "tests.support.every_kind.told", CHANGE),
]
FAILURE = {"rule": "names", "table": "shop", "key": {"PK": "USER#1", "SK": "ORDER#1"}, "reason": "ItemTooLarge",
           "position": "1", "member": {"table": "shop", "key": {"PK": "a", "SK": "b"}}, "element": "x",
           "at": "2026-01-01T00:00:00+00:00"}  # fmt: skip
BATCH = {
    "requestContext": {"condition": "RetryAttemptsExhausted", "functionArn": "arn:aws:lambda:eu-west-1:1:function:f"},
    "DDBStreamBatchInfo": {"shardId": "s", "startSequenceNumber": "1", "endSequenceNumber": "2", "batchSize": 1,
                           "streamArn": NAMES, "approximateArrivalOfFirstRecord": "2026-01-01T00:00:00Z"},
    "payload": {"Records": [RECORD]},
}  # fmt: skip


class Kept(list):
    """The failure records of a world."""

    park = list.append


@pytest.fixture
def consumer() -> Consumer:
    """A consumer of every kind of rule, with an order to call by its records."""
    store = MemoryStore(RULES.tables, lambda *_: None)
    store.put("shop", every_kind.user("1", name=s("Ada")))
    store.put("shop", every_kind.order("1", "1", 3))
    store.put("shop", every_kind.order("1", "2", 3))
    return Consumer(RULES, World(store, NULL_PORTS, Kept(), Caller()), THIS_PROCESS)


class Caller:
    """A caller that takes everything."""

    def call(self, call: Call) -> None:
        make_item_change(call)


def test_record_that_is_odd_is_parked_and_the_batch_goes_on(consumer):
    """Whatever one record holds, a batch is processed without an exception: the other record is, too."""
    good = consumer.telemetry
    for text in odd_texts(RECORD):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            continue  # Lambda would not have called us
        before = sum(good.outcomes.values())
        answer = consumer.handle_event({"Records": [record, GOOD]}, lambda: 900_000)
        assert answer == {"batchItemFailures": []}, text[:300]
        assert sum(good.outcomes.values()) > before, text[:300]


def test_kinesis_data_that_is_odd_is_parked_and_the_batch_goes_on(consumer):
    """The same inside the base64 of a Kinesis record."""
    body = {**RECORD, "tableName": "shop"}
    del body["eventSourceARN"]
    for text in odd_texts(body):
        data = base64.b64encode(text.encode()).decode()
        record = {"eventSourceARN": "arn:k", "kinesis": {"sequenceNumber": "9", "data": data}}
        before = sum(consumer.telemetry.outcomes.values())
        assert consumer.handle_event({"Records": [record, GOOD]}, lambda: 900_000) == {"batchItemFailures": []}
        assert sum(consumer.telemetry.outcomes.values()) > before


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_message_that_is_odd_is_refused_or_processed(message, consumer):
    """A message is none of ours, or its work ends as always."""
    for text in odd_texts(json.loads(format_message(message))):
        try:
            decoded = parse_message(text)
        except RecordError:
            continue
        with suppress(StoreError):  # then it comes again
            consumer.handle_message(decoded)


def read_failed(text: str) -> None:
    found = read_entry(text)
    if isinstance(found, FailureRecord):
        found.failure(RULES.tables)


def of_file(read: Callable[[Path], Any], path: Path) -> Callable[[str], Any]:
    def from_text(text: str) -> None:
        path.write_bytes(text.encode())
        read(path)

    return from_text


READERS = {
    "recording": (RECORD, lambda path: of_file(lambda file: recording.read_recording(file, RULES), path)),
    "an event in a recording": ({"Records": [RECORD]}, lambda path: of_file(lambda file: recording.read_recording(file, RULES), path)),
    "header of a recording": (recording.Header({"shop": "x"}).body(), lambda path: of_file(lambda file: recording.read_recording(file, RULES), path)),
    "replay": (RECORD, lambda path: of_file(lambda file: list(recording.read_recording(file, RULES)), path)),
    "failure record": (FAILURE, lambda _: read_failed),
    "batch that was given up": (BATCH, lambda _: read_failed),
    "its payload as text": ({**BATCH, "payload": json.dumps(BATCH["payload"])}, lambda _: read_failed),
    "checkpoint": (
        {"rules_fingerprint": "f", "streams": {ARN: [{"shard_id": "s", "after": "12"}]},
         "messages": [{"due_ms": 1, "receives": 0, "body": format_message(MESSAGES[2])}]},
        lambda path: of_file(lambda file: checkpoint.load(file, [ARN]), path),
    ),
    "state file": ({"applied": {"names": "x"}}, lambda path: of_file(lambda file: FileState(file).load("applied"), path)),
    "key": ({"PK": "USER#1", "SK": "ORDER#1"}, lambda _: lambda text: parse_key(text, None, RULES)),
}  # fmt: skip


@pytest.mark.parametrize("reader", spread_over_night(READERS))
def test_document_that_is_odd_is_refused_as_a_mistake(reader, tmp_path):
    """A reader takes a document or says what is wrong with it; no other exception reaches the command line."""
    body, reading = READERS[reader]
    read = reading(tmp_path / "file.json")
    read(json.dumps(body))
    for text in odd_texts(body):
        try:
            read(text)
        except (UserError, RecordError):
            pass
        except Exception as error:
            raise AssertionError(text[:300]) from error
