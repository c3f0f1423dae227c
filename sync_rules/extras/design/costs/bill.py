"""The bill of a month for loads: on demand, in provisioned capacity, in reserved capacity, and the functions.

A table has the prices of its class. Capacity is reserved for tables of the standard class alone.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/reserved-capacity.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from sync_rules.extras.design.costs.loads import Load, Place
from sync_rules.extras.design.costs.pipeline_costs import RECORD_SECONDS, WORKER_GIGABYTES, Compute, money_of
from sync_rules.jobs.dryrun.money import (
    HOUR_SECONDS,
    MONTH_HOURS,
    RESERVED_AT_ONCE_UNITS,
    of_capacity,
    of_reserved,
    of_units,
    scaled,
)
from sync_rules.jobs.dryrun.prices import OnDemand, Provisioned, Region
from sync_rules.model.capacity import NO_SETTINGS, TARGET_PERCENT, Scaling, TableSettings
from sync_rules.model.capacity import Provisioned as ProvisionedBilling
from sync_rules.model.entities import Table

TABLE_MAX_UNITS: Final = 40_000  # of reads and of writes: AWS's default quota for a table, which it raises
UNBOUND: Final = 10**30
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
    """The capacity of one table or index, and the load on it. `targets`: the percentages of capacity that autoscaling
    keeps in use, for reads and writes; None for fixed capacity.
    """

    place: Place
    read_units: int
    write_units: int
    read_load: float = 0.0
    write_load: float = 0.0
    targets: frozenset[int | None] = frozenset()


@dataclass(frozen=True)
class Tariff:
    """The prices of a Region for the tables of a file. `shares`: the invocations for a record of each table; `target`:
    the percentage of capacity in use, where the file does not say; `whole_load`: that of the file, which fixed capacity
    is shared by.
    """

    region: Region
    settings: Mapping[str, TableSettings] = field(default_factory=dict)
    target: int = TARGET_PERCENT
    shares: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    whole_load: Load = field(default_factory=Load)

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
        read, write = self._kept(place)
        targets = frozenset(None if isinstance(one, int) else one.target for one in (read, write))
        return Provision(place, _units(reads, read), _units(writes, write), reads, writes, targets)

    def _kept(self, place: Place) -> tuple[int | Scaling, int | Scaling]:
        """The capacity for reads and for writes: fixed, or how it is scaled."""
        stated = self._stated(place)
        if stated is None:
            return (Scaling(1, UNBOUND, self.target),) * 2
        read, write = (one.number if one.scaling is None else one.scaling for one in (stated.read, stated.write))
        return read, write

    def _stated(self, place: Place) -> ProvisionedBilling | None:
        """The capacity that the file gives a table or index."""
        settings = self.settings.get(place.table, NO_SETTINGS)
        own = settings.indexes.get(place.index) if place.index else None
        billing = settings.billing if own is None or own.billing is None else own.billing
        return billing if isinstance(billing, ProvisionedBilling) else None

    def provisions(self, load: Load) -> tuple[Provision, ...]:
        """The capacity of each table and each index that has a load, or that the file gives capacity."""
        reads, writes = self._by_capacity(load.reads), self._by_capacity(load.writes)
        given = {Place(name, index) for name, table in self.tables.items() for index in ("", *_global(table))}
        places = {*reads, *writes, *(one for one in given if self._stated(one) is not None)}
        return tuple(self.provision(one, reads.get(one, 0.0), writes.get(one, 0.0)) for one in sorted(places))

    def _by_capacity(self, units: Mapping[Place, float]) -> dict[Place, float]:
        """Units by the capacity that they use: a local index has that of its table."""
        found: dict[Place, float] = defaultdict(float)
        for place, amount in units.items():
            found[self._capacity_of(place)] += amount
        return found

    def _capacity_of(self, place: Place) -> Place:
        table = self.tables.get(place.table)
        local = place.index and table is not None and table.index(place.index).local
        return Place(place.table) if local else place

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
        """The price of a load among others: its share of capacity, neither rounded nor with the bounds of scaling. Of
        fixed capacity it is the share that it has in the whole load.
        """
        provisioned, one_year, three_years = Decimal(0), Decimal(0), Decimal(0)
        known = {term: self._hundreds(term) for term in ("one_year", "three_years")}
        kinds = [self._by_capacity(units) for units in (load.reads, load.writes)]
        wholes = [self._by_capacity(units) for units in (self.whole_load.reads, self.whole_load.writes)]
        for place in {*kinds[0], *kinds[1]}:
            reads, writes = (
                _part(units.get(place, 0.0), whole.get(place, 0.0), kept)
                for units, whole, kept in zip(kinds, wholes, self._kept(place), strict=True)
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


def _units(load: float, kept: int | Scaling) -> int:
    return kept if isinstance(kept, int) else scaled(load, kept)


def _part(load: float, whole: float, kept: int | Scaling) -> Decimal:
    """The part of a capacity that belongs to a load."""
    units = Decimal(str(load))
    if isinstance(kept, Scaling):
        return units * 100 / kept.target
    return kept * units / Decimal(str(whole)) if whole else Decimal(0)


def _global(table: Table) -> Iterator[str]:
    return (index.name for index in table.indexes if not index.local)
