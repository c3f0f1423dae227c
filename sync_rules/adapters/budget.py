"""What may be written on a table in a second: `max_write_units_per_second` of the rules file, shared out.

Law: each of the processes that write at once takes an equal share, and they need not know of each other. Of any stretch
of t seconds no more is let through than the share * t and one second's burst, or one request, if that is larger; no
partition key gets more than its share of what one partition takes. A table without the option is not looked at.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock, local
from typing import Final

from sync_rules.adapters.metered import Costs, MeteredStore, Partition
from sync_rules.model.entities import Table
from sync_rules.model.limits import Limits
from sync_rules.model.values import Item
from sync_rules.model.writes import Result
from sync_rules.pipeline.requests import Apply, List, Page, Read, Remembering, Scan, Store

BURST_SECONDS: Final = 1.0  # of the ceiling: what may be let through at once
SLOWER: Final = 0.7
SLOWER_AGAIN_SECONDS: Final = 1.0
RECOVERY_SECONDS: Final = 60.0  # from nothing to the ceiling
LEAST: Final = 0.01  # of the ceiling: it never stands still
WRITES_AT_ONCE_SECONDS: Final = 0.1  # of the rate
WAIT_MAX_SECONDS: Final = 0.5  # in one piece, as the rate may change meanwhile
ENOUGH: Final = 1e-9  # sums of floats


def writes_at_once(rate: float) -> int:
    """How many writes go out together: so few that the rate is kept from moment to moment, and stopping is quick."""
    most = Limits().apply_max_writes
    return max(1, min(most, int(rate * WRITES_AT_ONCE_SECONDS))) if rate else most


class Rate:
    """`ceiling` is in write units per second; 0 lets everything through. May be used by several threads."""

    def __init__(
        self,
        ceiling: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.ceiling = ceiling
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._rate = self._cap = ceiling
        self._seen = clock()
        self._slowed = self._seen - SLOWER_AGAIN_SECONDS
        self._asked = 0.0  # units, all in all
        self._credit = ceiling * BURST_SECONDS  # of them, so many may have been let through by now

    @property
    def units_per_second(self) -> float:
        """The rate at this moment."""
        with self._lock:
            self._go_on()
            return self._rate

    def take(self, units: float, within_seconds: float = math.inf) -> bool:
        """Returns once these units may be written; False, at once, when that would take longer than there is time."""
        if not self.ceiling:
            return True
        with self._lock:
            self._go_on()
            mine = self._asked + min(units, self.ceiling * BURST_SECONDS)  # the bucket never holds more
            if mine - self._credit > self._rate * within_seconds:
                return False
            self._asked += units
        while True:
            with self._lock:
                self._go_on()
                missing = mine - self._credit
                wait = missing / self._rate
            if missing <= ENOUGH * mine:
                return True
            self._sleep(min(wait, WAIT_MAX_SECONDS))

    def slow_down(self) -> None:
        """Somebody was throttled."""
        with self._lock:
            self._go_on()
            if self._seen - self._slowed >= SLOWER_AGAIN_SECONDS:
                self._slowed = self._seen
                self._rate = max(self._rate * SLOWER, self._least)

    def cap(self, units_per_second: float) -> None:
        """Not faster than this, until told otherwise; no more than the ceiling, no less than the least."""
        with self._lock:
            self._go_on()
            self._cap = min(max(units_per_second, self._least), self.ceiling)
            self._rate = min(self._rate, self._cap)

    @property
    def _least(self) -> float:
        return self.ceiling * LEAST

    def _go_on(self) -> None:
        """What came in since the last look: at the rate as it was then, for it may not have recovered at once."""
        now = self._clock()
        passed, self._seen = max(0.0, now - self._seen), now
        self._credit = min(self._credit + self._rate * passed, self._asked + self.ceiling * BURST_SECONDS)
        self._rate = min(self._cap, self._rate + passed * self.ceiling / RECOVERY_SECONDS)


# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_MAX_UNITS_PER_SECOND: Final = 1_000
PARTITIONS_MAX: Final = 1_000  # watched at a time; of one that is forgotten and comes back, a burst is let through anew


def endless() -> float:
    """Seconds where nobody waits."""
    return math.inf


class Budget:
    """What this process may write, as one of so many `writers`. May be used by several threads.

    `within_seconds` says how long may be waited for it.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        writers: int = 1,
        *,
        within_seconds: Callable[[], float] = endless,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        limits = {name: table.max_write_units_per_second for name, table in tables.items()}
        self._shares = {name: limit / writers for name, limit in limits.items() if limit is not None}
        self._of_partition = PARTITION_MAX_UNITS_PER_SECOND / writers
        self._within_seconds = within_seconds
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._tables = {name: self._rate(share) for name, share in self._shares.items()}
        self._partitions: OrderedDict[Partition, Rate] = OrderedDict()

    @property
    def limits(self) -> bool:
        """Whether any table has a limit."""
        return bool(self._shares)

    def watches(self, table: str) -> bool:
        """Whether a table has a limit."""
        return table in self._shares

    @property
    def at_once_max_units(self) -> float:
        """So few that the lowest of the limits is kept from moment to moment."""
        return float(writes_at_once(min(self._shares.values(), default=0.0)))

    def take(self, costs: Costs) -> bool:
        """Returns once so much may be written; False, at once, when there is no time for it. What was let through for
        one table is spent then, also where another one has no time.
        """
        rates = [(self._tables[name], units) for name, units in costs.tables.items() if name in self._tables]
        for partition, units in costs.partitions.items():
            if self._shares.get(partition[0], 0) > self._of_partition:
                rates.append((self._partition(partition), units))
        return all(rate.take(units, self._within_seconds()) for rate, units in rates)

    def _partition(self, partition: Partition) -> Rate:
        with self._lock:
            rate = self._partitions.get(partition) or self._rate(self._of_partition)
            self._partitions[partition] = rate
            self._partitions.move_to_end(partition)
            if len(self._partitions) > PARTITIONS_MAX:
                self._partitions.popitem(last=False)
            return rate

    def _rate(self, units_per_second: float) -> Rate:
        return Rate(units_per_second, clock=self._clock, sleep=self._sleep)


class BudgetedStore(Remembering):
    """A store that spends no more than a budget. May be used by several threads: each has its own memory of what was
    read, by which writes are judged.
    """

    def __init__(self, inner: Store, tables: Mapping[str, Table], budget: Budget) -> None:
        self._inner = inner
        self._tables = tables
        self._budget = budget
        self._mine = local()

    def forget(self) -> None:
        """This thread begins something new."""
        self._store().forget()

    def read(self, request: Read) -> tuple[Item | None, ...]:
        return self._store().read(request)

    def list(self, request: List) -> Page:
        return self._store().list(request)

    def scan(self, request: Scan) -> Page:
        return self._store().scan(request)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        return self._store().apply(request)

    def _store(self) -> MeteredStore:
        if not hasattr(self._mine, "store"):
            self._mine.store = MeteredStore(self._inner, self._tables, budget=self._budget)
        store: MeteredStore = self._mine.store
        return store


def within_budget(store: Store, tables: Mapping[str, Table], budget: Budget | None = None) -> Store:
    """The store, or where a table has a limit, one in front of it that keeps to that; without a `budget` as the only
    one that writes.
    """
    budget = budget or Budget(tables)
    return BudgetedStore(store, tables, budget) if budget.limits else store
