"""Backfills of a store in memory: growth of the process, and time per item.

Measured is the resident memory of the whole process, from the moment the store is full until the end of the backfill.
Allocations are not traced, because tracing would cost more than it measures.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import FileState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.pipeline.requests import Scan
from tests.scale.worlds import items, rules_of
from tests.support.worlds import Parked

MB = 1 << 20
GROWTH_MAX_MB = 30.0
SLOWER_MAX = 1.5  # at the full size, each item against one of a tenth of it: a larger store fits worse into caches


@dataclass(frozen=True)
class Measured:
    """One backfill: items scanned in all steps, copies written, seconds, processor seconds, and memory growth."""

    items: int
    wrote: int
    seconds: float
    busy_seconds: float
    loaded_mb: float
    growth_mb: float

    @property
    def item_us(self) -> float:
        """Processor microseconds for an item of a step."""
        return self.busy_seconds / max(self.items, 1) * 1e6

    def __str__(self) -> str:
        return (
            f"{self.items:,} items scanned, {self.wrote:,} copies written in {self.seconds:,.1f} s, "
            f"{self.item_us:.1f} us of work each; {self.loaded_mb:,.0f} MB with the store, and {self.growth_mb:.1f} MB more"
        )


def resident_mb() -> float:
    """The memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MB


def measure(count: int, state: Path) -> Measured:
    """Backfill a shop with a number of items."""
    rules = rules_of()
    store = MemoryStore(rules.tables)
    for item in items(count):
        store.put("shop", item)
    store.scan(Scan("shop", 1))  # the order of a scan is the store's, and stays
    gc.collect()
    gc.freeze()  # what is in the store is looked at by no collection
    loaded = most = resident_mb()

    def on_page(_totals: Totals) -> None:
        nonlocal most
        most = max(most, resident_mb())

    names = frozenset(rules.rules)
    began, busy = time.perf_counter(), time.process_time()
    run = BackfillRun(
        Selection(rules, names), store, Parked(), FileState(state), {}, supplies=segments(rules, 4), on_page=on_page
    )
    assert run.run()
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    gc.unfreeze()
    return Measured(run.totals.items, run.totals.wrote, seconds, busy, loaded, max(most, resident_mb()) - loaded)
