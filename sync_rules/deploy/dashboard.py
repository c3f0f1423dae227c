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
    link_section,
    list_mapping_subjects,
    list_rule_subjects,
    list_sections,
    make_dimension,
)
from sync_rules.deploy.permissions import list_functions
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
class MetricLine:
    namespace: str
    metric: str
    dimensions: Dimensions
    statistic: str = "Sum"
    label: str = ""


@dataclass(frozen=True)
class MetricGraph:
    """One graph. Each name in `search` draws that metric for every rule, without naming the rules."""

    title: str
    lines: tuple[MetricLine, ...] = ()
    search: tuple[str, ...] = ()
    statistic: str = "Sum"
    period_seconds: int = 60


def make_dashboard(deployment: Deployment) -> dict[str, Any]:
    """Make the dashboard. Its name contains the Region, because dashboards of all Regions share one list of names."""
    return {
        "Type": "AWS::CloudWatch::Dashboard",
        "Properties": {
            "DashboardName": {"Fn::Sub": "${AWS::StackName}-${AWS::Region}"},
            "DashboardBody": {"Fn::Sub": format_body(list_rows(deployment))},
        },
    }


def list_rows(deployment: Deployment) -> list[list[MetricGraph]]:
    subjects = list_rule_subjects(deployment)
    searched = subjects[0].id == ALL_RULES
    drifting = {ALL_RULES, *(subject.id for subject in list_rule_subjects(deployment, kept=True))}
    every = [Subject(ALL_RULES, "all rules", SERVICE_ONLY), *(() if searched else subjects)]
    return [
        *(_make_rule_graphs(subject, drifts=subject.id in drifting) for subject in every),
        *([_make_shared_graphs()] if searched else []),
        _make_stream_graphs(deployment),
        _make_queue_graphs(),
        _make_function_graphs(deployment),
        _make_other_graphs(),
    ]


# ---------------------------------------------------------------- graphs
def _make_rule_graphs(subject: Subject, *, drifts: bool) -> list[MetricGraph]:
    def ours(*metrics: str, statistic: str = "Sum") -> tuple[MetricLine, ...]:
        return tuple(MetricLine(NAMESPACE, metric, subject.dimensions, statistic) for metric in metrics)

    of = subject.title
    failures = ours(METRIC_NAMES[Outcome.FAILED], METRIC_NAMES[Outcome.PARKED], FAILURE_RECORDS)
    drift = MetricGraph(f"{of}: drift (%)", ours(DRIFT_SHARE, statistic="Maximum"), period_seconds=3_600)
    return [
        MetricGraph(f"{of}: lag (ms)", ours(LAG, statistic="p50") + ours(LAG, statistic="p99")),
        MetricGraph(f"{of}: work and refusals", ours(*(METRIC_NAMES[outcome] for outcome in (*WORK, *REFUSED)))),
        MetricGraph(f"{of}: failures", failures),
        *([drift] if drifts else []),
    ]


def _make_shared_graphs() -> list[MetricGraph]:
    """Graphs for more rules than can be named."""
    return [
        MetricGraph("each rule: lag, p99 (ms)", search=(LAG,), statistic="p99"),
        MetricGraph("each rule: copies", search=(METRIC_NAMES[Outcome.COPIED],)),
        MetricGraph("each rule: failure records", search=(FAILURE_RECORDS,)),
        MetricGraph("each rule: drift (%)", search=(DRIFT_SHARE,), statistic="Maximum", period_seconds=3_600),
    ]


def _make_stream_graphs(deployment: Deployment) -> list[MetricGraph]:
    stream = make_dimension("StreamFunction")
    counts = ("DroppedEventCount", "OnFailureDestinationDeliveredEventCount")
    mappings = list_mapping_subjects(deployment)
    return [
        MetricGraph("streams: iterator age (ms)", (MetricLine(LAMBDA, "IteratorAge", stream, "Maximum"),)),
        MetricGraph(
            "streams: records given up",
            (
                *(
                    MetricLine(LAMBDA, count, one.dimensions, label=f"{one.title}: {count}")
                    for one in mappings
                    for count in counts
                ),
                MetricLine(LAMBDA, "DestinationDeliveryFailures", stream),
                MetricLine(NAMESPACE, UNREADABLE, SERVICE_ONLY),
            ),
        ),
        MetricGraph(
            "streams: records handed to the function",
            tuple(MetricLine(LAMBDA, "InvokedEventCount", one.dimensions, label=one.title) for one in mappings),
        ),
        MetricGraph("messages sent, by kind", _make_lines_by("kind", SENT, SENT_KINDS)),
    ]


