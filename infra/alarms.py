"""The alarms of a deployment, from the table of measures.

Law: one metric each and no mathematics, so that every alarm can be read, and deployed, alone. Names depend on nothing
but the rule they are for, so that a new rule never renames the alarm of another.
"""

from __future__ import annotations

from typing import Any, Final

from infra.deployment import Deployment
from infra.measures import MEASURES, Measure, Subject, anchor, subjects

ACTIONS: Final = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}


def alarm_resources(deployment: Deployment) -> dict[str, Any]:
    """Every alarm by its logical id. Needs the condition HasAlarmTopic, and the resources that measures name."""
    return {
        f"{subject.id}{measure.name}Alarm": _alarm(measure, subject)
        for measure in MEASURES
        for subject in subjects(deployment, measure)
    }


def _alarm(measure: Measure, subject: Subject) -> dict[str, Any]:
    percentile = measure.statistic.startswith("p")
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmDescription": f"{measure.meaning.format(subject.title)} What to do: {anchor(measure.section)}",
            "Namespace": measure.namespace,
            "MetricName": measure.metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in subject.dimensions],
            "ExtendedStatistic" if percentile else "Statistic": measure.statistic,
            "ComparisonOperator": "GreaterThanThreshold",
            "Threshold": measure.threshold,
            "Period": measure.period_seconds,
            "EvaluationPeriods": measure.periods,
            "DatapointsToAlarm": measure.breaching_periods,
            "TreatMissingData": measure.missing.value,
            "AlarmActions": ACTIONS,
            "OKActions": ACTIONS,
        },
    }
