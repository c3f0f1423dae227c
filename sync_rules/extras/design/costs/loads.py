"""Loads: units of reads and writes per second, by table and index, with records and messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

# of the template: records of one table are handed to a function once a second, by five hundred at most
BATCH_MAX_RECORDS: Final = 500
BATCH_SECONDS: Final = 1.0


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """A table, or one of its indexes."""

    table: str
    index: str = ""

    @property
    def place_name(self) -> str:
        """The place as text: TABLE or TABLE/INDEX."""
        return f"{self.table}/{self.index}" if self.index else self.table


@dataclass
class Load:
    """Units per second. `transactions`: the part of the write units that transactions make. `records` are those of a
    table's stream. `busy` is the time of functions in gigabyte-seconds, without the time for records.
    """

    reads: defaultdict[Place, float] = field(default_factory=lambda: defaultdict(float))
    writes: defaultdict[Place, float] = field(default_factory=lambda: defaultdict(float))
    transactions: float = 0.0
    records: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    busy: float = 0.0
    invocations: float = 0.0
    requests: float = 0.0

    def read(self, place: Place, units: float) -> None:
        if units:
            self.reads[place] += units

    def write(self, place: Place, units: float) -> None:
        if units:
            self.writes[place] += units

    def add(self, other: Load, reads: float = 1.0, writes: float = 1.0) -> None:
        """Add a load, or a share of its reads and a share of its writes with all their consequences."""
        for place, units in other.reads.items():
            self.read(place, units * reads)
        for place, units in other.writes.items():
            self.write(place, units * writes)
        for table, rate in other.records.items():
            self.records[table] += rate * writes
        self.transactions += other.transactions * writes
        self.busy += other.busy * writes
        self.invocations += other.invocations * writes
        self.requests += other.requests * reads

    def take_share(self, reads: float, writes: float) -> Load:
        """Return a share of the reads, and a share of the writes with all their consequences."""
        load = Load()
        load.add(self, reads, writes)
        return load

    @property
    def read_units(self) -> float:
        return sum(self.reads.values())

    @property
    def write_units(self) -> float:
        return sum(self.writes.values())

    @property
    def index_write_units(self) -> float:
        return sum(units for place, units in self.writes.items() if place.index)


def sum_loads(loads: Iterable[Load]) -> Load:
    whole = Load()
    for load in loads:
        whole.add(load)
    return whole


def share_invocations(records: Mapping[str, float]) -> dict[str, float]:
    """Return the invocations per record at these records per second, by table: 1 until the records fill batches."""
    found = {}
    for table, rate in records.items():
        invocations = min(rate, max(1 / BATCH_SECONDS, rate / BATCH_MAX_RECORDS))
        found[table] = invocations / rate if rate else 1.0
    return found
