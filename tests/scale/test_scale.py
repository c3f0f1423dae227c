"""Backfill at scale, at a small size: memory stays flat."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import FileState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Outcome
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Scan
from tests.support.builders import order_item, s, user_item
from tests.support.worlds import Parked

COUNT = 8_000
ORDERS_PER_USER = 100
RULES = parse_rules("""
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names:  copy user.name into order.user_name
  labels: {derive: order.label, as: "{user_name} {order_id}"}
  orders: {collect: order, into: user.orders, as: "{order_id}"}
""")
MB = 1 << 20
GROWTH_MAX_MB = 30.0


def items(count: int) -> Iterator[Item]:
    """A number of items: users with a hundred orders each. The copies of orders are wrong, and as large as the right ones,
    so that repairs do not enlarge the store, and any growth is the backfill's.
    """
    made = number = 0
    while made < count:
        orders = [f"{order:03}" for order in range(min(ORDERS_PER_USER, count - made - 1))]
        members = {"orders": {"SS": orders}} if orders else {}
        yield user_item(f"{number:08}", name=s(f"name {number:08}"), **members)
        for order in orders:
            yield order_item(f"{number:08}", order, user_name=s("none 00000000"), label=s(f"none 00000000 {order}"))
        made += 1 + len(orders)
        number += 1


def resident_mb() -> float:
    """The memory of this process that is in use. Allocations are not traced: tracing costs more than it measures."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MB


def grown_mb(state: Path) -> tuple[float, Totals]:
    """How much this process grows by a backfill of a shop, from the moment the store is full, and what it did."""
    store = MemoryStore(RULES.tables)
    for item in items(COUNT):
        store.put("shop", item)
    store.scan(Scan("shop", 1))  # the order of a scan is the store's, and stays
    gc.collect()
    gc.freeze()  # what is in the store is looked at by no collection
    loaded = most = resident_mb()

    def on_page(_totals: Totals) -> None:
        nonlocal most
        most = max(most, resident_mb())

    selection = Selection(RULES, frozenset(RULES.rules))
    run = BackfillRun(
        selection, store, Parked(), FileState(state), {}, supplies=make_supplies(RULES, 4), on_page=on_page
    )
    assert run.run()
    gc.unfreeze()
    return max(most, resident_mb()) - loaded, run.totals


@pytest.mark.night
def test_scale_memory_stays_flat(tmp_path):
    """A backfill of a small shop makes the process grow by next to nothing, and puts every copy right."""
    growth_mb, totals = grown_mb(tmp_path / "state.json")
    assert totals.items == 2 * COUNT
    assert totals.count(Outcome.COPIED) > 1.9 * COUNT
    assert growth_mb < GROWTH_MAX_MB
