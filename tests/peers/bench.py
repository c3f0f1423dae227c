"""The world a scenario plays in: tables, an application's writes, and the records of their streams.

Invariant: a change reaches the runner only as a record of a Lambda event, whoever made it. The store of the pipeline is
metered: it counts writes, and can die in the middle of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.memory import MemoryStore
from sync_rules.jobs.consume.queue import LocalQueue
from sync_rules.jobs.streams import make_event_record
from sync_rules.model.entities import Table
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import WRITTEN, Action, Check, Result, Status, Transaction, Update, Write
from sync_rules.pipeline import messages
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store
from tests.peers.builder import Target, helps
from tests.support.compiled import rules_of

State = Mapping[ItemKey, Item]
Record = dict[str, Any]
STREAM_ARN: Final = "arn:aws:dynamodb:us-east-1:000000000000:table/{}/stream/2026-01-01T00:00:00.000"
FIRST_SEQUENCE_NUMBER: Final = 99_999_999_999_999_999_990  # their width grows within a scenario
CREATED_SECONDS: Final = 1_767_225_600


class Bench:
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
