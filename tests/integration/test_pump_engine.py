"""The pump and `sync-rules run` on the streams of the embedded engine: what was written arrives, whole, in order, once resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable

import pytest

from sync_rules.adapters import aws, retries
from sync_rules.adapters.preflight import describe
from sync_rules.cli import main
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import Pump
from sync_rules.jobs.consume.mapping import EventSourceMapping
from sync_rules.jobs.consume.queue import LocalQueue
from sync_rules.jobs.local_files import wall_clock_ms
from sync_rules.jobs.streams import DynamoDBStreams
from tests.support import engines
from tests.support.builders import shop, user_item

DRAIN_MAX_MS = 60_000
WAIT_MAX_SECONDS = 60
RULES = """\
tables:
  shop: {{name: {name}, key: {{PK: S, SK: S}}}}
entities:
  user: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  user-name-on-orders: copy user.name into order.user_name
"""


class Bench:
    """A table of its own on an engine, and mappings of its stream."""

    def __init__(self, endpoint_url: str) -> None:
        rules = shop(engines.unique_prefix())
        engines.create(endpoint_url, rules.tables)
        self.endpoint_url = endpoint_url
        self.client = aws.dynamodb(endpoint_url)
        self.table = rules.tables["shop"].physical_name
        description = describe(self.client, rules.tables["shop"], retries.make_retry())
        assert description is not None
        self.arn = description["LatestStreamArn"]
        self.events: list[dict] = []

    def put(self, user: str, version: int, **extra) -> None:
        self.client.put_item(TableName=self.table, Item=user_item(user, version={"N": str(version)}, **extra))

    def pump(self, answer: Callable = lambda _event: None, progress=(), **given) -> Pump:
        def invoke(event):
            self.events.append(json.loads(json.dumps(event)))  # as Lambda would pass it on
            return answer(event)

        mapping = EventSourceMapping(
            self.arn,
            DynamoDBStreams(aws.dynamodbstreams(self.endpoint_url)),
            invoke,
            pytest.fail,
            now_ms=wall_clock_ms,
            settings=MappingSettings(poll_idle_ms=20, retry_first_ms=10, **given),
            progress=progress,
        )
        return Pump([mapping], LocalQueue(wall_clock_ms), pytest.fail, now_ms=wall_clock_ms, sleep=time.sleep)

    def drain(self, pump: Pump) -> None:
        assert pump.drain(DRAIN_MAX_MS)

    @property
    def versions(self) -> dict[str, list[int]]:
        """The versions of each user, in the order of their first delivery."""
        found = defaultdict(list)
        for event in self.events:
            for body in event["Records"]:
                image = body["dynamodb"]["NewImage"]
                version = int(image["version"]["N"])
                if version not in found[image["PK"]["S"]]:
                    found[image["PK"]["S"]].append(version)
        return dict(found)


@pytest.fixture
def bench(engine: str) -> Bench:
    return Bench(engine)


def test_pump_engine_delivers_every_write_in_order_per_item(bench):
    """Every write to a table arrives, each item's in the order of its writes, over several lanes."""
    for version in range(8):
        for user in "abcd":
            bench.put(user, version)
    bench.drain(bench.pump(batch_size=5, parallelization_factor=3))
    assert bench.versions == {f"USER#{user}": list(range(8)) for user in "abcd"}


# ---------------------------------------------------------------- the command
@pytest.fixture
def arguments(bench, tmp_path) -> list[str]:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES.format(name=bench.table))
    files = ["--checkpoint", str(tmp_path / "c.json"), "--failures", str(tmp_path / "f.jsonl")]
    return ["run", str(rules), "--endpoint-url", bench.endpoint_url, *files]


def order(user: str) -> dict:
    return {"PK": {"S": f"USER#{user}"}, "SK": {"S": "ORDER#1"}}


def copied_name(bench: Bench, user: str) -> str | None:
    answer = bench.client.get_item(TableName=bench.table, Key=order(user), ConsistentRead=True)
    return answer["Item"].get("user_name", {}).get("S")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_MAX_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_run_once_makes_the_copies_right(bench, arguments, capsys):
    """`run --once` makes every copy right and prints how many it wrote."""
    bench.put("a", 1, name={"S": "Ada"})
    bench.client.put_item(TableName=bench.table, Item=order("a"))
    assert main.main([*arguments, "--once", "--parallelization", "3"]) == 0
    assert copied_name(bench, "a") == "Ada"
    (
        first,
        second,
        *_,
    ) = out = capsys.readouterr().out.splitlines()
    assert f"1 rule over 1 table at {bench.endpoint_url} (Region us-east-1): {bench.table}." in first
    assert "reads the streams from their beginning" in second
    assert any("1 copied" in text for text in out)


def test_run_refuses_tables_that_are_not_there(bench, arguments, capsys):
    """Every missing table is named before anything is read."""
    bench.client.delete_table(TableName=bench.table)
    assert main.main([*arguments, "--once"]) == 2
    shown = capsys.readouterr().err
    assert bench.table in shown
    assert "does not exist" in shown


def test_run_stops_on_a_signal_and_resumes(bench, arguments, tmp_path):
    """SIGINT ends a run with exit code 0, a summary and a checkpoint; the next run does only what came after."""
    bench.put("a", 1, name={"S": "Ada"})
    bench.client.put_item(TableName=bench.table, Item=order("a"))
    command = [sys.executable, "-m", "sync_rules", *arguments, "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}, text=True) as running:
        wait_for(lambda: copied_name(bench, "a") == "Ada")
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=WAIT_MAX_SECONDS)
    assert running.returncode == 0
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert (summary["copied"], summary["parked"]) == (1, 0)
    bench.put("a", 2, name={"S": "Ada Lovelace"})
    again = subprocess.run([*command, "--once"], capture_output=True, check=True, text=True)
    resumed = json.loads(again.stdout.splitlines()[-1])["summary"]
    assert copied_name(bench, "a") == "Ada Lovelace"
    assert resumed["records"] <= summary["records"] + 2
    assert json.loads((tmp_path / "c.json").read_text())["version"] == 1
