"""The lag of the pipeline, as CloudWatch knows it, for readers that may show items of some age.

Invariant: an unknown lag is None, never zero: without a figure of the last minutes, an answer or the permission. All
readers share one request for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

from sync_rules.adapters import aws_errors
from sync_rules.pipeline.telemetry import LAG, NAMESPACE, SERVICE

INTERVAL_SECONDS: Final = 30.0
WINDOW_SECONDS: Final = 180  # figures come in after a minute or two
PERIOD_SECONDS: Final = 60

Behind = Callable[[], float | None]  # seconds that the pipeline is behind; None: unknown


class Lag:
    """The greatest lag of the last three minutes, in seconds, when it is called; None where it is not known.

    `client` is a boto3 client of CloudWatch. `service` is the dimension of our metric Lag: the name of the stack.
    `function` is the name of the stream function, whose IteratorAge counts too if it is given: it also grows while
    records fail. A figure is asked for at most once in `interval_seconds`, by one of all threads.
    """

    def __init__(
        self,
        client: Any,
        *,
        service: str = SERVICE,
        function: str | None = None,
        interval_seconds: float = INTERVAL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._queries = [_query("lag", NAMESPACE, LAG, "service", service)]
        if function is not None:
            self._queries.append(_query("age", "AWS/Lambda", "IteratorAge", "FunctionName", function))
        self._interval_seconds = interval_seconds
        self._monotonic = monotonic
        self._lock = Lock()
        self._asked_at: float | None = None
        self._known: float | None = None

    def __call__(self) -> float | None:
        with self._lock:
            now = self._monotonic()
            if self._asked_at is None or now - self._asked_at >= self._interval_seconds:
                self._known, self._asked_at = self._ask(), now
            return self._known

    def _ask(self) -> float | None:
        end = datetime.now(UTC)
        start = end - timedelta(seconds=WINDOW_SECONDS)
        try:
            answer = self._client.get_metric_data(MetricDataQueries=self._queries, StartTime=start, EndTime=end)
        except aws_errors.ERRORS:
            return None
        found = {one.get("Id"): one.get("Values") or () for one in answer.get("MetricDataResults") or ()}
        if not all(found.get(one["Id"]) for one in self._queries):
            return None
        return float(max(max(found[one["Id"]]) for one in self._queries)) / 1000


def _query(name: str, namespace: str, metric: str, dimension: str, value: str) -> dict[str, Any]:
    of = {"Namespace": namespace, "MetricName": metric, "Dimensions": [{"Name": dimension, "Value": value}]}
    return {"Id": name, "MetricStat": {"Metric": of, "Period": PERIOD_SECONDS, "Stat": "Maximum"}}
