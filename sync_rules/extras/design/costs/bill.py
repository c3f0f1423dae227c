"""The bill of a month for loads: on demand, in provisioned capacity, and the functions.

All prices are of tables of the standard class. Autoscaling keeps the provisioned capacity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from sync_rules.extras.design.costs.loads import Load, Place
from sync_rules.extras.design.costs.pipeline_costs import RECORD_SECONDS, WORKER_GIGABYTES, Compute, compute_price
from sync_rules.jobs.dryrun.money import (
    HOUR_SECONDS,
    MONTH_HOURS,
    compute_capacity_price,
    compute_on_demand_price,
    compute_scaled_units,
)
from sync_rules.jobs.dryrun.prices import Region
from sync_rules.model.entities import Table

TABLE_MAX_UNITS: Final = 40_000  # of reads and of writes: AWS's default quota for a table, which it raises
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/AutoScaling.html
TARGET_PERCENT: Final = 70  # of the capacity in use: the console's default


@dataclass(frozen=True)
class Money:
    """The price of a month, on demand and provisioned. `functions` is the price of Lambda and SQS, the same for both;
    None if no price is known.
    """

    on_demand: Decimal
    provisioned: Decimal
    functions: Decimal | None


@dataclass(frozen=True)
class Provision:
    """The capacity of one table or index."""

    place: Place
    read_units: int
    write_units: int


@dataclass(frozen=True)
class Tariff:
    """The prices of a Region for the tables of a file. `shares`: the invocations per record of each table."""

    region: Region
    shares: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)

    # ---------------------------------------------------------------- capacity
    def provisions(self, load: Load) -> tuple[Provision, ...]:
        """Return the capacity of each table and each index that has a load. A local index uses the capacity of its
        table.
        """
        reads, writes = self._sum_by_capacity(load.reads), self._sum_by_capacity(load.writes)
        return tuple(
            Provision(one, *(compute_scaled_units(units.get(one, 0.0), TARGET_PERCENT) for units in (reads, writes)))
            for one in sorted({*reads, *writes})
        )

    def _sum_by_capacity(self, units: Mapping[Place, float]) -> dict[Place, float]:
        found: dict[Place, float] = defaultdict(float)
        for place, amount in units.items():
            table = self.tables.get(place.table)
            local = place.index and table is not None and table.index(place.index).local
            found[Place(place.table) if local else place] += amount
        return found

    # ---------------------------------------------------------------- money
    def on_demand(self, load: Load) -> Decimal:
        """Return the price of a month of a load on demand."""
        places = {*load.reads, *load.writes}
        units = ((load.reads.get(one, 0.0), load.writes.get(one, 0.0)) for one in places)
        second = sum((compute_on_demand_price(self.region, reads, writes) for reads, writes in units), Decimal(0))
        return second * MONTH_HOURS * HOUR_SECONDS

    def whole(self, load: Load) -> Money:
        """Return the price of all loads together: capacity in whole units."""
        kept = self.provisions(load)
        reads, writes = sum(one.read_units for one in kept), sum(one.write_units for one in kept)
        return Money(
            self.on_demand(load), compute_capacity_price(self.region.provisioned, reads, writes), self.functions(load)
        )

    def share(self, load: Load) -> Money:
        """Return the price of a load among other loads: its share of capacity, not rounded."""
        reads, writes = (
            sum((Decimal(str(amount)) for amount in units.values()), Decimal(0)) * 100 / TARGET_PERCENT
            for units in (load.reads, load.writes)
        )
        hour = self.region.provisioned
        return Money(
            self.on_demand(load),
            MONTH_HOURS * (reads * hour.read_unit_hour + writes * hour.write_unit_hour),
            self.functions(load),
        )

    def functions(self, load: Load) -> Decimal | None:
        """Return the price of Lambda and SQS, or None if it is unknown. Records share batches with those of the whole
        file.
        """
        records = sum(load.records.values())
        invocations = load.invocations + sum(rate * self.shares.get(table, 1.0) for table, rate in load.records.items())
        seconds = MONTH_HOURS * HOUR_SECONDS
        busy = load.busy + records * RECORD_SECONDS * WORKER_GIGABYTES
        return compute_price(Compute(busy * seconds, invocations * seconds, load.requests * seconds), self.region)
