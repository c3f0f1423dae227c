"""A store that writes nothing: it answers each write as the store behind it would, and reports its cost.

Invariant: work on it equals work on the real store. Each write is tried on a copy of its items, so the same writes are
refused or rejected. Items that later work of the plan reads again are kept, and shown in reads, lists and scans. All
others are forgotten with their page. The price: indexes show writes at once, and writes of other programs are not seen.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.meter import Cost, SeenItems, list_costs
from sync_rules.jobs.dryrun.overlay import Overlay
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.semantics import list_actions, make_place
from sync_rules.model.sizes import READ_UNIT_BYTES, count_item_bytes, count_read_units
from sync_rules.model.values import Item
from sync_rules.model.writes import Check, Result, Status, Write
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store
from sync_rules.rules.families import PartRule
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import WHOLE, Share, cascade

ADDED: Final = "sync-rules/added"  # in a cursor: the number of the last item that only the dry run has


@dataclass(frozen=True, slots=True)
class TriedWrite:
    """A write, its answer, its cost (the same for every answer), and its items before and after it."""

    write: Write
    status: Status
    costs: tuple[Cost, ...]
    before: Mapping[ItemKey, Item | None]
    after: Mapping[ItemKey, Item | None]


class _Seen(threading.local):
    """The items that a thread has written and seen since it began its page. Those it forgot are read again."""

    def __init__(self) -> None:
        self.turn_to(None)

    def turn_to(self, request: Scan | None) -> None:
        self.request = request
        self.written: dict[object, Item | None] = {}
        self.items = SeenItems()


@dataclass(eq=False)
class DryStore:
    """A store in front of another store, for the rules in `names`. Several threads may use it. `on_write` is called
    with each write. `reads` are the units spent on answers, by table. A scan over a share counts bytes, because
    rounding would distort its small pages. Items that only the dry run has come last in the first segment.
    """

    inner: Store
    rules: Rules
    names: frozenset[str]
    on_write: Callable[[TriedWrite], object] = lambda _tried: None
    share: Share = WHOLE

    def __post_init__(self) -> None:
        self.reads: defaultdict[str, float] = defaultdict(float)
        self.overlay = Overlay(self.rules.tables)
        self._kept = find_rechecked_entities(self.rules, self.names)
        self._seen = _Seen()
        self._lock = threading.Lock()

    # ------------------------------------------------------------ reads
    def read(self, request: Read) -> tuple[Item | None, ...]:
        found = self._read_through(request.keys, self._find_written_items(request.keys))
        for key, item in found.items():
            self._meter(key.table, [item or {}], consistent=True)
            self._seen.items.note(make_place(key), item)
        return tuple(found[key] for key in request.keys)

    def _read_through(
        self, keys: tuple[ItemKey, ...], known: Mapping[ItemKey, Item | None]
    ) -> dict[ItemKey, Item | None]:
        """The items of these keys: those that are known, and the others from the store behind, in one request."""
        unknown = tuple(dict.fromkeys(key for key in keys if key not in known))
        return {**known, **(dict(zip(unknown, self.inner.read(Read(unknown)), strict=True)) if unknown else {})}

    def list(self, request: List) -> Page:
        page = self._merge_page(request)
        self._meter(request.table, page.items, consistent=request.index is None)
        if request.index is None:
            self._note(request.table, page.items)
        return page

    def _merge_page(self, request: List) -> Page:
        """Return a page of the real store, with the items that the dry run wrote in their place."""
        page = self.inner.list(request)
        kept = self.overlay.list_items(request.table, request.index, request.conditions.equals)
        rows = self._drop_kept_rows(request.table, page.items)
        if not kept and len(rows) == len(page.items):
            return page
        cursor = page.cursor
        while cursor is not None and len(rows) < request.limit:
            page = self.inner.list(replace(request, cursor=cursor))
            rows += self._drop_kept_rows(request.table, page.items)
            cursor = page.cursor
        both = MemoryStore({request.table: self.rules.tables[request.table]})
        for row in (*rows, *kept):
            both.put(request.table, row)
        return both.list(request)

    def _drop_kept_rows(self, table: str, rows: Iterable[Item]) -> tuple[Item, ...]:
        keyed = self._pair_with_keys(table, rows)
        kept = self.overlay.find(key for key, _ in keyed)
        return tuple(row for key, row in keyed if key not in kept)

    def scan(self, request: Scan) -> Page:
        """Return a page. A page that is scanned again shows the dry run's writes, so no item is written twice."""
        if request != self._seen.request:
            self._seen.turn_to(request)
        page = self._scan_behind(request) if ADDED not in (request.cursor or {}) else Page(())
        first = self.share.numbers[0] if request.total_segments == self.share.segments else 0
        if page.cursor is None and request.segment == first:
            page = self._append_added_items(request, page.items)
        self._meter(request.table, page.items, consistent=request.consistent, rounded=not self.share.is_sample)
        self._note(request.table, page.items)
        return page

    def _scan_behind(self, request: Scan) -> Page:
        """The store's page, each item as it is now."""
        page = self.inner.scan(request)
        keyed = self._pair_with_keys(request.table, page.items)
        known = self._find_written_items(key for key, _ in keyed)
        items = (known.get(key, item) for key, item in keyed)
        return Page(tuple(item for item in items if item is not None), page.cursor)

    def _append_added_items(self, request: Scan, items: tuple[Item, ...]) -> Page:
        last = int((request.cursor or {}).get(ADDED, {"N": "0"})["N"])
        room = request.limit - len(items)
        added = self.overlay.list_added_items(request.table, last, room + 1)
        shown = added[:room]
        last = shown[-1][0] if shown else last
        cursor = {ADDED: {"N": str(last)}} if len(added) > room else None
        return Page((*items, *(item for _, item in shown)), cursor)

    # ------------------------------------------------------------ writes
    def apply(self, request: Apply) -> tuple[Result, ...]:
        try:
            seen = self._look(action.key for write in request.writes for action in list_actions(write))
        except StoreError as error:
            return (Result(Status.FAILED, reason=error.reason),) * len(request.writes)
        return tuple(self._try(write, seen) for write in request.writes)

    def _look(self, keys: Iterable[ItemKey]) -> dict[ItemKey, Item | None]:
        """The items to be written. Some, such as totals, are written unread: reading them here is not counted, since a
        backfill does not.
        """
        wanted, items = tuple(keys), self._seen.items
        seen = {key: items.get(make_place(key)) for key in wanted if make_place(key) in items}
        return self._read_through(wanted, seen | self._find_written_items(wanted))

    def _try(self, write: Write, seen: Mapping[ItemKey, Item | None]) -> Result:
        actions = list_actions(write)
        with self._lock:  # no other thread's write comes in between
            images = {action.key: seen[action.key] for action in actions}
            images |= self.overlay.find(images)
            scratch = MemoryStore(self.rules.tables)
            result = _try_write(scratch, images, write)
            if result.status is Status.WRITTEN:
                for action in actions:
                    if not isinstance(action, Check):
                        self._take(action.key, images[action.key], scratch.item(action.key))
            costs = tuple(list_costs(write, self.rules.tables, images.__getitem__))
            after = {key: scratch.item(key) for key in images}
            self.on_write(TriedWrite(write, result.status, costs, images, after))
        return result

    def _take(self, key: ItemKey, before: Item | None, now: Item | None) -> None:
        """Keep what was written: until the end of the page, or for good if it will be looked at again."""
        self._seen.written[make_place(key)] = now
        entity = self.rules.entity_of(key)
        if entity is None or entity.name in self._kept:
            self.overlay.put(key, now, added=before is None)

    # ------------------------------------------------------------ helpers
    def _find_written_items(self, keys: Iterable[ItemKey]) -> dict[ItemKey, Item | None]:
        """Return the items of these keys that the dry run wrote: the real store has old images."""
        keys = tuple(keys)
        written = {key: self._seen.written[make_place(key)] for key in keys if make_place(key) in self._seen.written}
        return written | self.overlay.find(keys)

    def _pair_with_keys(self, table: str, items: Iterable[Item]) -> tuple[tuple[ItemKey, Item], ...]:
        of = self.rules.tables[table]
        return tuple((key, item) for item in items if (key := of.key_of(item)) is not None)

    def _note(self, table: str, items: Iterable[Item]) -> None:
        for key, item in self._pair_with_keys(table, items):
            self._seen.items.note(make_place(key), item)

    def _meter(self, table: str, items: Iterable[Item], *, consistent: bool, rounded: bool = True) -> None:
        size_bytes = sum(map(count_item_bytes, items))
        units = count_read_units(size_bytes, consistent=consistent) if rounded else size_bytes / READ_UNIT_BYTES
        with self._lock:
            self.reads[table] += units