def _make_queue_graphs() -> list[MetricGraph]:
    age, depth, hidden = (f"Approximate{what}" for what in (
        "AgeOfOldestMessage", "NumberOfMessagesVisible", "NumberOfMessagesNotVisible",
    ))  # fmt: skip
    fanout = make_dimension("FanoutQueue")
    return [
        MetricGraph("queues: oldest message (s)", tuple(_make_queue_line(age, queue) for queue in QUEUES)),
        MetricGraph("queues: messages that wait", tuple(_make_queue_line(depth, queue) for queue in QUEUES)),
        MetricGraph("fan-out queue: messages at work", (MetricLine("AWS/SQS", hidden, fanout, "Maximum"),)),
        MetricGraph(
            "DynamoDB: throttles of ours, by kind",
            _make_lines_by("kind", THROTTLED, (*aws_errors.THROTTLES, aws_errors.OTHER_THROTTLE)),
        ),
    ]


def _make_function_graphs(deployment: Deployment) -> list[MetricGraph]:
    functions = list_functions(deployment)

    def each(metric: str, statistic: str = "Sum") -> tuple[MetricLine, ...]:
        return tuple(MetricLine(LAMBDA, metric, make_dimension(one), statistic) for one in functions)

    refused = [
        MetricLine(LAMBDA, "RecursiveInvocationsDropped", make_dimension(one), label=f"{one}: taken for a loop")
        for one in ("StreamFunction", "FanoutFunction")
    ]
    return [
        MetricGraph("functions: errors", each("Errors")),
        MetricGraph("functions: not run", (*each("Throttles"), *refused)),
        MetricGraph("functions: duration, longest (ms)", each("Duration", "Maximum")),
        MetricGraph("functions: at the same time", each("ConcurrentExecutions", "Maximum")),
    ]


def _make_other_graphs() -> list[MetricGraph]:
    ends = (("ExecutionsFailed", "failed"), ("ExecutionsTimedOut", "timed out"), ("ExecutionsSucceeded", "done"))
    ended = [
        MetricLine("AWS/States", metric, make_dimension(one), label=f"{one}: {end}")
        for metric, end in ends
        for one in MACHINES
    ]
    setup = MetricLine(NAMESPACE, SETUP_ERRORS, SERVICE_ONLY)
    return [MetricGraph("state machines", tuple(ended)), MetricGraph("setup errors", (setup,))]


def _make_lines_by(dimension: str, metric: str, values: Iterable[str]) -> tuple[MetricLine, ...]:
    return tuple(MetricLine(NAMESPACE, metric, (*SERVICE_ONLY, (dimension, value))) for value in values)


def _make_queue_line(metric: str, queue: str) -> MetricLine:
    return MetricLine("AWS/SQS", metric, make_dimension(queue), "Maximum")


# ---------------------------------------------------------------- as CloudWatch reads it
def format_body(graphs: Sequence[Sequence[MetricGraph]]) -> str:
    """Return the dashboard as JSON, one widget a line. CloudFormation replaces the marks in it by names."""
    links = ", ".join(f"[{section}]({link_section(section)})" for section in list_sections())
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
                "properties": _make_properties(graph),
            }
            for place, graph in enumerate(row)
        ]
    lines = ",\n".join(json.dumps(widget, separators=(",", ":")) for widget in widgets)
    return '{"widgets": [\n' + lines + "\n]}\n"


def _make_properties(graph: MetricGraph) -> dict[str, Any]:
    ours = f'{{{NAMESPACE},rule,service}} service="${{AWS::StackName}}"'
    found = [
        [{"expression": f"SEARCH('{ours} MetricName=\"{metric}\"', '{graph.statistic}')"}] for metric in graph.search
    ]
    return {
        "title": graph.title,
        "region": "${AWS::Region}",
        "period": graph.period_seconds,
        "stat": graph.statistic,
        "metrics": [*found, *_list_metrics(graph.lines)],
    }


def _list_metrics(lines: Iterable[MetricLine]) -> Iterator[list[Any]]:
    """The metrics of a graph; a dot repeats the part of the previous metric.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
    """
    before: list[str] = []
    for line in lines:
        dimensions = (part for name, value in line.dimensions for part in (name, _fill_value(value)))
        parts = [line.namespace, line.metric, *dimensions]
        percentile = {"label": f"{line.metric} {line.statistic}"} if line.statistic.startswith("p") else {}
        options = {
            **({} if line.statistic == "Sum" else {"stat": line.statistic}),
            **({"label": line.label} if line.label else percentile),
        }
        short = ["." if part == same else part for part, same in zip_longest(parts, before[: len(parts)])]
        yield [*short, *([options] if options else [])]
        before = parts


def _fill_value(value: Any) -> str:
    """The value of a dimension, as text for Fn::Sub."""
    match value:
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
    return str(value)
