"""Items gathered for `propose`, with what that costs, the question before it, and its progress.

Invariant: the command reads no table on AWS before the user has agreed to its cost. It does not read again what an
earlier run has read, and says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from sync_rules.adapters import aws
from sync_rules.adapters.budget import Rate
from sync_rules.cli import options as opt
from sync_rules.cli.confirmation import confirm
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.display import Bar, displayed
from sync_rules.cli.show.text import counted, duration
from sync_rules.cli.signals import stop_signals
from sync_rules.extras.discover.propose.export_tables import Reading
from sync_rules.extras.discover.propose.item_sources import Given, Workspace, find_exports, gather_exports
from sync_rules.extras.discover.propose.table_files import Gathered
from sync_rules.extras.discover.propose.table_scans import LiveTable, Progress, Scanning, live_tables
from sync_rules.jobs.backfill.export import shelf_of
from sync_rules.jobs.dryrun.money import on_demand
from sync_rules.jobs.dryrun.prices import own_prices

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CENT: Final = Decimal("0.01")
MEGABYTE: Final = 1_000_000
SECOND_MS: Final = 1_000
NOT_COUNTED: Final = "DynamoDB has not counted it yet, so what a scan costs is not known"
GOES_ON: Final = (
    "what was read is kept, and the same command goes on; without the folder of --workspace it reads all again"
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The tables and exports that were asked for, and how they are read. `rate`: of read units a second."""

    tables: Sequence[str]
    exports: Sequence[str]
    keys: Sequence[str]
    endpoint_url: str | None
    region: str | None
    rate: float
    yes: bool

    @property
    def said(self) -> str:
        """The source in words."""
        if self.exports:
            return f"{'an export' if len(self.exports) == 1 else 'exports'} in {', '.join(self.exports)}"
        return f"{'table' if len(self.tables) == 1 else 'tables'} {', '.join(self.tables)}"

    @property
    def place(self) -> str | None:
        """The Region of its tables, if it has one."""
        return aws.dynamodb(self.endpoint_url, self.region).meta.region_name if self.tables else self.region

    def gathered(self, at: Workspace) -> Gathered | None:
        """The items. None when somebody did not want to pay for them.

        Raises:
            KeyboardInterrupt: when it was stopped. What was read is kept.
            UserError: when a table or an export is not what it should be.
            StoreError: when something may not be read.
        """
        client = aws.dynamodb(self.endpoint_url, self.region) if self.tables else None
        described = live_tables(client, self.tables) if client is not None else ()
        if self.exports or client is None:
            return self._of_exports(at, Given(described, self.keys))
        return self._of_tables(at, client, described)

    # ------------------------------------------------------------ exports
    def _of_exports(self, at: Workspace, given: Given) -> Gathered:
        places = {place: shelf_of(place, self.endpoint_url, self.region) for place in self.exports}
        exports = find_exports(places, given)
        meter = ReadingMeter(sum(one.items for one in exports))
        with (
            stop_signals() as stopping,
            displayed(make_console(stderr=True), "propose", meter.bar) as display,
        ):

            def on_items(items: int) -> None:
                meter.items += items
                display.update(lambda: meter)

            try:
                return gather_exports(exports, given, Reading(at.exports, opt.WORKERS, on_items, stopping))
            except KeyboardInterrupt:
                raise KeyboardInterrupt("interrupted: the same command begins again, with what was fetched") from None

    # ------------------------------------------------------------ live tables
    def _of_tables(self, at: Workspace, client: DynamoDBClient, tables: Sequence[LiveTable]) -> Gathered | None:
        scanning = self._scanning(at, client)
        for line in _read_before(scanning, tables):
            _tell(line)
        left = {table: scanning.left(table) for table in tables}
        if any(left.values()):
            for line in self._costs(client, left):
                _tell(line)
            if aws.is_aws(client) and not confirm("Read them?", yes=self.yes):
                return None
        return self._scanned(at, client, tables)

    def _costs(self, client: DynamoDBClient, left: dict[LiveTable, float]) -> Iterator[str]:
        """The price of the rest of the tables, by DynamoDB's own count."""
        units = 0.0
        for table, share in left.items():
            units += share * table.read_units
            before = f", {1 - share:.0%} of it read before" if 0 < share < 1 else ""
            about = f"about {counted(table.items, 'item')} and {table.bytes / MEGABYTE:,.1f} MB"
            yield f"table {table.name}: {about if table.bytes else NOT_COUNTED}{before}"
        if not any(table.bytes for table in left):
            return
        parts = [f"about {units:,.0f} read units"]
        if aws.is_aws(client):
            parts.append(_money(client.meta.region_name, units))
        if self.rate:
            seconds = round(units / self.rate)
            parts.append(f"at least {duration(seconds * SECOND_MS)} at {self.rate:,.0f} read units a second")
        yield f"a scan takes {', '.join(filter(None, parts))}"

    def _scanning(
        self,
        at: Workspace,
        client: DynamoDBClient,
        stopping: Callable[[], bool] = lambda: False,
        on_page: Callable[[Progress], None] = lambda _progress: None,
    ) -> Scanning:
        return Scanning(
            client, at.scans, at.state, segments=opt.SEGMENTS, workers=opt.WORKERS, rate=Rate(self.rate),
            stopping=stopping, on_page=on_page,
        )  # fmt: skip

    def _scanned(self, at: Workspace, client: DynamoDBClient, tables: Sequence[LiveTable]) -> Gathered:
        meter = ReadingMeter(sum(table.items for table in tables))
        with (
            stop_signals() as stopping,
            displayed(make_console(stderr=True), "propose", meter.bar) as display,
        ):

            def on_page(progress: Progress) -> None:
                meter.items, meter.before, meter.units = progress.items, progress.before, progress.units
                display.update(lambda: meter)

            found = self._scanning(at, client, stopping, on_page).run(tables)
        if found is None:
            raise KeyboardInterrupt(f"interrupted after {counted(meter.items, 'item')}: {GOES_ON}")
        return Gathered(found)


