"""The world a scenario plays in: tables, an application's writes, and the records of their streams.

Invariant: a change reaches the runner only as a record of a Lambda event, whoever made it. The store of the pipeline is
metered: it counts writes, and can die in the middle of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.memory import MemoryStore
from sync_rules.jobs.consume.queue import LocalQueue
from sync_rules.jobs.streams import PAGE_MAX_RECORDS, DynamoDBStreams, make_event_record
from sync_rules.model.entities import Table
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import WRITTEN, Action, Check, Result, Status, Transaction, Update, Write
from sync_rules.pipeline import messages
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store
from sync_rules.rules.ruleset import Rules
from tests.peers.builder import Target, helps
from tests.support.compiled import rules_of
from tests.support.engines import create, unique_prefix

State = Mapping[ItemKey, Item]
Record = dict[str, Any]
STREAM_ARN: Final = "arn:aws:dynamodb:us-east-1:000000000000:table/{}/stream/2026-01-01T00:00:00.000"
FIRST_SEQUENCE_NUMBER: Final = 99_999_999_999_999_999_990  # their width grows within a scenario
CREATED_SECONDS: Final = 1_767_225_600


class Bench(Protocol):
    """Tables of one run."""

    rules: Rules
    store: Store

    def put(self, table: Table, item: Item) -> None: ...
    def delete(self, key: ItemKey) -> None: ...

    def records(self) -> list[tuple[str, Record]]:
        """The stream records since the last call, each with its table, in order."""
        ...


MakeBench = Callable[[str], Bench]  # given the text of a rules file


class MemoryBench:
    """Tables in memory."""

    def __init__(self, text: str) -> None:
        self.rules = rules_of(text, {"PEER_PREFIX": "peer-"})
        self._records: list[tuple[str, Record]] = []
        self._numbers = itertools.count(FIRST_SEQUENCE_NUMBER)
        self._memory = MemoryStore(self.rules.tables, self._on_change)
        self.store: Store = self._memory

    def put(self, table: Table, item: Item) -> None:
        self._memory.put(table.name, item)

    def delete(self, key: ItemKey) -> None:
        self._memory.delete(key)

    def records(self) -> list[tuple[str, Record]]:
        taken, self._records = self._records, []
        return taken

    def _on_change(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        table = self.rules.tables[key.table]
        if table not in self.rules.streamed_tables:
            return
        number = next(self._numbers)
        name = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
        change: dict[str, Any] = {
            "Keys": key.attributes(),
            "SequenceNumber": str(number),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
        change |= {"ApproximateCreationDateTime": CREATED_SECONDS, "SizeBytes": 1}
        change |= {image: item for image, item in (("OldImage", old), ("NewImage", new)) if item is not None}
        record = {"eventID": f"{number:x}", "eventName": name, "eventVersion": "1.1", "dynamodb": change}
        self._records.append((key.table, make_event_record(record, STREAM_ARN.format(table.physical_name))))


class EngineBench:
    """Tables of one run's own on an engine, and their streams as the engine gives them."""

    def __init__(self, text: str, endpoint_url: str) -> None:
        self.rules = rules_of(text, {"PEER_PREFIX": unique_prefix()})
        self._client = aws.dynamodb(endpoint_url)
        create(endpoint_url, self.rules.tables)
        self._touched: set[str] = set()  # tables that were written since their stream was last read
        self.store: Store = Noting(DynamoStore(self._client, self.rules.tables), self._touched)
        self._reader = DynamoDBStreams(aws.dynamodbstreams(endpoint_url))
        names = {table.name: table.physical_name for table in self.rules.streamed_tables}
        describe = self._client.describe_table
        self._arns = {t: describe(TableName=name)["Table"]["LatestStreamArn"] for t, name in names.items()}
        self._iterators: dict[tuple[str, str], str | None] = {}

    def put(self, table: Table, item: Item) -> None:
        self._touched.add(table.name)
        self._client.put_item(TableName=table.physical_name, Item=item)

    def delete(self, key: ItemKey) -> None:
        self._touched.add(key.table)
        self._client.delete_item(TableName=self.rules.tables[key.table].physical_name, Key=key.attributes())

    def records(self) -> list[tuple[str, Record]]:
        looked_at = [table for table in self._arns if table in self._touched]
        self._touched.clear()
        return [(table, record) for table in looked_at for record in self._new(self._arns[table])]

    def _new(self, arn: str) -> Iterator[Record]:
        for shard in self._reader.shards(arn):
            place = (arn, shard.shard_id)
            if place not in self._iterators:
                self._iterators[place] = self._reader.iterator(arn, shard.shard_id, None)
            iterator = self._iterators[place]
            while iterator is not None:
                page = self._reader.records(arn, iterator, PAGE_MAX_RECORDS)
                iterator = self._iterators[place] = page.iterator
                yield from map(dict, page.records)
                if not page.records:
                    break


