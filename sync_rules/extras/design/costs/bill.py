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
from sync_rules.extras.design.costs.pipeline_costs import RECORD_SECONDS, WORKER_GIGABYTES, Compute, money_of
from sync_rules.jobs.dryrun.money import HOUR_SECONDS, MONTH_HOURS, compute_scaled_units, of_capacity, on_demand
from sync_rules.jobs.dryrun.prices import Region
from sync_rules.model.entities import Table

TABLE_MAX_UNITS: Final = 40_000  # of reads and of writes: AWS's default quota for a table, which it raises
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/AutoScaling.html
TARGET_PERCENT: Final = 70  # of the capacity in use: the console's default


@dataclass(frozen=True)
class Money:
    """The price of a month in each way of paying. `functions`: Lambda and SQS, which cost the same in each; None where
    no price is known.
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
    """The prices of a Region for the tables of a file. `shares`: the invocations for a record of each table."""

    region: Region
    shares: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)

    # ---------------------------------------------------------------- capacity
    def provisions(self, load: Load) -> tuple[Provision, ...]:
        """The capacity of each table and each index that has a load. A local index has the capacity of its table."""
        reads, writes = self._by_capacity(load.reads), self._by_capacity(load.writes)
        return tuple(
            Provision(one, *(compute_scaled_units(units.get(one, 0.0), TARGET_PERCENT) for units in (reads, writes)))
            for one in sorted({*reads, *writes})
        )

    def _by_capacity(self, units: Mapping[Place, float]) -> dict[Place, float]:
        found: dict[Place, float] = defaultdict(float)
        for place, amount in units.items():
            table = self.tables.get(place.table)
            local = place.index and table is not None and table.index(place.index).local
            found[Place(place.table) if local else place] += amount
        return found

    # ---------------------------------------------------------------- money
    def on_demand(self, load: Load) -> Decimal:
        """The price of a month of a load, by request."""
        places = {*load.reads, *load.writes}
        units = ((load.reads.get(one, 0.0), load.writes.get(one, 0.0)) for one in places)
        second = sum((on_demand(self.region, reads, writes) for reads, writes in units), Decimal(0))
        return second * MONTH_HOURS * HOUR_SECONDS

    def whole(self, load: Load) -> Money:
        """The price of everything together: capacity in whole units."""
        kept = self.provisions(load)
        reads, writes = sum(one.read_units for one in kept), sum(one.write_units for one in kept)
        return Money(self.on_demand(load), of_capacity(self.region.provisioned, reads, writes), self.functions(load))

    def share(self, load: Load) -> Money:
        """The price of a load among others: its share of capacity, not rounded."""
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
        """The price of Lambda and SQS. Records come in batches with those of the whole file."""
        records = sum(load.records.values())
        invocations = load.invocations + sum(rate * self.shares.get(table, 1.0) for table, rate in load.records.items())
        seconds = MONTH_HOURS * HOUR_SECONDS
        busy = load.busy + records * RECORD_SECONDS * WORKER_GIGABYTES
        return money_of(Compute(busy * seconds, invocations * seconds, load.requests * seconds), self.region)
