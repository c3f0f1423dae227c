"""A store in dictionaries, with DynamoDB's semantics: for the simulator, for tests, for users' own scenarios.

Invariant: it answers as DynamoDB does (one contract suite runs on both), deterministically and at once. Items are
values: a write replaces an item and never changes it, so an image stays as it was. One difference remains: numbers keep
their spelling ("1.0"), where DynamoDB drops the zeros. They are compared and sorted by value; only a key template that
makes text of a number attribute shows the difference.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice

from sync_rules.model.entities import Index, KeyAttribute, Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.semantics import (
    InvalidUpdateError,
    apply_update,
    holds,
    is_same_item,
    is_storable,
    is_well_formed,
    list_key_values,
    make_comparable,
    make_identity,
    make_item,
    make_place,
)
from sync_rules.model.sizes import describe_impossible, find_max_bytes, is_possible_key
from sync_rules.model.templates import is_possible
from sync_rules.model.values import AttributeValue, Item, Names, Path, is_same_value
from sync_rules.model.writes import (
    WRITTEN,
    Action,
    Check,
    Increment,
    Result,
    Status,
    Transaction,
    Update,
    Write,
)
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan

Values = tuple[str | bytes | Decimal, ...]
Pairs = Iterable[tuple[Path, AttributeValue]]
OnChange = Callable[[ItemKey, Item | None, Item | None], None]
TRANSACTION_MAX_ACTIONS = 100  # quota of TransactWriteItems


@dataclass
class SortedRows:
    """Items sorted by a key: each partition is a sorted list of (sort key values, then primary key values)."""

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]
    items: dict[Values, Item] = field(default_factory=dict)
    places: dict[Values, tuple[Values, Values]] = field(default_factory=dict)
    partitions: dict[Values, list[Values]] = field(default_factory=dict)

    def put(self, key: Values, item: Item | None) -> None:
        """Replace the item of a primary key. An item that lacks an attribute of these keys has no row."""
        place = None if item is None else self._place(key, item)
        before = self.places.get(key)
        if place != before:
            self._move(key, before, place)
        if item is None or place is None:
            self.items.pop(key, None)
        else:
            self.items[key] = item

    def copy(self) -> SortedRows:
        """Return the same rows. Items are values, so both share them."""
        partitions = {partition: list(ranks) for partition, ranks in self.partitions.items()}
        return SortedRows(self.partition, self.sort, dict(self.items), dict(self.places), partitions)

    def _place(self, key: Values, item: Item) -> tuple[Values, Values] | None:
        partition, sort = list_key_values(item, self.partition), list_key_values(item, self.sort)
        return None if partition is None or sort is None else (partition, sort + key)

    def _move(self, key: Values, before: tuple[Values, Values] | None, after: tuple[Values, Values] | None) -> None:
        if before is not None:
            ranks = self.partitions[before[0]]
            del ranks[bisect_left(ranks, before[1])]
            if not ranks:
                del self.partitions[before[0]]
            del self.places[key]
        if after is not None:
            insort(self.partitions.setdefault(after[0], []), after[1])
            self.places[key] = after

    def query(self, conditions: KeyConditions, cursor: Values | None, *, backward: bool = False) -> Iterator[Item]:
        """Return the rows that meet the conditions, in order or backward, after the cursor."""
        given = {name: make_comparable(*next(iter(value.items()))) for name, value in conditions.equals}
        ranks = self.partitions.get(tuple(given.pop(attribute.name) for attribute in self.partition), [])
        prefix: Values = tuple(given[attribute.name] for attribute in self.sort[: len(given)])
        width = len(prefix)
        if conditions.begins_with is None:
            start, end = bisect_left(ranks, prefix), bisect_right(ranks, prefix, key=lambda rank: rank[:width])
        else:
            begins = conditions.begins_with[1]
            beginning = (*prefix, begins)
            start = bisect_left(ranks, beginning)
            end = bisect_right(ranks, beginning, key=lambda r: (*r[:width], str(r[width])[: len(begins)]))
        if cursor is not None and backward:
            end = min(end, bisect_left(ranks, cursor))
        elif cursor is not None:
            start = max(start, bisect_right(ranks, cursor))
        places = range(end - 1, start - 1, -1) if backward else range(start, end)
        return (self.items[ranks[place][len(self.sort) :]] for place in places)


class RejectedError(Exception):
    """A write that can never succeed. Its only argument is the reason."""


@dataclass
class StoredTable:
    """One table: its items by primary key, its indexes, and the order of a scan, made for the first one."""

    table: Table
    rows: SortedRows
    indexes: dict[str, SortedRows]
    order: list[tuple[int, Values]] | None = None


class MemoryStore:
    """Every table of the rules, in memory. `on_change` is called for each stream record: key, old image, new image."""

    def __init__(self, tables: Mapping[str, Table], on_change: OnChange | None = None) -> None:
        self.on_change = on_change
        self._tables = {
            name: StoredTable(
                table,
                SortedRows((table.partition,), () if table.sort is None else (table.sort,)),
                {index.name: SortedRows(index.partition, index.sort) for index in table.indexes},
            )
            for name, table in tables.items()
        }

    def copy(self) -> MemoryStore:
        """Return another store with the same items. It reports no changes."""
        other = MemoryStore({name: stored.table for name, stored in self._tables.items()})
        for name, stored in self._tables.items():
            indexes = {index: rows.copy() for index, rows in stored.indexes.items()}
            other._tables[name] = StoredTable(stored.table, stored.rows.copy(), indexes, stored.order)
        return other

    # ------------------------------------------------------------ requests of the pipeline
    def read(self, request: Read) -> tuple[Item | None, ...]:
        found = [self.item(key) for key in request.keys]
        if not all(item is not None or is_possible_key(key) for key, item in zip(request.keys, found, strict=True)):
            raise StoreError(
                "ValidationException", "no item can have this key: a value is empty, too long or out of range"
            )
        tables = dict.fromkeys(key.table for key in request.keys)  # attributes may be said of others
        wanted = {table: self._add_key_names(table, request.attributes.get(table)) for table in tables}
        return tuple(
            select_attributes(item, wanted.get(key.table)) for key, item in zip(request.keys, found, strict=True)
        )

    def list(self, request: List) -> Page:
        stored = self._find_table(request.table)
        rows = stored.rows if request.index is None else stored.indexes.get(request.index)
        if rows is None:
            raise StoreError("IndexNotFound", f"table {request.table} has no index {request.index}")
        if not all(
            is_possible(value, find_max_bytes(name, rows.partition)) for name, value in request.conditions.equals
        ):
            raise StoreError("ValidationException", f"a key of table {request.table} that no item can have")
        names = dict.fromkeys((*rows.partition, *rows.sort, *stored.table.key))
        place = None if request.cursor is None else rows.sort + stored.table.key
        cursor = None if place is None else list_key_values(request.cursor or {}, place)
        page = self._page(rows.query(request.conditions, cursor, backward=request.backward), request, names)
        wanted = self._add_key_names(request.table, request.attributes)
        items = (select_attributes(item, wanted) for item in page.items)
        return Page(tuple(item for item in items if item is not None), page.cursor)

    def _add_key_names(self, table: str, attributes: Names) -> Names:
        """The requested attributes and those of the key; None: all."""
        key = self._find_table(table).table.key
        return None if attributes is None else attributes.union(attribute.name for attribute in key)

    def scan(self, request: Scan) -> Page:
        stored = self._find_table(request.table)
        if stored.order is None:
            stored.order = sorted((_compute_position(key[0]), key) for key in stored.rows.items)
        start = 0
        if request.cursor is not None:
            key = list_key_values(request.cursor, stored.table.key) or ()
            start = bisect_right(stored.order, (_compute_position(key[0]), key))
        found = (
            stored.rows.items[key]
            for place, key in islice(stored.order, start, None)
            if place % request.total_segments == request.segment
        )
        return self._page(found, request, stored.table.key)

    def page_items(self, limit: int) -> int:
        """Return the most items for the next page of a List or Scan: the limit of the request.

        Override it to end pages early, as DynamoDB does after 1 MB: with fewer items or none, and a cursor.
        """
        return limit

    def _page(self, found: Iterator[Item], request: List | Scan, names: Iterable[KeyAttribute]) -> Page:
        """A full page has a cursor even when nothing follows, as in DynamoDB."""
        room = max(self.page_items(request.limit), 1 if request.cursor is None else 0)
        items = tuple(islice(found, room))
        if len(items) < room:
            return Page(items)
        cursor = {attribute.name: items[-1][attribute.name] for attribute in names} if items else request.cursor
        return Page(items, cursor)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        return tuple(self._write(write) for write in request.writes)

    # ------------------------------------------------------------ writes of an application
    def item(self, key: ItemKey) -> Item | None:
        return self._find_table(key.table).rows.items.get(make_identity(key))

    def items(self, table: str) -> tuple[Item, ...]:
        """Return all items of a table, in the order of the first write of each key."""
        return tuple(self._find_table(table).rows.items.values())

    def put(self, table: str, item: Item) -> ItemKey:
        """Put a whole item. Raises StoreError when DynamoDB would reject it."""
        stored = self._find_table(table)
        key = stored.table.key_of(item)
        if key is None:
            raise StoreError("ValidationException", f"the item lacks a key attribute of table {table}")
        if not all(map(is_storable, item.values())):
            raise StoreError("ValidationException", f"a value that no item of table {table} can hold")
        self._store_or_raise(key, item)
        return key

    def hold(self, key: ItemKey, item: Item) -> None:
        """Store an item of another table as it is, without checks and without a stream record."""
        stored, place = self._find_table(key.table), make_identity(key)
        stored.order = None
        stored.rows.put(place, item)
        for index in stored.table.indexes:
            self.propagate(key.table, index, place, item)

    def update(
        self, key: ItemKey, sets: Pairs = (), removes: Iterable[Path] = (), adds: Pairs = (), discards: Pairs = ()
    ) -> None:
        """Update without a condition. Like UpdateItem, it creates a missing item."""
        change = Update(key, tuple(sets), tuple(removes), (), tuple(adds), tuple(discards))
        if not is_well_formed(change):
            raise StoreError("ValidationException", "two paths overlap, or a value cannot be stored")
        try:
            new = apply_update(self.item(key) or key.attributes(), change)
        except InvalidUpdateError as error:
            raise StoreError("ValidationException", str(error)) from error
        self._store_or_raise(key, new)

    def delete(self, key: ItemKey) -> None:
        self._store(key, None)

    def propagate(self, table: str, index: Index, key: Values, item: Item | None) -> None:
        """Update one row of an index from its item (None: deleted). Called by every write.

        Override it to make indexes lag: keep the arguments and call this later, in order for each key.
        """
        stored = self._find_table(table)
        stored.indexes[index.name].put(key, None if item is None else stored.table.row(index, item))

    # ------------------------------------------------------------ guarded writes
    def _write(self, write: Write) -> Result:
        actions: tuple[Action, ...] = write.actions if isinstance(write, Transaction) else (write,)
        if not _is_valid(actions):  # checked before any guard
            return Result(Status.REJECTED, reason="ValidationException")
        try:
            items = [self.item(action.key) for action in actions]
        except StoreError as error:
            return Result(Status.FAILED, reason=error.reason)
        assert all(action.guard or isinstance(action, Increment) for action in actions), "every write has a guard"
        refused = {i for i, action in enumerate(actions) if not holds(action.guard, items[i])}
        if refused:
            target = len(actions) - 1
            return Result(Status.REFUSED, items[target] if target in refused else None, frozenset(refused))
        try:
            news = [self._new(action, item) for action, item in zip(actions, items, strict=True)]
        except RejectedError as error:
            return Result(Status.REJECTED, reason=str(error))
        for action, new in zip(actions, news, strict=True):
            self._store(action.key, new)
        return WRITTEN

    def _new(self, action: Action, item: Item | None) -> Item | None:
        """The item after an action, checked as DynamoDB does."""
        try:
            new = make_item(action, item)
        except InvalidUpdateError as error:
            raise RejectedError("ValidationException") from error
        if new is not None and not isinstance(action, Check):
            self._check(action.key, new)
        return new

    def _check(self, key: ItemKey, item: Item) -> None:
        table = self._find_table(key.table).table
        for name, kind, value in key.values:
            if not is_same_value(item.get(name), {kind: value}):
                raise RejectedError("ValidationException")  # a key cannot change
        if not is_possible_key(key):
            raise RejectedError("ValidationException")  # empty or too long
        if reason := describe_impossible(table, item):
            raise RejectedError(reason)

    def _store_or_raise(self, key: ItemKey, item: Item) -> None:
        try:
            self._check(key, item)
        except RejectedError as error:
            raise StoreError(str(error)) from error
        self._store(key, item)

    def _store(self, key: ItemKey, item: Item | None) -> None:
        stored, place = self._find_table(key.table), make_identity(key)
        old = stored.rows.items.get(place)
        if is_same_item(old, item):
            return  # a write that changes nothing leaves no stream record
        if (old is None) != (item is None):
            stored.order = None
        stored.rows.put(place, item)
        for index in stored.table.indexes:
            self.propagate(key.table, index, place, item)
        if self.on_change is not None:
            self.on_change(key, old, item)

    def _find_table(self, table: str) -> StoredTable:
        stored = self._tables.get(table)
        if stored is None:
            raise StoreError("TableNotFound", f"table {table}")
        return stored


def select_attributes(item: Item | None, names: Names) -> Item | None:
    """Return the item with these attributes only; None means all attributes."""
    return item if item is None or names is None else {name: value for name, value in item.items() if name in names}


def _is_valid(actions: Sequence[Action]) -> bool:
    """Check that there are not too many actions, each is valid, and no item is named twice."""
    keys = [action.key for action in actions]
    places = {make_place(key) for key in keys if is_possible_key(key)}
    return len(places) == len(keys) <= TRANSACTION_MAX_ACTIONS and all(map(is_well_formed, actions))


def _compute_position(partition: str | bytes | Decimal) -> int:
    """The position of a partition in a scan; not `hash`, which differs from run to run."""
    if isinstance(partition, Decimal):
        partition = str(partition.normalize())
    return zlib.crc32(partition if isinstance(partition, bytes) else partition.encode())
