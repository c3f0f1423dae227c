"""Every kind of rule on the embedded engine: through the Lambda handler, then verify, then prune."""

from __future__ import annotations

import json

import pytest

from handlers import stream
from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.cli import main
from sync_rules.cli.show.text import format_count
from sync_rules.functions import logs, runtime
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work
from tests.support import every_kind
from tests.support.builders import m, n, s
from tests.support.cold import start_cold
from tests.support.every_kind import EFFECTS, RULES, order, part, post, text_of, user
from tests.support.sites import Site
from tests.support.worlds import Parked, Stdout, context, event_of

DONE = {"batchItemFailures": []}
CALLED: list[object] = []


class Shop(Site):
    """A shop with a rule of every kind, as deployed: tables, streams, queues, a table of calls."""

    def __init__(self, endpoint_url: str, monkeypatch, tmp_path, capsys) -> None:
        super().__init__(endpoint_url, tmp_path, lambda prefix: text_of(RULES | EFFECTS, prefix))
        self.capsys = capsys
        sqs = aws.sqs(endpoint_url)
        calls = self.prefix + "calls"
        self.client.create_table(
            TableName=calls,
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.failures = sqs.create_queue(QueueName=self.prefix + "failures")["QueueUrl"]
        monkeypatch.setenv(runtime.RULES_FILE, str(self.file))
        monkeypatch.setenv(runtime.ENDPOINT_URL, endpoint_url)
        monkeypatch.setenv(runtime.QUEUE_URL, sqs.create_queue(QueueName=self.prefix + "later")["QueueUrl"])
        monkeypatch.setenv(runtime.FAILURES_URL, self.failures)
        monkeypatch.setenv(runtime.CALLS_TABLE, calls)
        ports = World(DynamoStore(self.client, self.rules.tables), NULL_PORTS, Parked())
        assert run_work(finish_empty(self.rules), ports) == ()  # as a stack does that makes the tables

    def write(self, name: str, *without: str) -> object:
        """A file of all rules but some."""
        file = self.folder / name
        file.write_text(
            text_of({name: rule for name, rule in (RULES | EFFECTS).items() if name not in without}, self.prefix)
        )
        return file

    def deliver(self) -> None:
        """Batch after batch until the streams are empty."""
        for _ in range(20):
            records = self.new_records()
            if not records:
                return
            assert stream.handler(event_of(self.rules, *records), context()) == DONE
        pytest.fail("the pipeline does not come to rest")

    def prune(self, *options: object) -> tuple[int, list[str]]:
        self.capsys.readouterr()
        code = main.main(["prune", *map(str, options), "--endpoint-url", self.url])
        return code, self.capsys.readouterr().out.splitlines()

    def verify(self) -> tuple[int, list[dict]]:
        self.capsys.readouterr()
        failures = self.folder / "failures.jsonl"
        code = self.command("verify", "--grace-seconds", "0", "--failures", failures, "--format", "jsonl")
        lines = self.capsys.readouterr().out.splitlines()
        return code, [json.loads(line) for line in lines[1:]]  # the first says what the report is of


@pytest.fixture
def shop(engine, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(logs.logger.registered_handler, "stream", Stdout())
    monkeypatch.setattr(every_kind, "told", CALLED.append)
    CALLED.clear()
    start_cold()
    made = Shop(engine, monkeypatch, tmp_path, capsys)
    made.put("shop", order("1", "a", 10), order("1", "b", 5, status=s("VOID")))
    made.put("shop", user("1", name=s("Ada"), rank=n(1), email=s("a@x")))
    made.put("posts", post("p", "1", "Hello"))
    made.put("parts", part("c", "b"), part("b", "a"), part("a"))
    made.deliver()
    yield made
    start_cold()


EXPECTED = {
    "head": s("Ada-1"), "posts": m(p=m(title=s("Hello"))), "orders": {"SS": ["a"]},
    "counted": n(2), "spent": n(15), "least": n(5), "most": n(10),
}  # fmt: skip


def test_kinds_engine_keep_what_they_say_and_verify_agrees(shop):
    """Every kind does its work on a real service's answers; delivered again it changes nothing; verify finds no drift."""
    kept = shop.item("shop", "USER#1", "PROFILE")
    assert {name: kept.get(name) for name in EXPECTED} == EXPECTED
    assert [shop.item("shop", "USER#1", f"ORDER#{name}")["counted"] for name in "ab"] == [n(2), n(2)]
    assert shop.item("parts", "c")["path"] == s("a|b|c")
    assert shop.item("shop", "EMAIL#a@x", "EMAIL")["name"] == s("Ada")
    before = {name: shop.items(name) for name in shop.rules.tables}
    shop.seen.clear()
    shop.deliver()
    assert {name: shop.items(name) for name in shop.rules.tables} == before
    code, (totals,) = shop.verify()
    assert code == 0
    assert all(figures["right"] for figures in totals["rules"].values())


def test_kinds_engine_follow_changes_and_deletes(shop):
    """A move, a change and a delete reach all that was made from an item."""
    shop.put("shop", user("1", name=s("Eve"), rank=n(2), email=s("b@x"), posts=s("no map")))
    shop.delete("shop", "USER#1", "ORDER#b")
    shop.put("posts", post("p", "2", "Hello"))
    shop.put("parts", part("b"))
    shop.deliver()
    kept = shop.item("shop", "USER#1", "PROFILE")
    assert {name: kept.get(name) for name in EXPECTED} == {
        "head": s("Eve-2"), "posts": m(), "orders": {"SS": ["a"]},
        "counted": n(1), "spent": n(10), "least": n(10), "most": n(10),
    }  # fmt: skip
    assert shop.item("parts", "c")["path"] == s("b|c")
    assert (shop.item("shop", "EMAIL#a@x", "EMAIL"), bool(shop.item("shop", "EMAIL#b@x", "EMAIL"))) == ({}, True)
    assert shop.verify()[0] == 0


def test_kinds_engine_prune_removes_what_dropped_rules_left(shop):
    """Prune removes everything that a dropped rule has written and nothing else."""
    dropped: list[str] = []
    for name in sorted(RULES, reverse=True):
        old, dropped = shop.write("before.yaml", *dropped), [*dropped, name]
        now = shop.write("now.yaml", *dropped)
        code, lines = shop.prune(old, now)
        assert code == 1
        assert all(line.endswith(f"rule {name}") for line in lines[:-1])
        code, lines = shop.prune(old, now, "--apply")
        assert (code, lines[-1]) == (0, f"{format_count(len(lines) - 1, 'leftover')} removed")
        assert shop.prune(old, now)[0] == 0
    assert shop.items("ledger") == []
    assert shop.items("parts") == sorted([part("a"), part("b", "a"), part("c", "b")], key=str)
    written = [
        order("1", "a", 10),
        order("1", "b", 5, status=s("VOID")),
        user("1", name=s("Ada"), rank=n(1), email=s("a@x")),
    ]
    by_key = {str(item["SK"]): item for item in written}
    assert {str(item["SK"]): item for item in shop.items("shop")} == by_key


def test_kinds_engine_call_functions_once(shop):
    """A function is called for each order that was created, once however often its record comes, with its values."""
    assert sorted(change.new["PK"] + change.new["SK"] for change in CALLED) == ["USER#1ORDER#a", "USER#1ORDER#b"]
    shop.seen.clear()
    shop.deliver()
    assert len(CALLED) == 2
