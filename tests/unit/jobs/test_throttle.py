"""The lag of the stream handler, from its metric, and how it slows a backfill down and lets it go again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from moto import mock_aws

from sync_rules.adapters import aws, retries
from sync_rules.adapters.budget import Rate
from sync_rules.jobs.backfill.throttle import PERIOD_SECONDS, Brake, IteratorAge, utc_now
from sync_rules.model.errors import StoreError
from tests.unit.adapters.test_rate import Clock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Metric:
    """CloudWatch, with the ages (milliseconds) of the last minutes, the newest last."""

    def __init__(self, *ages: float) -> None:
        self.ages = list(ages)
        self.error = ""
        self.asked: list[dict] = []

    def get_metric_statistics(self, **parameters):
        self.asked.append(parameters)
        if self.error:
            raise aws.ClientError({"Error": {"Code": self.error}}, "GetMetricStatistics")
        points = [
            {"Timestamp": NOON - timedelta(minutes=len(self.ages) - i), "Maximum": age}
            for i, age in enumerate(self.ages)
        ]
        return {"Datapoints": points[1:] + points[:1]}  # in no order


def age_of(metric: Metric) -> IteratorAge:
    return IteratorAge(metric, "handler", now=lambda: NOON, retrying=retries.retrying(attempts_max=1))


def brake_of(metric: Metric, max_lag: float = 60) -> tuple[Brake, Rate, Clock]:
    clock = Clock()
    rate = Rate(100, clock=clock, sleep=clock.sleep)
    return Brake(rate, age_of(metric), max_lag, clock=clock), rate, clock


def test_iterator_age_is_that_of_the_newest_minute_in_seconds():
    """The newest of the last minutes counts; a function that was not called has none."""
    metric = Metric(90_000, 5_000, 2_500)
    assert age_of(metric).seconds() == 2.5
    (asked,) = metric.asked
    assert asked["Dimensions"] == [{"Name": "FunctionName", "Value": "handler"}]
    assert (asked["Namespace"], asked["MetricName"]) == ("AWS/Lambda", "IteratorAge")
    assert age_of(Metric()).seconds() is None


def test_iterator_age_is_asked_as_cloudwatch_takes_it(monkeypatch):
    """CloudWatch, as moto plays it, understands the question."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        client = boto3.client("cloudwatch", region_name="us-east-1")
        point = {
            "MetricName": "IteratorAge",
            "Dimensions": [{"Name": "FunctionName", "Value": "handler"}],
            "Value": 7_000.0,
            "Timestamp": utc_now() - timedelta(minutes=2),
        }
        client.put_metric_data(Namespace="AWS/Lambda", MetricData=[point])
        assert IteratorAge(client, "handler").seconds() == 7.0
        assert IteratorAge(client, "other").seconds() is None


def test_brake_slows_down_while_the_handler_lags_and_lets_go_again():
    """Each look that finds too much lag halves the rate, to a floor; each that does not gives some of it back."""
    metric = Metric(61_000)
    brake, rate, clock = brake_of(metric)
    brake.look()
    rates = [rate.units_per_second]
    for _ in range(6):
        clock.now += PERIOD_SECONDS
        brake.look()
        rates.append(rate.units_per_second)
    assert rates == [50, 25, 12.5, 6.25, 5, 5, 5]
    metric.ages = [59_000]
    for _ in range(10):
        clock.now += PERIOD_SECONDS
        brake.look()
        clock.now += 1e-6
    clock.now += PERIOD_SECONDS
    assert rate.units_per_second == 100


def test_brake_looks_once_a_minute():
    """The brake reads its metric at most once a minute."""
    metric = Metric(0)
    brake, _, clock = brake_of(metric)
    for _ in range(100):
        brake.look()
        clock.now += 1
    assert len(metric.asked) == 2


def test_brake_that_cannot_be_used_is_said_at_once_and_forgiven_later():
    """A metric that may not be read is an error at the first look; later it changes nothing."""
    metric = Metric(61_000)
    metric.error = "AccessDenied"
    brake, rate, clock = brake_of(metric)
    with pytest.raises(StoreError, match="AccessDenied: GetMetricStatistics of metric IteratorAge of function handler"):
        brake.look()
    metric.error = ""
    clock.now += PERIOD_SECONDS
    brake.look()
    metric.error = "Throttling"
    clock.now += PERIOD_SECONDS
    brake.look()
    assert rate.units_per_second == 50


def test_brake_takes_silence_for_nothing():
    """A function that was not called lately neither slows down nor speeds up."""
    metric = Metric(61_000)
    brake, rate, clock = brake_of(metric)
    brake.look()
    metric.ages = []
    clock.now += PERIOD_SECONDS
    brake.look()
    assert rate.units_per_second == 50