@dataclass
class Passing:
    """A store before another one, which reads as that one does."""

    store: Store

    def read(self, request: Read) -> tuple[Item | None, ...]:
        return self.store.read(request)

    def list(self, request: List) -> Page:
        return self.store.list(request)

    def scan(self, request: Scan) -> Page:
        return self.store.scan(request)


@dataclass
class Noting(Passing):
    """A store that notes the tables to which it may have written."""

    touched: set[str]

    def apply(self, request: Apply) -> tuple[Result, ...]:
        for write in request.writes:
            self.touched.update(action.key.table for action in actions_of(write))
        return self.store.apply(request)


class DiedError(Exception):
    """The function died in the middle of its writes."""


@dataclass
class Meter(Passing):
    """A store that counts the writes made through it. `dies_after` that many more, it raises DiedError, once.

    A write of nothing but helpers is bookkeeping, of the translation or the pipeline, and counted apart.
    """

    helpers: frozenset[Target]
    writes: int = 0
    bookkeeping: int = 0
    dies_after: int | None = None

    def apply(self, request: Apply) -> tuple[Result, ...]:
        return tuple(self._write(write) for write in request.writes)  # one by one, to die between two of them

    def _write(self, write: Write) -> Result:
        if self.dies_after == 0:
            self.dies_after = None
            raise DiedError
        result = self._send(write)
        if result.status is Status.WRITTEN:
            if is_bookkeeping(write, self.helpers):
                self.bookkeeping += 1
            else:
                self.writes += 1
            self.dies_after = None if self.dies_after is None else self.dies_after - 1
        return result

    def _send(self, write: Write) -> Result:
        return self.store.apply(Apply((write,)))[0]


class DryMeter(Meter):
    """Counts the writes that would be made, and makes none."""

    def _send(self, write: Write) -> Result:
        return WRITTEN


def is_bookkeeping(write: Write, helpers: frozenset[Target]) -> bool:
    """True if a write changes helpers only; the checks of a transaction are not counted."""
    return all(_is_helper(action, helpers) for action in actions_of(write) if not isinstance(action, Check))


def actions_of(write: Write) -> tuple[Action, ...]:
    """The actions of a transaction, or the write itself."""
    return write.actions if isinstance(write, Transaction) else (write,)


def _is_helper(action: Action, helpers: frozenset[Target]) -> bool:
    table = action.key.table
    if not isinstance(action, Update):
        return helps(helpers, table, ())
    sets = (*action.sets, *action.adds, *action.discards)
    return all(helps(helpers, table, path) for path in [*(path for path, _ in sets), *action.removes])


class Queue:
    """The queue: messages travel as text, and time passes only when nothing else is left to do."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._local = LocalQueue(lambda: self._now_ms)

    def send(self, message: messages.Message, delay_seconds: int) -> None:
        self._local.send(messages.parse_message(messages.format_message(message)), delay_seconds)

    def next(self) -> messages.Message | None:
        """The message that is due first, however long that takes; None when there is none."""
        pending = self._local.pending_messages
        if not pending:
            return None
        self._now_ms = max(self._now_ms, min(one.due_ms for one in pending))
        (taken,) = self._local.take(1)
        self._local.acknowledge(taken)
        return taken.message


class Failures(list[Failure]):
    """The failures that were parked. There must be none."""

    def park(self, failure: Failure) -> None:
        self.append(failure)
