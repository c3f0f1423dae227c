"""`sync-rules failures` and `redrive` through the command line on the embedded engine: real tables, streams, queues, S3."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from sync_rules.adapters import aws
from sync_rules.adapters.sqs import SqsFailures
from sync_rules.adapters.streams import DynamoDBStreams
from sync_rules.cli import main
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Failure
from sync_rules.pipeline.failure_records import failure_record
from sync_rules.pipeline.messages import PushMessage, encode
from tests.support import engines
from tests.support.builders import author_item, book_item, key, s

RULES = """
tables:
  authors: {{name: {prefix}authors, key: {{author_id: S}}}}
  books: {{name: {prefix}books, key: {{book_id: S}}, indexes: {{by_author: {{author_id: S}}}}}}
entities: {{author: {{table: authors}}, book: {{table: books}}}}
rules:
  names: {{copy: author.name, into: book.author_name, settle_seconds: 0}}
"""
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Account:
    """Tables, a queue and a bucket of a test's own, and the commands on them."""

    def __init__(self, endpoint_url: str, tmp_path, capsys) -> None:
        self.prefix = engines.unique_prefix()
        text = RULES.format(prefix=self.prefix)
        self.rules = parse_rules(text)
        engines.create(endpoint_url, self.rules.tables)
        (tmp_path / "rules.yaml").write_text(text)
        self.path, self.capsys, self.url = tmp_path, capsys, endpoint_url
        self.client, self.sqs, self.s3 = (make(endpoint_url) for make in (aws.dynamodb, aws.sqs, aws.s3))
        self.streams = DynamoDBStreams(aws.dynamodbstreams(endpoint_url))
        self.queue = self.sqs.create_queue(QueueName=f"{self.prefix}failed")["QueueUrl"]
        self.bucket = f"{self.prefix}failed"
        self.s3.create_bucket(Bucket=self.bucket)

    def __call__(self, verb: str, *options: str) -> tuple[int, list[dict]]:
        fixed = [str(self.path / "rules.yaml"), "--endpoint-url", self.url, "--format", "jsonl"]
        own = ["--failures", str(self.path / "f.jsonl")] if verb == "redrive" else []
        code = main.main([verb, *fixed, *own, *options])
        out, self.err = self.capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()]

    def put(self, table: str, *items: dict) -> None:
        for item in items:
            self.client.put_item(TableName=self.rules.tables[table].physical_name, Item=item)

    def names(self) -> dict[str, str | None]:
        """The author's name on each book."""
        found = self.client.scan(TableName=self.rules.tables["books"].physical_name, ConsistentRead=True)["Items"]
        return {item["book_id"]["S"]: item.get("author_name", {}).get("S") for item in found}

    def shard(self, table: str) -> tuple[str, str, list[dict]]:
        """The stream of a table, its shard, and the records there are."""
        physical = self.rules.tables[table].physical_name
        arn = self.client.describe_table(TableName=physical)["Table"]["LatestStreamArn"]
        for shard in self.streams.shards(arn):
            page = self.streams.records(arn, self.streams.iterator(arn, shard.shard_id, None), 1_000)
            if page.records:
                return arn, shard.shard_id, [*page.records]
        raise AssertionError("the stream has no records")

    def given_up(self, table: str, *, payload: bool) -> dict:
        """All records of a table as the event source mapping would give them up."""
        arn, shard, records = self.shard(table)
        first, last = (records[place]["dynamodb"]["SequenceNumber"] for place in (0, -1))
        info = {"streamArn": arn, "shardId": shard, "startSequenceNumber": first, "endSequenceNumber": last}
        body = {"DDBStreamBatchInfo": info, "requestContext": {"condition": "RetryAttemptsExhausted"}}
        return {**body, "payload": json.dumps({"Records": records})} if payload else body


@pytest.fixture
def account(engine, tmp_path, capsys) -> Account:
    account = Account(engine, tmp_path, capsys)
    account.put("authors", author_item("a1", name=s("Ada")), author_item("a2", name=s("Bea")))
    account.put("books", book_item("b1", "a1"), book_item("b2", "a2"))
    return account


RIGHT = {"b1": "Ada", "b2": "Bea"}


