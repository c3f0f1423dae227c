"""The dashboard: JSON within CloudWatch's limits, of metrics that are written."""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import Any

import pytest

from sync_rules.deploy.dashboard import list_rows, make_dashboard
from sync_rules.deploy.measures import MEASURES, NAMESPACE, RULES_MAX
from tests.support.every_kind import EFFECTS, RULES
from tests.support.operated import STACK_NAME, data_of, everything, quiet
from tests.unit.deploy.test_alarms import copies, of, there

PARAMETERS = {"AWS::Region": "eu-west-1"}
# What AWS has beside what the measures name, on the same pages.
OF_AWS = {
    ("AWS/Lambda", "InvokedEventCount", "EventSourceMappingUUID"),
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible", "QueueName"),
    ("AWS/States", "ExecutionsSucceeded", "StateMachineArn"),
}


def body_of(deployment) -> tuple[dict[str, Any], set[str]]:
    """The dashboard as CloudWatch gets it, and what CloudFormation filled in; each by its own name."""
    text = make_dashboard(deployment)["Properties"]["DashboardBody"]["Fn::Sub"]
    asked = {name.partition(".")[0] for name in re.findall(r"\$\{([^!}]+)\}", text)}
    filled = re.sub(r"\$\{([^!}]+)\}", lambda found: PARAMETERS.get(found[1], found[1]), text)
    return json.loads(filled), asked - PARAMETERS.keys()


def graphs(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [widget["properties"] for widget in body["widgets"] if widget["type"] == "metric"]


def metrics(graph: dict[str, Any]) -> list[list[str]]:
    """The metrics of a graph, dots written out."""
    found: list[list[str]] = []
    for metric in graph["metrics"]:
        parts = [part for part in metric if isinstance(part, str)]
        before = found[-1] if found else []
        full = [old if part == "." else part for part, old in zip_longest(parts, before[: len(parts)])]
        if parts:
            found.append(full)
    return found


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    return of(tmp_path_factory.mktemp("rules"), RULES | EFFECTS)


def test_dashboard_draws_metrics_that_somebody_writes(deployment, monkeypatch, capsys):
    """Every graph shows a metric that a handler writes, or a known metric of AWS."""
    quiet(monkeypatch)
    written = {(d.metric, d.dimensions) for d in data_of(everything(deployment.rules, capsys))}
    body, asked = body_of(deployment)
    assert asked <= there(deployment) | {"AWS::StackName"}
    known = {(measure.namespace, measure.metric) for measure in MEASURES if measure.source}
    for graph in graphs(body):
        for namespace, metric, *dimensions in metrics(graph):
            values = (STACK_NAME if value == "AWS::StackName" else value for value in dimensions[1::2])
            pairs = frozenset(zip(dimensions[::2], values, strict=True))
            if namespace == NAMESPACE:
                assert (metric, pairs) in written, graph["title"]
            else:
                ((name, _),) = pairs
                assert (namespace, metric) in known or (namespace, metric, name) in OF_AWS


@pytest.mark.parametrize("number", [RULES_MAX, RULES_MAX + 1, 400])
def test_dashboard_stays_within_the_limits(number, tmp_path):
    """The dashboard stays within CloudWatch's limits for any number of rules."""
    body, _ = body_of(of(tmp_path, copies(number)))
    of_graphs = [len(metrics(graph)) for graph in graphs(body)]
    assert len(body["widgets"]) <= 500
    assert max(of_graphs) <= 500
    assert sum(of_graphs) <= 2_500
    assert len(json.dumps(body)) < 100_000


def test_dashboard_searches_rules_that_are_too_many_to_name(tmp_path):
    """More than fifty rules are drawn by a search over their dimension, and all of them together."""
    deployment = of(tmp_path, copies(RULES_MAX + 1))
    found = [metric[0]["expression"] for graph in graphs(body_of(deployment)[0]) for metric in graph["metrics"]
             if isinstance(metric[0], dict)]  # fmt: skip
    assert found[0] == "SEARCH('{SyncRules,rule,service} service=\"AWS::StackName\" MetricName=\"Lag\"', 'p99')"
    assert len(found) == 4
    assert list_rows(deployment)[0][0].title == "all rules: lag (ms)"
