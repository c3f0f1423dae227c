"""`sync-rules redrive`: from files, queues, buckets and the stream; what it prints, removes and keeps; its exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from sync_rules.adapters import aws, sqs
from sync_rules.adapters.kept_calls import CallsInFolder
from sync_rules.cli import main
from sync_rules.cli.commands import redrive
from sync_rules.jobs.redrive import redriver
from sync_rules.model.items import Change, Failure
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.messages import CallMessage, PullMessage, format_message
from tests.support import every_kind
from tests.support.builders import s
from tests.support.every_kind import ENTITIES, RULES, TABLES, order, user
from tests.support.fake_stream import FakeShard
from tests.support.worlds import event_of
from tests.unit.cli.command_line import SECRET, CommandLine, lines
from tests.unit.jobs.test_redrive import Days, Reader, batch_of

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
TEXT = TABLES.format(prefix="") + ENTITIES + f"rules:\n  names: {RULES['names']}\n  posts: {RULES['posts']}\n"
CALLS = every_kind.EFFECTS["called"]


class Command(CommandLine):
    """The command, with queues and buckets."""

    def __init__(self, monkeypatch, capsys) -> None:
        super().__init__(redrive, TEXT, monkeypatch, capsys)
        self.scene.there("shop", order("1", "a", 5), order("1", "b", 5), user("1", name=s(SECRET)))
        self.path = Path()
        self.days = Days()
        self.sqs = boto3.client("sqs", region_name="us-east-1")
        monkeypatch.setattr(redrive, "require_tables", lambda *_args, **_options: None)
        made = redriver.Redriver
        monkeypatch.setattr(
            redrive, "Redriver", lambda *a, **o: made(*a, **o, clock=self.days.time, sleep=self.days.sleep)
        )

    def become(self, text: str) -> None:
        self.file.write_text(text)

    def __call__(self, *options: str) -> tuple[int, list[str], str]:
        code, out, err = super().__call__(*options)
        return code, out.splitlines(), err

    def rows(self, *options: str) -> tuple[int, list[dict]]:
        code, out, _ = self(*options, "--format", "jsonl")
        return code, [json.loads(line) for line in out]

    def at(self, order_id: str):
        return self.scene.at("shop", "USER#1", f"ORDER#{order_id}")

    def copied(self) -> list[str]:
        return [name for name in "ab" if self.scene.item(self.at(name)).get("user_name") == s(SECRET)]

    def told(self, order_id: str, rule: str = "names") -> dict:
        return make_failure_record(Failure(rule, self.at(order_id), "ItemTooLarge"), AT)

    def given_up(self, order_id: str) -> dict:
        """A batch with the record of one order."""
        self.scene.put("shop", order("1", order_id, 6))
        return batch_of(event_of(self.scene.rules, replace(self.scene.records.pop(), old=None)))

    def reject(self, order_id: str) -> None:
        """Reject all later writes on one order."""
        at = self.at(order_id)
        self.scene.tap.result = lambda write: (
            Result(Status.REJECTED, reason="ItemTooLarge") if write.key == at else None
        )

    def queue(self, *bodies: str) -> str:
        url = self.sqs.create_queue(QueueName="failed")["QueueUrl"]
        for body in bodies:
            self.sqs.send_message(QueueUrl=url, MessageBody=body)
        return url

    def queued(self, url: str) -> list[str]:
        found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [message["Body"] for message in found.get("Messages", ())]


@pytest.fixture
def command(here, monkeypatch, capsys):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.delenv("SYNC_RULES_CALLS_TABLE", raising=False)
    monkeypatch.setattr(sqs, "RECEIVE_WAIT_SECONDS", 0)
    aws._make_client.cache_clear()
    with mock_aws():
        yield Command(monkeypatch, capsys)
    aws._make_client.cache_clear()


def held(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_redrive_empties_the_local_files(command):
    """Failure records and batches that `run` kept are retried and removed; nothing is left to do the next time."""
    here = command.path
    lines(here / ".sync-rules-failures.jsonl", command.told("a"))
    lines(here / ".sync-rules-failures.batches.jsonl", command.given_up("b"))
    code, out, _ = command()
    assert (code, out) == (0, ["2 retried and removed, 2 written"])
    assert command.copied() == ["a", "b"]
    assert held(here / ".sync-rules-failures.jsonl") == held(here / ".sync-rules-failures.batches.jsonl") == []


def test_redrive_takes_entries_out_of_a_queue_and_a_bucket(command):
    """A message, and a batch that Lambda gave up and stored in S3, are retried and deleted."""
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="given-up")
    s3.put_object(Bucket="given-up", Key="aws/lambda/u/1", Body=json.dumps(command.given_up("b")).encode())
    places = ("--queue", command.queue(format_message(PullMessage(command.at("a")))), "--bucket", "s3://given-up/aws/")
    assert main.main(["failures", *places]) == 1
    assert "queue failed: 1 message received" in command.capsys.readouterr().out
    assert command(*places)[:2] == (0, ["2 retried and removed, 2 written"])
    assert command.copied() == ["a", "b"]
    assert (s3.list_objects_v2(Bucket="given-up")["KeyCount"], command.queued(places[1])) == (0, [])


def test_redrive_reads_a_batch_without_records_from_its_stream(command):
    """A batch names a span of a stream, as a queue keeps it: the command reads the records there."""
    body, file = command.given_up("b"), command.path / "f.jsonl"
    (record,) = json.loads(body.pop("payload"))["Records"]
    records = [{**record, "dynamodb": {**record["dynamodb"], "SequenceNumber": str(number)}} for number in (1, 2)]
    stream = Reader({"shard-0": FakeShard(records=records)})
    command.patch.setattr(redrive, "DynamoDBStreams", lambda _client: stream)
    lines(file, body)
    assert command("--file", str(file))[0] == 0
    assert (command.copied(), held(file)) == (["b"], [])


def test_redrive_keeps_what_fails_again(command):
    """An entry that fails again stays with its new reason, is printed with its key, and makes the exit code 1."""
    file = command.path / "f.jsonl"
    lines(file, {**command.told("a"), "reason": "Old"}, command.told("b"), command.told("b", "gone"), "{")
    command.reject("a")
    code, out, _ = command("--file", str(file))
    assert code == 1
    assert out == [
        f"{file}:1: failed again: ItemTooLarge · names on shop[USER#1, ORDER#a]: Old",
        f"{file}:3: cannot be retried: there is no rule 'gone' any more: if it was renamed, say renamed_from: gone in the new one; otherwise `sync-rules failures RULES --drop` removes it · gone on shop[USER#1, ORDER#b]: ItemTooLarge",
        f"{file}:4: cannot be retried: not JSON · ?",
        "1 retried and removed, 1 written, 1 failed again, and kept, 2 cannot be retried, and kept",
    ]
    first, gone, odd = file.read_text().splitlines()
    assert (json.loads(first)["reason"], json.loads(first)["at"]) == ("ItemTooLarge", "2026-11-21T12:00:00.000+00:00")
    assert "last" in json.loads(first)
    assert (json.loads(gone), odd) == (command.told("b", "gone"), "{")


def test_redrive_appends_failures_that_are_new(command):
    """A failure during a redrive is appended to the failures file, even to the file being redriven."""
    file = command.path / "f.jsonl"
    lines(file, command.given_up("a"))
    command.reject("a")
    code, out, _ = command("--file", str(file), "--failures", str(file))
    assert (code, out) == (0, [f"1 retried and removed, 0 written, 1 new failures, in {file}"])
    (record,) = held(file)
    assert (record["rule"], record["reason"]) == ("names", "ItemTooLarge")


def test_redrive_only_shows_with_dry_run(command):
    """`redrive --dry-run` prints what would be retried, and changes neither the file, the queue nor any table."""
    file = command.path / "f.jsonl"
    url = command.queue(format_message(PullMessage(command.at("b"))))
    lines(file, command.told("a"), command.given_up("b"), command.told("a", "gone"))
    before = file.read_text()
    command.scene.tap.requests.clear()
    code, out, _ = command("--file", str(file), "--queue", url, "--dry-run")
    assert code == 1
    assert out[:2] == [
        "would retry: names on shop[USER#1, ORDER#a]: ItemTooLarge", "would retry: 1 records of shard-0, 1 to 2",
    ]  # fmt: skip
    assert "there is no rule 'gone' any more" in out[2]
    assert out[3:] == [
        "would retry: pull of shop[USER#1, ORDER#b]",
        "3 would be retried, 1 cannot be retried, and kept",
    ]
    assert (file.read_text(), command.scene.tap.requests) == (before, [])
    assert len(command.queued(url)) == 1
    _, rows = command.rows("--file", str(file), "--dry-run")
    assert rows[0] == {"would": "names on shop[USER#1, ORDER#a]: ItemTooLarge"}


def test_redrive_waits_for_second_looks_or_hands_them_over(command):
    """A redrive waits for second looks and says so; with --fanout-queue it sends them there."""
    file = command.path / "f.jsonl"
    command.scene.put("shop", user("2", name=s("Bea")))
    body = batch_of(event_of(command.scene.rules, *command.scene.records))
    lines(file, body)
    code, _, err = command("--file", str(file))
    assert (code, held(file), command.days.slept) == (0, [], [60])
    assert "1 second looks to come, the next in 60 s" in err
    lines(file, body)
    url = command.queue()
    assert command("--file", str(file), "--fanout-queue", url)[0] == 0
    assert (held(file), command.days.slept) == ([], [60])


def test_redrive_needs_to_know_which_calls_were_made(command):
    """With a rule that calls, nothing is done unless a table remembers the calls, or other rules are asked for."""
    command.become(TEXT + f"  called: {CALLS}\n")
    file = command.path / "f.jsonl"
    lines(file, command.told("a"))
    code, _, err = command("--file", str(file))
    assert code == 2
    assert "called: each change must call the function once" in err
    assert "--calls-table" in err
    assert len(held(file)) == 1
    assert command("--file", str(file), "--rule", "names")[0] == 0
    assert held(file) == []


def test_redrive_removes_the_kept_change_of_a_call_that_succeeded(command, monkeypatch):
    """The file with both images goes with the last failure record that names it, and not before."""
    command.become(TEXT + f"  called: {CALLS}\n")
    monkeypatch.setattr(redrive, "make_caller", lambda *_args, **_options: command.scene.caller)
    monkeypatch.setattr(redrive, "read_beginnings", lambda *_: {"called": 0})
    folder = CallsInFolder(command.path / "f.calls")
    place = folder.keep_call(CallMessage("called", "a.b", Change(command.at("a"), None, order("1", "a", 5), "1"), 8))
    file = command.path / "f.jsonl"
    lines(file, *[make_failure_record(Failure("called", command.at("a"), "CallFailed", "1", call=place), AT)] * 2)
    command.scene.caller.broken = "CallFailed"
    for code, left in ((1, 2), (0, 0)):
        assert command("--file", str(file), "--calls-table", "calls")[0] == code
        assert len(held(file)) == left
        assert (command.path / "f.calls" / place).exists() is bool(left)
        command.scene.caller.broken = ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--file", "nowhere"], "nowhere: no such file"),
        (["--queue", "failed"], "is not a queue URL"),
        (["--queue", "https://sqs.us-east-1.amazonaws.com/123456789012/nowhere"], "nowhere does not exist"),
        (["--fanout-queue", "later"], "is not a queue URL"),
        (["--bucket", "s3://nowhere"], "bucket nowhere does not exist"),
        (["--bucket", "nowhere"], "is not an S3 address"),
        (["--rule", "name"], "Did you mean 'names'"),
        (["missing.yaml"], "missing.yaml"),
        (["--failures", "no/such/place"], "no/such/place"),
    ],
    ids=range(9),
)
def test_redrive_exits_2_for_the_users_mistakes(command, options, words):
    """Each is named, with what was expected; nothing is written."""
    command.scene.tap.requests.clear()
    code, out, err = command(*options)
    assert (code, out, command.scene.tap.writes) == (2, [], [])
    assert words in err