def test_redrive_engine_from_a_bucket(account):
    """On-failure objects are listed by `failures`, and processed and deleted by `redrive`."""
    body = json.dumps(account.given_up("books", payload=True))
    name = "aws/lambda/0b1c/shardId-1/2026/11/21/x"
    account.s3.put_object(Bucket=account.bucket, Key=name, Body=body)
    place = f"s3://{account.bucket}/aws/lambda/"
    code, (group,) = account("failures", "--bucket", place)
    assert (code, group["sort"], group["records"]) == (1, "batches", 2)
    code, (totals,) = account("redrive", "--bucket", place)
    assert (code, totals["done"], totals["written"]) == (0, 1, 2)
    assert account.names() == RIGHT
    assert account("failures", "--bucket", place) == (0, [])


def test_redrive_engine_from_a_queue(account):
    """Failure records and dead letters are listed, then processed and deleted; those that fail again stay."""
    table = account.rules.tables["books"]
    sink = SqsFailures(account.sqs, account.queue, now=lambda: AT)
    sink.park(Failure("names", key(table, "b1"), "ItemTooLarge"))
    sink.park(Failure("gone", key(table, "b1"), "ItemTooLarge"))
    letter = encode(PushMessage(("names",), key(account.rules.tables["authors"], "a2")))
    account.sqs.send_message(QueueUrl=account.queue, MessageBody=letter)
    code, groups = account("failures", "--queue", account.queue)
    assert (code, len(groups), account.names()) == (1, 3, {"b1": None, "b2": None})
    code, (left, totals) = account("redrive", "--queue", account.queue)
    assert (code, totals["done"], account.names()) == (1, 2, RIGHT)
    renamed = "if it was renamed, say renamed_from: gone in the new one"
    drop = "otherwise `sync-rules failures RULES --drop` removes it"
    assert left["left"]["reason"] == f"there is no rule 'gone' any more: {renamed}; {drop}"
    _, (stays,) = account("failures", "--queue", account.queue)
    assert (stays["what"], stays["gone"]) == ("gone", True)


def test_redrive_engine_out_of_the_stream(account):
    """A span that a file or a queue's message names is read from the stream and processed."""
    account.put("books", book_item("b3", "a1"))
    arn, shard, records = account.shard("books")
    second = records[1]["dynamodb"]["SequenceNumber"]
    info = {"streamArn": arn, "shardId": shard, "startSequenceNumber": second, "endSequenceNumber": second}
    (account.path / "span.jsonl").write_text(json.dumps({"DDBStreamBatchInfo": info}) + "\n")
    code, (totals,) = account("redrive", "--file", str(account.path / "span.jsonl"))
    assert (code, totals["records"], account.names()) == (0, 1, {"b1": None, "b2": "Bea", "b3": None})
    body = json.dumps(account.given_up("books", payload=False))
    account.sqs.send_message(QueueUrl=account.queue, MessageBody=body)
    code, (totals,) = account("redrive", "--queue", account.queue)
    assert (code, totals["done"], account.names()) == (0, 1, RIGHT | {"b3": "Ada"})


def test_redrive_engine_of_a_stream_that_is_gone(account):
    """A message about a shard that no longer exists stays, and the output advises verify --repair."""
    body = account.given_up("books", payload=False)
    body["DDBStreamBatchInfo"]["shardId"] = "shardId-00000000000000000000-deadbeef"
    account.sqs.send_message(QueueUrl=account.queue, MessageBody=json.dumps(body))
    code, (left, _) = account("redrive", "--queue", account.queue)
    assert code == 1
    assert "verify --repair" in left["left"]["reason"]
    assert account("failures", "--queue", account.queue)[0] == 1


def test_redrive_engine_from_files_never_writes_over_what_is_newer(account):
    """Redriving old files writes the present values and leaves the files empty."""
    table = account.rules.tables["books"]
    (account.path / "batches.jsonl").write_text(json.dumps(account.given_up("authors", payload=True)) + "\n")
    record = failure_record(Failure("names", key(table, "b1"), "ItemTooLarge"), AT)
    (account.path / "failures.jsonl").write_text(json.dumps(record) + "\n")
    account.put("authors", author_item("a1", name=s("Eve")))
    account.put("books", book_item("b2", "a1"))
    files = ["--file", str(account.path / "failures.jsonl"), "--file", str(account.path / "batches.jsonl")]
    assert account("failures", *files)[0] == 1
    code, (totals,) = account("redrive", *files)
    assert (code, totals["done"]) == (0, 2)
    assert account.names() == {"b1": "Eve", "b2": "Eve"}
    assert account("failures", *files) == (0, [])


def test_redrive_engine_without_the_tables(account):
    """A table that is missing is named before anything is done."""
    account.client.delete_table(TableName=account.rules.tables["books"].physical_name)
    code, _ = account("redrive", "--queue", account.queue)
    assert code == 2
    assert f"{account.prefix}books" in account.err
