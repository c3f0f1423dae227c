"""Limits: each has its unit last and a default above 0; no two contradict. Their sentences are in docs/limits.md."""

from __future__ import annotations

from dataclasses import asdict

from sync_rules.model.limits import Limits

UNITS = ("items", "bytes", "writes", "tries", "seconds", "looks", "lists")


def test_limits_end_in_their_unit_and_fit_what_aws_allows():
    """No delay is longer than SQS allows, a round holds a page."""
    assert {name.rpartition("_")[2] for name in asdict(Limits())} <= {*UNITS}
    assert min(asdict(Limits()).values()) > 0
    defaults = Limits()
    assert defaults.settle_max_seconds <= 900
    assert defaults.fan_out_page_max_items <= defaults.fan_out_round_max_items <= defaults.fan_out_inline_max_items
