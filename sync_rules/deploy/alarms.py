"""The alarms of a deployment, from the table of measures.

Each alarm has one metric and no mathematics, so it can be read, and deployed, alone. The name of an alarm depends only
on its rule: a new rule renames the alarm of another only if both names give the same id (`a-b` and `a_b`); then digits
follow both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.measures import MEASURES, NEAR_MS, NEAR_TIMEOUT, Measure, Subject, anchor, subjects

ACTIONS: Final = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}


def alarm_resources(deployment: Deployment, timeouts_seconds: Mapping[str, int]) -> dict[str, Any]:
    """Every alarm by its logical id, given the timeout of each function by its logical id. The template must have the
    condition HasAlarmTopic and the resources that measures name.
    """
    return {
        alarm_id(measure, subject): _alarm(measure, subject, timeouts_seconds)
        for measure in MEASURES
        for subject in subjects(deployment, measure)
    }


def alarm_id(measure: Measure, subject: Subject) -> str:
    """The logical id of an alarm."""
    return f"{subject.id}{measure.name}Alarm"


def _alarm(measure: Measure, subject: Subject, timeouts_seconds: Mapping[str, int]) -> dict[str, Any]:
    percentile = measure.statistic.startswith("p")
    threshold = measure.threshold
    if threshold == NEAR_TIMEOUT:
        threshold = max(0, timeouts_seconds[subject.id] * 1000 - NEAR_MS)
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmDescription": f"{measure.meaning.format(subject.title)} What to do: {anchor(measure.section)}",
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
