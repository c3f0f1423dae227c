"""The stream function under the runtime client that AWS uses: its start, its rate, its errors, its end of time."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from sync_rules.adapters import aws
from sync_rules.language.load import load_rules
from sync_rules.model.entities import Table
from sync_rules.pipeline.consumer import TIME_RESERVED_MS
from tests.deploy.runtime_api import Function, function
from tests.support import engines
from tests.support.builders import order_item, s, user_item
from tests.support.worlds import event_of

COLD_MAX_SECONDS = 30  # with a loaded machine in mind; it takes about one
WARM_MIN_PER_SECOND = 20  # it is hundreds; one that is answered in two segments comes to 22
WARM = 200
SHORT_SECONDS = 2.6  # of which two are for the answer
SOURCES, TARGETS = 6, 600  # more than can be written in what is left

# The stream function with a mistake in it, which it makes once.
MISTAKEN = """
from handlers.stream import handler
from sync_rules.pipeline import consumer as batch

right = batch.tasks_of

def mistaken(*given):
    batch.tasks_of = right
    raise KeyError("mistake")

batch.tasks_of = mistaken
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
        for first in range(0, len(items), 25):
            puts = [{"PutRequest": {"Item": item}} for item in items[first : first + 25]]
            self.client.batch_write_item(RequestItems={self.shop.physical_name: puts})

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
def start(built: Path, place: Place, queue: str, tmp_path: Path) -> Start:
    """Starts the stream function out of its bundle, for the tables of the test."""

    def starting(handler: str = "handlers.stream.handler", code: Path | None = None, **variables: str):
        fixed = {"SYNC_RULES_FILE": "rules.yaml", "SYNC_RULES_QUEUE_URL": queue, "STAGE": place.stage}
        given = {**fixed, "AWS_ENDPOINT_URL": place.url, **variables}
        return function(code or built / ".aws-sam/build/StreamFunction", handler, tmp_path / "printed", **given)

    return starting


@pytest.fixture
def queue(engine: str, place: Place) -> str:
    return aws.sqs(engine).create_queue(QueueName=f"{place.stage}later")["QueueUrl"]


@pytest.fixture
def running(start: Start) -> Iterator[Function]:
    with start() as started:
        yield started


def test_runtime_client_starts_the_bundle_cold(start, place, record_property):
    """With nothing but the bundle and boto3, the first event after a start is answered, its effect is there."""
    place.put(order_item("u", "o"), user_item("u", name=s("Ada")))
    event = place.event()
    began = time.time()
    with start() as started:
        said = started.invoke(event)
    assert (said.way, said.body) == ("response", {"batchItemFailures": []})
    assert place.name("u", "o") == s("Ada")
    record_property("cold_seconds", round(said.at - began, 2))
    assert said.at - began < COLD_MAX_SECONDS


def test_runtime_client_answers_warm(running, place, record_property):
    """A warm function answers many records a second, each with a read of what it is about."""
    place.put(order_item("u", "o"), user_item("u", name=s("Ada")))
    event = place.event(last=1)
    assert running.invoke(event).body == {"batchItemFailures": []}
    began = time.time()
    for _ in range(WARM):
        assert running.invoke(event).body == {"batchItemFailures": []}
    rate = WARM / (time.time() - began)
    record_property("warm_per_second", round(rate))
    assert rate > WARM_MIN_PER_SECOND


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


def test_runtime_client_tells_that_rules_were_compiled_for_something_else(start, tmp_path, built):
    """Compiled rules of another version, or none, are an error that says what to do, at each event: none counts as done."""
    of_now = (built / ".aws-sam/build/StreamFunction/rules.compiled").read_bytes()
    (tmp_path / "older.compiled").write_bytes(of_now.replace(b'"sync-rules":"', b'"sync-rules":"0.0.', 1))
    for name, said_of_it in {"older": "compiled by sync-rules 0.0.", "missing": "no such file"}.items():
        with start(SYNC_RULES_FILE=str(tmp_path / f"{name}.yaml")) as started:
            for said in (started.invoke({"Records": []}), started.invoke({"Records": []})):
                assert (said.way, said.body["errorType"]) == ("error", "UserError")
                assert said_of_it in said.body["errorMessage"]
                assert "Build again" in said.body["errorMessage"]


def test_runtime_client_tells_that_a_bundle_lacks_a_module(start, built, tmp_path):
    """A function whose code cannot be imported says so at its start, and ends."""
    lacking = tmp_path / "code"
    shutil.copytree(built / ".aws-sam/build/StreamFunction", lacking)
    (lacking / "sync_rules/pipeline/reconcile.py").unlink()
    with start(code=lacking) as started:
        said = started.heard()
        assert (said.way, said.body["errorType"]) == ("init/error", "Runtime.ImportModuleError")
        assert "sync_rules.pipeline.reconcile" in said.body["errorMessage"]
        assert started.process.wait(COLD_MAX_SECONDS) == 1


def test_runtime_client_runs_the_write_function(start, built, place, record_property):
    """Out of its bundle: a document in, the order with its copy, an answer that JSON can hold, and no value in the log."""
    place.put(user_item("u", name=s("Ada")))
    put = {"entity": "order", "item": {"user_id": "u", "order_id": "o", "total": 12.5}, "returns": True}
    began = time.time()
    with start("handlers.write.handler", built / ".aws-sam/build/WriteFunction") as started:
        said = started.invoke({"actions": [{"put": put}]})
        assert (said.way, said.body["left"], said.body["attempts"]) == ("response", [], 1)
        again = started.invoke({"actions": [{"put": {**put, "condition": "attribute_not_exists(PK)"}}]})
        (reason,) = again.body["error"]["reasons"]
        assert (reason["code"], reason["item"]["total"]) == ("ConditionalCheckFailed", 12.5)
        by_url = {"requestContext": {"http": {"method": "POST"}}, "body": json.dumps({"actions": []})}
        assert started.invoke(by_url).body["statusCode"] == 400
        assert "Ada" not in started.printed
    record_property("cold_seconds", round(said.at - began, 2))
    assert place.name("u", "o") == s("Ada")


def test_runtime_client_answers_before_its_time_is_up(running, place, queue, engine):
    """With fan-outs that take longer than it has, a function answers in time: the rest is handed over or comes again."""
    users = [f"u{number}" for number in range(SOURCES)]
    place.put(*(order_item(user, f"{number:04}") for user in users for number in range(TARGETS)))
    place.put(*(user_item(user, name=s("Ada")) for user in users))
    event = place.event(last=SOURCES)
    assert running.invoke({"Records": []}).way == "response"
    began = time.time()
    said = running.invoke(event, SHORT_SECONDS)
    assert said.at < began + SHORT_SECONDS
    assert said.way == "response"
    handed_over = aws.sqs(engine).receive_message(QueueUrl=queue).get("Messages", [])
    assert said.body["batchItemFailures"] or handed_over


def test_runtime_client_reports_what_has_no_time(running, place):
    """With less time than an answer needs, nothing is begun: what cannot be handed over is reported, and comes again."""
    place.put(order_item("u", "o"), user_item("u", name=s("Ada")))
    event = place.event()
    said = running.invoke(event, TIME_RESERVED_MS / 1000 - 0.5)
    first = event["Records"][0]["dynamodb"]["SequenceNumber"]
    assert said.body == {"batchItemFailures": [{"itemIdentifier": first}]}
    assert running.invoke(event).body == {"batchItemFailures": []}
    assert place.name("u", "o") == s("Ada")
