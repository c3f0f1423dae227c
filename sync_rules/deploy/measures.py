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
from typing import Any, Final

from sync_rules import DOCS
from sync_rules.adapters import aws_errors
from sync_rules.deploy.deployment import Deployment, logical_id
from sync_rules.deploy.permissions import FUNCTIONS, WRITE
from sync_rules.deploy.resources import mapping_id
from sync_rules.model.items import Outcome
from sync_rules.model.limits import DELAY_MAX_SECONDS
from sync_rules.pipeline.consumer import TIME_RESERVED_MS
from sync_rules.pipeline.telemetry import (
    DRIFT_SHARE,
    FAILURE_RECORDS,
    LAG,
    METRIC_NAMES,
    NAMESPACE,
    SETUP_ERRORS,
    THROTTLED,
    UNREADABLE,
)

ACTIONS: Final = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
RULES_MAX: Final = 50  # rules with alarms of their own; more rules share theirs: a stack has at most 500 resources
ALL_RULES: Final = "AllRules"
NEAR_TIMEOUT: Final = "near its timeout"  # a threshold computed from the function's `Timeout` in the template
NEAR_MS: Final = TIME_RESERVED_MS // 2  # work normally ends twice as long before the timeout
CONCURRENCY_MAX: Final = 500  # half of what an account may run at once unless it asked for more
RUNBOOK: Final = f"{DOCS}/runbook.md"

