"""A pipeline on a store in memory, for tests: an application's writes, their records, the queue, the parked items.

`Tap` stands between the pipeline and its store: it notes every request, and is where a test injects faults.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.kept_calls import CallsInMemory
from sync_rules.adapters.memory import MemoryStore
from sync_rules.jobs.streams import encode_binary
from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Call, Change, Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.values import Item
from sync_rules.model.writes import Result, Status, Write
from sync_rules.pipeline import fanout
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import Message, format_message, parse_message
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Apply, List, Page, Read, Request, Scan, Share, Store, Work, World, run_work
from sync_rules.pipeline.tasks import make_pull
from sync_rules.rules.ruleset import Rules
from tests.support.builders import complete_books, key
from tests.support.every_kind import EFFECTS, RULES, text_of

THROTTLED = Result(Status.FAILED, reason="Throttled")
FIRST_POSITION = 99_996  # so that the width of sequence numbers grows within a test


class Inbox:
    """A Queue that keeps what it is sent, through the same JSON as the real one."""

    def __init__(self) -> None:
        self.messages: list[tuple[Message, int]] = []
        self.broken = ""

    def send(self, message: Message, delay_seconds: int) -> None:
        if self.broken:
            raise StoreError(self.broken)
        self.messages.append((parse_message(format_message(message)), delay_seconds))


class Parked:
    """Failures that are kept."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self.broken = ""

    def park(self, failure: Failure) -> None:
        if self.broken:
            raise StoreError(self.broken)
        self.failures.append(failure)

    @property
    def told(self) -> list[tuple[str, str]]:
        """Rule and reason of each."""
        return [(failure.rule, failure.reason) for failure in self.failures]


class Telephone:
    """A Caller that notes the calls it makes."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.broken = ""

    def call(self, call: Call) -> None:
        if self.broken:
            raise StoreError(self.broken)
        self.calls.append(call)


class Tap:
    """A store that notes what it is asked. `before` may raise StoreError or change the world; `result` may answer a
    write in the store's stead.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.requests: list[Request] = []
        self.share: Share = map
        self.before: Callable[[Request], object] = lambda _request: None
        self.result: Callable[[Write], Result | None] = lambda _write: None

    def read(self, request: Read) -> tuple[Item | None, ...]:
        self._note(request)
        return self._store.read(request)

    def list(self, request: List) -> Page:
        self._note(request)
        return self._store.list(request)

    def scan(self, request: Scan) -> Page:
        self._note(request)
        return self._store.scan(request)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        self._note(request)
        return tuple(self.result(write) or self._store.apply(Apply((write,)))[0] for write in request.writes)

    def _note(self, request: Request) -> None:
        self.requests.append(request)
        self.before(request)

    def refuse(self, kind: Any, error: StoreError, when: Callable[[Any], object] = bool) -> None:
        """Answer with an error to each request of this kind, from now on."""

        def before(request: Request) -> None:
            if isinstance(request, kind) and when(request):
                raise error

        self.before = before

    def seen(self, kind: type[Request]) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    @property
    def writes(self) -> list[Write]:
        return [write for request in self.seen(Apply) for write in request.writes]


class Untouchable:
    """A store that must not be asked anything."""

    def __getattr__(self, name: str) -> Any:
        pytest.fail(f"the store was asked to {name}")


