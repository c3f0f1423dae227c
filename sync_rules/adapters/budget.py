"""Limits on write units: a rate, and `max_write_units_per_second` of tables, shared between processes.

Invariant: each concurrent process takes an equal share, and does not know of the others. In t seconds a process writes
at most share * t units plus a burst of one second, or one request if that is larger. Per partition key it writes at
most its share of what one partition takes. A table without the option has no limit.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from sync_rules.model.entities import Table
from sync_rules.model.limits import Limits
from sync_rules.model.sizes import PARTITION_MAX_WRITE_UNITS

BURST_SECONDS: Final = 1.0  # of the ceiling, at once
SLOWER: Final = 0.7  # times the rate, after a throttle
SLOWER_AGAIN_SECONDS: Final = 1.0  # until a throttle slows the rate down again
RECOVERY_SECONDS: Final = 60.0  # from zero to the ceiling
LEAST: Final = 0.01  # of the ceiling: the rate never is zero
WRITES_AT_ONCE_SECONDS: Final = 0.1  # of the rate
WAIT_MAX_SECONDS: Final = 0.5  # in one piece, as the rate may change meanwhile
ENOUGH: Final = 1e-9  # relative error of sums of floats
PARTITIONS_MAX: Final = 1_000  # known at a time; a partition that was dropped starts with a new burst

Partition = tuple[Any, ...]  # a table, and the name, type and value of its partition key


def choose_writes_at_once(rate: float) -> int:
    """Choose how many writes are sent together: few enough to keep the rate at every moment, and to stop soon."""
    most = Limits().apply_max_writes
    return max(1, min(most, int(rate * WRITES_AT_ONCE_SECONDS))) if rate else most


class Rate:
    """A limit of `ceiling` write units per second; 0 means no limit. May be used by several threads."""

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
        self._rate = ceiling
        self._seen = clock()
        self._slowed = self._seen - SLOWER_AGAIN_SECONDS
        self._asked = 0.0  # units so far
        self._credit = ceiling * BURST_SECONDS  # units that may have passed by now

    @property
    def units_per_second(self) -> float:
        with self._lock:
            self._go_on()
            return self._rate

    def take(self, units: float, within_seconds: float = math.inf) -> bool:
        """Wait until these units may be written. Return False at once if that takes longer than `within_seconds`."""
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
        """Lower the rate after a throttle."""
        with self._lock:
            self._go_on()
            if self._seen - self._slowed >= SLOWER_AGAIN_SECONDS:
                self._slowed = self._seen
                self._rate = max(self._rate * SLOWER, self.ceiling * LEAST)

    def _go_on(self) -> None:
        """Add the credit since the last call at the rate of that time, then let the rate recover."""
        now = self._clock()
        passed, self._seen = max(0.0, now - self._seen), now
        self._credit = min(self._credit + self._rate * passed, self._asked + self.ceiling * BURST_SECONDS)
        self._rate = min(self.ceiling, self._rate + passed * self.ceiling / RECOVERY_SECONDS)


@dataclass(frozen=True)
class Costs:
    """Write units: by table, including its indexes; by partition key of the table, without its indexes."""

    tables: Counter[str] = field(default_factory=Counter)
    partitions: Counter[Partition] = field(default_factory=Counter)

    def add(self, other: Costs) -> None:
        self.tables.update(other.tables)
        self.partitions.update(other.partitions)

    @property
    def units(self) -> int:
        return self.tables.total()


class Budget:
    """The write units that this process may spend, as one of several `writers`. May be used by several threads.

    `within_seconds` returns the longest time that a write may wait.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        writers: int = 1,
        *,
        within_seconds: Callable[[], float] = lambda: math.inf,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        limits = {name: table.max_write_units_per_second for name, table in tables.items()}
        self._shares = {name: limit / writers for name, limit in limits.items() if limit is not None}
        self._of_partition = PARTITION_MAX_WRITE_UNITS / writers
        self._within_seconds = within_seconds
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._tables = {name: self._rate(share) for name, share in self._shares.items()}
        self._partitions: OrderedDict[Partition, Rate] = OrderedDict()

    @property
    def limits(self) -> bool:
        """True if any table has a limit."""
        return bool(self._shares)

    def watches(self, table: str) -> bool:
        """True if this table has a limit."""
        return table in self._shares

    @property
    def at_once_max_units(self) -> float:
        """The most units to send together: few enough to keep the lowest limit at every moment."""
        return float(choose_writes_at_once(min(self._shares.values(), default=0.0)))

    def take(self, costs: Costs) -> bool:
        """Wait until these costs may be written. Return False at once if there is no time. Units that other tables
        granted before that count as spent.
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
