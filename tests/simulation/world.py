"""The world outside the pipeline: a store whose indexes lag, streams, a queue, workers that can die, writes in flight.

Invariant: whatever AWS allows may happen here and nothing else: records of one item first arrive in order and never in
two invocations at once, everything may arrive again, a read is consistent, an index is not.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sync_rules.adapters.memory import MemoryStore, OnChange, RejectedError, SortedRows, Values
from sync_rules.model.entities import Index, Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.sizes import item_bytes
from sync_rules.model.values import Item
from sync_rules.model.writes import Result, Write
from sync_rules.pipeline.failure_records import failure_record
from sync_rules.pipeline.messages import Message, PartMessage, PullMessage, decode, encode
from sync_rules.pipeline.requests import Apply, List, Page, Scan
from sync_rules.rules.ruleset import Rules
from tests.simulation.application import ITEM_MAX_BYTES
from tests.simulation.facts import Configuration, Place
from tests.simulation.watch import Watch

REPLICAS = 2


def place_of(key: ItemKey) -> Place:
    return key.table, tuple(str(value) for _, _, value in key.values)


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

    def scan_of(self, request: Scan, items: Mapping[Place, Item]) -> Page:
        """A page of a scan, as if these were all items."""
        table = replace(self._stored(request.table).table, indexes=())
        then = MemoryStore({table.name: table})
        for place, item in items.items():
            if place[0] == table.name:
                then.put(table.name, item)
        return then.scan(request)

    def _show(self, number: int, table: str) -> None:
        self._stored(table).indexes = self.replicas[number].rows[table]

    def _check(self, key: ItemKey, item: Item) -> None:
        super()._check(key, item)
        if "ballast" in item and item_bytes(item) > ITEM_MAX_BYTES:
            raise RejectedError("ItemTooLarge")


# ---------------------------------------------------------------- streams
@dataclass
class Batch:
    """Records handed to one invocation. `first`: never finished before, so their items are held meanwhile."""

    changes: list[Change]
    first: bool = True


@dataclass
class Streams:
    """Records on their way: waiting in order for each item, held by an invocation, finished, or given up."""

    in_order: bool = True
    waiting: dict[Place, deque[Change]] = field(default_factory=dict)
    held: set[Place] = field(default_factory=set)
    finished: list[Batch] = field(default_factory=list)
    dead: list[Batch] = field(default_factory=list)

    def add(self, change: Change) -> None:
        self.waiting.setdefault(place_of(change.key), deque()).append(change)

    def ready(self) -> list[Place]:
        """Items with records that may be delivered, those with the oldest records first."""
        places = [place for place, records in self.waiting.items() if records and place not in self.held]
        return sorted(places, key=lambda place: int(self.waiting[place][0].position))

    def take(self, place: Place, count: int) -> list[Change]:
        """The next records of one item. Where order is not kept the item is not held."""
        records = self.waiting[place]
        if self.in_order:
            self.held.add(place)
        return [records.popleft() for _ in range(min(count, len(records)))]

    def release(self, batch: Batch, rest: list[Change]) -> None:
        """The invocation is over; what it did not finish comes again."""
        if not batch.first:
            if rest:
                self.dead.append(Batch(rest, first=False))
            return
        for change in reversed(rest):
            self.waiting[place_of(change.key)].appendleft(change)
        self.held -= {place_of(change.key) for change in batch.changes}

    def give_up(self, batch: Batch, rest: list[Change]) -> None:
        """Send a batch whose retries are used up to the failure destination, and release the records behind it."""
        self.release(batch, [])
        self.dead.append(Batch(rest, first=False))


# ---------------------------------------------------------------- the queue
@dataclass
class Note:
    """A message as text, not delivered before the indexes have caught up with `after`, nor before it is `due`.

    `attempt` is the number of times that its item was parked; `again`: it was delivered before, and not finished.
    """

    text: str
    after: int
    attempt: int = 0
    again: bool = False
    due: int = 0

    @property
    def parked(self) -> bool:
        return self.attempt > 0


def note_of(message: Message, after: int) -> Note:
    attempt = message.attempt if isinstance(message, PullMessage | PartMessage) else 0
    return Note(encode(message), after, attempt)


def place_of_note(note: Note) -> Place | None:
    """The target a parked message is about."""
    message = decode(note.text)
    return place_of(message.target) if isinstance(message, PullMessage | PartMessage) else None


def parked_part(note: Note) -> bool:
    """True for a message about a parked part."""
    return note.parked and isinstance(decode(note.text), PartMessage)


# ---------------------------------------------------------------- all of it
class World:
    """Everything outside the pipeline. Every change of an item is watched and leaves a record."""

    def __init__(self, configuration: Configuration, rules: Rules, watch: Watch) -> None:
        self.configuration, self.rules, self.watch = configuration, rules, watch
        self.streams = Streams(configuration.in_order)
        self.store = LaggingStore(dict(rules.tables), None)
        self.notes: list[Note] = []
        self.flying: list[Any] = []  # writes, and transactions, whose worker is gone, or gave up on them
        self.shelf: dict[str, str] | None = None  # what failed, for whoever puts it through again; None: nobody does
        self.put_aside_so_far = 0
        self.left: dict[Place, str] = {}  # what others than the handler failed to do, and why: nobody looks at it again
        self.hears: Callable[[Change], bool] = lambda _change: True  # whether a change leaves a record
        self.tokens: dict[str, str] = {}  # of transactions of applications: the request that had it first
        self.made: set[str] = set()  # tokens of those that were made
        self.writes = 0
        self.by_pipeline = False
        self.calm = False

    def load(self, items: Mapping[Place, Item], *, lag: bool) -> None:
        """Load the first items of a history, without records."""
        for place, item in items.items():
            self.store.put(place[0], item)
        self.store.on_change = self._changed
        self.store.lag = lag

    def _changed(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        self.watch.changed(place_of(key), old, new, by_pipeline=self.by_pipeline)
        self.record(Change(key, old, new, str(self.watch.clock), in_order=self.configuration.in_order))

    def record(self, change: Change) -> None:
        if self.hears(change):
            self.streams.add(change)
            self.watch.heard.setdefault(place_of(change.key), []).append((change.old, change.new))
            self.watch.unheard.discard(place_of(change.key))
        else:
            self.watch.unheard.add(place_of(change.key))

    def apply(self, write: Write) -> Result:
        """A write of the pipeline reaches the store."""
        self.writes += 1
        self.by_pipeline = True
        try:
            (result,) = self.store.apply(Apply((write,)))
            self.watch.written()
        finally:
            self.by_pipeline = False
        return result

    def holds(self, key: ItemKey, item: Item) -> bool:
        """True if a table can hold this item."""
        try:
            self.store._check(key, item)
        except RejectedError:
            return False
        return True

    def keep(self, failure: Failure, *, alone: bool) -> None:
        """Keep a failure record. `alone`: whoever parked the item does not look again."""
        if self.shelf is not None and failure.key is not None:
            self.put_aside(json.dumps(failure_record(failure, datetime.fromtimestamp(0, UTC))))
            self.left |= {place_of(failure.key): failure.reason} if alone else {}

    def put_aside(self, text: str) -> None:
        """Something that failed goes onto the shelf."""
        assert self.shelf is not None, "there is one where somebody will look"
        self.put_aside_so_far += 1
        self.shelf[f"{self.put_aside_so_far}"] = text

    def operate(self, place: Place, new: Item | None) -> None:
        """A write of an application; one that does not fit is refused, and nothing happens."""
        if new is not None:
            with suppress(StoreError):
                self.store.put(place[0], new)
            return
        keys = zip(self.rules.tables[place[0]].key, place[1], strict=True)
        self.store.delete(
            ItemKey(place[0], tuple((attribute.name, attribute.type, value) for attribute, value in keys))
        )
