"""Bulk loads (StartBulkPutItems) of tables: those that may have put items since a backfill.

Invariant: if a client cannot list bulk loads, for whatever reason, the caller gets the reason as a sentence, not an
error.

https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListBulkOperations.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from sync_rules.adapters import aws, retries
from sync_rules.model.entities import Table, parse_address
from sync_rules.model.errors import StoreError

PAGE_MAX_LOADS: Final = 25  # of one ListBulkOperations
CALLS: Final = "dynamodb:ListBulkOperations and dynamodb:DescribeBulkOperation"


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """A bulk load of a table: its status, its start, and its end (None while it runs)."""

    table: Table
    status: str
    start: datetime
    end: datetime | None

    def describe(self, since: datetime) -> str:
        """Return a sentence: this load may have put items that the backfill of `since` did not read."""
        moment = (
            f"runs since {_format_moment(self.start)}" if self.end is None else f"ended at {_format_moment(self.end)}"
        )
        then = f"and the last backfill of all rules began at {_format_moment(since)}"
        return f"table {self.table.physical_name}: a bulk load {moment} ({self.status}), {then}"


def list_bulk_loads(client: Any, tables: Iterable[Table], since: datetime) -> tuple[tuple[BulkLoad, ...], str]:
    """List the bulk loads of these tables that run, or ended after `since`. The second value is "", or the reason why
    the loads are unknown. An emulator has no bulk loads.
    """
    if not aws.is_aws(client):
        return (), ""
    if not hasattr(client, "list_bulk_operations"):
        return (), f"botocore {version('botocore')} cannot list bulk loads: upgrade boto3"
    try:
        return tuple(_list_loads(client, tuple(tables), since)), ""
    except StoreError as error:
        denied = error.reason.startswith("AccessDenied")
        return (), f"allow {CALLS} for your credentials" if denied else f"{error.reason}: run it again later"


def _list_loads(client: Any, tables: Sequence[Table], since: datetime) -> Iterator[BulkLoad]:
    for one in _list_summaries(client):
        start, end = one["StartTime"], one.get("EndTime")
        if end is not None and end < since:
            continue
        answer = _ask(client.describe_bulk_operation, BulkOperationArn=one["BulkOperationArn"])
        for detail in (answer.get("BulkOperationDescription") or {}).get("TableDetails", ()):
            place = parse_address(detail.get("TableName", ""))
            here = (table for table in tables if table.address.may_be(place))
            yield from (BulkLoad(table, one["BulkOperationStatus"], start, end) for table in here)


def _format_moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _list_summaries(client: Any) -> Iterator[dict[str, Any]]:
    """The bulk loads of the account and Region that started within 90 days."""
    page: dict[str, Any] = {"NextToken": None}
    while "NextToken" in page:
        more = {"NextToken": page["NextToken"]} if page["NextToken"] else {}
        page = _ask(client.list_bulk_operations, MaxResults=PAGE_MAX_LOADS, **more)
        yield from page.get("BulkOperationsSummaryList", ())


def _ask(call: Any, **parameters: Any) -> dict[str, Any]:
    answer: dict[str, Any] = retries.ask(retries.make_retry(first=True), "bulk loads", call, **parameters)
    return answer
