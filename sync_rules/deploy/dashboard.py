"""The dashboard of a deployment: the outcomes of each rule, then the pipeline, and links to the runbook.

CloudWatch allows 500 widgets, 500 metrics in a widget and 2,500 in a dashboard. With too many rules for that, a search
expression draws their metrics. https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from sync_rules.adapters import aws_errors
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.measures import (
    ALL_RULES,
    MACHINES,
    STACK_REF,
    Dimensions,
    Subject,
    anchor,
    dimension_of,
    mapping_subjects,
    rule_subjects,
    sections,
)
from sync_rules.deploy.permissions import functions_of
from sync_rules.model.items import Outcome
from sync_rules.pipeline.telemetry import (
    DRIFT_SHARE,
    FAILURE_RECORDS,
    LAG,
    METRIC_NAMES,
    NAMESPACE,
    SENT,
    SENT_KINDS,
    SETUP_ERRORS,
    THROTTLED,
    UNREADABLE,
)

COLUMNS: Final = 24
HEIGHT: Final = 6
SERVICE_ONLY: Final[Dimensions] = (("service", STACK_REF),)
WORK: Final = (Outcome.COPIED, Outcome.DELETED, Outcome.DONE, Outcome.RIGHT)
REFUSED: Final = (Outcome.SUPERSEDED, Outcome.RELINKED, Outcome.GONE)
QUEUES: Final = ("FanoutQueue", "FanoutDeadLetters", "FailuresQueue", "AsyncDeadLetters")
LAMBDA: Final = "AWS/Lambda"


@dataclass(frozen=True)
class Line:
    """One metric of a graph."""

    namespace: str
    metric: str
    dimensions: Dimensions
    statistic: str = "Sum"
    label: str = ""


@dataclass(frozen=True)
class Graph:
    """One graph. Each name in `search` draws that metric for every rule, without naming the rules."""

    title: str
    lines: tuple[Line, ...] = ()
    search: tuple[str, ...] = ()
    statistic: str = "Sum"
    period_seconds: int = 60


def dashboard_resource(deployment: Deployment) -> dict[str, Any]:
    """The dashboard. Its name contains the Region, as dashboards of all Regions share one list of names."""
    return {
        "Type": "AWS::CloudWatch::Dashboard",
        "Properties": {
            "DashboardName": {"Fn::Sub": "${AWS::StackName}-${AWS::Region}"},
            "DashboardBody": {"Fn::Sub": body(rows(deployment))},
        },
    }


def rows(deployment: Deployment) -> list[list[Graph]]:
    """The graphs, row by row."""
    subjects = rule_subjects(deployment)
    searched = subjects[0].id == ALL_RULES
    drifting = {ALL_RULES, *(subject.id for subject in rule_subjects(deployment, kept=True))}
    every = [Subject(ALL_RULES, "all rules", SERVICE_ONLY), *(() if searched else subjects)]
    return [
        *(_rule(subject, drifts=subject.id in drifting) for subject in every),
        *([_each_rule()] if searched else []),
        _streams(deployment),
        _queues(),
        _functions(deployment),
        _rest(),
    ]


# ---------------------------------------------------------------- graphs
def _rule(subject: Subject, *, drifts: bool) -> list[Graph]:
    def ours(*metrics: str, statistic: str = "Sum") -> tuple[Line, ...]:
        return tuple(Line(NAMESPACE, metric, subject.dimensions, statistic) for metric in metrics)

    of = subject.title
    failures = ours(METRIC_NAMES[Outcome.FAILED], METRIC_NAMES[Outcome.PARKED], FAILURE_RECORDS)
    drift = Graph(f"{of}: drift (%)", ours(DRIFT_SHARE, statistic="Maximum"), period_seconds=3_600)
    return [
        Graph(f"{of}: lag (ms)", ours(LAG, statistic="p50") + ours(LAG, statistic="p99")),
        Graph(f"{of}: work and refusals", ours(*(METRIC_NAMES[outcome] for outcome in (*WORK, *REFUSED)))),
        Graph(f"{of}: failures", failures),
        *([drift] if drifts else []),
    ]


def _each_rule() -> list[Graph]:
    """Graphs for more rules than can be named."""
    return [
        Graph("each rule: lag, p99 (ms)", search=(LAG,), statistic="p99"),
        Graph("each rule: copies", search=(METRIC_NAMES[Outcome.COPIED],)),
        Graph("each rule: failure records", search=(FAILURE_RECORDS,)),
        Graph("each rule: drift (%)", search=(DRIFT_SHARE,), statistic="Maximum", period_seconds=3_600),
    ]


def _streams(deployment: Deployment) -> list[Graph]:
    stream = dimension_of("StreamFunction")
    counts = ("DroppedEventCount", "OnFailureDestinationDeliveredEventCount")
    mappings = mapping_subjects(deployment)
    return [
        Graph("streams: iterator age (ms)", (Line(LAMBDA, "IteratorAge", stream, "Maximum"),)),
        Graph(
            "streams: records given up",
            (
                *(
                    Line(LAMBDA, count, one.dimensions, label=f"{one.title}: {count}")
                    for one in mappings
                    for count in counts
                ),
                Line(LAMBDA, "DestinationDeliveryFailures", stream),
                Line(NAMESPACE, UNREADABLE, SERVICE_ONLY),
            ),
        ),
        Graph(
            "streams: records handed to the function",
            tuple(Line(LAMBDA, "InvokedEventCount", one.dimensions, label=one.title) for one in mappings),
        ),
        Graph("messages sent, by kind", _by("kind", SENT, SENT_KINDS)),
    ]


def _queues() -> list[Graph]:
    age, depth, hidden = (f"Approximate{what}" for what in (
        "AgeOfOldestMessage", "NumberOfMessagesVisible", "NumberOfMessagesNotVisible",
    ))  # fmt: skip
    fanout = dimension_of("FanoutQueue")
    return [
        Graph("queues: oldest message (s)", tuple(_of_queue(age, queue) for queue in QUEUES)),
        Graph("queues: messages that wait", tuple(_of_queue(depth, queue) for queue in QUEUES)),
        Graph("fan-out queue: messages at work", (Line("AWS/SQS", hidden, fanout, "Maximum"),)),
        Graph(
            "DynamoDB: throttles of ours, by kind",
            _by("kind", THROTTLED, (*aws_errors.THROTTLES, aws_errors.OTHER_THROTTLE)),
        ),
    ]


def _functions(deployment: Deployment) -> list[Graph]:
    functions = functions_of(deployment)

    def each(metric: str, statistic: str = "Sum") -> tuple[Line, ...]:
        return tuple(Line(LAMBDA, metric, dimension_of(one), statistic) for one in functions)

    refused = [
        Line(LAMBDA, "RecursiveInvocationsDropped", dimension_of(one), label=f"{one}: taken for a loop")
        for one in ("StreamFunction", "FanoutFunction")
    ]
    return [
        Graph("functions: errors", each("Errors")),
        Graph("functions: not run", (*each("Throttles"), *refused)),
        Graph("functions: duration, longest (ms)", each("Duration", "Maximum")),
        Graph("functions: at the same time", each("ConcurrentExecutions", "Maximum")),
    ]


def _rest() -> list[Graph]:
    ends = (("ExecutionsFailed", "failed"), ("ExecutionsTimedOut", "timed out"), ("ExecutionsSucceeded", "done"))
    ended = [
        Line("AWS/States", metric, dimension_of(one), label=f"{one}: {end}") for metric, end in ends for one in MACHINES
    ]
    setup = Line(NAMESPACE, SETUP_ERRORS, SERVICE_ONLY)
    return [Graph("state machines", tuple(ended)), Graph("setup errors", (setup,))]


def _by(dimension: str, metric: str, values: Iterable[str]) -> tuple[Line, ...]:
    return tuple(Line(NAMESPACE, metric, (*SERVICE_ONLY, (dimension, value))) for value in values)


def _of_queue(metric: str, queue: str) -> Line:
    return Line("AWS/SQS", metric, dimension_of(queue), "Maximum")


# ---------------------------------------------------------------- as CloudWatch reads it
def body(graphs: Sequence[Sequence[Graph]]) -> str:
    """The dashboard as JSON, one widget a line; CloudFormation fills in names."""
    links = ", ".join(f"[{section}]({anchor(section)})" for section in sections())
    text = {"markdown": f"What each alarm means and what to do: {links}"}
    widgets: list[dict[str, Any]] = [
        {"type": "text", "x": 0, "y": 0, "width": COLUMNS, "height": 3, "properties": text}
    ]
    for number, row in enumerate(graphs):
        width = COLUMNS // len(row)
        widgets += [
            {
                "type": "metric",
                "x": place * width,
                "y": 3 + number * HEIGHT,
                "width": width,
                "height": HEIGHT,
                "properties": _properties(graph),
            }
            for place, graph in enumerate(row)
        ]
    lines = ",\n".join(json.dumps(widget, separators=(",", ":")) for widget in widgets)
    return '{"widgets": [\n' + lines + "\n]}\n"


def _properties(graph: Graph) -> dict[str, Any]:
    ours = f'{{{NAMESPACE},rule,service}} service="${{AWS::StackName}}"'
    found = [
        [{"expression": f"SEARCH('{ours} MetricName=\"{metric}\"', '{graph.statistic}')"}] for metric in graph.search
    ]
    return {
        "title": graph.title,
        "region": "${AWS::Region}",
        "period": graph.period_seconds,
        "stat": graph.statistic,
        "metrics": [*found, *_metrics(graph.lines)],
    }


def _metrics(lines: Iterable[Line]) -> Iterator[list[Any]]:
    """The metrics of a graph; a dot repeats the part of the previous metric.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
    """
    before: list[str] = []
    for line in lines:
        dimensions = (part for name, value in line.dimensions for part in (name, _filled(value)))
        parts = [line.namespace, line.metric, *dimensions]
        percentile = {"label": f"{line.metric} {line.statistic}"} if line.statistic.startswith("p") else {}
        options = {
            **({} if line.statistic == "Sum" else {"stat": line.statistic}),
            **({"label": line.label} if line.label else percentile),
        }
        short = ["." if part == same else part for part, same in zip_longest(parts, before[: len(parts)])]
        yield [*short, *([options] if options else [])]
        before = parts


def _filled(value: Any) -> str:
    """The value of a dimension, as text for Fn::Sub."""
    match value:
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
    return str(value)
