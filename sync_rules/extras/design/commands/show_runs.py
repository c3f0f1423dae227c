"""Patterns that were run: lines for people, a document for programs. No value is shown but those of keys."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean
from typing import Any

from sync_rules.cli.show.text import format_count
from sync_rules.extras.design.run.pattern_runs import AnswerDifference, PatternRun
from sync_rules.model.values import visible
from sync_rules.pipeline.failure_records import printable, show_key

SHOWN_MAX = 20


def lines(measured: PatternRun) -> Iterator[str]:
    """One pattern: its calls, and the differences that --prove found."""
    if not measured.calls:
        yield f"{measured.name}: not run: {measured.left}"
        return
    estimate = measured.answer.units
    units = "not told by the service" if measured.mean_units is None else f"{measured.mean_units:g}"
    parts = [
        format_count(measured.calls, "call"),
        _many(mean(measured.rows), "row"),
        f"{_many(mean(measured.requests), 'request')} (proved: {measured.answer.requests})",
        f"read units {units} (estimate: {'not stated' if estimate is None else f'{estimate:g}'})",
        f"p50 {measured.p50 or 0:.1f} ms",
    ]
    yield f"{measured.name}: {', '.join(parts)}"
    if measured.proved and not measured.mismatches:
        yield "  every answer is right"
    for one in measured.mismatches[:SHOWN_MAX]:
        yield visible(f"  {_format_difference(one)}")
    if len(measured.mismatches) > SHOWN_MAX:
        yield f"  and {len(measured.mismatches) - SHOWN_MAX} more: --format json has all"


def _format_difference(one: AnswerDifference) -> str:
    by = " or ".join(f"rule {name}" for name in one.rules)
    cause = f"kept by {by}" if by else "kept by no rule: an index that lags, or an item that changed during the run"
    if not one.attribute:
        what = "is missing" if one.wrong == "missing" else "is found and should not be"
        return f"{printable(one.key)} {what}: {cause}"
    what = {"missing": "is missing", "extra": "should not be there", "wrong": "is stale or wrong"}[one.wrong]
    return f"{printable(one.key)}: {one.attribute} {what}: {cause}"


def as_json(measured: PatternRun) -> dict[str, Any]:
    """One pattern for programs; measures are means over its calls."""
    called = bool(measured.calls)
    return {
        "pattern": measured.name,
        "served": measured.answer.is_served,
        "left": measured.left or None,
        "calls": measured.calls,
        "rows": mean(measured.rows) if called else None,
        "requests": mean(measured.requests) if called else None,
        "proved_requests": measured.answer.requests,
        "read_units": measured.mean_units,
        "estimated_read_units": measured.answer.units,
        "p50_ms": measured.p50,
        "proved": measured.proved,
        "differences": [
            {
                "is": one.wrong,
                "table": one.key.table,
                "key": show_key(one.key),
                "attribute": one.attribute or None,
                "rules": [*one.rules],
            }
            for one in measured.mismatches
        ],
    }


def _many(mean_number: float, one: str) -> str:
    return f"{mean_number:g} {one}{'s' * (mean_number != 1)}"