class Scene:
    """A pipeline for one rules file. `records` are the changes not processed yet; `tables` are those that exist. The
    books of counters are complete, as if they had been there from the beginning; without `complete` there are none.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        limits: Limits | None = None,
        tables: Mapping[str, Table] | None = None,
        complete: bool = True,
    ) -> None:
        self.rules = rules
        self.limits = limits or Limits()
        self.records: list[Change] = []
        self.memory = MemoryStore(rules.tables if tables is None else tables)
        if complete:
            complete_books(self.memory, rules)
        self.memory.on_change = self._note
        self.tap = Tap(self.memory)
        self.queue = Inbox()
        self.parked = Parked()
        self.caller = Telephone()
        self.kept = CallsInMemory()
        self.world = World(self.tap, self.queue, self.parked, self.caller, self.kept)
        self.consumer = Consumer(rules, self.world, THIS_PROCESS, limits=self.limits)
        self._position = FIRST_POSITION

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        self._position += 1
        self.records.append(Change(key, old, new, str(self._position), created_ms=1_700_000_000_000))

    # ------------------------------------------------------------ the application
    def put(self, table: str, *items: Item) -> ItemKey:
        return [self.memory.put(table, item) for item in items][-1]

    def there(self, table: str, *items: Item) -> ItemKey:
        """Items that are there from before: their records are long gone."""
        key = self.put(table, *items)
        self.records.clear()
        return key

    def item(self, key: ItemKey) -> Item:
        item = self.memory.item(key)
        assert item is not None
        return item

    def expire(self, key: ItemKey) -> None:
        """DynamoDB deletes an item by Time to Live."""
        self.memory.delete(key)
        self.records[-1] = replace(self.records[-1], expired=True)

    def at(self, table: str, *values: str) -> ItemKey:
        """The key of an item by its key values, in order."""
        return key(self.rules.tables[table], *values)

    # ------------------------------------------------------------ the pipeline
    def drive(self, work: Work[Any]) -> Any:
        return run_work(work, self.world)

    def pull(self, key: ItemKey, image: Item | None = None, attempt: int = 0, bounds: Bounds | None = None) -> Report:
        """Look at one target, with an image that may be old."""
        one = make_pull(key, self.rules, image, attempt)
        assert one is not None
        report: Report = self.drive(fanout.pull([one], bounds or Bounds(self.limits)))
        return report

    def deliver(self, changes: Iterable[Change] | None = None, remaining_ms: int = 60_000) -> list[str]:
        """Hand records over as a Lambda event, those not processed yet unless given. Returns the reported numbers."""
        if changes is None:
            changes, self.records = self.records, []
        answer = self.consumer.handle_event(event_of(self.rules, *changes), lambda: remaining_ms)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def rest(self) -> None:
        """Deliver until nothing is left, records of the pipeline's own writes included."""
        for _ in range(100):
            if not self.records:
                return
            assert self.deliver() == []
        pytest.fail("the pipeline does not come to rest")

    def receive(self) -> list[int]:
        """Handle every message in the queue once. Returns the delays they had waited."""
        taken, self.queue.messages = self.queue.messages, []
        for message, _ in taken:
            self.consumer.handle_message(message)
        return [delay for _, delay in taken]

    def outcomes(self) -> dict[Outcome, int]:
        """Outcomes counted so far, over all rules."""
        counted = self.consumer.telemetry.outcomes
        return {o: self.consumer.telemetry.total(o) for o in Outcome if any(key[1] is o for key in counted)}


def scene_of(*names: str, limits: Limits | None = None, **more: str) -> Scene:
    """Some rules of the shop of every kind, and others on its entities."""
    rules = {name: (RULES | EFFECTS)[name] for name in names} | more
    return Scene(parse_rules(text_of(rules)), limits=limits)


def deliver_whatever_fails(scene: Scene, failing: Container[int]) -> None:
    """Deliver all records, and then all messages, until nothing is left. The requests, writes and sends of these numbers
    fail, each once; what failed is delivered again.
    """
    asked = count()
    send = scene.queue.send

    def fail(request: object) -> None:
        if not isinstance(request, Apply) and next(asked) in failing:
            raise StoreError("ThrottlingException")

    def sending(message: Message, delay_seconds: int) -> None:
        fail(message)
        send(message, delay_seconds)

    scene.tap.before = fail
    scene.tap.result = lambda _write: THROTTLED if next(asked) in failing else None
    scene.queue.send = sending  # type: ignore[method-assign]
    changes = list(scene.records)
    scene.records.clear()
    while scene.deliver(changes):
        pass
    waiting = [(message, False) for message, _ in scene.queue.messages]
    while waiting:
        scene.queue.messages.clear()
        message, again = waiting.pop(0)
        try:
            scene.consumer.handle_message(message, again=again)
        except StoreError:
            waiting.append((message, True))
        waiting += [(sent, False) for sent, _ in scene.queue.messages]


def event_of(rules: Rules, *changes: Change) -> dict[str, Any]:
    """Changes as the Lambda event that carries them, through JSON as on the wire."""
    return json.loads(json.dumps({"Records": [record_of(rules, change) for change in changes]}))


def record_of(rules: Rules, change: Change) -> dict[str, Any]:
    name = "REMOVE" if change.new is None else "INSERT" if change.old is None else "MODIFY"
    data: dict[str, Any] = {"Keys": encode_binary(change.key.attributes()), "StreamViewType": "NEW_AND_OLD_IMAGES"}
    if change.old is not None:
        data["OldImage"] = encode_binary(change.old)
    if change.new is not None:
        data["NewImage"] = encode_binary(change.new)
    if change.position:
        data["SequenceNumber"] = change.position
    if change.created_ms is not None:
        data["ApproximateCreationDateTime"] = change.created_ms // 1000
    physical = rules.tables[change.key.table].physical_name
    arn = f"arn:aws:dynamodb:us-east-1:111122223333:table/{physical}/stream/2026-01-01T00:00:00.000"
    record = {"eventName": name, "eventSource": "aws:dynamodb", "eventSourceARN": arn, "dynamodb": data}
    if change.expired:
        record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    return record


# ---------------------------------------------------------------- as Lambda calls it
class Context:
    """Lambda's context object, as far as it is used."""

    def __init__(self, remaining_ms: int) -> None:
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_ms


def context(remaining_ms: int = 60_000) -> Context:
    return Context(remaining_ms)


class Stdout:
    """The standard output of the moment; a logger keeps the one it found when made."""

    def write(self, text: str) -> None:
        sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()
