"""The stream function under the runtime client that AWS uses: its start, its errors, its end of time."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from sync_rules.adapters import aws
from sync_rules.language.load import load_rules
from sync_rules.model.entities import Table
from tests.deploy.runtime_api import Function, function
from tests.support import engines
from tests.support.builders import order_item, s, user_item
from tests.support.worlds import event_of

# The stream function with a mistake in it, which it makes once.
MISTAKEN = """
from handlers.stream import handler
from sync_rules.pipeline import consumer as batch

right = batch.make_tasks

def mistaken(*given):
    batch.make_tasks = right
    raise KeyError("mistake")

batch.make_tasks = mistaken
"""

Start = Callable[..., AbstractContextManager[Function]]


class Place:
    """Tables of a test's own on an engine, under the rules that are in the bundle."""

    def __init__(self, engine: str, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = engines.unique_prefix()
        monkeypatch.setenv("STAGE", self.stage)
        self.rules = load_rules(built / "rules.yaml")
        engines.create(engine, self.rules.tables)
        self.url, self.client = engine, aws.dynamodb(engine)

    @property
    def shop(self) -> Table:
        return self.rules.tables["shop"]

    def put(self, *items: dict) -> None:
        for item in items:
            self.client.put_item(TableName=self.shop.physical_name, Item=item)

    def event(self, last: int = 1_000) -> dict:
        """An event with the last records of the shop's stream."""
        return event_of(self.rules, *engines.stream_records(self.url, self.shop)[-last:])

    def name(self, user: str, order: str) -> dict | None:
        at = {"PK": s(f"USER#{user}"), "SK": s(f"ORDER#{order}")}
        return self.client.get_item(TableName=self.shop.physical_name, Key=at)["Item"].get("user_name")


@pytest.fixture
def place(engine: str, built: Path, monkeypatch) -> Place:
    return Place(engine, built, monkeypatch)


@pytest.fixture
def start(built: Path, place: Place, tmp_path: Path) -> Start:
    """Starts the stream function out of its bundle, for the tables of the test."""

    def starting(handler: str = "handlers.stream.handler", name: str = "StreamFunction", **variables: str):
        fixed = {"SYNC_RULES_FILE": "rules.yaml", "SYNC_RULES_QUEUE_URL": f"{place.url}/1/none", "STAGE": place.stage}
        given = {**fixed, "AWS_ENDPOINT_URL": place.url, **variables}
        return function(built / ".aws-sam/build" / name, handler, tmp_path / "printed", **given)

    return starting


def test_runtime_client_runs_invocations_side_by_side(start, place):
    """On Managed Instances, the runtime client gives each invocation a process. Each does its own work and counts it."""
    users = ["u", "v", "w"]
    place.put(*(order_item(user, "o") for user in users), *(user_item(user, name=s("Ada")) for user in users))
    records = place.event(last=len(users))["Records"]
    with start(processes=len(users), AWS_LAMBDA_INITIALIZATION_TYPE="lambda-managed-instances") as started:
        for record in records:
            started.put({"Records": [record]})
        said = [started.heard() for _ in users]
        assert [(one.way, one.body) for one in said] == [("response", {"batchItemFailures": []})] * len(users)
        counts = [json.loads(line) for line in started.printed.splitlines() if '"records"' in line]
        assert [line["records"] for line in counts] == [1] * len(users)
    assert [place.name(user, "o") for user in users] == [s("Ada")] * len(users)


def test_runtime_client_tells_an_unexpected_error_and_goes_on(start, place, tmp_path):
    """A mistake of ours is an error with its type and where it was; the process lives, and the same event is done then."""
    place.put(order_item("u", "o"), user_item("u", name=s("Ada")))
    event = place.event()
    (tmp_path / "mistaken.py").write_text(MISTAKEN)
    with start("mistaken.handler", PYTHONPATH=str(tmp_path)) as started:
        said = started.invoke(event)
        assert (said.way, said.body["errorType"], said.body["errorMessage"]) == ("error", "KeyError", "'mistake'")
        assert any("handlers/stream.py" in line for line in said.body["stackTrace"])
        assert "Ada" not in started.printed
        assert started.invoke(event).body == {"batchItemFailures": []}
    assert place.name("u", "o") == s("Ada")


def test_runtime_client_runs_the_write_function(start, place):
    """Out of its bundle: a document in, the order with its copy, an answer that JSON can hold, and no value in the log."""
    place.put(user_item("u", name=s("Ada")))
    put = {"entity": "order", "item": {"user_id": "u", "order_id": "o", "total": 12.5}, "returns": True}
    with start("handlers.write.handler", "WriteFunction") as started:
        said = started.invoke({"actions": [{"put": put}]})
        assert (said.way, said.body["left"], said.body["attempts"]) == ("response", [], 1)
        again = started.invoke({"actions": [{"put": {**put, "condition": "attribute_not_exists(PK)"}}]})
        (reason,) = again.body["error"]["reasons"]
        assert (reason["code"], reason["item"]["total"]) == ("ConditionalCheckFailed", 12.5)
        by_url = {"requestContext": {"http": {"method": "POST"}}, "body": json.dumps({"actions": []})}
        assert started.invoke(by_url).body["statusCode"] == 400
        assert "Ada" not in started.printed
    assert place.name("u", "o") == s("Ada")
