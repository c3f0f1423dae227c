"""Live tables read into files: parallel scans at a limited rate, which can stop at any moment and resume.

Invariant: a file is written as a whole, and noted afterwards. A stopped or killed scan resumes after its last noted
file, and reads no noted page twice. The files are like the data files of an export, and hold the items as read:
eventually consistent, at half the price. Only the owner may read the folder.
"""

from __future__ import annotations

import gzip
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from sync_rules.adapters import retries
from sync_rules.adapters.budget import Rate
from sync_rules.adapters.dynamodb import CURES
from sync_rules.adapters.files import open_whole
from sync_rules.adapters.state import State
from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.extras.discover.imports.live_tables import describe_table
from sync_rules.extras.discover.propose.table_files import GatheredTable
from sync_rules.jobs.backfill.page import Segment
from sync_rules.jobs.backfill.throttle import Crew, make_slowing_sleep
from sync_rules.model import json_bytes
from sync_rules.model.entities import check_table_name, parse_address
from sync_rules.model.errors import UserError
from sync_rules.model.sizes import READ_UNIT_BYTES, count_read_units

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

FILE_BYTES: Final = 16 << 20  # of lines, before they are compressed: what a kill loses of a segment
PAGE_MAX_ITEMS: Final = 100_000  # a page has 1 MB at most
GZIP_LEVEL: Final = 1


@dataclass(frozen=True)
class LiveTable:
    """A table to scan, by its given name or ARN. `identity` tells it from another table of its name. `items` and
    `bytes` are DynamoDB's count, up to six hours old.
    """

    name: str
    found: FoundTable
    identity: str
    items: int
    bytes: int

    @property
    def read_units(self) -> float:
        """The units that one scan takes, by that count."""
        return count_read_units(self.bytes, consistent=False)

    @property
    def folder(self) -> str:
        """The name of a folder of its own."""
        return f"{parse_address(self.name).name}-{sha256(self.identity.encode()).hexdigest()[:12]}"


def describe_tables(client: DynamoDBClient, names: Sequence[str]) -> tuple[LiveTable, ...]:
    """Return the tables of these names or ARNs.

    Raises:
        UserError: if a table does not exist.
        StoreError: if DynamoDB refuses to describe a table.
    """
    made = []
    for name in dict.fromkeys(names):
        if check_table_name(name):
            raise UserError(check_table_name(name))
        found, answer = describe_table(client, name)
        identity = f"{answer.get('TableArn', name)} {answer.get('TableId', '')}".rstrip()
        count = answer.get("ItemCount", 0), answer.get("TableSizeBytes", 0)
        made.append(LiveTable(name, found, identity, *count))
    return tuple(made)


# ---------------------------------------------------------------- what was read
@dataclass(frozen=True)
class SegmentProgress:
    """The progress of a segment: the key to resume after, its files and their items, and the units spent."""

    cursor: Mapping[str, Any] | None = None
    done: bool = False
    files: int = 0
    items: int = 0
    units: float = 0.0


@dataclass(frozen=True)
class ReadingProgress:
    """The progress of a reading, by DynamoDB's count of items. `before`: the items that an earlier run had read."""

    items: int
    of_items: int
    units: float = 0.0
    before: int = 0


@dataclass(frozen=True)
class TableScan:
    """The scan of one table in a workspace: when it began, and its segments."""

    table: LiveTable
    began: datetime
    segments: tuple[Segment, ...]


