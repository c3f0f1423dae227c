"""Handler logs: a change can be followed by its source, in a bounded number of lines, without any value or key."""

from __future__ import annotations

import hmac
import json
import subprocess
import sys

import pytest

from sync_rules.functions import logs, runtime
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, ItemKey, Outcome
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.requests import Read
from sync_rules.pipeline.telemetry import Telemetry
from tests.support.builders import s
from tests.support.every_kind import order, user
from tests.support.operated import Operated, printed, quiet, told
from tests.support.worlds import Context, Parked

NAMES = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules: {names: {copy: user.name, into: order.user.name}}
"""
FEW = Limits(fan_out_inline_max_items=2, fan_out_page_max_items=2, fan_out_relay_max_items=4, fan_out_chunk_max_items=3)


@pytest.fixture
def names(monkeypatch, capsys) -> Operated:
    return Operated(parse_rules(NAMES), monkeypatch, capsys, limits=FEW)


# ---------------------------------------------------------------- followed
def test_logs_follow_a_source_over_chunks_to_its_failure(names):
    """Every log line about a change has the digest of its source, from the record to the last worker."""
    for number in range(8):
        names.scene.there("shop", order("1", str(number), 1))
    stuck = names.scene.there("shop", order("1", "9", 1, user=s("no map")))
    source = logs.format_log_key(names.scene.put("shop", user("1", name=s("Ann"))))
    names.stream()
    (on,) = told(names.lines(), "push continues")
    assert (on["source"], on["rules"], on["more"]) == (source, ["names"], True)
    lines = []
    names.scene.tap.result = lambda _write: Result(Status.FAILED, reason="Throttled")
    assert names.fanout() == []
    names.scene.tap.result = lambda _write: None
    lines += names.lines()
    while any(type(message).__name__ != "PullMessage" for message, _ in names.scene.queue.messages):
        assert names.fanout() == []
        lines += names.lines()
    handled = [line for line in told(lines, "message done") if line.get("source") == source]
    assert {(line["kind"], *line["rules"]) for line in handled} == {("push", "names"), ("chunk", "names")}
    sent = [line for line in told(lines, "push continues") if line["source"] == source]
    assert sum(line["targets"] for line in sent) == sum(line.get("targets", 0) for line in handled) == 4
    assert sum(line["chunks"] for line in sent) == len([line for line in handled if line["kind"] == "chunk"]) == 2
    assert sum(line["outcomes"].get("copied", 0) for line in handled) == 6
    (parked,) = told(lines, "parked")
    assert (parked["rule"], parked["item"], parked["source"]) == ("names", logs.format_log_key(stuck), source)
    assert parked["reason"] == "user is a string: expected a map to hold name"


def test_logs_say_of_a_message_that_comes_again_what_it_is_about(names):
    """A failed message is logged with its source, target and reason."""
    names.scene.there("shop", user("1", name=s("Ann")))
    at = names.scene.put("shop", order("1", "1", 1, user=s("no map")))
    names.stream()
    names.scene.tap.refuse(Read, StoreError("ThrottlingException", "table"))
    names.lines()
    assert len(names.fanout()) == 1
    lines = names.lines()
    (again,) = told(lines, "message not finished, delivered again")
    assert (again["kind"], again["target"], again["reason"]) == (
        "pull",
        logs.format_log_key(at),
        "ThrottlingException: table",
    )
    assert again.keys().isdisjoint({"source", "targets"})
    assert "target" not in told(lines, "invocation done")[0]


def test_logs_digests_of_keys_are_of_one_process():
    """A process always shows the same digest of a key; it follows neither from the key nor from the environment."""
    at = ItemKey("shop", (("PK", "S", "USER#7"), ("SK", "S", "PROFILE")))
    shown = logs.format_log_key(at)
    assert logs.format_log_key(at) == shown
    keyless = hmac.digest(b"", str(at).encode(), "sha256").hex()[:12]  # could be guessed by anyone
    code = "from sync_rules.functions import logs; from sync_rules.model.items import ItemKey; "
    code += f"print(logs.format_log_key({at!r}))"
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len({shown, at.digest(), keyless, fresh.stdout.strip()}) == 4


def test_logs_sum_up_an_invocation(names):
    """One line has the sums: records, outcomes, failures, messages; nothing is logged where nothing happened."""
    source = names.scene.there("shop", user("1", name=s("Ann")))
    names.scene.put("shop", order("1", "1", 1), order("1", "2", 1, user=s("no map")))
    names.stream()
    lines = names.lines()
    (line,) = told(lines, "invocation done")
    assert told(lines, "parked")[0]["source"] == logs.format_log_key(source)
    assert line["lag_ms"] < 60_000
    assert {name: line[name] for name in ("records", "outcomes", "failure_records", "sent")} == {
        "records": 2, "outcomes": {"copied": 1, "parked": 1}, "failure_records": 1, "sent": {"pull": 1},
    }  # fmt: skip
    names.scene.records.clear()
    assert names.stream() == []
    assert names.lines() == []


def test_logs_name_a_rule_that_waits(monkeypatch, capsys):
    """A number that waits for its backfill is a line of its own, once for each rule."""
    quiet(monkeypatch)
    telemetry = Telemetry()
    telemetry.outcomes.update({("counted.ledger", Outcome.WAITING): 2, ("names", Outcome.COPIED): 1})
    logs.sum_up(telemetry, logs.notes.take())
    assert [(line["rule"], line["times"]) for line in told(printed(capsys), "waits for a backfill")] == [("counted", 2)]


def test_logs_name_the_invocation(names):
    """Every line has the request id that Lambda gave."""
    given = Context(60_000)
    given.aws_request_id = "c6af9ac6"
    runtime.deadline.begin(given)
    names.scene.put("shop", order("1", "1", 1))
    logs.logger.info("now")
    runtime.deadline.begin(None)
    logs.logger.info("then")
    now, then = names.lines()
    assert now["function_request_id"] == "c6af9ac6"
    assert "function_request_id" not in then


# ---------------------------------------------------------------- bounded
def test_logs_are_bounded(names):
    """An invocation writes a bounded number of lines, and says how many it left out."""
    names.scene.there("shop", user("1", name=s("Ann")))
    names.scene.put("shop", *(order("1", str(number), 1, user=s("no map")) for number in range(300)))
    names.stream()
    lines = names.lines()
    assert len(told(lines, "parked")) == logs.LINES_MAX
    (done,) = told(lines, "invocation done")
    assert (done["failure_records"], done["unlogged"]) == (300, 200)
    names.scene.put("shop", *(order("2", str(number), 1) for number in range(300)))
    names.scene.tap.refuse(Read, StoreError("ThrottlingException", "table"))
    names.stream()
    lines = names.lines()
    assert len(told(lines, "item not finished, delivered again")) == logs.LINES_MAX
    assert told(lines, "item not finished, delivered again")[0]["reason"] == "ThrottlingException: table"
    assert told(lines, "invocation done")[0]["unlogged"] == 200


def test_logs_keep_failures_that_have_no_other_place(monkeypatch, capsys):
    """Without a queue for failure records the log is where they are: then none is left out."""
    quiet(monkeypatch)
    kept, logged = logs.LoggedFailures(Parked()), logs.LoggedFailures(None)
    for number in range(150):
        kept.park(Failure("r", None, str(number)))
    assert len(told(printed(capsys), "parked")) == logs.LINES_MAX
    for number in range(150):
        logged.park(Failure("r", None, str(number)))
    assert len(told(printed(capsys), "parked")) == 150
    runtime.deadline.begin(None)  # the next invocation has lines again
    kept.park(Failure("r", None, "x"))
    assert len(told(printed(capsys), "parked")) == 1
    logs.notes.take()


# ---------------------------------------------------------------- secret
MARK = "SECRETVALUE"


def test_logs_show_keys_when_asked(names, monkeypatch):
    """SYNC_RULES_LOG_KEYS=1 adds the source's key to log lines, but no values."""
    monkeypatch.setenv(logs.LOG_KEYS, "1")
    for number in range(5):
        names.scene.there("shop", order("1", str(number), 1))
    names.scene.put("shop", user("1", name=s(MARK)))
    names.stream()
    names.fanout()
    out = names.capsys.readouterr().out
    assert {line.get("source") for line in map(json.loads, out.splitlines())} == {None, "shop[USER#1, PROFILE]"}
    assert MARK not in out
