"""Backfill at scale, at a small size: memory stays flat."""

from __future__ import annotations

import gc
from pathlib import Path

from sync_rules.jobs.backfill.segments import segments

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import FileState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.pipeline.requests import Scan
from tests.scale.worlds import items, rules_of
from tests.support.worlds import Parked

COUNT = 8_000
MB = 1 << 20
GROWTH_MAX_MB = 30.0


def resident_mb() -> float:
    """The memory of this process that is in use. Allocations are not traced: tracing costs more than it measures."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MB


def grown_mb(state: Path) -> tuple[float, Totals]:
    """How much this process grows by a backfill of a shop, from the moment the store is full, and what it did."""
    rules = rules_of()
    store = MemoryStore(rules.tables)
    for item in items(COUNT):
        store.put("shop", item)
    store.scan(Scan("shop", 1))  # the order of a scan is the store's, and stays
    gc.collect()
    gc.freeze()  # what is in the store is looked at by no collection
    loaded = most = resident_mb()

    def on_page(_totals: Totals) -> None:
        nonlocal most
        most = max(most, resident_mb())

    selection = Selection(rules, frozenset(rules.rules))
    run = BackfillRun(selection, store, Parked(), FileState(state), {}, supplies=segments(rules, 4), on_page=on_page)
    assert run.run()
    gc.unfreeze()
    return max(most, resident_mb()) - loaded, run.totals


def test_scale_memory_stays_flat(tmp_path):
    """A backfill of a small shop makes the process grow by next to nothing, and puts every copy right."""
    growth_mb, totals = grown_mb(tmp_path / "state.json")
    assert totals.items == 2 * COUNT
    assert totals.wrote > 1.9 * COUNT
    assert growth_mb < GROWTH_MAX_MB
