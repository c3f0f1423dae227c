"""A store that counts the read and write units of its requests, and asks a rate and a budget before it writes.

Backfill, plan, and tables with a limit use it. The cost of a write follows from its item as last seen and from its
indexes. Without a limit the store reads nothing for that, and an unseen item counts as new. With a limit it first reads
all unseen items of a request, except totals, which are small. A write fails if its item cannot be read.

Invariant: the store forgets its items with each page, batch or message. Within one it remembers a bounded number of
items: the first ones, which are the page itself, and the last ones.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock, local
from typing import Final

from sync_rules.adapters.budget import Budget, Costs
from sync_rules.model.entities import Index, Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.semantics import apply_action, is_same_item, list_actions
from sync_rules.model.sizes import (
    TRANSACTION_TIMES,
    count_index_write_units,
    count_item_bytes,
    count_read_units,
    count_write_units,
)
from sync_rules.model.values import Item, is_same_value
from sync_rules.model.writes import Action, Increment, Result, Status, Transaction, Write
from sync_rules.pipeline.requests import NOT_SENT, Apply, List, Page, Read, Remembering, Scan, Store

FIRST_SEEN_MAX_ITEMS: Final = 1_000  # room for a page and a round of a push
LAST_SEEN_MAX_ITEMS: Final = 4_000  # both sides of a round of parts, twice
AT_ONCE_MAX_UNITS: Final = 100.0  # write units of the writes sent together


# ---------------------------------------------------------------- units
@dataclass(frozen=True, slots=True)
class Cost:
    """The write units of an action: of its item, doubled in a transaction, and of the indexes that show it."""

    action: Action
    item: int
    indexes: int


def list_costs(write: Write, tables: Mapping[str, Table], seen: Callable[[ItemKey], Item | None]) -> Iterator[Cost]:
    """List the cost of each action of a write, given the items as `seen` returns them (None: unseen or missing)."""
    times = TRANSACTION_TIMES if isinstance(write, Transaction) else 1
    for action in list_actions(write):
        table, before = tables[action.key.table], seen(action.key)
        now = apply_action(action, before)
        indexes = sum(count_index_units(table, index, before, now) for index in table.indexes)
        yield Cost(action, times * count_base_units(before, now), indexes)


def count_base_units(before: Item | None, now: Item | None) -> int:
    """Count the write units of one changed item, without its indexes."""
    return count_write_units(max(count_item_bytes(before or {}), count_item_bytes(now or {})))


def count_index_units(table: Table, index: Index, before: Item | None, now: Item | None) -> int:
    """Count the write units of one index when an item changes."""
    old, new = _make_row(table, index, before), _make_row(table, index, now)
    moved = False
    if old is not None and new is not None:
        if is_same_item(old, new):
            return 0
        moved = any(not is_same_value(old[a.name], new[a.name]) for a in index.attributes)
    return count_index_write_units(*(None if row is None else count_item_bytes(row) for row in (old, new)), moved=moved)


def _make_row(table: Table, index: Index, item: Item | None) -> Item | None:
    """The row of an item in an index; None when an attribute of its key is missing."""
    if item is None or any(attribute.name not in item for attribute in index.attributes):
        return None
    return table.row(index, item)


# ---------------------------------------------------------------- the store
class SeenItems:
    """The items that a piece of work has seen, by key: a bounded number of the first, and of the last."""

    def __init__(self) -> None:
        self._first: dict[object, Item | None] = {}
        self._last: OrderedDict[object, Item | None] = OrderedDict()

    def clear(self) -> None:
        self._first.clear()
        self._last.clear()

    def note(self, name: object, item: Item | None) -> None:
        if name in self._first or (name not in self._last and len(self._first) < FIRST_SEEN_MAX_ITEMS):
            self._first[name] = item
            return
        self._last[name] = item
        self._last.move_to_end(name)
        if len(self._last) > LAST_SEEN_MAX_ITEMS:
            self._last.popitem(last=False)

    def __contains__(self, name: object) -> bool:
        return name in self._first or name in self._last

    def get(self, name: object) -> Item | None:
        """Return an item as last seen. None if it is unknown, or was seen to be missing."""
        return self._first[name] if name in self._first else self._last.get(name)


class MeteredStore(Remembering):
    """A store that counts the units of the store behind it. Threads may share its reads, but only one thread may write.

    `before_write`, given for a rate, is called with the write units of each group of writes, and `budget` with their
    costs. Each may wait; if one returns False, there is no time for these writes. `reads` and `writes` are the units
    spent so far, by table.
    """

    def __init__(
        self,
        inner: Store,
        tables: Mapping[str, Table],
        before_write: Callable[[float], object] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.reads: defaultdict[str, float] = defaultdict(float)
        self.writes: Counter[str] = Counter()
        self._inner = inner
        self._tables = tables
        self._before_write = before_write
        self._budget = budget
        self._at_once = AT_ONCE_MAX_UNITS if budget is None else min(AT_ONCE_MAX_UNITS, budget.at_once_max_units)
        self.seen = SeenItems()
        self._lock = Lock()

    def forget(self) -> None:
        """Forget the seen items, at the start of a batch or message. A scan does so by itself."""
        self.seen.clear()

    def read(self, request: Read) -> tuple[Item | None, ...]:
        items = self._inner.read(Read(request.keys))  # whole items, whose sizes are the cost
        with self._lock:
            for key, item in dict(zip(request.keys, items, strict=True)).items():
                self._count(key.table, count_read_units(count_item_bytes(item or {}), consistent=True))
                self.seen.note(key, item)
        return items

    def list(self, request: List) -> Page:
        page = self._inner.list(replace(request, attributes=None))
        with self._lock:
            self._page(request.table, page.items, consistent=request.index is None)
            if request.index is None:
                self._see(request.table, page.items)
        return page

    def scan(self, request: Scan) -> Page:
        page = self._inner.scan(request)
        self.forget()
        self._page(request.table, page.items, consistent=request.consistent)
        self._see(request.table, page.items)
        return page

    def apply(self, request: Apply) -> tuple[Result, ...]:
        """Send the writes a few at a time, within the limits. Many large writes must not go out at one moment."""
        unread = self._read_unseen_items(request.writes)
        writes = [write for place, write in enumerate(request.writes) if place not in unread]
        results: list[Result] = []
        while len(results) < len(writes):
            results += self._apply_some(writes[len(results) :])
        rest = iter(results)
        return tuple(unread.get(place) or next(rest) for place in range(len(request.writes)))

    def _read_unseen_items(self, writes: Sequence[Write]) -> dict[int, Result]:
        """Read the unseen items of limited writes. Returns the results of those that this failed, by position."""
        unseen = {
            place: [action.key for action in list_actions(write) if self._must_read(action)]
            for place, write in enumerate(writes)
        }
        keys = tuple(dict.fromkeys(key for some in unseen.values() for key in some))
        try:
            if keys:
                self.read(Read(keys))
        except StoreError as error:
            return {place: Result(Status.FAILED, reason=str(error)) for place, some in unseen.items() if some}
        return {}

    def _must_read(self, action: Action) -> bool:
        """True if the item must be read to know the cost. A total is only a few numbers, and the pipeline's own."""
        key = action.key
        if key in self.seen or isinstance(action, Increment):
            return False
        return self._before_write is not None or (self._budget is not None and self._budget.watches(key.table))

    def _apply_some(self, writes: Sequence[Write]) -> tuple[Result, ...]:
        """Send the first of these writes, at least one, up to the units that may go out together."""
        spent = Costs()
        some: list[Write] = []
        for write in writes:
            costs = self.costs(write)
            if some and spent.units + costs.units > self._at_once:
                break
            spent.add(costs)
            some.append(write)
        in_time = self._before_write is None or self._before_write(float(spent.units)) is not False
        if not in_time or not (self._budget is None or self._budget.take(spent)):
            return (NOT_SENT,) * len(some)
        self.writes.update(spent.tables)
        results = self._inner.apply(Apply(tuple(some)))
        for write, result in zip(some, results, strict=True):
            if result.status is Status.WRITTEN:
                for action in list_actions(write):
                    self.seen.note(action.key, apply_action(action, self.seen.get(action.key)))
        return results

    def costs(self, write: Write) -> Costs:
        """Compute the write units of one write, by its items as last seen."""
        costs = Costs()
        for cost in list_costs(write, self._tables, self.seen.get):
            key = cost.action.key
            costs.tables[key.table] += cost.item + cost.indexes
            costs.partitions[key.table, *key.values[0]] += cost.item
        return costs

    def _see(self, table: str, items: Iterable[Item]) -> None:
        for item in items:
            key = self._tables[table].key_of(item)
            if key is not None:
                self.seen.note(key, item)

    def _page(self, table: str, items: Iterable[Item], *, consistent: bool) -> None:
        self._count(table, count_read_units(sum(map(count_item_bytes, items)), consistent=consistent))

    def _count(self, table: str, units: float) -> None:
        self.reads[table] += units


class BudgetedStore(local, MeteredStore):
    """A MeteredStore that several threads may use: each has its own, and its own memory of what it read."""


def limit_store(store: Store, tables: Mapping[str, Table], budget: Budget | None = None) -> Store:
    """Return a store that keeps this store within the limits of its tables; the store itself if no table has a limit.
    Without `budget`, this process is the only writer.
    """
    budget = budget or Budget(tables)
    return BudgetedStore(store, tables, budget=budget) if budget.limits else store
