"""`--remote` on the embedded engine: the real functions, state table, queues and bucket; the machine runs in this process."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from handlers import backfill, redrive, verify
from sync_rules.adapters import aws
from sync_rules.adapters.state import TableState, read_applied_fingerprints
from sync_rules.audit.drift_report import open_report
from sync_rules.cli.account import Account
from sync_rules.cli.commands import backfill as backfill_command
from sync_rules.cli.commands import redrive as redrive_command
from sync_rules.cli.commands import verify as verify_command
from sync_rules.functions import runtime
from sync_rules.jobs.account.stack import Execution, Stack
from sync_rules.model.errors import SyncRulesError
from sync_rules.model.items import Failure
from sync_rules.pipeline.failure_records import make_failure_record
from tests.integration.test_backfill_engine import Shop
from tests.support import engines
from tests.support.builders import s
from tests.support.cold import start_cold
from tests.support.every_kind import order, user
from tests.support.inaccount import Machine
from tests.support.worlds import context
from tests.unit.jobs.test_remote_backfill import InPeace

HANDLERS = {"backfill": backfill.handler, "verify": verify.handler, "redrive": redrive.handler}


@pytest.fixture(scope="module")
def ministack():
    with engines.started("ministack") as url:
        yield url


class Local:
    """The state machine of one function, run to its end by the call that starts it."""

    def __init__(self, verb: str) -> None:
        self.handler = HANDLERS[verb]
        self.ended: dict[str, Execution] = {}

    def start(self, verb: str, asked: dict) -> str:
        name = f"{verb}-{len(self.ended)}"
        machine = Machine(lambda: None, InPeace(), name)
        machine.ask = lambda question: json.loads(
            json.dumps(self.handler(json.loads(json.dumps(question)), context(900_000)))
        )
        try:
            said = machine.run(asked)
            self.ended[name] = Execution(name, "FAILED" if said["error"] else "SUCCEEDED", said["error"], said["cause"])
        except SyncRulesError as error:
            self.ended[name] = Execution(name, "FAILED", type(error).__name__, str(error))
        return name

    def list_running_executions(self) -> list[str]:
        return []

    def watch(self, name: str, look) -> Execution:
        look()
        return self.ended[name]


class Deployed(Shop):
    """A shop with a rule of every kind, as the template deploys it."""

    def __init__(self, url: str, tmp_path, capsys, monkeypatch) -> None:
        super().__init__(url, tmp_path, capsys)
        self.sqs, s3 = aws.sqs(url), aws.s3(url)
        state, bucket = self.prefix + "state", self.prefix + "bucket"
        self.create_state_table(state)
        s3.create_bucket(Bucket=bucket)
        queues = {name: self.sqs.create_queue(QueueName=self.prefix + name)["QueueUrl"] for name in ("q", "f", "d")}
        self.failures = queues["f"]
        settings = {
            runtime.RULES_FILE: str(self.file),
            runtime.ENDPOINT_URL: url,
            runtime.QUEUE_URL: queues["q"],
            runtime.FAILURES_URL: queues["f"],
            runtime.DEAD_LETTERS_URL: queues["d"],
            runtime.STATE_TABLE: state,
            runtime.BUCKET: bucket,
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        start_cold()
        self.state = TableState(self.client, state)
        urls = {"FailuresQueueUrl": queues["f"], "FanoutDeadLettersUrl": queues["d"]}
        stack = Stack("sync-rules", "us-east-1", {"StateTableName": state, "BucketName": bucket, **urls})
        for module, verb in ((backfill_command, "backfill"), (verify_command, "verify"), (redrive_command, "redrive")):
            account = Account(stack, Local(verb), self.state, url, None)
            monkeypatch.setattr(module, "find_account", lambda *_given, account=account: account)

    def run(self, verb: str, *options: str) -> tuple[int, list[dict], str]:
        code = self.command(verb, "--remote", "--format", "jsonl", *options)
        said = self.capsys.readouterr()
        rows = [json.loads(line) for line in said.out.splitlines() if line.startswith("{")]
        return code, [row for row in rows if "service" not in row], said.err  # metrics and log lines of the functions


@pytest.fixture
def deployed(ministack, tmp_path, capsys, monkeypatch):
    yield Deployed(ministack, tmp_path, capsys, monkeypatch)
    start_cold()


@pytest.mark.night
def test_remote_engine_backfill_brings_every_kind_in_line(deployed):
    """Begun in the account, it ends with everything in line, and says so as a local one does; a second one writes
    nothing, and one of what changed has nothing to do.
    """
    deployed.fill()
    code, rows, err = deployed.run("backfill")
    assert code == 0, err
    summary = rows[-1]["summary"]
    assert (summary["done"], summary["parked"], summary["failed"], summary["left"]) == (True, 0, 0, [])
    assert summary["copied"] > 20
    assert read_applied_fingerprints(deployed.state).keys() == {rule.title for rule in deployed.rules.rules.values()}
    code, rows, err = deployed.run("backfill", "--rate", "2000")
    assert (code, rows[-1]["summary"]["writes"]) == (0, 0), err
    code, rows, err = deployed.run("backfill", "--changed")
    assert (code, rows) == (0, []), err


def test_remote_engine_verify_finds_repairs_and_reports(deployed, tmp_path):
    """A remote verify finds drift, writes a report that `verify --from` accepts, and repairs the drift."""
    deployed.fill()
    code, rows, err = deployed.run("verify", "--grace-seconds", "0", "--workers", "1")
    assert code == 1, err
    path = tmp_path / "report.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(list(open_report(path, deployed.rules).read_differences(frozenset(deployed.rules.rules)))) > 20
    code, rows, err = deployed.run("verify", "--grace-seconds", "0", "--repair")
    assert code == 0, err
    code, rows, err = deployed.run("verify", "--grace-seconds", "0")
    assert code == 0, rows
    said = verify.handler({"do": "sample", "percent": 1}, context(900_000))
    assert (said["drift"], said["cut_short"]) == (0, False)
    assert verify.handler({"do": "sample", "percent": 1}, context(200_000))["cut_short"]


def test_remote_engine_redrive_puts_through_what_failed(deployed):
    """A failure record in the stack's queue is processed and removed; one of an unknown rule stays."""
    deployed.put("shop", user("1", name=s("Ada")), order("1", "1", 5))
    key = deployed.rules.tables["shop"].key_of(order("1", "1", 5))
    for rule in ("names", "gone"):
        body = json.dumps(make_failure_record(Failure(rule, key, "X"), datetime.now(UTC)))
        deployed.sqs.send_message(QueueUrl=deployed.failures, MessageBody=body)
    code, rows, err = deployed.run("redrive")
    assert (code, rows[-1]["done"], rows[-1]["unreadable"]) == (1, 1, 1), err
    found = deployed.client.get_item(TableName=deployed.prefix + "shop", Key=key.attributes())["Item"]
    assert found["user_name"] == s("Ada")


def test_shared_table_loads_many_documents(deployed):
    """More than one request may name; those that are there."""
    names = [f"doc/{i}" for i in range(230)]
    for name in names[:205]:
        deployed.state.save(name, {"name": name})
    assert deployed.state.load_many(names) == {name: {"name": name} for name in names[:205]}
