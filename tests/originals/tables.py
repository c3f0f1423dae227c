"""The tables of one run: in memory, with a stream, and a gate through which a function reads and writes them.

Invariant: both sides have the same tables, and their requests cost the same units. A function dies as a process does:
none of its code catches that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from random import Random
from typing import Any, TypeVar

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.meter import list_costs
from sync_rules.lab.delivery import InOrder, Shuffled
from sync_rules.lab.rehearsal import write
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.sizes import count_item_bytes, count_read_units
from sync_rules.model.values import Item
from sync_rules.model.writes import Delete, Put, Result, Write
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan
from sync_rules.rules.ruleset import Rules
from tests.support.worlds import event_of

T = TypeVar("T")
BATCH_MAX_RECORDS = 100
FIRST_POSITION = 99_990  # so that the width of sequence numbers grows within a history
CREATED_MS = 1_767_225_600_000


class Death(BaseException):
    """The function's process ends: no `except Exception` sees it."""


@dataclass
class Gate:
    """A store of a function. It counts units. Before or after write number `dies_at` it ends the function, once."""

    rules: Rules
    memory: MemoryStore
    dies_at: int | None = None
    dies_after: bool = False
    writes: int = 0
    write_units: int = 0
    read_units: float = 0

    def read(self, request: Read) -> tuple[Item | None, ...]:
        found = self.memory.read(Read(request.keys))
        self._count_reads([[item or {}] for item in found], consistent=True)
        return found

    def list(self, request: List) -> Page:
        page = self.memory.list(replace(request, attributes=None))  # whole items, whose sizes are the cost
        self._count_reads([page.items], consistent=request.index is None)
        return page

    def scan(self, request: Scan) -> Page:
        raise NotImplementedError("no function of these scans")

    def apply(self, request: Apply) -> tuple[Result, ...]:
        """Send writes with guards, one by one, as the pipeline does."""
        return tuple(self._send(one, partial(self.memory.apply, Apply((one,))))[0] for one in request.writes)

    def make_key(self, table: str, item: Item) -> ItemKey:
        key = self.rules.tables[table].key_of(item)
        assert key is not None, "DynamoDB refuses a key without one of its attributes"
        return key

    def write(self, action: Put | Delete) -> None:
        """Send a write without a guard."""
        self._send(action, partial(write, self.memory, action))

    def _send(self, action: Write, send: Callable[[], T]) -> T:
        dies = self.writes == self.dies_at
        if dies:
            self.dies_at = None
        if dies and not self.dies_after:
            raise Death
        self.writes += 1
        self.write_units += sum(
            one.item + one.indexes for one in list_costs(action, self.rules.tables, self.memory.item)
        )
        result = send()
        if dies:
            raise Death
        return result

    def _count_reads(self, pages: Iterable[Iterable[Item]], *, consistent: bool) -> None:
        self.read_units += sum(
            count_read_units(sum(map(count_item_bytes, page)), consistent=consistent) for page in pages
        )


@dataclass
class Streams:
    """The streams of all tables, as Lambda reads them: batches of records, those of one key in order."""

    rules: Rules
    shuffle: Random | None = None
    waiting: dict[str, InOrder | Shuffled] = field(default_factory=dict)
    positions: count[int] = field(default_factory=lambda: count(FIRST_POSITION))

    def note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        if key.table not in self.waiting:
            self.waiting[key.table] = InOrder() if self.shuffle is None else Shuffled(self.shuffle)
        self.waiting[key.table].put(Change(key, old, new, str(next(self.positions)), created_ms=CREATED_MS))

    def deliver(self, table: str, handle: Callable[[dict[str, Any]], object], times: int = 1) -> bool:
        """Hand a batch of a table's records over until the function returns, `times` times. False if none waits."""
        records = self.waiting[table].take(BATCH_MAX_RECORDS) if table in self.waiting else ()
        while records and times:
            try:
                failed = handle(event_of(self.rules, *records))
            except Death:
                continue  # Lambda delivers the batch again
            assert not isinstance(failed, dict) or not failed.get("batchItemFailures"), failed
            times -= 1
        return bool(records)
