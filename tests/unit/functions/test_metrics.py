"""Handler metrics: each has its unit and dimensions, their number is bounded, and sums over all rules exist."""

from __future__ import annotations

from collections import Counter

import pytest

from handlers import stream
from sync_rules.adapters import aws_errors
from sync_rules.audit.verify_tally import Tally
from sync_rules.functions import logs, metrics
from sync_rules.model.items import Alteration, Change, Outcome
from sync_rules.pipeline.messages import KINDS, ChunkMessage, PullMessage, PushMessage
from sync_rules.pipeline.telemetry import SENT_KINDS, Telemetry
from tests.support.builders import s
from tests.support.every_kind import rules_of, user
from tests.support.operated import Operated, data_of, everything, figures, printed, quiet, told
from tests.support.worlds import context, event_of


@pytest.fixture(autouse=True)
def log(monkeypatch):
    quiet(monkeypatch)


def test_metrics_are_told_apart_by_rules_and_words_of_ours(capsys):
    """Each dimension is a service, rule, kind or cause, with a known value."""
    rules = rules_of()
    known = {
        "service": {"sync-rules"},
        "rule": {rule.title for rule in rules.rules.values()},
        "kind": {*aws_errors.THROTTLES, aws_errors.OTHER_THROTTLE, *SENT_KINDS},
        "cause": {*aws_errors.LIMITS, aws_errors.OTHER_THROTTLE},
    }
    data = list(data_of(everything(rules, capsys)))
    assert {name for datum in data for name, _ in datum.dimensions} == known.keys()
    assert all(value in known[name] for datum in data for name, value in datum.dimensions)
    of_a_rule = {datum.metric for datum in data if ("rule", "names") in datum.dimensions}
    assert len(of_a_rule) == 20
    assert {(datum.metric, datum.unit) for datum in data if datum.unit != "Count"} == {
        ("Lag", "Milliseconds"), ("DriftShare", "Percent"),
    }  # fmt: skip


def test_metrics_of_all_rules_are_the_sums(capsys):
    """Metrics over all rules are sums and the longest lag; a rule compiled into two counts as one."""
    telemetry = Telemetry()
    telemetry.outcomes.update({("a", Outcome.COPIED): 2, ("b", Outcome.COPIED): 3, ("b.part", Outcome.COPIED): 4})
    telemetry.alterations.update({("a", Alteration.SET): 5, ("b", Alteration.SET): 1, ("b.part", Alteration.ZEROED): 1})
    telemetry.lags |= {"a": {0: 10}, "b": {0: 30}, "b.part": {0: 20}}
    metrics.emit(telemetry)
    lines = printed(capsys)
    assert figures(lines, rule="a") == {"Copied": 2, "ValuesSet": 5, "Lag": 10}
    assert figures(lines, rule="b") == {"Copied": 7, "ValuesSet": 1, "ValuesZeroed": 1, "Lag": 30}
    assert figures(lines) == {"Copied": 9, "ValuesSet": 6, "ValuesZeroed": 1, "Lag": 30}
    metrics.emit(telemetry)
    assert printed(capsys) == []


def test_metrics_count_throttles_by_kind_and_by_cause(capsys):
    """Kinds add up to causes, and are not counted again."""
    for kind in ("TableReadAccountLimitExceeded", "IndexWriteAccountLimitExceeded", "Other"):
        logs.notes.count_throttle(kind)
    metrics.emit(Telemetry())
    lines = printed(capsys)
    assert figures(lines, cause="AccountLimitExceeded") == {"Throttled": 2}
    assert figures(lines, kind="TableReadAccountLimitExceeded") == {"Throttled": 1}
    assert figures(lines, cause="Other") == figures(lines, kind="Other") == {"Throttled": 1}
    metrics.emit(Telemetry())
    assert printed(capsys) == []


def test_metrics_of_drift_are_shares_of_what_was_seen(capsys):
    """Drift metrics give, per rule and for all, items checked, items drifted, and the share of drift."""
    tally = Tally(
        right=Counter({"a": 3, "b.part": 5}),
        drift=Counter({"a": 1}),
        repaired=Counter({"a": 1}),
        kept=Counter({"b": 1}),
        alterations=Counter({("a", Alteration.REMOVED): 2}),
    )
    metrics.emit_drift(tally, ["a", "b", "b.part", "c"])
    lines = printed(capsys)
    assert [(line["drift"], line["left"]) for line in told(lines, "verified")] == [({"a": 1}, 0)]
    assert figures(lines, rule="a") == {"ItemsVerified": 4, "Drift": 1, "DriftShare": 25, "ValuesRemoved": 2}
    assert figures(lines, rule="b") == {"ItemsVerified": 6, "Drift": 0, "DriftShare": 0}
    assert figures(lines, rule="c") == {"ItemsVerified": 0, "Drift": 0}
    assert figures(lines) == {"ItemsVerified": 10, "Drift": 1, "DriftShare": 10, "ValuesRemoved": 2}


def test_metrics_count_messages_by_kind(monkeypatch, capsys):
    """Queue messages are counted by kind, a second look apart from a push; a message that SQS refused is not counted."""
    at = Operated(rules_of(), monkeypatch, capsys)
    source = at.scene.there("shop", user("1"))
    queue = logs.CountedQueue(at.scene.queue)
    queue.send(PushMessage(("names",), source), 0)
    queue.send(PushMessage(("names",), source, delay_seconds=60), 60)
    queue.send(ChunkMessage(("names",), source, (source,)), 0)
    queue.send(PullMessage(source, attempt=1), 60)
    metrics.emit(Telemetry())
    lines = at.lines()
    assert {kind: figures(lines, kind=kind)["MessagesSent"] for kind in ("push", "second-look", "chunk", "pull")} == {
        "push": 1, "second-look": 1, "chunk": 1, "pull": 1,
    }  # fmt: skip
    assert {*KINDS.values()} < {*SENT_KINDS}


def test_metrics_count_a_record_that_cannot_be_read_for_each_rule_it_concerned(monkeypatch, capsys):
    """A record without its image is kept once; each rule that would have looked at it has a failure record, and no
    metric has several rules in one dimension.
    """
    operated = Operated(rules_of(), monkeypatch, capsys)
    at = operated.scene.put("shop", user("1", name=s("Ada"), email=s("a@x")))
    operated.scene.records.clear()
    record = event_of(operated.scene.rules, Change(at, None, user("1", name=s("Ada")), "7"))
    del record["Records"][0]["dynamodb"]["NewImage"]
    record["Records"][0]["eventName"] = "MODIFY"
    stream.handler(record, context())
    lines = operated.lines()
    titles = {rule.title for rule in operated.scene.rules.rules.values()}
    rules = {dict(datum.dimensions).get("rule") for datum in data_of(lines)} - {None}
    assert rules <= titles
    assert len(rules) > 1
    assert all(figures(lines, rule=rule)["FailureRecords"] == 1 for rule in rules)
