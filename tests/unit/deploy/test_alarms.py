"""Alarms: one written metric each, stable names, a bounded number, and each goes off when it should."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from sync_rules.audit.verify_tally import Tally
from sync_rules.deploy import resources
from sync_rules.deploy.deployment import Deployment, read_deployment
from sync_rules.deploy.measures import (
    ACTIONS,
    MEASURES,
    NAMESPACE,
    RULES_MAX,
    make_alarms,
)
from sync_rules.deploy.sam_template import read_timeouts_seconds
from sync_rules.functions import logs, metrics
from sync_rules.model.errors import StoreError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.requests import Read
from tests.support.builders import s
from tests.support.cloudformation import read_template
from tests.support.every_kind import EFFECTS, RULES, order, text_of, user
from tests.support.operated import STACK, STACK_NAME, Datum, Operated, data_of, everything, quiet

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = read_template((ROOT / "template.yaml").read_text())
TIMEOUTS = read_timeouts_seconds(TEMPLATE, "template.yaml")
LAG_ALARM_SECONDS = 300


@pytest.fixture(scope="module")
def deployment(tmp_path_factory) -> Deployment:
    return of(tmp_path_factory.mktemp("rules"), RULES | EFFECTS)


def of(folder: Path, rules: dict[str, str], entities: str | None = None) -> Deployment:
    file = folder / "rules.yaml"
    file.write_text(text_of(rules) if entities is None else text_of(rules, entities=entities))
    return read_deployment(file)


def alarms_of(deployment: Deployment) -> dict[str, Any]:
    """With the timeouts of the template."""
    return make_alarms(deployment, TIMEOUTS)


@cache
def copies(number: int) -> dict[str, str]:
    """The given number of copy rules."""
    return {f"rule-{at}": f"copy user.name into order.name_{at}" for at in range(number)}


def properties(alarms: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: alarm["Properties"] for name, alarm in alarms.items()}


# ---------------------------------------------------------------- what they are
def test_alarms_are_sound(deployment):
    """Each is what CloudWatch takes: one metric, within a day of evaluation, with a sentence and a way to the runbook."""
    model = botocore.session.get_session().get_service_model("cloudwatch").operation_model("PutMetricAlarm")
    for name, given in properties(alarms_of(deployment)).items():
        assert given["AlarmActions"] == given["OKActions"] == ACTIONS
        resolved = {
            **given, "AlarmName": name, "Threshold": 1.0, "AlarmActions": [], "OKActions": [],
            "Dimensions": [{"Name": one["Name"], "Value": "x"} for one in given["Dimensions"]],
        }  # fmt: skip
        report = ParamValidator().validate(resolved, model.input_shape)
        assert not report.has_errors(), (name, report.generate_report())
        assert given["Period"] * given["EvaluationPeriods"] <= 86_400
        assert given["DatapointsToAlarm"] <= given["EvaluationPeriods"]
        assert ("Statistic" in given) != ("ExtendedStatistic" in given)
        assert re.fullmatch(r"[^{}]+\. What to do: https://\S+#[a-z-]+", given["AlarmDescription"]), name
        assert len(given["AlarmDescription"]) <= 1024


def there(deployment: Deployment) -> set[str]:
    """Every name that the template defines or that SAM adds to it."""
    mappings = {f"StreamFunction{event}" for event in resources.make_streams(deployment)}
    return {*TEMPLATE["Resources"], *TEMPLATE["Parameters"], *mappings}


def test_alarms_are_on_metrics_that_somebody_writes(deployment, monkeypatch, capsys):
    """Handlers write each of our metrics that an alarm watches; each AWS metric names its documentation page."""
    quiet(monkeypatch)
    written = {(d.metric, d.dimensions) for d in data_of(everything(deployment.rules, capsys))}
    ours = [given for given in properties(alarms_of(deployment)).values() if given["Namespace"] == NAMESPACE]
    asked = {(g["MetricName"], dimensions_of(g)) for g in ours}
    assert asked <= written
    for measure in MEASURES:
        assert (measure.source == "") == (measure.namespace == NAMESPACE)
    assert sum("/lambda/" in measure.source for measure in MEASURES) > 5


# ---------------------------------------------------------------- what they are called
def test_alarms_have_names_that_differ(tmp_path):
    """Rules whose names become the same logical id have alarms with different names."""
    rules = dict(zip(("user-name", "user_name", "UserName", "userName-", "plain"), copies(5).values(), strict=True))
    alarms = alarms_of(of(tmp_path, rules))
    assert len([name for name in alarms if name.endswith("LagAlarm")]) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9]{1,255}", name) for name in alarms)
    assert "PlainLagAlarm" in alarms
    values = {str(given["Dimensions"]) for name, given in properties(alarms).items() if name.endswith("LagAlarm")}
    assert len(values) == 5


# ---------------------------------------------------------------- how many
def test_alarms_are_of_all_rules_together_where_they_are_many(tmp_path):
    """Up to fifty rules have alarms of their own; of more, all of them together have them, by metrics that are written."""
    (tmp_path / "most").mkdir()
    most = alarms_of(of(tmp_path / "most", copies(RULES_MAX)))
    more = alarms_of(of(tmp_path, copies(RULES_MAX + 1)))
    assert len([name for name in most if name.endswith("LagAlarm")]) == RULES_MAX
    assert [name for name in more if name.endswith("LagAlarm")] == ["AllRulesLagAlarm"]
    assert more["AllRulesLagAlarm"]["Properties"]["Dimensions"] == [
        {"Name": "service", "Value": {"Ref": "AWS::StackName"}}
    ]


# ---------------------------------------------------------------- when they ring
def ringing(alarms: dict[str, Any], periods: list[list[Datum]]) -> set[str]:
    """The alarms that are in alarm after these periods, the last one first to look at; of our metrics only."""
    return {name for name, given in properties(alarms).items() if rings(given, periods)}


def dimensions_of(given: dict[str, Any]) -> frozenset[tuple[str, str]]:
    """The dimensions of an alarm as in the deployed stack."""
    pairs = ((one["Name"], one["Value"]) for one in given["Dimensions"])
    return frozenset((name, STACK_NAME if value == STACK else value) for name, value in pairs)


def rings(given: dict[str, Any], periods: list[list[Datum]]) -> bool:
    if given["Namespace"] != NAMESPACE:
        return False
    wanted = dimensions_of(given)
    threshold = given["Threshold"]
    if isinstance(threshold, dict):
        threshold = int(threshold["Fn::Sub"].replace("${LagAlarmSeconds}", str(LAG_ALARM_SECONDS)))
    breaching = 0
    for data in periods[-given["EvaluationPeriods"] :]:
        values = sorted(d.value for d in data if d.metric == given["MetricName"] and d.dimensions == wanted)
        if values:
            top = values[max(0, -(-99 * len(values) // 100) - 1)]  # the 99th percentile, or of few the greatest
            figure = {"Sum": sum(values), "Maximum": values[-1], None: top}[given.get("Statistic")]
            breaching += figure > threshold
    return breaching >= given["DatapointsToAlarm"]


@pytest.fixture
def at(deployment, monkeypatch, capsys) -> Operated:
    return Operated(deployment.rules, monkeypatch, capsys, limits=Limits(parked_max_looks=2))


def period(at: Operated) -> list[Datum]:
    return list(data_of(at.lines()))


def test_alarms_are_silent_while_all_is_well(at, deployment):
    """Work that is done, refused or found right rings nothing, however much of it."""
    periods = []
    for number in range(5):
        at.scene.put("shop", user("1", name=s(f"Ann {number}"), email=s("a@x")), order("1", "a", number))
        while at.scene.records:
            at.stream()
        at.fanout()
        periods.append(period(at))
    assert any(datum.metric == "Copied" for datum in periods[-1])
    assert ringing(alarms_of(deployment), periods) == set()


def test_alarms_ring_for_a_failure_record(at, deployment):
    """An item that cannot be made right rings for its rule and no other."""
    at.scene.there("shop", {"PK": s("EMAIL#a@x"), "SK": s("EMAIL"), "user_id": s("somebody else")})
    at.scene.put("shop", user("1", email=s("a@x"), name=s("Ann")))
    at.stream()
    assert ringing(alarms_of(deployment), [period(at)]) == set()  # it may pass by itself
    at.fanout()
    assert ringing(alarms_of(deployment), [period(at)]) == {"MailsFailureRecordAlarm"}


def test_alarms_ring_for_lag_when_it_lasts(at, deployment):
    """Late work rings for each rule that was late, once three of five minutes were; a late minute does not."""
    periods: list[list[Datum]] = []
    rung = []
    for minute in range(3):
        at.scene.put("parts", {"part_id": s("a"), "parent_id": s(str(minute))})
        at.stream(age_seconds=LAG_ALARM_SECONDS + 5)
        periods.append(period(at))
        rung.append(ringing(alarms_of(deployment), periods))
    assert rung == [set(), set(), {"PathsLagAlarm"}]


def test_alarms_ring_for_work_that_keeps_failing(at, deployment):
    """Failures for a quarter of an hour set off the alarms of the failing rules and the cause, not that of setup
    errors.
    """

    def before(request):
        if isinstance(request, Read):
            raise StoreError("ThrottlingException", "table")

    at.scene.tap.before = before
    at.scene.put("parts", {"part_id": s("a"), "parent_id": s("b")})
    record, periods = list(at.scene.records), []
    for _ in range(3):
        at.scene.records[:] = record
        assert at.stream() != []
        logs.notes.count_throttle("TableReadKeyRangeThroughputExceeded")
        at.scene.records.clear()
        at.stream()
        periods.append(period(at))
    assert ringing(alarms_of(deployment), periods[:2]) == set()
    assert ringing(alarms_of(deployment), periods) == {
        "PathsFailedAlarm",
        "KeyRangeThroughputExceededThrottledAlarm",
    }


def test_alarms_ring_for_drift(at, deployment):
    """One drifted copy in a thousand sets off its rule's alarm; a whole verify without drift ends the alarm."""
    tally = Tally(
        right=Counter({"names": 999, "heads": 10}), drift=Counter({"names": 1}), repaired=Counter({"names": 1})
    )
    metrics.emit_drift(tally, ["names", "heads"])
    assert ringing(alarms_of(deployment), [period(at)]) == {"NamesDriftAlarm"}
    metrics.emit_drift(Tally(right=Counter({"names": 1000})), ["names", "heads"], whole=False)
    assert not [datum for datum in period(at) if datum.metric == "DriftShare"]  # it says nothing about the rest
    metrics.emit_drift(tally, ["names", "heads"], whole=False)
    assert ringing(alarms_of(deployment), [period(at)]) == {"NamesDriftAlarm"}
    metrics.emit_drift(Tally(right=Counter({"names": 1000})), ["names", "heads"])
    assert ringing(alarms_of(deployment), [period(at)]) == set()