class ReadingMeter:
    """The progress of a reading: items read, of about how many, the units they took, and the time left."""

    def __init__(self, of_items: int) -> None:
        self.items = self.before = 0
        self.units = 0.0
        self._of = of_items
        self._began = time.monotonic()

    def bar(self, _now: ReadingMeter) -> Bar:
        """The figures on one line."""
        of = self._of if self.items <= self._of else None  # else there are more than DynamoDB has counted
        figures = [f"{self.items:,}{f' of about {of:,}' if of else ''} items"]
        if self.units:
            figures.append(f"{self.units:,.0f} read units")
        if of:
            figures += time_left(self.items - self.before, of - self.before, self._began)
        return Bar("reading", self.items, of, " · ".join(figures))


def time_left(done: float, of: float, began: float) -> list[str]:
    """The time that is left, as a list of one text, or of none where nothing is done yet."""
    seconds = time.monotonic() - began
    return [f"{duration(round(seconds * (of - done) / done) * SECOND_MS)} left"] if done > 0 else []


def _read_before(scanning: Scanning, tables: Sequence[LiveTable]) -> Iterator[str]:
    for table in tables:
        if (begun := scanning.begun(table)) is not None:
            at = f"{begun.began.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            yield f"table {table.name}: read from {at} on, and kept; without the folder of --workspace it is read again"


def _money(region: str, units: float) -> str:
    prices = own_prices()
    if region not in prices.regions:
        return f"at prices that are not known for {region}"
    money = on_demand(prices.regions[region], units, 0)
    amount = f"{money:,.2f}" if money >= CENT else f"less than {CENT}"
    return f"{amount} {prices.currency} on demand in {region} (prices of {prices.date.isoformat()})"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
