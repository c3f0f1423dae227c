"""The bill of a month for loads: on demand, in provisioned capacity, in reserved capacity, and the functions.

A table has the prices of its class. Capacity is reserved for tables of the standard class alone.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/reserved-capacity.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from sync_rules.costs.copies import RECORD_SECONDS, WORKER_GIGABYTES, Compute, money_of
from sync_rules.costs.loads import Load, Place
from sync_rules.costs.money import (
    HOUR_SECONDS,
    MONTH_HOURS,
    RESERVED_AT_ONCE_UNITS,
    of_capacity,
    of_reserved,
    of_units,
    scaled,
)
from sync_rules.costs.prices import OnDemand, Provisioned, Region
from sync_rules.model.capacity import NO_SETTINGS, TARGET_PERCENT, Scaling, TableSettings, Units
from sync_rules.model.capacity import Provisioned as ProvisionedBilling

TABLE_MAX_UNITS: Final = 40_000  # of reads and of writes: AWS's default quota for a table, which it raises
UNBOUND: Final = 10**9
HUNDRED: Final = RESERVED_AT_ONCE_UNITS


@dataclass(frozen=True)
class Money:
    """The price of a month in each way of paying; None where no price is known. `functions`: Lambda and SQS, which cost
    the same in each.
    """

    on_demand: Decimal
    provisioned: Decimal
    one_year: Decimal | None
    three_years: Decimal | None
    functions: Decimal | None


@dataclass(frozen=True)
class Provision:
    """The capacity of one table or index."""

    place: Place
    read_units: int
    write_units: int


@dataclass(frozen=True)
class Tariff:
    """The prices of a Region for the tables of a file. `shares`: the invocations for a record of each table; `target`:
    the percentage of capacity in use, where the file does not say.
    """

    region: Region
    settings: Mapping[str, TableSettings] = field(default_factory=dict)
    target: int = TARGET_PERCENT
    shares: Mapping[str, float] = field(default_factory=dict)

    # ---------------------------------------------------------------- prices by table
    def infrequent(self, table: str) -> bool:
        """True for a table of the class for infrequent access, if there are prices for that."""
        asked = self.settings.get(table, NO_SETTINGS).table_class == "infrequent-access"
        return asked and self.region.infrequent_access is not None

    def requests(self, table: str) -> OnDemand:
        """The prices of units on demand."""
        rare = self.region.infrequent_access
        return rare.on_demand if rare is not None and self.infrequent(table) else self.region.on_demand

    def capacity(self, table: str) -> Provisioned:
        """The prices of units per second."""
        rare = self.region.infrequent_access
        return rare.provisioned if rare is not None and self.infrequent(table) else self.region.provisioned

    def gigabyte(self, table: str) -> Decimal | None:
        """The price of a GB for a month."""
        rare, storage = self.region.infrequent_access, self.region.storage
        if rare is not None and self.infrequent(table):
            return rare.storage_gb_month
        return None if storage is None else storage.gb_month

    # ---------------------------------------------------------------- capacity
    def provision(self, place: Place, reads: float, writes: float) -> Provision:
        """The capacity of a table or index for a steady load: as the file has it, or as autoscaling would keep it."""
        settings = self.settings.get(place.table, NO_SETTINGS)
        own = settings.indexes.get(place.index) if place.index else None
        billing = settings.billing if own is None or own.billing is None else own.billing
        stated = billing if isinstance(billing, ProvisionedBilling) else None
        return Provision(
            place,
            self._units(reads, None if stated is None else stated.read),
            self._units(writes, None if stated is None else stated.write),
        )

    def _units(self, load: float, stated: Units | None) -> int:
        if stated is not None and stated.scaling is None:
            return stated.number
        scaling = Scaling(1, UNBOUND, self.target) if stated is None or stated.scaling is None else stated.scaling
        return scaled(load, scaling)

    def provisions(self, load: Load) -> tuple[Provision, ...]:
        """The capacity of each table and each index."""
        places = sorted({*load.reads, *load.writes})
        return tuple(self.provision(one, load.reads.get(one, 0.0), load.writes.get(one, 0.0)) for one in places)

    # ---------------------------------------------------------------- money
    def on_demand(self, load: Load) -> Decimal:
        """The price of a month of a load, by request."""
        return self.once(load) * MONTH_HOURS * HOUR_SECONDS

    def once(self, load: Load) -> Decimal:
        """The price of units in all, not per second, by request."""
        places = {*load.reads, *load.writes}
        units = ((one, load.reads.get(one, 0.0), load.writes.get(one, 0.0)) for one in places)
        return sum((of_units(self.requests(one.table), reads, writes) for one, reads, writes in units), Decimal(0))

    def whole(self, load: Load) -> Money:
        """The price of everything together: capacity in whole units, reserved by the hundred."""
        kept = self.provisions(load)
        provisioned = sum(
            (of_capacity(self.capacity(one.place.table), one.read_units, one.write_units) for one in kept), Decimal(0)
        )
        return Money(
            self.on_demand(load),
            provisioned,
            self._reserved("one_year", kept),
            self._reserved("three_years", kept),
            self.functions(load),
        )

    def _reserved(self, term: str, kept: tuple[Provision, ...]) -> Decimal | None:
        standard = [one for one in kept if not self.infrequent(one.place.table)]
        money = of_reserved(
            self.region, term, sum(one.read_units for one in standard), sum(one.write_units for one in standard)
        )
        if money is None:
            return None
        rest = [one for one in kept if self.infrequent(one.place.table)]
        return money + sum(
            (of_capacity(self.capacity(one.place.table), one.read_units, one.write_units) for one in rest), Decimal(0)
        )

    def share(self, load: Load) -> Money:
        """The price of a load among others: its share of capacity, neither rounded nor with the bounds of scaling."""
        provisioned, one_year, three_years = Decimal(0), Decimal(0), Decimal(0)
        known = {term: self._hundreds(term) for term in ("one_year", "three_years")}
        for place in {*load.reads, *load.writes}:
            reads, writes = (
                Decimal(str(units.get(place, 0.0))) * 100 / self.target for units in (load.reads, load.writes)
            )
            prices = self.capacity(place.table)
            money = MONTH_HOURS * (reads * prices.read_unit_hour + writes * prices.write_unit_hour)
            provisioned += money
            of_terms = []
            for hundreds in known.values():
                rare = hundreds is None or self.infrequent(place.table)
                of_terms.append(money if rare or hundreds is None else reads * hundreds[0] + writes * hundreds[1])
            one_year, three_years = one_year + of_terms[0], three_years + of_terms[1]
        return Money(
            self.on_demand(load),
            provisioned,
            None if known["one_year"] is None else one_year,
            None if known["three_years"] is None else three_years,
            self.functions(load),
        )

    def _hundreds(self, term: str) -> tuple[Decimal, Decimal] | None:
        """The price of a month of one reserved read unit, and of one write unit."""
        reads, writes = of_reserved(self.region, term, HUNDRED, 0), of_reserved(self.region, term, 0, HUNDRED)
        return None if reads is None or writes is None else (reads / HUNDRED, writes / HUNDRED)

    def functions(self, load: Load) -> Decimal | None:
        """The price of Lambda and SQS. Records come in batches with those of the whole file."""
        records = sum(load.records.values())
        invocations = load.invocations + sum(rate * self.shares.get(table, 1.0) for table, rate in load.records.items())
        seconds = MONTH_HOURS * HOUR_SECONDS
        busy = load.busy + records * RECORD_SECONDS * WORKER_GIGABYTES
        return money_of(Compute(busy * seconds, invocations * seconds, load.requests * seconds), self.region)
