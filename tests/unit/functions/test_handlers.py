"""The Lambda entry points, called as Lambda calls them: environment in, answers, metrics and logs out, no value in any."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import boto3
import pytest
from moto import mock_aws

from handlers import fanout, stream
from sync_rules.adapters import aws
from sync_rules.adapters.budget import Rate
from sync_rules.functions import logs, runtime
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.messages import PullMessage, PushMessage, format_message
from tests.support.builders import s
from tests.support.cold import start_cold
from tests.support.operated import figures, printed
from tests.support.worlds import Scene, Stdout, context, event_of

RULES = """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
entities: {author: {table: authors}, book: {table: books}}
rules:
  names: {copy: author.name, into: book.author.name}
  bios: {copy: author.bio, into: book.bio}
"""
BASE_RULES = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules: {names: {copy: user.name, into: order.user.name}}
"""
MARK, KEY_MARK = "SECRETVALUE", "secretkey"


class Function:
    """A deployed function: its rules and their store, its queues, what it printed."""

    def __init__(self, monkeypatch, tmp_path, capsys, rules: str) -> None:
        self.scene = Scene(parse_rules(rules))
        self.capsys = capsys
        self.monkeypatch = monkeypatch
        self.sqs = boto3.client("sqs")
        self.urls = {name: self.sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("later", "failures")}
        file = tmp_path / "rules.yaml"
        file.write_text(rules)
        monkeypatch.setenv(runtime.RULES_FILE, str(file))
        monkeypatch.setenv(runtime.QUEUE_URL, self.urls["later"])
        monkeypatch.setenv(runtime.FAILURES_URL, self.urls["failures"])
        monkeypatch.setattr(runtime, "DynamoStore", lambda *_args, **_options: self.scene.tap)
        monkeypatch.setattr(logs.logger.registered_handler, "stream", Stdout())

    def stream(self, event: dict | None = None, remaining_ms: int = 60_000) -> dict:
        if event is None:
            event = event_of(self.scene.rules, *self.scene.records)
            self.scene.records.clear()
        return stream.handler(event, context(remaining_ms))

    def fanout(self, *bodies: str, remaining_ms: int = 60_000) -> dict:
        records = [{"messageId": f"m{i}", "body": body} for i, body in enumerate(bodies)]
        return fanout.handler({"Records": records}, context(remaining_ms))

    def received(self, queue: str) -> list[dict]:
        """The messages of a queue that are due."""
        answer = self.sqs.receive_message(QueueUrl=self.urls[queue], MaxNumberOfMessages=10)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]

    def lines(self) -> list[dict]:
        return printed(self.capsys)


