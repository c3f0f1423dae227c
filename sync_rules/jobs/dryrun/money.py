"""Money for units: on demand, in provisioned capacity that follows the load, and for storage.

A month is 730 hours, as in AWS's pricing calculator (https://calculator.aws); a caller may give another number. A GB is
2**30 bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sync_rules.jobs.dryrun.prices import Provisioned, Region

MILLION: Final = 1_000_000
HOUR_SECONDS: Final = 3600
MONTH_HOURS: Final = 730
GIGABYTE: Final = 2**30


# ---------------------------------------------------------------- units in all
@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity to provision beyond the tables' other load, the number of hours, and its price."""

    write_units_second: int
    read_units_second: int
    hours: int
    money: Decimal


def compute_on_demand_price(region: Region, reads: float, writes: float) -> Decimal:
    """Return the price of read and write units on demand."""
    prices = region.on_demand
    return (Decimal(writes) * prices.write_units_million + Decimal(reads) * prices.read_units_million) / MILLION


def plan_capacity(region: Region, reads: float, writes: float, seconds: float) -> Capacity:
    """Return the capacity that these units need in a number of seconds, paid by whole hours."""
    hours = math.ceil(seconds / HOUR_SECONDS)
    write_units, read_units = (math.ceil(units / max(seconds, 1)) for units in (writes, reads))
    return Capacity(
        write_units, read_units, hours, compute_capacity_price(region.provisioned, read_units, write_units, hours=hours)
    )


# ---------------------------------------------------------------- months of a steady load
def compute_scaled_units(units_second: float, target: int) -> int:
    """Return the capacity that autoscaling keeps for a steady load, so that the load uses `target` percent of it.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/AutoScaling.html
    """
    return max(1, math.ceil(round(units_second * 100 / target, 9)))


def compute_capacity_price(
    prices: Provisioned, read_units: int, write_units: int, *, hours: float = MONTH_HOURS
) -> Decimal:
    """Return the price of provisioned capacity for some hours."""
    return Decimal(hours) * (write_units * prices.write_unit_hour + read_units * prices.read_unit_hour)


def compute_gigabytes(size_bytes: float) -> Decimal:
    return Decimal(size_bytes) / GIGABYTE
