"""The measures: one table of metrics and their alarm thresholds, from which alarms, dashboard and runbook are made.

Each measure is one metric with its dimensions, spelled as its writer spells them: our handlers (`pipeline.telemetry`),
or AWS on the page that the measure names. docs/runbook.md has a section for each.

Each alarm has one metric and no mathematics, so it can be read, and deployed, alone. The name of an alarm depends only
on its rule: a new rule renames the alarm of another only if both names give the same id (`a-b` and `a_b`); then digits
follow both.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from sync_rules import DOCS
from sync_rules.adapters import aws_errors
from sync_rules.deploy.deployment import Deployment, format_logical_id
from sync_rules.deploy.permissions import WRITE
from sync_rules.deploy.resources import format_mapping_id
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.pipeline.consumer import TIME_RESERVED_MS
from sync_rules.pipeline.telemetry import (
    NAMESPACE,
)

ACTIONS: Final = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
RULES_MAX: Final = 50  # rules with alarms of their own; more rules share theirs: a stack has at most 500 resources
ALL_RULES: Final = "AllRules"
NEAR_TIMEOUT: Final = "near its timeout"  # a threshold computed from the function's `Timeout` in the template
NEAR_MS: Final = TIME_RESERVED_MS // 2  # work normally ends twice as long before the timeout
RUNBOOK: Final = f"{DOCS}/runbook.md"

STACK_REF: Final = {"Ref": "AWS::StackName"}  # the functions' value of dimension `service`
Dimensions = tuple[tuple[str, Any], ...]


class Of(Enum):
    """The kind of thing that a measure belongs to."""

    RULE = "rule"
    KEPT = "rule that verify compares"
    MAPPING = "event source mapping"
    FUNCTION = "function"
    QUEUE = "queue"
    MACHINE = "state machine"
    CAUSE = "cause of a throttle"
    PIPELINE = "pipeline"


class Missing(Enum):
    """How an alarm treats missing data: as healthy, or by keeping its state."""

    WELL = "notBreaching"
    NOTHING = "ignore"


@dataclass(frozen=True)
class Measure:
    """A metric, and its alarm: `statistic` is above the threshold in `breaching_periods` of the last `periods`. `name`
    ends the names of its alarms, `section` is its heading in the runbook. `only` lists the logical ids of its
    functions, queues or machines. A threshold may be NEAR_TIMEOUT. `meaning` explains the alarm; {} is replaced by
    its subject. `source` is the AWS page that documents the metric; our own metrics have none.
    """

    name: str
    section: str
    of: Of
    metric: str
    meaning: str
    namespace: str = NAMESPACE
    statistic: str = "Sum"
    threshold: Any = 0
    period_seconds: int = 300
    periods: int = 1
    breaching_periods: int = 1
    missing: Missing = Missing.WELL
    only: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Subject:
    """A thing that measures describe, such as a rule or a queue. The logical ids of its alarms begin with `id`;
    messages use `title`.
    """

    id: str
    title: str
    dimensions: Dimensions


def _parse_measure(one: dict[str, Any]) -> Measure:
    typed = {"of": Of(one["of"]), "missing": Missing(one.get("missing", "notBreaching"))}
    return Measure(**{**one, **typed, "only": tuple(one.get("only", ()))})


FILE: Final = Path(__file__).with_name("measures.yaml")
MEASURES: Final = tuple(map(_parse_measure, read_yaml(FILE.read_text(encoding="utf-8"), FILE.name)["measures"]))
MACHINES: Final = ("BackfillMachine", "VerifyMachine", "RedriveMachine")


# ---------------------------------------------------------------- subjects
def list_subjects(deployment: Deployment, measure: Measure) -> tuple[Subject, ...]:
    match measure.of:
        case Of.RULE | Of.KEPT:
            return list_rule_subjects(deployment, kept=measure.of is Of.KEPT)
        case Of.MAPPING:
            return list_mapping_subjects(deployment)
        case Of.CAUSE:
            return tuple(
                Subject(cause, cause, _make_own_dimensions(("cause", cause)))
                for cause in (*aws_errors.LIMITS, aws_errors.OTHER_THROTTLE)
            )
        case Of.PIPELINE:
            return (Subject("", "the pipeline", _make_own_dimensions()),)
    return tuple(Subject(one, one, make_dimension(one)) for one in measure.only if one != WRITE or deployment.write)


def make_dimension(resource: str) -> Dimensions:
    """Return the dimension that names a function, a queue or a state machine in CloudWatch, given its logical id."""
    if resource.endswith("Function"):
        return (("FunctionName", {"Ref": resource}),)
    if resource.endswith("Machine"):
        return (("StateMachineArn", {"Ref": resource}),)
    return (("QueueName", {"Fn::GetAtt": [resource, "QueueName"]}),)


def list_rule_subjects(deployment: Deployment, *, kept: bool = False) -> tuple[Subject, ...]:
    """List the rules of the file as subjects; more than `RULES_MAX` rules share one subject. With `kept`, list only
    rules that keep something in a table: `call` rules never drift.
    """
    rules = deployment.rules
    names = dict.fromkeys(rule.title for rule in rules.rules.values())
    shown = dict.fromkeys(rules.rules[name].title for name in rules.rules if name in rules.keeper_names or not kept)
    if len(names) > RULES_MAX:
        return (Subject(ALL_RULES, "some rule", _make_own_dimensions()),) if shown else ()
    ids = assign_ids(names)
    return tuple(Subject(ids[name], f"rule {name}", _make_own_dimensions(("rule", name))) for name in shown)


def list_mapping_subjects(deployment: Deployment) -> tuple[Subject, ...]:
    """List the event source mappings as subjects, one for each stream."""
    return tuple(
        Subject(
            format_mapping_id(table),
            f"table {table.name}",
            (("EventSourceMappingUUID", {"Ref": format_mapping_id(table)}),),
        )
        for table in deployment.rules.streamed_tables
    )


def assign_ids(names: Iterable[str]) -> dict[str, str]:
    """Return the logical id of each name. Names with the same id get digits of a digest."""
    ids = {name: format_logical_id(name) for name in names}
    often = Counter(ids.values())
    return {
        name: one if often[one] == 1 else f"{one}{hashlib.sha256(name.encode()).hexdigest()[:6]}"
        for name, one in ids.items()
    }


def _make_own_dimensions(*more: tuple[str, Any]) -> Dimensions:
    return (("service", STACK_REF), *more)


def link_section(section: str) -> str:
    """Return the URL of a section of the runbook."""
    return f"{RUNBOOK}#{section.lower().replace(' ', '-')}"


def list_sections() -> Iterator[str]:
    """List the sections of the runbook, each once."""
    yield from dict.fromkeys(measure.section for measure in MEASURES)


# ---------------------------------------------------------------- alarms
def make_alarms(deployment: Deployment, timeouts_seconds: Mapping[str, int]) -> dict[str, Any]:
    """Make every alarm, by its logical id. `timeouts_seconds` holds the timeout of each function by its logical id. The
    template must have the condition HasAlarmTopic and the resources that measures name.
    """
    return {
        format_alarm_id(measure, subject): _make_alarm(measure, subject, timeouts_seconds)
        for measure in MEASURES
        for subject in list_subjects(deployment, measure)
    }


def format_alarm_id(measure: Measure, subject: Subject) -> str:
    return f"{subject.id}{measure.name}Alarm"


def _make_alarm(measure: Measure, subject: Subject, timeouts_seconds: Mapping[str, int]) -> dict[str, Any]:
    percentile = measure.statistic.startswith("p")
    threshold = measure.threshold
    if threshold == NEAR_TIMEOUT:
        threshold = max(0, timeouts_seconds[subject.id] * 1000 - NEAR_MS)
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmDescription": f"{measure.meaning.format(subject.title)} What to do: {link_section(measure.section)}",
            "Namespace": measure.namespace,
            "MetricName": measure.metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in subject.dimensions],
            "ExtendedStatistic" if percentile else "Statistic": measure.statistic,
            "ComparisonOperator": "GreaterThanThreshold",
            "Threshold": threshold,
            "Period": measure.period_seconds,
            "EvaluationPeriods": measure.periods,
            "DatapointsToAlarm": measure.breaching_periods,
            "TreatMissingData": measure.missing.value,
            "AlarmActions": ACTIONS,
            "OKActions": ACTIONS,
        },
    }
