"""`Lag` says how far the pipeline is behind, asks seldom, and says None for all that it does not know."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from sync_rules.functions import metrics
from sync_rules.pipeline.telemetry import Telemetry
from sync_rules.write import Lag

PLACE: dict[str, Any] = {"region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "y"}


class Watch:
    """A client of CloudWatch with these figures in milliseconds, and a clock."""

    def __init__(self, **figures: list[float]) -> None:
        self.figures = figures
        self.requests = 0
        self.now = 0.0

    def get_metric_data(self, **_: Any) -> dict[str, Any]:
        self.requests += 1
        return {"MetricDataResults": [{"Id": name, "Values": some} for name, some in self.figures.items()]}

    def lag(self, **options: Any) -> Lag:
        return Lag(self, monotonic=lambda: self.now, **options)


@pytest.mark.parametrize(
    ("figures", "function", "known"),
    [
        ({"lag": [800.0, 2500.0]}, None, 2.5),
        ({"lag": [800.0], "age": [4000.0, 10.0]}, "stream", 4.0),
        ({"lag": []}, None, None),
        ({}, None, None),
        ({"lag": [800.0], "age": []}, "stream", None),
    ],
)
def test_lag_is_the_greatest_of_what_is_known_and_none_where_something_is_not(figures, function, known):
    """A pipeline that reports nothing may be at rest, or dead: nobody knows."""
    assert Watch(**figures).lag(function=function)() == known


def test_lag_asks_once_for_all_readers_of_a_while():
    """Threads share the figure, until it is as old as the interval."""
    watch = Watch(lag=[1000.0])
    lag = watch.lag(interval_seconds=30.0)
    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(lambda _: lag(), range(50))} == {1.0}
    watch.now, watch.figures = 29.0, {"lag": [9000.0]}
    assert (lag(), watch.requests) == (1.0, 1)
    watch.now = 30.0
    assert (lag(), watch.requests) == (9.0, 2)


def test_lag_is_unknown_where_the_request_failed():
    """A right that is missing is not asked for again before the next interval."""
    watch = Watch(lag=[1000.0])
    lag = watch.lag()

    def refused(**_: Any) -> Any:
        watch.requests += 1
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "GetMetricData")

    watch.get_metric_data = refused  # type: ignore[method-assign]
    assert (lag(), lag(), watch.requests) == (None, None, 1)


def test_lag_asks_for_what_the_functions_write(capsys):
    """The request is one that CloudWatch takes, for the metric of all rules as our functions emit it."""
    telemetry = Telemetry()
    telemetry.lags["names"] = {0: 700}
    metrics.emit(telemetry)
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    written = [
        (one["Namespace"], entry["Name"], names, document["service"])
        for document in documents
        for one in document["_aws"]["CloudWatchMetrics"]
        for entry in one["Metrics"]
        for names in one["Dimensions"]
    ]
    client: Any = boto3.client("cloudwatch", **PLACE)
    with Stubber(client) as stub:
        asked: list[Any] = []
        client.meta.events.register_first(
            "provide-client-params.cloudwatch", lambda params, **_: asked.extend(params["MetricDataQueries"])
        )
        stub.add_response("get_metric_data", {"MetricDataResults": [{"Id": "lag", "Values": [700.0]}]})
        assert Lag(client)() == 0.7
    ((metric, (dimension,)),) = [
        (one["MetricStat"]["Metric"], one["MetricStat"]["Metric"]["Dimensions"]) for one in asked
    ]
    assert (metric["Namespace"], metric["MetricName"], [dimension["Name"]], dimension["Value"]) in written
