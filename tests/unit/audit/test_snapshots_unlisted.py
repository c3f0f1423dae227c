"""Snapshots on items that nothing lists: what fills them, what does not, and what explain says about them."""

from __future__ import annotations

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.audit.standings import PULL_ONLY, list_standings
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.pipeline.requests import run_work
from sync_rules.rules.description import Operation
from tests.support.builders import key, n, s
from tests.support.verifying import verify
from tests.support.worlds import Scene

RULES = """
tables: {products: {key: {product_id: S}}, lines: {key: {line_id: S}}}
entities: {product: {table: products}, line: {table: lines}}
rules:
  price: {copy: product.price, into: line.price, mode: snapshot}
"""
LINE, PRODUCT = {"line_id": s("l"), "product_id": s("p")}, {"product_id": s("p"), "price": n(7)}


@pytest.fixture
def late() -> Scene:
    """A line whose product came later."""
    scene = Scene(parse_rules(RULES))
    scene.put("lines", LINE)
    scene.rest()
    scene.put("products", PRODUCT)
    scene.rest()
    return scene


def price(scene):
    (line,) = scene.memory.items("lines")
    return line.get("price")


def test_snapshot_of_a_late_source_is_found_by_verify_and_filled_by_repair(late):
    """The copy is missing, and explain says why."""
    (standing,) = run_work(list_standings(key(late.rules.tables["lines"], "l"), LINE, late.rules), late.world)
    assert (standing.state, standing.reason) == (Drift.MISSING, PULL_ONLY)
    for repair in (False, True):
        findings, _ = verify(late, repair=repair)
        assert [(one.difference.drift, one.repaired) for one in findings] == [(Drift.MISSING, repair)]
    assert price(late) == n(7)


def test_snapshot_without_a_listing_needs_no_stream_of_its_sources_and_may_list_nothing():
    """Its source is read by key."""
    rules = parse_rules(RULES)
    (rule,) = rules.rules.values()
    assert (rule.pull_only, rule.find, rule.snapshot) == (True, None, True)
    assert [table.name for table in rules.streamed_tables] == ["lines"]
    assert Operation.QUERY not in {use.operation for use in rule.uses()}
    listed, _ = check_rules(RULES.replace("{line_id: S}}", "{line_id: S}, indexes: {by_product: {product_id: S}}}"), {})
    assert listed is not None
    assert not next(iter(listed.rules.values())).pull_only
    assert [table.name for table in listed.streamed_tables] == ["products", "lines"]
