"""`python -m benchmarks.members`: roll up many items that exist already, by a backfill: its memory, units and time.

Two sizes, a tenth of `--members` and all of them. The tables are in this process, in memory, and the backfill is in
another one, so that its memory is its own. Each day has 2,000 orders. Exit 1 if the larger size took over
`GROWTH_MAX_MB` more.

Invariant: the pipeline runs as it is, and its own meter counts what DynamoDB bills.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import date, timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

from benchmarks.fresh import own_peak_bytes
from benchmarks.ours import NoFailures
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.meter import MeteredStore
from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey

GROWTH_MAX_MB: Final = 10
OF_A_DAY: Final = 2_000
FIRST_DAY: Final = date(2020, 1, 1)
RULES: Final = """
tables:
  orders: {key: {order_id: S}}
  days: {key: {day: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  order: {table: orders}
  day: {table: days, made_by: rules}
rules:
  sold: {sum: order.total, into: day.sold, link: {day: {first: 10, of: created_at}}}
"""


class FarStore:
    """The store of the other process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        def call(request: Any) -> Any:
            self._connection.send((name, request))
            return self._connection.recv()

        return call


def backfill(connection: Connection) -> None:
    """Roll up all orders in a process of its own. Send the units, the seconds of CPU and the greatest memory in MB."""
    rules = parse_rules(RULES, environ={})
    names = frozenset(rules.rules)
    store = MeteredStore(FarStore(connection), rules.tables)
    supplies, selection = make_supplies(rules, 1), Selection(rules, names)
    run = BackfillRun(selection, store, NoFailures(), MemoryState(), {}, supplies=supplies, completes=names)
    assert run.run(), run.left
    memory_mb = own_peak_bytes() // 1_000_000
    connection.send(("", (store.writes.total(), sum(store.reads.values()), time.process_time(), memory_mb)))


def measure(members: int) -> int:
    """Print the row of a size. Returns the greatest memory in MB."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=backfill, args=(there,))
    store = MemoryStore(parse_rules(RULES, environ={}).tables)
    for number in range(members):
        day = FIRST_DAY + timedelta(number // OF_A_DAY)
        total = {"N": str(number % 90 + 1)}
        order = {"order_id": {"S": f"o{number:09}"}, "created_at": {"S": f"{day}T12:00:00Z"}, "total": total}
        store.put("orders", order)
    began = time.perf_counter()
    process.start()
    while (asked := here.recv())[0]:
        here.send(getattr(store, asked[0])(asked[1]))
    process.join()
    writes, reads, cpu_seconds, memory_mb = asked[1]
    seconds = time.perf_counter() - began
    sold = store.item(ItemKey("days", (("day", "S", f"{FIRST_DAY}"),))) or {}
    assert sold["sold"] == {"N": str(sum(number % 90 + 1 for number in range(min(members, OF_A_DAY))))}, sold
    each = f"{writes / members:.3f} | {reads / members:.3f} | {cpu_seconds / members * 1e6:,.0f}"
    print(f"| {members:,} | {each} | {memory_mb} MB | {seconds:,.0f} |", flush=True)
    return int(memory_mb)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rows as a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.members", description=__doc__)
    parser.add_argument("--members", type=int, default=100_000)
    asked = parser.parse_args(arguments)
    print("| members | write units each | read units each | CPU us each | greatest memory | seconds |")
    print("|---:|---:|---:|---:|---:|---:|")
    small, large = (measure(size) for size in (asked.members // 10, asked.members))
    return 1 if large - small > GROWTH_MAX_MB else 0


if __name__ == "__main__":
    sys.exit(main())
