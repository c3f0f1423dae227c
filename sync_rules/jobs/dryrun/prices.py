"""Prices of AWS by Region: those of the package, or a price file of the user's.

Invariant: no price is guessed. Prices have a date and a source, and both are printed with them. For each group of
prices of a Region, `how` names its source, or the ratio that derives it if no source was found. The estimate names a
quantity without a price, and leaves it out. No free tier, no taxes. https://aws.amazon.com/dynamodb/pricing/on-demand/
and https://aws.amazon.com/dynamodb/pricing/provisioned/
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date as Date  # noqa: N812 - the field is called date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name

PRICE_MAX: Final = 10**9
SAID: Final = {  # in place of pydantic's words, by the beginning of its types of errors
    "date": "expected a day such as 2026-01-31",
    "string_pattern_mismatch": "expected a currency such as USD: three capital letters",
    "model_type": "expected an object with the keys of a price file, found something else",
}
Price = Annotated[Decimal, Field(ge=0, le=PRICE_MAX, allow_inf_nan=False)]


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


class Storage(_Form):
    """The prices of stored bytes: of a table and its indexes, point-in-time recovery, a backup, a restore, an export to
    S3. Each is for a GB; the first three are for a GB and a month.
    """

    gb_month: Price
    recovery_gb_month: Price
    backup_gb_month: Price
    restore_gb: Price
    export_gb: Price


class Streams(_Form):
    """The price of a million GetRecords requests of a stream. Requests by Lambda are free."""

    reads_million: Price


class Lambda(_Form):
    """The prices of functions."""

    arm_gb_second: Price
    x86_gb_second: Price
    requests_million: Price


class Queues(_Form):
    """The price of a million requests of a standard queue, each of up to 64 KB."""

    requests_million: Price


class Watch(_Form):
    """The price of a standard alarm, and of a custom metric, for a month."""

    alarm_month: Price
    metric_month: Price


class Region(_Form):
    """The prices in a Region. `how` names the source of each group of prices."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    on_demand: OnDemand
    provisioned: Provisioned
    storage: Storage | None = None
    streams: Streams | None = None
    functions: Annotated[Lambda | None, Field(alias="lambda")] = None
    queues: Annotated[Queues | None, Field(alias="sqs")] = None
    watch: Annotated[Watch | None, Field(alias="cloudwatch")] = None
    how: dict[str, str] = {}


class Prices(_Form):
    """A price file. `sources` holds the full text of each source that `how` names."""

    date: Date
    source: Annotated[str, Field(min_length=1)]
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]
    sources: dict[str, str] = {}
    regions: Annotated[dict[str, Region], Field(min_length=1)]

    def how(self, region: str, group: str) -> str:
        """Return the source of a group of prices of a Region."""
        name = self.regions[region].how.get(group, "")
        return self.sources.get(name, name) or self.source


@cache
def read_own_prices() -> Prices:
    return Prices.model_validate_json((files("sync_rules.jobs.dryrun") / "prices.json").read_bytes())


def read_prices(path: Path, region: str) -> Prices:
    """Read a price file of the user's.

    Raises:
        UserError: if the file cannot be read, is not a price file, or has no prices for the Region.
    """
    try:
        body = json_bytes.parse_json(path.read_bytes(), parse_float=Decimal)
    except OSError as error:
        raise UserError(f"{path}: expected a price file, found {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path}: expected a price file in JSON, found something else") from error
    try:
        prices = Prices.model_validate(body)
    except ValidationError as error:
        raise UserError("\n".join(f"{path}{line}" for line in _describe_problems(error))) from error
    if region not in prices.regions:
        raise UserError(f"{path} · regions: {explain_unknown_name('region', region, prices.regions)}")
    return prices


def _describe_problems(error: ValidationError) -> Iterable[str]:
    """A line for each problem: its path in the file, and what was expected there."""
    for one in error.errors(include_url=False, include_input=False):
        place = "".join(f" · {part}" for part in one["loc"])
        message = next((said for kind, said in SAID.items() if one["type"].startswith(kind)), one["msg"])
        yield f"{place}: {message[:1].lower()}{message[1:]}"
