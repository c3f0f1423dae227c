"""Answers of something that is not AWS: a proxy, a portal, another program that says 200 to anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session

from sync_rules.adapters import aws, retries
from sync_rules.cli import main
from sync_rules.model.errors import StoreError

RULES = """
tables: {authors: {key: {author_id: S}}, books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}}
entities: {author: {table: authors}, book: {table: books}}
rules: {name: copy author.name into book.author_name}
"""
ADDRESS = "http://127.0.0.1:9"
KEY = {"author_id": {"S": "a"}}
CALLS = {
    "dynamodb": {"describe_table": {"TableName": "t"}, "get_item": {"TableName": "t", "Key": KEY}},
    "dynamodbstreams": {"list_streams": {}},
    "sqs": {"send_message": {"QueueUrl": f"{ADDRESS}/q", "MessageBody": "x"}},
}
STRANGE = {
    "html": "<html>Welcome</html>",
    "list": "[1]",
    "text": "Bad gateway",
    "deep": '{"a": ' + "[" * 100_000,
    "other": '{"ok": true}',
}


@pytest.fixture(params=STRANGE.values(), ids=STRANGE.keys(), autouse=True)
def strange(request, monkeypatch) -> None:
    """One answer to everything."""

    def send(_session: URLLib3Session, asked: Any) -> AWSResponse:
        raw: Any = SimpleNamespace(stream=lambda *_args, **_named: iter([request.param.encode()]))
        return AWSResponse(asked.url, 200, {}, raw)

    monkeypatch.setattr(URLLib3Session, "send", send)


def test_answer_that_is_none_of_the_service_is_no_answer(request):
    """No operation takes it for an answer, least of all for one that says that there is no item."""
    for service, calls in CALLS.items():
        client = getattr(aws, service)(ADDRESS)
        for call, parameters in calls.items():
            if request.node.callspec.id == "other" and call == "get_item":  # any JSON says that there is none
                continue
            with pytest.raises(StoreError, match="ResponseParserError"):
                retries.ask(retries.make_retry(attempts_max=1), "here", getattr(client, call), **parameters)


def test_command_names_the_address_that_something_else_answers_at(tmp_path, monkeypatch, capsys):
    """Exit code 2 and a cure, not a bug of ours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retries, "FIRST_ATTEMPTS_MAX", 1)
    (tmp_path / "rules.yaml").write_text(RULES)
    assert main.main(["verify", "--endpoint-url", ADDRESS]) == 2
    said = capsys.readouterr().err
    assert f"something else answers at {ADDRESS}" in said
    assert "Correct --endpoint-url" in said
