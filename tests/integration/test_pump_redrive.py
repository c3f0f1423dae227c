"""The stream handler under the mapping's own semantics, on an engine's streams and S3: bisect, giving up, redrive.

What the engine lacks of an event source mapping is in `sync_rules.jobs.consume`; here the handler that is deployed runs
under it, and what it gives up goes into a bucket as Lambda puts it there.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from handlers import stream
from sync_rules.adapters import aws
from sync_rules.functions import runtime
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import Pump
from sync_rules.jobs.consume.mapping import EventSourceMapping
from sync_rules.jobs.consume.queue import LocalQueue
from sync_rules.jobs.local_files import read_wall_clock_ms
from sync_rules.jobs.streams import DynamoDBStreams
from tests.support.builders import order_item, s, user_item
from tests.support.cold import start_cold
from tests.support.sites import Site
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


class Shop(Site):
    """Users and their orders on an engine; the handler that is deployed; a mapping of the table's stream; a bucket."""

    def __init__(self, endpoint_url: str, monkeypatch, tmp_path) -> None:
        super().__init__(endpoint_url, tmp_path, lambda prefix: RULES.format(prefix=prefix))
        self.s3, self.bucket = aws.s3(endpoint_url), f"{self.prefix}given-up"
        self.s3.create_bucket(Bucket=self.bucket)
        monkeypatch.setenv(runtime.RULES_FILE, str(self.file))
        monkeypatch.setenv(runtime.ENDPOINT_URL, endpoint_url)
        monkeypatch.delenv(runtime.QUEUE_URL, raising=False)
        monkeypatch.delenv(runtime.FAILURES_URL, raising=False)
        for version in range(VERSIONS):
            self.put("shop", *(user_item(user, name=s(f"{user}{version}")) for user in USERS))
        self.put("shop", *(order_item(user, "1") for user in USERS))

    def names(self) -> dict[str, str | None]:
        items = {user: self.item("shop", f"USER#{user}", "ORDER#1") for user in USERS}
        return {user: item.get("user_name", {}).get("S") for user, item in items.items()}

    def give_up(self, record: dict) -> None:
        """Store a failed batch as Lambda does, under the name that Lambda gives it."""
        info = record["DDBStreamBatchInfo"]
        day = datetime.now(UTC).strftime("%Y/%m/%d")
        name = f"aws/lambda/0b1c0b1c/{info['shardId']}/{day}/{info['startSequenceNumber']}"
        self.s3.put_object(Bucket=self.bucket, Key=name, Body=json.dumps(record))

    def drain(self, invoke) -> None:
        settings = MappingSettings(batch_size=7, maximum_retry_attempts=3, poll_idle_ms=20, retry_first_ms=5)
        reader = DynamoDBStreams(aws.dynamodbstreams(self.url))
        arn = self.client.describe_table(TableName=self.name("shop"))["Table"]["LatestStreamArn"]
        mapping = EventSourceMapping(arn, reader, invoke, self.give_up, now_ms=read_wall_clock_ms, settings=settings)
        pump = Pump([mapping], LocalQueue(read_wall_clock_ms), pytest.fail, now_ms=read_wall_clock_ms, sleep=time.sleep)
        assert pump.drain(DRAIN_MAX_MS)

    def given_up(self) -> list[str]:
        """The positions of all records in the bucket."""
        listed = self.s3.list_objects_v2(Bucket=self.bucket, Prefix="aws/lambda/").get("Contents", [])
        bodies = [json.loads(self.s3.get_object(Bucket=self.bucket, Key=one["Key"])["Body"].read()) for one in listed]
        return [position for body in bodies for position in positions_in(json.loads(body["payload"]))]


def positions_in(event: dict) -> list[str]:
    return [record["dynamodb"]["SequenceNumber"] for record in event["Records"]]


@pytest.fixture
def shop(engine, monkeypatch, tmp_path):
    start_cold()
    yield Shop(engine, monkeypatch, tmp_path)
    start_cold()


def test_pump_redrive_a_record_that_always_throws_is_given_up_alone_and_put_through_later(shop):
    """A batch that throws is split until the records that throw are alone; these, with all they held, go into the bucket,
    and `redrive --bucket` puts them through: none is lost.
    """
    last = {str(change.key): change.position for change in shop.new_records()}
    poison, done = {*last.values()}, set()

    def throwing(event):
        if not poison.isdisjoint(positions_in(event)):
            raise RuntimeError("always")
        assert stream.handler(json.loads(json.dumps(event)), context()) == {"batchItemFailures": []}
        done.update(positions_in(event))

    shop.drain(throwing)
    assert sorted(shop.given_up()) == sorted(poison)
    assert len(done) >= (VERSIONS - 1) * len(USERS)
    place, failures = f"s3://{shop.bucket}/aws/lambda/", shop.folder / "f.jsonl"
    assert shop.command("redrive", "--bucket", place, "--failures", failures) == 0
    assert shop.given_up() == []
    assert shop.names() == {user: f"{user}{VERSIONS - 1}" for user in USERS}
