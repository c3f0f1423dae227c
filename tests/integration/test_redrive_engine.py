"""`sync-rules failures` and `redrive` through the command line on the embedded engine: real tables, streams, queues, S3."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from sync_rules.adapters import aws
from sync_rules.adapters.sqs import SqsFailures
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.model.items import Failure
from sync_rules.pipeline.messages import PushMessage, format_message
from tests.support.builders import author_item, book_item, key, s
from tests.support.sites import Site

RULES = """
tables:
  authors: {{name: {prefix}authors, key: {{author_id: S}}}}
  books: {{name: {prefix}books, key: {{book_id: S}}, indexes: {{by_author: {{author_id: S}}}}}}
entities: {{author: {{table: authors}}, book: {{table: books}}}}
rules:
  names: {{copy: author.name, into: book.author_name, settle_seconds: 0}}
"""
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Account(Site):
    """Tables, a queue and a bucket of a test's own, and the commands on them."""

    def __init__(self, endpoint_url: str, tmp_path, capsys) -> None:
        super().__init__(endpoint_url, tmp_path, lambda prefix: RULES.format(prefix=prefix))
        self.capsys, self.sqs = capsys, aws.sqs(endpoint_url)
        self.streams = DynamoDBStreams(aws.dynamodbstreams(endpoint_url))
        self.queue = self.sqs.create_queue(QueueName=f"{self.prefix}failed")["QueueUrl"]

    def __call__(self, verb: str, *options: str) -> tuple[int, list[dict]]:
        own = ["--failures", self.folder / "f.jsonl"] if verb == "redrive" else []
        code = self.command(verb, "--format", "jsonl", *own, *options)
        out, self.err = self.capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()]

    def names(self) -> dict[str, str | None]:
        """The author's name on each book."""
        return {item["book_id"]["S"]: item.get("author_name", {}).get("S") for item in self.items("books")}

    def shard(self, table: str) -> tuple[str, str, list[dict]]:
        """The stream of a table, its shard, and the records there are."""
        arn = self.client.describe_table(TableName=self.name(table))["Table"]["LatestStreamArn"]
        for shard in self.streams.shards(arn):
            page = self.streams.records(arn, self.streams.iterator(arn, shard.shard_id, None), 1_000)
            if page.records:
                return arn, shard.shard_id, [*page.records]
        raise AssertionError("the stream has no records")

    def span(self, table: str, first: int, last: int) -> str:
        """The records of a table from one to another, as the event source mapping gives them up."""
        arn, shard, records = self.shard(table)
        start, end = (records[place]["dynamodb"]["SequenceNumber"] for place in (first, last))
        info = {"streamArn": arn, "shardId": shard, "startSequenceNumber": start, "endSequenceNumber": end}
        return json.dumps({"DDBStreamBatchInfo": info, "requestContext": {"condition": "RetryAttemptsExhausted"}})


@pytest.fixture
def account(engine, tmp_path, capsys) -> Account:
    account = Account(engine, tmp_path, capsys)
    account.put("authors", author_item("a1", name=s("Ada")), author_item("a2", name=s("Bea")))
    account.put("books", book_item("b1", "a1"), book_item("b2", "a2"))
    return account


RIGHT = {"b1": "Ada", "b2": "Bea"}


def test_redrive_engine_from_a_queue(account):
    """Failure records and dead letters are listed, then processed and deleted; those that fail again stay."""
    table = account.rules.tables["books"]
    sink = SqsFailures(account.sqs, account.queue, now=lambda: AT)
    sink.park(Failure("names", key(table, "b1"), "ItemTooLarge"))
    sink.park(Failure("gone", key(table, "b1"), "ItemTooLarge"))
    letter = format_message(PushMessage(("names",), key(account.rules.tables["authors"], "a2")))
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
    (account.folder / "span.jsonl").write_text(account.span("books", 1, 1) + "\n")
    code, (totals,) = account("redrive", "--file", str(account.folder / "span.jsonl"))
    assert (code, totals["records"], account.names()) == (0, 1, {"b1": None, "b2": "Bea", "b3": None})
    account.sqs.send_message(QueueUrl=account.queue, MessageBody=account.span("books", 0, -1))
    code, (totals,) = account("redrive", "--queue", account.queue)
    assert (code, totals["done"], account.names()) == (0, 1, RIGHT | {"b3": "Ada"})
