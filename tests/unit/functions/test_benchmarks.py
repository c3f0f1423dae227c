"""The benchmarks: what they compare is comparable, and what gates is what must. Nothing here is timed."""

from __future__ import annotations

import boto3
import pytest

from benchmarks import baselines, fanouts, scale
from benchmarks.answering import AFTER
from benchmarks.ours import consumer_of, handled, renamed
from benchmarks.running import ENVIRONMENT, answering
from sync_rules.adapters import aws
from sync_rules.extras.design.costs import pipeline_costs
from sync_rules.model.limits import Limits

TARGETS = 60  # more than two batches of statements
TABLES = ("together", "apart")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The environment of the measured clients, and no client of another test."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for kept in (aws._client, aws._session):
        kept.cache_clear()
    yield
    for kept in (aws._client, aws._session):
        kept.cache_clear()


# ---------------------------------------------------------------- contenders
@pytest.fixture(scope="module")
def running():
    """The engine in its own process."""
    with answering() as engine:
        yield engine


@pytest.mark.parametrize("name", TABLES)
def test_contenders_make_the_same_copies(running, name):
    """Fan-outs by hand and the pipeline write each target once, and all send a session token."""
    by_hand = baselines.table_of(running.url, name)
    one_by_one = (lambda: baselines.loop(by_hand, "1", AFTER), lambda: baselines.pool(by_hand, "1", AFTER))
    hands = fanouts.by_hand(running.url, threads=2).values() if name == "together" else one_by_one
    for work in (*hands, lambda: handled(consumer_of(running.url), renamed(name))):
        running.set(targets=TARGETS)
        work()
        counts = running.counts()
        assert (counts["written"], counts["distinct"]) == (TARGETS, TARGETS)
        assert counts["with_token"] == counts["requests"]


# ---------------------------------------------------------------- figures
# ---------------------------------------------------------------- scale
PAGE = scale.PAGE.read_text()


def test_scale_page_has_the_tables_of_the_code():
    """`python -m benchmarks.scale` writes them."""
    assert scale.page_with(PAGE) == PAGE


def test_costs_know_the_limits_of_the_pipeline():
    """The numbers of copies that costs are computed with are those of the pipeline."""
    limits = Limits()
    assert limits.fan_out_inline_max_items == pipeline_costs.INLINE_COPIES
    assert limits.fan_out_relay_max_items == pipeline_costs.PAGE_COPIES
    assert limits.fan_out_chunk_max_items == pipeline_costs.CHUNK_COPIES
