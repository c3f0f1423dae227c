"""The collection of items for `propose`: their cost, the question before it, and the progress.

Invariant: a table on AWS is read only after the user agreed to the cost. A collection reads nothing that an earlier run
has read, and says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from sync_rules.adapters import aws
from sync_rules.adapters.budget import Rate
from sync_rules.cli import options as opt
from sync_rules.cli.confirmation import confirm
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.display import open_display
from sync_rules.cli.show.text import format_count, format_duration
from sync_rules.cli.signals import stop_signals
from sync_rules.extras.discover.propose.export_tables import NamedExport, Reading
from sync_rules.extras.discover.propose.item_sources import Given, Workspace, collect_exports, gather_exports
from sync_rules.extras.discover.propose.table_files import Gathered
from sync_rules.extras.discover.propose.table_scans import LiveTable, ReadingProgress, Scanning, describe_tables
from sync_rules.jobs.dryrun.money import compute_on_demand_price
from sync_rules.jobs.dryrun.prices import read_own_prices
from sync_rules.jobs.export_files import find_doubt, find_shelf
from sync_rules.model.errors import UserError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CENT: Final = Decimal("0.01")
MEGABYTE: Final = 1_000_000
SECOND_MS: Final = 1_000
NOT_COUNTED: Final = "DynamoDB has not counted it yet, so what a scan costs is not known"
GOES_ON: Final = (
    "what was read is kept, and the same command goes on; without the folder of --workspace it reads all again"
)


@contextmanager
def _display() -> Iterator[tuple[Callable[[], bool], Callable[[ReadingProgress], None]]]:
    """Show the progress of a reading. Gives a test for the signal to stop, and the update of the display."""
    began = time.monotonic()

    def line(now: ReadingProgress) -> str:
        of = now.of_items if now.items <= now.of_items else None  # else there are more than DynamoDB has counted
        figures = [f"{now.items:,}{f' of about {of:,}' if of else ''} items"]
        if now.units:
            figures.append(f"{now.units:,.0f} read units")
        if of:
            figures += format_remaining_time(now.items - now.before, of - now.before, began)
        return " · ".join(["reading", *figures])

    with stop_signals() as stopping, open_display(make_console(stderr=True), line) as display:
        yield stopping, lambda now: display.update(lambda: now)


@dataclass(frozen=True, kw_only=True)
class ItemCollection:
    """The tables and exports to read, and how. `rate`: maximum read units a second."""

    tables: Sequence[str]
    exports: Sequence[str]
    keys: Sequence[str]
    endpoint_url: str | None
    region: str | None
    rate: float
    yes: bool

    @property
    def description(self) -> str:
        """The source in words."""
        if self.exports:
            return f"{'an export' if len(self.exports) == 1 else 'exports'} in {', '.join(self.exports)}"
        return f"{'table' if len(self.tables) == 1 else 'tables'} {', '.join(self.tables)}"

    def gather(self, at: Workspace) -> Gathered | None:
        """Read the items. Return None if the user does not agree to the cost.

        Raises:
            KeyboardInterrupt: if the user stopped it. Items that were read are kept.
            UserError: if a table or an export is invalid.
            StoreError: if DynamoDB or S3 refuses a read.
        """
        client = aws.dynamodb(self.endpoint_url, self.region) if self.tables else None
        described = describe_tables(client, self.tables) if client is not None else ()
        if self.exports or client is None:
            return self._gather_exports(at, Given(described, self.keys))
        return self._gather_tables(at, client, described)

    # ------------------------------------------------------------ exports
    def _gather_exports(self, at: Workspace, given: Given) -> Gathered:
        places = {place: find_shelf(place, self.endpoint_url, self.region) for place in self.exports}
        exports = collect_exports(places, given)
        doubts = self._doubt_filters(exports)
        read, of_items = 0, sum(one.files.items or 0 for one in exports)
        with _display() as (stopping, show):

            def on_items(items: int) -> None:
                nonlocal read
                read += items
                show(ReadingProgress(read, of_items))

            try:
                found = gather_exports(exports, given, Reading(at.exports, opt.WORKERS, on_items, stopping))
            except KeyboardInterrupt:
                raise KeyboardInterrupt("interrupted: the same command begins again, with what was fetched") from None
        for table in found.tables:
            table.found.checks += doubts.get(table.found.called, ())
        return found

    def _doubt_filters(self, exports: Sequence[NamedExport]) -> dict[str, list[str]]:
        """Ask the account whether exports have a filter, if an account is named. Returns the doubts by table.

        Raises:
            UserError: when an export was made with a filter.
        """
        if not (
            self.tables or self.region or self.endpoint_url or any(one.startswith("s3://") for one in self.exports)
        ):
            return {}
        client, doubts = aws.dynamodb(self.endpoint_url, self.region), dict[str, list[str]]()
        for one in exports:
            doubt = find_doubt(client, one.files.arn) if one.files.arn else ""
            if "made with a filter" in doubt:
                raise UserError(f"{one.files.place}: the export of {one.table} lacks items: {doubt}")
            doubts[one.table] = [f"its export may have a filter: {doubt}"] if doubt else []
        return doubts

    # ------------------------------------------------------------ live tables
    def _gather_tables(self, at: Workspace, client: DynamoDBClient, tables: Sequence[LiveTable]) -> Gathered | None:
        scanning = self._open_scans(at, client, lambda: False, lambda _progress: None)
        for line in _read_before(scanning, tables):
            _tell(line)
        left = {table: scanning.estimate_remaining_share(table) for table in tables}
        if any(left.values()):
            for line in self._list_costs(client, left):
                _tell(line)
            if aws.is_aws(client) and not confirm("Read them?", yes=self.yes):
                return None
        return self._scan(at, client, tables)

    def _list_costs(self, client: DynamoDBClient, left: dict[LiveTable, float]) -> Iterator[str]:
        """The price of the rest of the tables, by DynamoDB's own count."""
        units = 0.0
        for table, share in left.items():
            units += share * table.read_units
            before = f", {1 - share:.0%} of it read before" if 0 < share < 1 else ""
            about = f"about {format_count(table.items, 'item')} and {table.bytes / MEGABYTE:,.1f} MB"
            yield f"table {table.name}: {about if table.bytes else NOT_COUNTED}{before}"
        if not any(table.bytes for table in left):
            return
        parts = [f"about {units:,.0f} read units"]
        if aws.is_aws(client):
            parts.append(_format_money(client.meta.region_name, units))
        if self.rate:
            seconds = round(units / self.rate)
            parts.append(f"at least {format_duration(seconds * SECOND_MS)} at {self.rate:,.0f} read units a second")
        yield f"a scan takes {', '.join(filter(None, parts))}"

    def _open_scans(
        self,
        at: Workspace,
        client: DynamoDBClient,
        stopping: Callable[[], bool],
        on_page: Callable[[ReadingProgress], None],
    ) -> Scanning:
        return Scanning(
            client, at.scans, at.state, segments=opt.SEGMENTS, workers=opt.WORKERS, rate=Rate(self.rate),
            stopping=stopping, on_page=on_page,
        )  # fmt: skip

    def _scan(self, at: Workspace, client: DynamoDBClient, tables: Sequence[LiveTable]) -> Gathered:
        read = 0
        with _display() as (stopping, show):

            def on_page(now: ReadingProgress) -> None:
                nonlocal read
                read = now.items
                show(now)

            found = self._open_scans(at, client, stopping, on_page).run(tables)
        if found is None:
            raise KeyboardInterrupt(f"interrupted after {format_count(read, 'item')}: {GOES_ON}")
        return Gathered(found)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def format_remaining_time(done: float, of: float, began: float) -> list[str]:
    """Return the remaining time as a list of one text; an empty list before the first progress."""
    seconds = time.monotonic() - began
    return [f"{format_duration(round(seconds * (of - done) / done) * SECOND_MS)} left"] if done > 0 else []


def _read_before(scanning: Scanning, tables: Sequence[LiveTable]) -> Iterator[str]:
    for table in tables:
        if (begun := scanning.load_scan(table)) is not None:
            at = f"{begun.began.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            yield f"table {table.name}: read from {at} on, and kept; without the folder of --workspace it is read again"


def _format_money(region: str, units: float) -> str:
    prices = read_own_prices()
    if region not in prices.regions:
        return f"at prices that are not known for {region}"
    money = compute_on_demand_price(prices.regions[region], units, 0)
    amount = f"{money:,.2f}" if money >= CENT else f"less than {CENT}"
    return f"{amount} {prices.currency} on demand in {region} (prices of {prices.date.isoformat()})"