@pytest.fixture(autouse=True)
def cold_start(monkeypatch):
    """Each test is a process of its own: nothing loaded, no credentials but false ones, no endpoint."""
    for name in (runtime.ENDPOINT_URL, logs.LOG_KEYS, runtime.QUEUE_URL, runtime.FAILURES_URL, "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    with mock_aws():
        start_cold()
        aws._make_client.cache_clear()
        yield
    start_cold()
    aws._make_client.cache_clear()


@pytest.fixture
def function(monkeypatch, tmp_path, capsys) -> Function:
    return Function(monkeypatch, tmp_path, capsys, RULES)


def author(**values) -> dict:
    return {"author_id": s(KEY_MARK), **values}


def book(number: int = 1, **values) -> dict:
    return {"book_id": s(f"{KEY_MARK}{number}"), "author_id": s(KEY_MARK), "text": s(MARK), **values}


ADA = author(name=s(f"{MARK} Ada"), bio=s(f"{MARK} bio"))


# ---------------------------------------------------------------- side by side
def test_handlers_refuse_a_second_invocation_in_their_process(function):
    """A second thread is refused by name. The first one keeps its deadline and its counts, and writes its metrics."""
    function.scene.put("authors", ADA)
    function.scene.put("books", book())
    refused: list[str] = []

    def call_beside() -> None:
        with pytest.raises(UserError) as error:
            function.fanout("{}")
        refused.append(str(error.value))

    def before(_request: object) -> None:
        function.scene.tap.before = lambda _request: None
        beside = threading.Thread(target=call_beside)
        beside.start()
        beside.join()

    function.scene.tap.before = before
    assert function.stream(remaining_ms=50_000) == {"batchItemFailures": []}
    assert refused == [runtime.SIDE_BY_SIDE]
    assert runtime.deadline.remaining_ms() == 50_000
    assert figures(function.lines(), rule="names")["Copied"] == 1
    assert function.fanout() == {"batchItemFailures": []}


# ---------------------------------------------------------------- the stream handler


def test_handlers_stream_emits_what_was_counted_before_a_crash(function):
    """An unexpected error fails the whole batch, and what was counted so far is not left to the next one."""
    function.scene.put("authors", ADA)
    consumer = runtime.make_consumer()
    function.monkeypatch.setattr(consumer, "handle_event", lambda *_: (_ for _ in ()).throw(RuntimeError("bug")))
    consumer.telemetry.unreadable_records = 1
    with pytest.raises(RuntimeError):
        function.stream()
    assert figures(function.lines()) == {"UnreadableRecords": 1}


# ---------------------------------------------------------------- the queue handler


def test_handlers_fanout_names_the_messages_that_must_come_again(function):
    """Only the message that failed is reported; an unreadable one is parked, and the others are processed."""
    scene = function.scene
    scene.there("authors", ADA)
    keys = [scene.there("books", book(number)) for number in range(3)]
    scene.tap.result = lambda write: Result(Status.FAILED, reason="Throttled") if write.key == keys[1] else None
    bodies = [format_message(PullMessage(key)) for key in keys]
    assert function.fanout(*bodies[:2], "no message", bodies[2]) == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert [scene.item(key).get("bio") for key in keys] == [ADA["bio"], None, ADA["bio"]]
    (failure,) = function.received("failures")
    assert failure["position"] == "m2"
    assert "not a message of sync-rules" in failure["reason"]


def test_handlers_fanout_has_what_failed_come_again_soon(function):
    """Half a minute after its first failure, not after the timeout of the queue, which is for workers that died."""
    scene = function.scene
    scene.there("authors", ADA)
    at = scene.there("books", book())
    scene.tap.result = lambda _write: Result(Status.FAILED, reason="Throttled")
    function.sqs.send_message(QueueUrl=function.urls["later"], MessageBody=format_message(PullMessage(at)))
    (message,) = function.sqs.receive_message(QueueUrl=function.urls["later"], VisibilityTimeout=1_080)["Messages"]
    asked = []
    function.monkeypatch.setattr(
        "sync_rules.adapters.sqs.Receipts.shorten_timeout", lambda _self, receipt, times: asked.append((receipt, times))
    )
    record = {"messageId": "m", "body": message["Body"], "receiptHandle": message["ReceiptHandle"]}
    record["attributes"] = {"ApproximateReceiveCount": "3"}
    answer = fanout.handler({"Records": [record]}, context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    assert asked == [(message["ReceiptHandle"], 3)]


# ---------------------------------------------------------------- the environment
def test_handlers_without_a_queue_refuse_rules_that_need_one(function):
    """Rules that look twice through an index need a queue: without one the error names them, the variable and a cure."""
    function.monkeypatch.delenv(runtime.QUEUE_URL)
    with pytest.raises(UserError, match=rf"{runtime.QUEUE_URL} is not set.*names, bios.*standard SQS queue"):
        function.stream({"Records": []})


@pytest.fixture
def bare(monkeypatch, tmp_path, capsys) -> Function:
    """A function for rules that need no queue, with none."""
    function = Function(monkeypatch, tmp_path, capsys, BASE_RULES)
    monkeypatch.delenv(runtime.QUEUE_URL)
    monkeypatch.delenv(runtime.FAILURES_URL)
    return function


def test_handlers_without_a_queue_park_without_holding_up(bare):
    """A blocked target without a queue is logged as parked, and does not hold up its shard."""
    bare.scene.there("shop", {"PK": s("USER#1"), "SK": s("PROFILE"), "name": s("Ada")})
    bare.scene.put("shop", {"PK": s("USER#1"), "SK": s("ORDER#1"), "user": s(MARK)})
    free = bare.scene.put("shop", {"PK": s("USER#1"), "SK": s("ORDER#2")})
    assert bare.stream() == {"batchItemFailures": []}
    (parked,) = [line for line in bare.lines() if line.get("message") == "parked"]
    assert (parked["rule"], parked["reason"]) == ("names", "user is a string: expected a map to hold name")
    assert "user" in bare.scene.item(free)


def test_handlers_say_of_a_message_that_it_comes_again(function, monkeypatch):
    """A message that SQS delivered before may have sent its rest: the handler reports that to the pipeline."""
    told = []
    monkeypatch.setattr(runtime.make_consumer(), "handle_message", lambda *_args, again: told.append(again))
    body = format_message(PushMessage(("names",), function.scene.at("authors", KEY_MARK), spread=True))
    for receives in ({}, {"ApproximateReceiveCount": "1"}, {"ApproximateReceiveCount": "2"}):
        fanout.handler({"Records": [{"messageId": "m", "body": body, "attributes": receives}]}, context())
    assert told == [False, False, True]


def test_handlers_without_rules_say_what_to_do(function):
    """A rules file that is not there is an error that names it, at every call."""
    function.monkeypatch.setenv(runtime.RULES_FILE, "nowhere.yaml")
    for _ in range(2):
        with pytest.raises(UserError, match=r"nowhere.yaml: no such file"):
            function.stream({"Records": []})


# ---------------------------------------------------------------- secrecy
def test_handlers_never_show_a_value_or_a_key_of_what_they_cannot_read(function):
    """No log line and no failure record contains a value or a key of a damaged record or message. Readable records that
    fail are in test_logs.
    """
    function.scene.put("books", book(author=s(MARK)))
    whole = event_of(function.scene.rules, *function.scene.records)
    for damage in ({"NewImage": {"mails": {MARK: MARK}}}, {"NewImage": None}, {"Keys": {"book_id": {"N": MARK}}}):
        record = {**whole["Records"][0], "eventName": "INSERT"}
        record["dynamodb"] = {**record["dynamodb"], **damage}
        function.stream({"Records": [record, {"dynamodb": MARK}, MARK, {"kinesis": {"data": MARK}}]})
    function.fanout(MARK, json.dumps({"kind": "push", "source": MARK}))
    out = function.capsys.readouterr().out
    assert len({json.loads(line).get("reason") for line in out.splitlines()}) > 4
    assert MARK not in out + json.dumps(function.received("failures"))
    assert KEY_MARK not in out


# ---------------------------------------------------------------- the rate of a worker


@pytest.mark.parametrize(
    ("writers", "rates"), [("", {3_000.0, 1_000.0}), ("4", {750.0, 250.0}), ("4+2", {500.0, 1_000 / 6})]
)
def test_handlers_share_the_limit_of_a_table(function, writers, rates):
    """Each process takes its part of what the rules file allows, and of what one partition takes; the rate of the
    process counts beside it, whichever is lower. Few writes go out together.
    """
    taken = set()

    def take(rate, _units, within):
        taken.add((rate.ceiling, within))
        return True

    made = function.scene.rules
    tables = {**made.tables, "books": replace(made.tables["books"], max_write_units_per_second=3_000)}
    function.monkeypatch.setattr(runtime, "read_rules", lambda: replace(made, tables=tables))
    function.monkeypatch.setattr(Rate, "take", take)
    function.monkeypatch.setenv(runtime.WRITE_UNITS, "50")
    function.monkeypatch.setenv(runtime.WRITERS, writers)
    assert runtime.make_consumer().limits.apply_max_writes == 5
    function.scene.put("authors", ADA)
    at = function.scene.put("books", book())
    function.fanout(format_message(PullMessage(at)))
    assert function.scene.item(at)["author"] == {"M": {"name": s(f"{MARK} Ada")}}
    assert taken == {(rate, 58.0) for rate in {50.0, *rates}}  # two seconds are kept for the answer


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        *((runtime.WRITERS, given) for given in ("many", "0", "4+", "-1+2", "1.5")),
        *((runtime.WRITE_UNITS, given) for given in ("fast", "-1", "inf", "nan")),
    ],
)
def test_handlers_refuse_a_number_of_writers_or_a_rate_that_is_none(function, setting, given):
    """A number of processes, or several to be added, as CloudFormation does not add; write units per second, or 0."""
    function.monkeypatch.setenv(setting, given)
    with pytest.raises(UserError, match=setting):
        runtime.make_consumer()