def find_rechecked_entities(rules: Rules, names: frozenset[str]) -> frozenset[str]:
    """Return the names of entities whose items are read again after a rule in `names` wrote them. The later reader is
    another rule, or the same rule in a later round. Each part is read from both its sides.
    """
    again: set[str] = set()
    later: set[str] = set()
    for step in reversed([*cascade(rules, names)]):
        looked_at: set[str] = set()
        for rule in (rules.rules[name] for name in step.names):
            written = {node.writes[0].name for node in rule.nodes()}
            rounds = step.max_rounds > 1 or isinstance(rule, PartRule)
            again |= written if rounds else written & later
            again |= {
                one.name for one in rule.owned_entities if one not in (rule.source, rule.target)
            }  # marks of books
            looked_at |= {rule.source.name, rule.target.name} | written
        later |= looked_at
    return frozenset(again)


def _try_write(scratch: MemoryStore, images: Mapping[ItemKey, Item | None], write: Write) -> Result:
    """Apply a write to these items in `scratch`. Returns its result; REJECTED if the items themselves are invalid."""
    try:
        for key, image in images.items():
            if image is not None:
                scratch.put(key.table, image)
    except StoreError as error:
        return Result(Status.REJECTED, reason=error.reason)
    return scratch.apply(Apply((write,)))[0]
