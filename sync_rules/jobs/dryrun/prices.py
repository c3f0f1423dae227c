"""Prices of units: a price file, that of the package or the user's own, and the arithmetic.

Invariant: no price is guessed. A price is of a Region and a date, and both are printed with it. Prices are of standard
tables, for throughput alone, without free tier, taxes or reserved capacity.
https://aws.amazon.com/dynamodb/pricing/on-demand/ and https://aws.amazon.com/dynamodb/pricing/provisioned/
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - the field is called date
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import unknown

MILLION: Final = 1_000_000
HOUR_SECONDS: Final = 3600
Price = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OnDemand(_Form):
    """The price of a million units."""

    write_units_million: Price
    read_units_million: Price


class Provisioned(_Form):
    """The price of one unit per second for an hour."""

    write_unit_hour: Price
    read_unit_hour: Price


class Region(_Form):
    """The prices in a Region."""

    on_demand: OnDemand
    provisioned: Provisioned


class Prices(_Form):
    """A price file."""

    date: Date
    source: Annotated[str, Field(min_length=1)]
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]
    regions: Annotated[dict[str, Region], Field(min_length=1)]


def own_prices() -> Prices:
    """The prices in the package."""
    return Prices.model_validate_json((files("sync_rules.jobs.dryrun") / "prices.json").read_bytes())


def read_prices(path: Path, region: str) -> Prices:
    """A price file of the user's.

    Raises:
        UserError: when it cannot be read, is not such a file, or has no prices for the Region.
    """
    try:
        body = json_bytes.parsed(path.read_bytes(), parse_float=Decimal)
    except OSError as error:
        raise UserError(f"{path}: expected a price file, found {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path}: expected a price file in JSON, found something else") from error
    try:
        prices = Prices.model_validate(body)
    except ValidationError as error:
        raise UserError("\n".join(f"{path}{line}" for line in _problems(error))) from error
    if region not in prices.regions:
        raise UserError(f"{path} · regions: {unknown('region', region, prices.regions)}")
    return prices


def _problems(error: ValidationError) -> Iterable[str]:
    """A line for each problem: its path in the file, and what was expected there."""
    for one in error.errors(include_url=False, include_input=False):
        place = "".join(f" · {part}" for part in one["loc"])
        message = "expected a day such as 2026-01-31" if one["type"].startswith("date") else one["msg"]
        yield f"{place}: {message[:1].lower()}{message[1:]}"


# ---------------------------------------------------------------- arithmetic
@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity to provision beyond what the tables need anyway, for how many hours, and its price."""

    write_units_second: int
    read_units_second: int
    hours: int
    money: Decimal


def on_demand(region: Region, reads: float, writes: float) -> Decimal:
    """The price of read and write units on demand."""
    prices = region.on_demand
    return (Decimal(writes) * prices.write_units_million + Decimal(reads) * prices.read_units_million) / MILLION


def provisioned(region: Region, reads: float, writes: float, seconds: float) -> Capacity:
    """The capacity for these units in a time, paid by whole hours."""
    hours = math.ceil(seconds / HOUR_SECONDS)
    per_second = [math.ceil(units / max(seconds, 1)) for units in (writes, reads)]
    prices = region.provisioned
    money = hours * (per_second[0] * prices.write_unit_hour + per_second[1] * prices.read_unit_hour)
    return Capacity(per_second[0], per_second[1], hours, money)
