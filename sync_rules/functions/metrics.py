"""CloudWatch metrics of the handlers: printed in embedded metric format, per rule and of all rules together.

Invariant: the dimensions of a metric are a rule of the file or a word of ours, so the number of metrics is bounded.
Each rule and invocation has one document, far below the 100 metrics that it may hold.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from sync_rules.adapters import aws_errors
from sync_rules.functions.logs import SERVICE_NAME, InvocationCounts, logger, notes, sum_up
from sync_rules.pipeline.telemetry import (
    DRIFT,
    DRIFT_SHARE,
    FAILURE_RECORDS,
    LAG,
    METRIC_NAMES,
    NAMESPACE,
    SENT,
    SETUP_ERRORS,
    THROTTLED,
    UNREADABLE,
    VERIFIED,
    Telemetry,
    parse_title,
)

if TYPE_CHECKING:  # imported by verify alone
    from sync_rules.audit.verify_tally import Tally

UNITS: Final = {LAG: MetricUnit.Milliseconds, DRIFT_SHARE: MetricUnit.Percent}  # all others are counts


def emit(telemetry: Telemetry) -> None:
    """Write the counts of an invocation as metrics and as log lines, and reset them."""
    counts = notes.take()
    per_rule: dict[str, Counter[str]] = {}
    for (rule, what), count in (*telemetry.outcomes.items(), *telemetry.alterations.items()):
        per_rule.setdefault(parse_title(rule), Counter())[METRIC_NAMES[what]] += count
    for rule, count in counts.failures.items():
        per_rule.setdefault(parse_title(rule), Counter())[FAILURE_RECORDS] += count
    lags_ms = telemetry.read_lags_ms()
    for rule, lag_ms in lags_ms.items():
        per_rule.setdefault(rule, Counter())[LAG] = lag_ms
    for rule in sorted(per_rule.keys() - {""}):  # an unreadable message is of no rule
        _write(per_rule[rule], rule=rule)
    whole = sum(per_rule.values(), Counter({UNREADABLE: telemetry.unreadable_records}))
    whole[SETUP_ERRORS] = telemetry.setup_errors
    whole[LAG] = max(lags_ms.values(), default=0)
    _write({name: figure for name, figure in whole.items() if figure or (name == LAG and lags_ms)})
    _write_counts(counts)
    sum_up(telemetry, counts)
    telemetry.clear()


def emit_drift(tally: Tally, names: Collection[str], *, whole: bool = True) -> None:
    """Write what a verify of these rules found and repaired, as metrics and as a log line.

    A rule without a verified item gets no drift share. After a sample (`whole` is False), a rule without drift gets
    none either: other items may drift, and their alarm must stay.
    """
    counts = notes.take()
    titles = sorted({parse_title(name) for name in names})
    seen: Counter[str] = Counter()
    drift: Counter[str] = Counter()
    for name in names:
        seen[parse_title(name)] += tally.count_targets(name)
        drift[parse_title(name)] += tally.drift[name]
    altered = {title: Counter[str]() for title in titles}
    for (name, each), count in tally.alterations.items():
        altered[parse_title(name)][METRIC_NAMES[each]] += count
    for title in titles:
        _write({**_compute_share(seen[title], drift[title], whole=whole), **altered[title]}, rule=title)
    _write({**_compute_share(seen.total(), drift.total(), whole=whole), **sum(altered.values(), Counter())})
    _write_counts(counts)
    logger.info(
        "verified",
        items=tally.items,
        drift={title: drift[title] for title in titles if drift[title]},
        left=tally.remaining_count,
    )


def _compute_share(seen: int, drift: int, *, whole: bool) -> dict[str, float]:
    share = {DRIFT_SHARE: 100 * drift / seen} if seen and (whole or drift) else {}
    return {VERIFIED: seen, DRIFT: drift, **share}


def _write_counts(counts: InvocationCounts) -> None:
    causes: Counter[str] = Counter()
    for kind, count in sorted(counts.throttles.items()):
        causes[aws_errors.THROTTLES.get(kind, aws_errors.OTHER_THROTTLE)] += count
        _write({THROTTLED: count}, kind=kind)
    for cause, count in sorted(causes.items()):
        _write({THROTTLED: count}, cause=cause)
    for kind, count in sorted(counts.sent.items()):
        _write({SENT: count}, kind=kind)


def _write(figures: Mapping[str, float], **dimensions: str) -> None:
    if figures:
        metrics = EphemeralMetrics(namespace=NAMESPACE, service=SERVICE_NAME)
        for name, value in dimensions.items():
            metrics.add_dimension(name, value)
        for name, figure in figures.items():
            metrics.add_metric(name, UNITS.get(name, MetricUnit.Count), figure)
        metrics.flush_metrics()