@dataclass(eq=False)
class Scanning:
    """The scans of some tables into a folder, with their progress in a state: what is there is not read again.

    Each new scan has `segments`, and `workers` of them run at a time. `rate` limits read units a second. `on_page`
    is called with the progress after each page, by one thread at a time.
    """

    client: DynamoDBClient
    folder: Path
    state: State
    _: KW_ONLY
    segments: int = 1
    workers: int = 1
    rate: Rate = field(default_factory=lambda: Rate(0))
    stopping: Callable[[], bool] = lambda: False
    on_page: Callable[[ReadingProgress], None] = lambda _progress: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._crew = Crew(self.workers, self.stopping)
        self._retrying = retries.make_retry(sleep=make_slowing_sleep(self.rate))
        self._sum = [0, 0.0]
        self._before = self._of = 0

    def load_scan(self, table: LiveTable) -> TableScan | None:
        """Return the unfinished or finished scan of a table, or None if none began."""
        head = self.state.load(table.folder)
        if head is None:
            return None
        return _scan(table, datetime.fromisoformat(head["began"]), head["segments"])

    def estimate_remaining_share(self, table: LiveTable) -> float:
        """The share of a table that is still to be read, by segments and items."""
        scan = self.load_scan(table)
        if scan is None:
            return 1.0
        found = [self._load(scan, segment) for segment in scan.segments]
        if all(one.done for one in found):
            return 0.0
        read = sum(one.items for one in found)
        return max(0.0, 1 - read / table.items) if table.items else 1.0

    def run(self, tables: Sequence[LiveTable]) -> tuple[GatheredTable, ...] | None:
        """Read what is not there yet. Return None if it was stopped before the end. Raises StoreError and UserError."""
        scans = [self.load_scan(table) or self._begin(table) for table in tables]
        work = [(scan, segment, self._load(scan, segment)) for scan in scans for segment in scan.segments]
        self._before = sum(read.items for _, _, read in work)
        self._sum = [self._before, sum(read.units for _, _, read in work)]
        self._of = sum(table.items for table in tables)
        done = self._crew.run(lambda one: self._run_one(*one), work)
        return tuple(self._gather_table(scan) for scan in scans) if done else None

    # ------------------------------------------------------------ one segment
    def _run_one(self, scan: TableScan, segment: Segment, read: SegmentProgress) -> bool:
        """Read a segment to its end. Says whether it came there."""
        while not read.done and not self._crew.is_halted():
            read = self._read_next_file(scan, segment, read)
        return read.done

    def _read_next_file(self, scan: TableScan, segment: Segment, read: SegmentProgress) -> SegmentProgress:
        """Read pages until a file is full, the segment ends or it is time to stop, and write them. A read that fails
        leaves what was read before it in a file.
        """
        lines: list[bytes] = []
        size, units, cursor, done = 0, read.units, read.cursor, False
        failed: Exception | None = None
        while not done and size < FILE_BYTES and not self._crew.is_halted():
            try:
                page = self._page(scan.table, segment, cursor)
            except Exception as error:  # noqa: BLE001 - raised below
                failed = error
                break
            made = [_format_line(item) for item in page["Items"]]
            lines += made
            spent = _read_units(page, made)
            size, units = size + sum(map(len, made)), units + spent
            cursor = page.get("LastEvaluatedKey") or None
            done = cursor is None
            self._count(len(made), spent)
            self.rate.take(spent)
        if lines or done:
            read = self._write_lines(scan, segment, SegmentProgress(cursor, done, read.files, read.items, units), lines)
        if failed is not None:
            raise failed
        return read

    def _page(self, table: LiveTable, segment: Segment, cursor: Mapping[str, Any] | None) -> Any:
        request: dict[str, Any] = {
            "TableName": table.name,
            "Segment": segment.number,
            "TotalSegments": segment.total,
            "Limit": self._page_items(table),
            "ReturnConsumedCapacity": "TOTAL",
        }
        if cursor is not None:
            request["ExclusiveStartKey"] = cursor
        where = f"dynamodb:Scan of {table.name}"
        return retries.ask(self._retrying, where, self.client.scan, CURES, **request)

    def _page_items(self, table: LiveTable) -> int:
        """The items of a page that takes no more than the rate allows in a second."""
        if not self.rate.ceiling or not table.items:
            return PAGE_MAX_ITEMS
        item_bytes = max(1.0, table.bytes / table.items)
        allowed = self.rate.ceiling * READ_UNIT_BYTES * 2 / item_bytes
        return max(1, min(PAGE_MAX_ITEMS, int(allowed)))

    def _write_lines(
        self, scan: TableScan, segment: Segment, read: SegmentProgress, lines: Sequence[bytes]
    ) -> SegmentProgress:
        """Write lines as the next file, and note it."""
        if lines:
            path = self._locate_file(scan, segment, read.files)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_whole(path) as file, gzip.GzipFile(fileobj=file, mode="wb", compresslevel=GZIP_LEVEL) as out:
                out.writelines(lines)
            read = SegmentProgress(read.cursor, read.done, read.files + 1, read.items + len(lines), read.units)
        self.state.save(_format_document_name(scan, segment), vars(read))
        return read

    # ------------------------------------------------------------ the workspace
    def _begin(self, table: LiveTable) -> TableScan:
        shutil.rmtree(self.folder / table.folder, ignore_errors=True)
        scan = _scan(table, self.now(), self.segments)
        self.state.save(table.folder, {"began": scan.began.isoformat(), "segments": self.segments})
        return scan

    def _load(self, scan: TableScan, segment: Segment) -> SegmentProgress:
        found = self.state.load(_format_document_name(scan, segment))
        return SegmentProgress() if found is None else SegmentProgress(**found)

    def _locate_file(self, scan: TableScan, segment: Segment, number: int) -> Path:
        return self.folder / scan.table.folder / f"{segment.number:05}-{number:05}.json.gz"

    def _gather_table(self, scan: TableScan) -> GatheredTable:
        read = [(segment, self._load(scan, segment)) for segment in scan.segments]
        paths = tuple(self._locate_file(scan, segment, number) for segment, one in read for number in range(one.files))
        gone = next((path for path in paths if not path.exists()), None)
        if gone is not None:
            raise UserError(
                f"{gone}: expected a file of an earlier run, found none. Delete the folder of --workspace first"
            )
        items, size = sum(one.items for _, one in read), sum(path.stat().st_size for path in paths)
        return GatheredTable(scan.table.found, paths, items, size)

    def _count(self, items: int, units: float) -> None:
        with self._lock:
            self._sum[0] += items
            self._sum[1] += units
            self.on_page(ReadingProgress(int(self._sum[0]), self._of, self._sum[1], self._before))


def _scan(table: LiveTable, began: datetime, total: int) -> TableScan:
    return TableScan(table, began.astimezone(UTC), tuple(Segment(table.name, number, total) for number in range(total)))


def _format_document_name(scan: TableScan, segment: Segment) -> str:
    return f"{scan.table.folder}/{segment.number}"


def _format_line(item: Mapping[str, Any]) -> bytes:
    return f"{json_bytes.format_compact_json({'Item': item}, default=json_bytes.encode_base64)}\n".encode()


def _read_units(page: Mapping[str, Any], lines: Sequence[bytes]) -> float:
    """The units that a page took, as the service says, else by its length."""
    said = (page.get("ConsumedCapacity") or {}).get("CapacityUnits")
    return float(said) if said is not None else math.ceil(sum(map(len, lines)) / READ_UNIT_BYTES) / 2