AWS_DOCS: Final = "https://docs.aws.amazon.com/"
LAMBDA_METRICS: Final = AWS_DOCS + "lambda/latest/dg/monitoring-metrics-types.html"
SQS_METRICS: Final = AWS_DOCS + "AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html"
STATES_METRICS: Final = AWS_DOCS + "step-functions/latest/dg/procedure-cw-metrics.html"

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
    """A metric, and its alarm: `statistic` is above the threshold in `breaching_periods` of the last `periods`.

    `name` ends the names of its alarms, `section` is its heading in the runbook. `only` lists the logical ids of the
    functions, queues or machines it is for. A threshold may be NEAR_TIMEOUT. `meaning` explains the alarm; {} stands
    for its subject. `source` is the page of AWS that documents the metric; our own metrics have none.
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
    """One thing that measures are taken of. The logical ids of its alarms begin with `id`; people call it `title`."""

    id: str
    title: str
    dimensions: Dimensions


LAG_ALARM_MS: Final = {"Fn::Sub": "${LagAlarmSeconds}000"}
ALWAYS: Final[Mapping[str, Any]] = {"periods": 3, "breaching_periods": 3}  # for a quarter of an hour
OFTEN: Final[Mapping[str, Any]] = {"period_seconds": 60, "periods": 5, "breaching_periods": 3}
MACHINES: Final = ("BackfillMachine", "VerifyMachine", "RedriveMachine")
DEPTH: Final = "ApproximateNumberOfMessagesVisible"


def _of_lambda(name: str, section: str, metric: str, meaning: str, only: tuple[str, ...], **more: Any) -> Measure:
    of = more.pop("of", Of.FUNCTION)
    return Measure(name, section, of, metric, meaning, namespace="AWS/Lambda", only=only, source=LAMBDA_METRICS, **more)


def _of_queue(name: str, section: str, metric: str, meaning: str, queue: str, **more: Any) -> Measure:
    return Measure(
        name, section, Of.QUEUE, metric, meaning, namespace="AWS/SQS", statistic="Maximum", only=(queue,),
        source=SQS_METRICS, **more,
    )  # fmt: skip


MEASURES: Final = (
    # ------------------------------------------------------------ rule by rule
    Measure("Lag", "Lag", Of.RULE, LAG, "A hundredth of the work of {}, or more, is done later than LagAlarmSeconds.",
            statistic="p99", threshold=LAG_ALARM_MS, **OFTEN),
    Measure("Failed", "Failed work", Of.RULE, METRIC_NAMES[Outcome.FAILED],
            "Work of {} has failed, and come again, for a quarter of an hour on end.", **ALWAYS),
    Measure("FailureRecord", "Failure records", Of.RULE, FAILURE_RECORDS,
            "{} cannot make an item right as it is, and has kept a failure record."),
    Measure("Drift", "Drift", Of.KEPT, DRIFT_SHARE,
            "A verify found wrong copies of {} that no pending work repairs. No complete verify has been clean since.",
            statistic="Maximum", period_seconds=3_600, missing=Missing.NOTHING),
    # ------------------------------------------------------------ streams
    _of_lambda("IteratorAge", "Iterator age", "IteratorAge",
               "{} is more than LagAlarmSeconds behind a stream, which forgets after 24 hours.", ("StreamFunction",),
               statistic="Maximum", threshold=LAG_ALARM_MS, **OFTEN),
    _of_lambda("Dropped", "Dropped events", "DroppedEventCount",
               "The mapping of {} gave up records, and they are in no bucket.", (), of=Of.MAPPING),
    _of_lambda("GivenUp", "Batches given up", "OnFailureDestinationDeliveredEventCount",
               "The mapping of {} gave up records after all tries; the bucket has them.", (), of=Of.MAPPING),
    _of_lambda("Undelivered", "Undelivered failures", "DestinationDeliveryFailures",
               "What {} gave up could not be put where failures go.", ("StreamFunction", "VerifyFunction")),
    Measure("UnreadableRecords", "Unreadable records", Of.PIPELINE, UNREADABLE,
            "A stream record could not be read, and a failure record has been kept of it."),
    # ------------------------------------------------------------ functions
    _of_lambda("Errors", "Function errors", "Errors",
               "An invocation of {} ended with an exception, without memory or at its timeout.", (*FUNCTIONS, WRITE)),
    _of_lambda("Throttles", "Throttled functions", "Throttles",
               "Lambda has refused to run {} for a quarter of an hour on end: the account runs too much at once.",
               ("StreamFunction", "FanoutFunction", WRITE), **ALWAYS),
    _of_lambda("Duration", "Duration", "Duration", "An invocation of {} all but reached its timeout.",
               ("StreamFunction", "FanoutFunction", WRITE), statistic="Maximum", threshold=NEAR_TIMEOUT),
    _of_lambda("Concurrency", "Concurrency", "ConcurrentExecutions",
               "{} takes more than half of what an account may run at once by default.", ("StreamFunction",),
               statistic="Maximum", threshold=CONCURRENCY_MAX, **OFTEN),
    _of_lambda("Recursion", "Recursive invocations", "RecursiveInvocationsDropped",
               "Lambda took calls of {} for a loop and stopped them.", ("StreamFunction", "FanoutFunction")),
    # ------------------------------------------------------------ queues
    _of_queue("Age", "Queue age", "ApproximateAgeOfOldestMessage",
              "A message has waited in {} for more than twice the longest delay.", "FanoutQueue",
              threshold=2 * DELAY_MAX_SECONDS),
    _of_queue("Depth", "Dead letters", DEPTH, "There are messages in {} that failed each time.", "FanoutDeadLetters",
              missing=Missing.NOTHING),
    _of_queue("Depth", "Failed schedule", DEPTH, "There are scheduled runs in {} that failed each time.",
              "AsyncDeadLetters", missing=Missing.NOTHING),
    _of_queue("Depth", "Failure records", DEPTH, "There are failure records in {} that wait for a redrive.",
              "FailuresQueue", missing=Missing.NOTHING),
    # ------------------------------------------------------------ DynamoDB
    Measure("Throttled", "DynamoDB throttles", Of.CAUSE, THROTTLED,
            "DynamoDB has throttled the pipeline for a quarter of an hour on end: {}.", **ALWAYS),
    Measure("SetupErrors", "Setup errors", Of.PIPELINE, SETUP_ERRORS,
            "Work fails because a table, an index, a queue or a permission is missing."),
    # ------------------------------------------------------------ state machines
    Measure("Executions", "Failed executions", Of.MACHINE, "ExecutionsFailed", "An execution of {} failed.",
            namespace="AWS/States", only=MACHINES, source=STATES_METRICS),
    Measure("TimedOut", "Failed executions", Of.MACHINE, "ExecutionsTimedOut", "An execution of {} had no end in time.",
            namespace="AWS/States", only=MACHINES, source=STATES_METRICS),
)  # fmt: skip


# ---------------------------------------------------------------- subjects
def list_subjects(deployment: Deployment, measure: Measure) -> tuple[Subject, ...]:
    match measure.of:
        case Of.RULE | Of.KEPT:
            return rule_subjects(deployment, kept=measure.of is Of.KEPT)
        case Of.MAPPING:
            return mapping_subjects(deployment)
        case Of.CAUSE:
            return tuple(
                Subject(cause, cause, _ours(("cause", cause)))
                for cause in (*aws_errors.LIMITS, aws_errors.OTHER_THROTTLE)
            )
        case Of.PIPELINE:
            return (Subject("", "the pipeline", _ours()),)
    return tuple(Subject(one, one, dimension_of(one)) for one in measure.only if one != WRITE or deployment.write)


def dimension_of(resource: str) -> Dimensions:
    """The dimension that names a function, a queue or a state machine to AWS, given its logical id."""
    if resource.endswith("Function"):
        return (("FunctionName", {"Ref": resource}),)
    if resource.endswith("Machine"):
        return (("StateMachineArn", {"Ref": resource}),)
    return (("QueueName", {"Fn::GetAtt": [resource, "QueueName"]}),)


def rule_subjects(deployment: Deployment, *, kept: bool = False) -> tuple[Subject, ...]:
    """The rules of the file; one subject for all of them if they are more than `RULES_MAX`. With `kept` only rules that
    keep something in a table: `call` and `archive` rules never drift.
    """
    rules = deployment.rules
    names = dict.fromkeys(rule.title for rule in rules.rules.values())
    shown = dict.fromkeys(rules.rules[name].title for name in rules.rules if name in rules.keeper_names or not kept)
    if len(names) > RULES_MAX:
        return (Subject(ALL_RULES, "some rule", _ours()),) if shown else ()
    ids = assign_ids(names)
    return tuple(Subject(ids[name], f"rule {name}", _ours(("rule", name))) for name in shown)


def mapping_subjects(deployment: Deployment) -> tuple[Subject, ...]:
    """The event source mappings, one for each stream."""
    return tuple(
        Subject(mapping_id(table), f"table {table.name}", (("EventSourceMappingUUID", {"Ref": mapping_id(table)}),))
        for table in deployment.rules.streamed_tables
    )


def assign_ids(names: Iterable[str]) -> dict[str, str]:
    """Logical ids of names. Names with the same id get some digits of a digest."""
    ids = {name: logical_id(name) for name in names}
    often = Counter(ids.values())
    return {
        name: one if often[one] == 1 else f"{one}{hashlib.sha256(name.encode()).hexdigest()[:6]}"
        for name, one in ids.items()
    }


def _ours(*more: tuple[str, Any]) -> Dimensions:
    return (("service", STACK_REF), *more)


def link_section(section: str) -> str:
    """The address of a section of the runbook, as GitHub spells it."""
    return f"{RUNBOOK}#{section.lower().replace(' ', '-')}"


def list_sections() -> Iterator[str]:
    """The sections of the runbook, each once."""
    yield from dict.fromkeys(measure.section for measure in MEASURES)


# ---------------------------------------------------------------- alarms
def alarm_resources(deployment: Deployment, timeouts_seconds: Mapping[str, int]) -> dict[str, Any]:
    """Every alarm by its logical id, given the timeout of each function by its logical id. The template must have the
    condition HasAlarmTopic and the resources that measures name.
    """
    return {
        alarm_id(measure, subject): _alarm(measure, subject, timeouts_seconds)
        for measure in MEASURES
        for subject in list_subjects(deployment, measure)
    }


def alarm_id(measure: Measure, subject: Subject) -> str:
    return f"{subject.id}{measure.name}Alarm"


def _alarm(measure: Measure, subject: Subject, timeouts_seconds: Mapping[str, int]) -> dict[str, Any]:
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
