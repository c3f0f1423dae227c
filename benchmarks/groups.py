"""How fast members may come into one group of a roll-up, and what each costs: by the write units of its partitions.

Invariant: the pipeline runs as it is, on tables in memory, and its own meter counts what DynamoDB bills. A partition
accepts 1,000 write units a second; no other limit holds here. Counts are exact, so write units are gated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.ours import NoFailures
from sync_rules.adapters.budget import Budget, Costs
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.meter import MeteredStore
from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Table
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.sizes import PARTITION_MAX_WRITE_UNITS
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.consumer import process_changes
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work

MEMBERS: Final = 2_000
SHARDS: Final = (1, 10)
DAY: Final = ItemKey("days", (("day", "S", "2026-01-01"),))
COUNTED: Final = "units, by our meter"
RULES: Final = """
tables:
  shop: {{key: {{PK: S, SK: S}}}}
  days: {{key: {{day: S}}}}
  ledger: {{key: {{PK: S, SK: S}}}}
entities:
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
  day: {{table: days, made_by: rules}}
rules:
  sold: {{sum: order.total, into: day.sold, shards: {shards}}}
"""


class Purse(Budget):
    """A budget without a limit, which keeps what was spent."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        super().__init__(tables)
        self.spent = Costs()

    def take(self, costs: Costs) -> bool:
        self.spent.add(costs)
        return True


def hot_group(bench: Bench) -> Iterator[Figure]:
    """The members a second that one group takes, one by one and in batches, with one shard and with ten."""
    members = bench.fixed(MEMBERS)
    for shards in SHARDS:
        for batch, words, most in ((500, "in batches of 500", 2.5), (1, "one by one", 5)):
            spent, reads = count_units(shards, batch, members)
            hottest = max(spent.partitions.values()) / members
            name = f"members of one group, {shards} shard{'s' * (shards > 1)}, {words}"
            yield Figure(f"{name}: a second", (PARTITION_MAX_WRITE_UNITS / hottest,), "", COUNTED)
            units = (spent.units / members,)
            yield Figure(f"{name}: write units each", units, "", COUNTED, at_most=most, gated=True)
            yield Figure(f"{name}: read units each", (reads / members,), "", COUNTED)


def count_units(shards: int, batch: int, members: int) -> tuple[Costs, float]:
    """Count the write and read units of a group's new members. The records of orders and those of the pipeline's own
    writes come in batches.
    """
    rules = parse_rules(RULES.format(shards=shards))
    memory = MemoryStore(rules.tables)
    purse = Purse(rules.tables)
    store = MeteredStore(memory, rules.tables, budget=purse)
    run_work(finish_empty(rules), World(memory, NULL_PORTS, NoFailures()))
    changes: deque[Change] = deque()
    memory.on_change = lambda key, old, new: changes.append(Change(key, old, new))
    made = 0
    while made < members or changes:
        for number in range(made, min(made + batch, members)) if not changes else ():
            key = {"PK": {"S": f"USER#{number * 7919 % 1_000_003}"}, "SK": {"S": f"ORDER#{number:08}"}}
            memory.put("shop", {**key, "day": {"S": "2026-01-01"}, "total": {"N": str(number % 90 + 1)}})
            made += 1
        some = [changes.popleft() for _ in range(min(batch, len(changes)))]
        store.forget()
        report = run_work(process_changes(some, rules, Bounds()), World(store, NULL_PORTS, NoFailures()))
        assert not report.failed
    assert memory.item(DAY) is not None, "the group has no item"
    return purse.spent, sum(store.reads.values())
