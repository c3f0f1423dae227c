"""The handlers on the embedded engine, as deployed: real tables, streams and queues, real answers of a real service."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handlers import stream
from sync_rules.adapters import aws
from sync_rules.functions import logs, runtime
from tests.support import engines
from tests.support.builders import s
from tests.support.cold import start_cold
from tests.support.sites import Site
from tests.support.worlds import Stdout, context, event_of

RULES = """
tables:
  authors: {{name: {prefix}authors, key: {{author_id: S}}}}
  books: {{name: {prefix}books, key: {{book_id: S}}, indexes: {{by_author: {{author_id: S, rank: S}}}}}}
entities: {{author: {{table: authors}}, book: {{table: books, required: [rank]}}}}
rules:
  names: {{copy: author.name, into: book.author.name, on_delete: clear}}
  ranks: {{copy: author.rank, into: book.rank}}
"""
MARK = "SECRETVALUE"


class Deployed(Site):
    """The two functions with their tables and queues on an engine."""

    def __init__(self, endpoint_url: str, monkeypatch, tmp_path) -> None:
        super().__init__(endpoint_url, tmp_path, lambda prefix: RULES.format(prefix=prefix))
        self.sqs = aws.sqs(endpoint_url)
        self.queues = {n: self.sqs.create_queue(QueueName=self.prefix + n)["QueueUrl"] for n in ("later", "failures")}
        monkeypatch.setenv(runtime.RULES_FILE, str(self.file))
        monkeypatch.setenv(runtime.ENDPOINT_URL, endpoint_url)
        monkeypatch.setenv(runtime.QUEUE_URL, self.queues["later"])
        monkeypatch.setenv(runtime.FAILURES_URL, self.queues["failures"])
        monkeypatch.delenv(logs.LOG_KEYS, raising=False)

    def book(self, name: str) -> dict:
        return self.item("books", name)

    def deliver(self) -> list[dict]:
        """Deliver batch after batch until the streams are empty. Returns the answers."""
        answers = []
        while records := self.new_records():
            answers.append(stream.handler(event_of(self.rules, *records), context()))
            assert len(answers) < 20, "the pipeline does not come to rest"
        return answers

    def messages(self, queue: str) -> list[str]:
        answer = self.sqs.receive_message(QueueUrl=self.queues[queue], MaxNumberOfMessages=10)
        return [message["Body"] for message in answer.get("Messages", [])]


@pytest.fixture
def deployed(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(logs.logger.registered_handler, "stream", Stdout())
    start_cold()
    yield Deployed(engine, monkeypatch, tmp_path)
    start_cold()


DONE = {"batchItemFailures": []}


def test_handler_engine_parks_what_the_service_refuses(deployed, capsys):
    """A copy that the service rejects is parked with its reason, others are written, and no log shows a value."""
    deployed.put("authors", {"author_id": s("a1"), "name": s(MARK * 2_000), "rank": s("1")})
    deployed.put("authors", {"author_id": s("a2"), "name": s("Bea"), "rank": {"N": "5"}})
    deployed.put("books", {"book_id": s("full"), "author_id": s("a1"), "text": s(MARK * 36_000)})
    deployed.put("books", {"book_id": s("typed"), "author_id": s("a2"), "text": s(MARK)})
    deployed.put("books", {"book_id": s("free"), "author_id": s("a1"), "text": s(MARK)})
    assert all(answer == DONE for answer in deployed.deliver())
    records = [json.loads(body) for body in deployed.messages("failures")]
    found = {(record["rule"], record["key"]["book_id"]): record["reason"] for record in records}
    assert found == {("names", "full"): "ItemTooLarge", ("ranks", "typed"): "ValidationException"}
    assert deployed.book("full")["rank"] == s("1")
    assert deployed.book("typed")["author"] == {"M": {"name": s("Bea")}}
    assert deployed.book("free")["author"]["M"]["name"] == s(MARK * 2_000)
    out, err = capsys.readouterr()
    assert "ItemTooLarge" in out
    assert MARK not in out + err + json.dumps(records)


def test_handler_engine_a_missing_index_is_named(deployed, capsys):
    """A missing index fails the record, and the log names the table, the index and the cure."""
    physical = deployed.rules.tables["books"].physical_name
    deployed.client.delete_table(TableName=physical)
    engines.create(deployed.url, {"books": replace(deployed.rules.tables["books"], indexes=())})
    deployed.put("authors", {"author_id": s("a1"), "name": s("Ada")})
    answer = stream.handler(event_of(deployed.rules, *deployed.new_records()), context())
    assert len(answer["batchItemFailures"]) == 1
    out = capsys.readouterr().out
    assert f"index by_author of table {physical}" in out
    assert "create the index" in out
