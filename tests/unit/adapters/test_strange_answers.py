"""Answers of something that is not AWS: a proxy, a portal, another program that says 200 to anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sync_rules.adapters import aws, retries
from sync_rules.cli import main
from sync_rules.model.errors import StoreError

RULES = """
tables: {authors: {key: {author_id: S}}, books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}}
entities: {author: {table: authors}, book: {table: books}}
rules: {name: copy author.name into book.author_name}
"""
KEY = {"author_id": {"S": "a"}}
CALLS = {
    "dynamodb": {
        "describe_table": {"TableName": "t"},
        "get_item": {"TableName": "t", "Key": KEY},
        "batch_get_item": {"RequestItems": {"t": {"Keys": [KEY]}}},
        "query": {"TableName": "t", "KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}},
        "scan": {"TableName": "t"},
    },
    "dynamodbstreams": {"list_streams": {}, "describe_stream": {"StreamArn": "arn:" + "x" * 40}},
    "sqs": {"receive_message": {"QueueUrl": "http://127.0.0.1/q"}, "send_message": {"QueueUrl": "http://127.0.0.1/q", "MessageBody": "x"}},
}  # fmt: skip


STRANGE = {
    "html": "<html>Welcome</html>",
    "list": "[1]",
    "text": "Bad gateway",
    "deep": '{"a": ' + "[" * 100_000,
    "other": '{"ok": true}',
    "number": '{"Table": {"KeySchema": 5, "TableName": 3}, "Items": 5, "Item": 5, "Responses": 5, "Messages": 5, "Streams": 5, '
    '"StreamDescription": 5, "MessageId": {}}',
    "inner": '{"Table": {"KeySchema": [{"AttributeName": 5}], "TableName": 3}, "Items": [5], "Item": [], "Responses": {"t": 5}, '
    '"Messages": [5], "Streams": [5], "StreamDescription": {"Shards": 5}, "MessageId": 5}',
    "empty": '{"Table": {}, "Items": null, "Responses": null, "Streams": null, "StreamDescription": {}, "MessageId": null}',
}  # fmt: skip


@pytest.fixture(params=STRANGE.values(), ids=STRANGE.keys())
def address(request) -> Iterator[str]:
    """A server that gives one answer to everything."""
    body = request.param.encode()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


MAY_BE_EMPTY = ("get_item", "receive_message")  # any JSON says that there is none


def test_answer_that_is_none_of_the_service_is_no_answer(address, request):
    """No operation takes it for an answer, least of all for one that says that there is no item."""
    for service, calls in CALLS.items():
        client = getattr(aws, service)(address)
        for call, parameters in calls.items():
            if request.node.callspec.id in ("other", "empty") and call in MAY_BE_EMPTY:
                continue
            given = parameters | ({"QueueUrl": f"{address}/q"} if service == "sqs" else {})
            with pytest.raises(StoreError, match="ResponseParserError"):
                retries.ask(retries.make_retry(attempts_max=1), "here", getattr(client, call), **given)


def test_command_names_the_address_that_something_else_answers_at(address, tmp_path, monkeypatch, capsys):
    """Exit code 2 and a cure, not a bug of ours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retries, "FIRST_ATTEMPTS_MAX", 1)
    (tmp_path / "rules.yaml").write_text(RULES)
    assert main.main(["verify", "--endpoint-url", address]) == 2
    said = capsys.readouterr().err
    assert f"something else answers at {address}" in said
    assert "Correct --endpoint-url" in said
