"""A store in memory whose indexes lag, and whose items are small.

Invariant: a read is consistent, a page of an index is not. Each replica of an index takes over changes row by row, on
command.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from sync_rules.adapters.memory import MemoryStore, OnChange, RejectedError, SortedRows, Values
from sync_rules.model.entities import Index, Table
from sync_rules.model.items import ItemKey
from sync_rules.model.sizes import count_item_bytes
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import List, Page, Scan

REPLICAS: Final = 2
ITEM_MAX_BYTES: Final = 600  # of items with ballast, in place of 400 KB
BALLAST: Final = "ballast"


class Replica:
    """One copy of all indexes, and what it has not applied yet, item by item."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self.rows = {
            t.name: {index.name: SortedRows(index.partition, index.sort) for index in t.indexes} for t in tables
        }
        self.waiting: dict[tuple[str, str, Values], deque[tuple[int, Index, Item | None]]] = {}


class LaggingStore(MemoryStore):
    """A memory store with smaller items, whose indexes have replicas that catch up on command, item by item."""

    def __init__(self, tables: dict[str, Table], on_change: OnChange | None) -> None:
        super().__init__(tables, on_change)
        self.clock = 0
        self.lag = False
        self.left_out = 0  # how many items the next page holds less than it could
        self.replicas = [Replica(tables.values()) for _ in range(REPLICAS)]

    def propagate(self, table: str, index: Index, key: Values, item: Item | None) -> None:
        self.clock += 1
        for replica in self.replicas:
            replica.waiting.setdefault((table, index.name, key), deque()).append((self.clock, index, item))
        if not self.lag:
            self.catch_up()

    def apply_one(self, number: int, which: tuple[str, str, Values]) -> None:
        """One replica takes over the next version of one row."""
        replica = self.replicas[number]
        table, _, key = which
        _, index, item = replica.waiting[which].popleft()
        if not replica.waiting[which]:
            del replica.waiting[which]
        self._show(number, table)
        super().propagate(table, index, key, item)

    def catch_up(self) -> None:
        for number, replica in enumerate(self.replicas):
            for which in tuple(replica.waiting):
                while which in replica.waiting:
                    self.apply_one(number, which)

    def behind(self) -> list[tuple[int, tuple[str, str, Values]]]:
        """The rows that a replica could apply next: (replica, row)."""
        return [(number, which) for number, replica in enumerate(self.replicas) for which in replica.waiting]

    def caught_up(self, clock: int) -> bool:
        """True if every replica has applied all writes up to `clock`."""
        return all(rows[0][0] > clock for replica in self.replicas for rows in replica.waiting.values())

    def page_items(self, limit: int) -> int:
        return max(limit - self.left_out, 0)

    def list_from(self, number: int, request: List) -> Page:
        """A page, where an index is asked for from one of its replicas."""
        self._show(number, request.table)
        return self.list(request)

    def scan_of(self, request: Scan, items: Iterable[Item]) -> Page:
        """A page of a scan, as if these were all items of its table."""
        table = replace(self._find_table(request.table).table, indexes=())
        then = MemoryStore({table.name: table})
        for item in items:
            then.put(table.name, item)
        return then.scan(request)

    def _show(self, number: int, table: str) -> None:
        self._find_table(table).indexes = self.replicas[number].rows[table]

    def _check(self, key: ItemKey, item: Item) -> None:
        super()._check(key, item)
        if BALLAST in item and count_item_bytes(item) > ITEM_MAX_BYTES:
            raise RejectedError("ItemTooLarge")
