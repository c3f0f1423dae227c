"""The stream handler under the mapping's own semantics, on an engine's streams and S3: failures, bisect, giving up, redrive.

What the engine lacks of an event source mapping is in `sync_rules.jobs.consume`; here the handler that is deployed runs
under it, and what it gives up goes into a bucket as Lambda puts it there.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from datetime import UTC, datetime

import pytest

from handlers import stream
from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.functions import runtime
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import Pump
from sync_rules.jobs.consume.mapping import EventSourceMapping
from sync_rules.jobs.consume.queue import LocalQueue
from sync_rules.jobs.local_files import wall_clock_ms
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from tests.support import engines
from tests.support.builders import order_item, s, user_item
from tests.support.cold import start_cold
from tests.support.worlds import context

RULES = """
tables:
  shop: {{name: {prefix}shop, key: {{PK: S, SK: S}}}}
entities:
  user:  {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  names: copy user.name into order.user_name
"""
USERS = "abcd"
VERSIONS = 6
DRAIN_MAX_MS = 60_000


class Shop:
    """Users and their orders on an engine; the handler that is deployed; a mapping of the table's stream; a bucket."""

    def __init__(self, endpoint_url: str, monkeypatch, tmp_path) -> None:
        prefix = engines.unique_prefix()
        self.file = tmp_path / "rules.yaml"
        self.file.write_text(RULES.format(prefix=prefix))
        self.table = parse_rules(self.file.read_text()).tables["shop"]
        engines.create(endpoint_url, {"shop": self.table})
        self.url, self.client, self.s3 = endpoint_url, aws.dynamodb(endpoint_url), aws.s3(endpoint_url)
        self.bucket = f"{prefix}given-up"
        self.s3.create_bucket(Bucket=self.bucket)
        monkeypatch.setenv(runtime.RULES_FILE, str(self.file))
        monkeypatch.setenv(runtime.ENDPOINT_URL, endpoint_url)
        monkeypatch.delenv(runtime.QUEUE_URL, raising=False)
        monkeypatch.delenv(runtime.FAILURES_URL, raising=False)
        self.arn = self.client.describe_table(TableName=self.table.physical_name)["Table"]["LatestStreamArn"]
        self.seen: dict[str, list[int]] = defaultdict(list)  # by item: the records the handler answered for, in order
        self.written: dict[str, list[int]] = defaultdict(list)
        self.refused = 0  # batches of which not all was done

    def write(self) -> None:
        """Every user several times, each with an order that needs the name."""
        for version in range(VERSIONS):
            for user in USERS:
                self.put(user_item(user, name=s(f"{user}{version}")))
        for user in USERS:
            self.put(order_item(user, "1"))
        for change in engines.stream_records(self.url, self.table):
            self.written[str(change.key)].append(int(change.position))

    def put(self, item: dict) -> None:
        self.client.put_item(TableName=self.table.physical_name, Item=item)

    def names(self) -> dict[str, str | None]:
        keys = {user: {"PK": s(f"USER#{user}"), "SK": s("ORDER#1")} for user in USERS}
        found = {
            user: self.client.get_item(TableName=self.table.physical_name, Key=key, ConsistentRead=True)["Item"]
            for user, key in keys.items()
        }
        return {user: item.get("user_name", {}).get("S") for user, item in found.items()}

    def invoke(self, event: dict) -> dict:
        """The handler, with a note of what it answered for."""
        answer = stream.handler(json.loads(json.dumps(event)), context())
        failed = [int(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]
        self.refused += bool(failed)
        for record in event["Records"]:
            position = int(record["dynamodb"]["SequenceNumber"])
            if not failed or position < min(failed):
                key = self.table.key_of(record["dynamodb"]["Keys"])
                self.seen[str(key)].append(position)
        return answer

    def give_up(self, record: dict) -> None:
        """Store a failed batch as Lambda does, under the name that Lambda gives it."""
        info = record["DDBStreamBatchInfo"]
        day = datetime.now(UTC).strftime("%Y/%m/%d")
        name = f"aws/lambda/0b1c0b1c/{info['shardId']}/{day}/{info['startSequenceNumber']}"
        self.s3.put_object(Bucket=self.bucket, Key=name, Body=json.dumps(record))

    def drain(self, invoke) -> None:
        settings = MappingSettings(batch_size=7, maximum_retry_attempts=3, poll_idle_ms=20, retry_first_ms=5)
        reader = DynamoDBStreams(aws.dynamodbstreams(self.url))
        mapping = EventSourceMapping(self.arn, reader, invoke, self.give_up, now_ms=wall_clock_ms, settings=settings)
        pump = Pump([mapping], LocalQueue(wall_clock_ms), pytest.fail, now_ms=wall_clock_ms, sleep=time.sleep)
        assert pump.drain(DRAIN_MAX_MS)

    def given_up(self) -> list[int]:
        """The positions of all records in the bucket."""
        listed = self.s3.list_objects_v2(Bucket=self.bucket, Prefix="aws/lambda/").get("Contents", [])
        bodies = [json.loads(self.s3.get_object(Bucket=self.bucket, Key=one["Key"])["Body"].read()) for one in listed]
        events = [json.loads(body["payload"]) for body in bodies]
        return [int(record["dynamodb"]["SequenceNumber"]) for event in events for record in event["Records"]]

    def first_seen(self) -> dict[str, list[int]]:
        """The written records of each item that the handler processed, in the order of their first success."""
        return {key: [*dict.fromkeys(p for p in self.seen[key] if p in all_)] for key, all_ in self.written.items()}


@pytest.fixture
def deployed(engine, monkeypatch, tmp_path):
    start_cold()
    yield Shop(engine, monkeypatch, tmp_path)
    start_cold()


LAST = {user: f"{user}{VERSIONS - 1}" for user in USERS}


def test_pump_redrive_nothing_is_lost_nor_overtaken_while_the_store_fails(deployed, monkeypatch):
    """While reads and writes fail now and then, every record is processed, in the order of its item."""
    deployed.write()
    store = runtime.consumer().world.store
    really = type(store).read
    calls = iter(range(10_000))

    def failing(self, request):
        if next(calls) % 3 == 1:
            raise StoreError("ThrottlingException")
        return really(self, request)

    monkeypatch.setattr(type(store), "read", failing)
    deployed.drain(deployed.invoke)
    assert deployed.refused
    assert deployed.given_up() == []
    assert deployed.first_seen() == deployed.written
    assert deployed.names() == LAST


def test_pump_redrive_a_record_that_always_throws_is_given_up_alone_and_put_through_later(deployed):
    """A batch that throws is split until the records that throw are alone; these, with all they held, go into the bucket,
    and `redrive --bucket` puts them through: none is lost.
    """
    deployed.write()
    poison = {deployed.written[key][-1] for key in deployed.written}

    def throwing(event):
        if poison & {int(record["dynamodb"]["SequenceNumber"]) for record in event["Records"]}:
            raise RuntimeError("always")
        return deployed.invoke(event)

    deployed.drain(throwing)
    assert sorted(deployed.given_up()) == sorted(poison)
    assert {
        key: sorted({*seen, *(poison & {*deployed.written[key]})}) for key, seen in deployed.first_seen().items()
    } == (deployed.written)
    place = f"s3://{deployed.bucket}/aws/lambda/"
    failures = ["--failures", str(deployed.file.with_name("f.jsonl"))]
    assert main.main(["redrive", str(deployed.file), "--endpoint-url", deployed.url, "--bucket", place, *failures]) == 0
    assert deployed.given_up() == []
    assert deployed.names() == LAST
