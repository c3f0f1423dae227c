"""A store that counts what its requests cost, and asks before it writes. For backfill and plan.

Law: nothing is read to find out what a write costs: its target was read just before. What was seen is remembered until
the next page, and of that a bounded number: the first, which are the page itself, and the last. An item that was seen
and forgotten within a page is taken to be new.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sync_rules.attributes import Item
from sync_rules.backfilling.units import action_units, after, base_units, read_units
from sync_rules.entities import Table
from sync_rules.model import ItemKey, Result, Status, Transaction, Write
from sync_rules.sizes import item_bytes
from sync_rules.store import Apply, List, Page, Read, Scan, Store

FIRST_SEEN_MAX_ITEMS: Final = 1_000  # a page and a round of a push fit in
AT_ONCE_MAX_UNITS: Final = 100.0  # write units of the writes sent together
OUT_OF_TIME: Final = Result(Status.FAILED, reason="OutOfTime")
LAST_SEEN_MAX_ITEMS: Final = 4_000  # both sides of a round of parts, twice


class MeteredStore:
    """A store in front of another one. Not for several threads: each has its own.

    `before_write` is called with the write units of the writes about to be made together: it may wait, and where it
    gives False there is no time for them. `reads` and `writes` are the units spent so far, by table.
    """

    def __init__(
        self, inner: Store, tables: Mapping[str, Table], before_write: Callable[[float], object] = lambda _units: None
    ) -> None:
        self.reads: defaultdict[str, float] = defaultdict(float)
        self.writes: Counter[str] = Counter()
        self._inner = inner
        self._tables = tables
        self._before_write = before_write
        self._first: dict[ItemKey, Item | None] = {}
        self._last: OrderedDict[ItemKey, Item | None] = OrderedDict()

    def forget(self) -> None:
        """A new page begins: nothing that was seen is needed any more. A scan does so by itself."""
        self._first.clear()
        self._last.clear()

    def read(self, request: Read) -> tuple[Item | None, ...]:
        items = self._inner.read(Read(request.keys))  # whole: what a write costs is for the whole item
        for key, item in dict(zip(request.keys, items, strict=True)).items():
            self._count(key.table, read_units(item_bytes(item or {}), consistent=True))
            self._note(key, item)
        return items

    def list(self, request: List) -> Page:
        page = self._inner.list(replace(request, attributes=None) if request.index is None else request)
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
        """Writes go out as they are paid for, some at a time, so that many large ones are not made at one moment."""
        results: list[Result] = []
        while len(results) < len(request.writes):
            results += self._apply_some(request.writes[len(results) :])
        return tuple(results)

    def _apply_some(self, writes: Sequence[Write]) -> tuple[Result, ...]:
        """The first of these writes: as many as cost little enough, one at least."""
        spent: Counter[str] = Counter()
        some: list[Write] = []
        for write in writes:
            costs = self.cost(write)
            if some and spent.total() + costs.total() > AT_ONCE_MAX_UNITS:
                break
            spent.update(costs)
            some.append(write)
        if self._before_write(float(spent.total())) is False:
            return (OUT_OF_TIME,) * len(some)
        self.writes.update(spent)
        results = self._inner.apply(Apply(tuple(some)))
        for write, result in zip(some, results, strict=True):
            if result.status is Status.WRITTEN:
                for action in write.actions if isinstance(write, Transaction) else (write,):
                    self._note(action.key, after(action, self.seen(action.key)))
        return results

    def cost(self, write: Write) -> Counter[str]:
        """The write units of one write, by table, judged by what was last seen of its items."""
        costs: Counter[str] = Counter()
        for action in write.actions if isinstance(write, Transaction) else (write,):
            before = self.seen(action.key)
            now = after(action, before)
            costs[action.key.table] += action_units(self._tables[action.key.table], before, now)
            if isinstance(write, Transaction):
                costs[action.key.table] += base_units(before, now)
        return costs

    def seen(self, key: ItemKey) -> Item | None:
        """What was last seen of an item."""
        return self._first[key] if key in self._first else self._last.get(key)

    def _see(self, table: str, items: Iterable[Item]) -> None:
        for item in items:
            key = self._tables[table].key_of(item)
            if key is not None:
                self._note(key, item)

    def _note(self, key: ItemKey, item: Item | None) -> None:
        if key in self._first or (key not in self._last and len(self._first) < FIRST_SEEN_MAX_ITEMS):
            self._first[key] = item
            return
        self._last[key] = item
        self._last.move_to_end(key)
        if len(self._last) > LAST_SEEN_MAX_ITEMS:
            self._last.popitem(last=False)

    def _page(self, table: str, items: Iterable[Item], *, consistent: bool) -> None:
        self._count(table, read_units(sum(map(item_bytes, items)), consistent=consistent))

    def _count(self, table: str, units: float) -> None:
        self.reads[table] += units
