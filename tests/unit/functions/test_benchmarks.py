"""The benchmarks: what they compare is comparable, and what gates is what must. Nothing here is timed."""

from __future__ import annotations

import boto3
import pytest

from benchmarks import scale
from benchmarks.running import ENVIRONMENT, answering
from sync_rules.adapters import aws
from sync_rules.extras.design.costs import pipeline_costs
from sync_rules.model.limits import Limits


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
