"""A store that counts what its requests cost, and asks before it writes. For backfill and plan.

Law: nothing is read to find out what a write costs: its target was read just before. What was seen is remembered until
the next page of a scan, so memory is bounded by what one page leads to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from sync_rules.attributes import Item
from sync_rules.entities import Table
from sync_rules.model import ItemKey, Result, Status, Transaction, Write
from sync_rules.sizes import item_bytes
from sync_rules.store import Apply, List, Page, Read, Scan, Store
from sync_rules.units import action_units, after, base_units, read_units


class MeteredStore:
    """A store in front of another one. Not for several threads: each has its own.

    `before_write` is called with the write units of each write, before it is made: it may wait. `reads` and `writes`
    are the units spent so far, by table.
    """

    def __init__(
        self, inner: Store, tables: Mapping[str, Table], before_write: Callable[[float], None] = lambda _units: None
    ) -> None:
        self.reads: defaultdict[str, float] = defaultdict(float)
        self.writes: Counter[str] = Counter()
        self._inner = inner
        self._tables = tables
        self._before_write = before_write
        self._seen: dict[ItemKey, Item | None] = {}

    def read(self, request: Read) -> tuple[Item | None, ...]:
        items = self._inner.read(request)
        for key, item in dict(zip(request.keys, items, strict=True)).items():
            self._count(key.table, read_units(item_bytes(item or {}), consistent=True))
            self._seen[key] = item
        return items

    def list(self, request: List) -> Page:
        page = self._inner.list(request)
        self._page(request.table, page.items, consistent=request.index is None)
        if request.index is None:
            self._see(request.table, page.items)
        return page

    def scan(self, request: Scan) -> Page:
        page = self._inner.scan(request)
        self._seen.clear()
        self._page(request.table, page.items, consistent=request.consistent)
        self._see(request.table, page.items)
        return page

    def apply(self, request: Apply) -> tuple[Result, ...]:
        for write in request.writes:
            costs = self.cost(write)
            self._before_write(costs.total())
            self.writes.update(costs)
        results = self._inner.apply(request)
        for write, result in zip(request.writes, results, strict=True):
            if result.status is Status.WRITTEN:
                for action in write.actions if isinstance(write, Transaction) else (write,):
                    self._seen[action.key] = after(action, self._seen.get(action.key))
        return results

    def cost(self, write: Write) -> Counter[str]:
        """The write units of one write, by table, judged by what was last seen of its items."""
        costs: Counter[str] = Counter()
        for action in write.actions if isinstance(write, Transaction) else (write,):
            before = self._seen.get(action.key)
            now = after(action, before)
            costs[action.key.table] += action_units(self._tables[action.key.table], before, now)
            if isinstance(write, Transaction):
                costs[action.key.table] += base_units(before, now)
        return costs

    def seen(self, key: ItemKey) -> Item | None:
        """What was last seen of an item."""
        return self._seen.get(key)

    def _see(self, table: str, items: Iterable[Item]) -> None:
        for item in items:
            key = self._tables[table].key_of(item)
            if key is not None:
                self._seen[key] = item

    def _page(self, table: str, items: Iterable[Item], *, consistent: bool) -> None:
        self._count(table, read_units(sum(map(item_bytes, items)), consistent=consistent))

    def _count(self, table: str, units: float) -> None:
        self.reads[table] += units
