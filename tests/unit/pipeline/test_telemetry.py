"""Telemetry: counts add up, lag is that of the last batch, nothing stays after it was written out."""

from __future__ import annotations

from sync_rules.model.items import Outcome
from sync_rules.pipeline.report import Report, Unfinished
from sync_rules.pipeline.telemetry import Telemetry
from tests.support.builders import key, shop

USER = key(shop().tables["shop"], "USER#1", "PROFILE")


def report(**given) -> Report:
    one = Report(**given)
    one.outcomes.update({("a", Outcome.COPIED): 2, ("b", Outcome.COPIED): 1, ("b", Outcome.RIGHT): 4})
    return one


def test_telemetry_lag_is_the_age_of_the_oldest_change():
    """Lag is the greatest of the last minute's batches of a rule, and never negative where clocks differ."""
    telemetry = Telemetry()
    telemetry.add(report(since_ms={"a": 9_000, "b": 11_000}), 1, now_seconds=10.25)
    assert telemetry.read_lags_ms(10.25) == {"a": 1_250, "b": 0}
    telemetry.add(report(since_ms={"b": 10_000}), 1, now_seconds=10.25)
    telemetry.add(report(since_ms={"b.parent": 9_950}), 1, now_seconds=10.0)
    assert telemetry.read_lags_ms(69.0) == {"a": 1_250, "b": 250}
    telemetry.add(report(since_ms={"b": 69_990}), 1, now_seconds=70.0)
    assert telemetry.read_lags_ms(70.0) == {"b": 10}
    assert telemetry.lags["b"] == {70: 10}, "older lags are not kept"
    assert telemetry.read_lags_ms(9.0) == {}, "a clock that was set back shows no lag of the future"


def test_telemetry_counts_why_work_failed():
    """Failures count by their reasons, without the details; those that only an operator can repair are counted apart."""
    telemetry = Telemetry()
    other = key(shop().tables["shop"], "USER#2", "PROFILE")
    reasons = {USER: "TableNotFound: table shop", other: "Throttled: twice"}
    telemetry.add(report(failed={at: Unfinished(("a",), reason) for at, reason in reasons.items()}), 1, 10)
    telemetry.add(report(failed={USER: Unfinished(("a",), "TableNotFound: again")}), 1, 10)
    assert telemetry.reasons == {"TableNotFound": 2, "Throttled": 1}
    assert telemetry.setup_errors == 2
