"""Patterns that were run: a line for people, a document for programs. No value is shown."""

from __future__ import annotations

from statistics import mean
from typing import Any

from sync_rules.cli.show.text import format_count
from sync_rules.extras.design.run.pattern_runs import PatternRun


def run_line(measured: PatternRun) -> str:
    """One pattern: the means of its calls beside the estimates."""
    if not measured.calls:
        return f"{measured.name}: not run: {measured.left}"
    estimate = measured.answer.units
    units = "not told by the service" if measured.mean_units is None else f"{measured.mean_units:g}"
    parts = [
        format_count(measured.calls, "call"),
        _many(mean(measured.rows), "row"),
        f"{_many(mean(measured.requests), 'request')} (proved: {measured.answer.requests})",
        f"read units {units} (estimate: {'not stated' if estimate is None else f'{estimate:g}'})",
        f"p50 {measured.p50 or 0:.1f} ms",
    ]
    return f"{measured.name}: {', '.join(parts)}"


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
    }


def _many(mean_number: float, one: str) -> str:
    return f"{mean_number:g} {one}{'s' * (mean_number != 1)}"
