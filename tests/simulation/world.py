"""The world around the handlers: tables with lagging indexes, streams behind their filters, a queue, S3, functions.

Invariant: whatever AWS allows may happen here and nothing else. Records reach `Consumer.handle_event` as Lambda hands
them over: as JSON, through the filter patterns of the mapping, in order for each item until they are acknowledged.
"""

from __future__ import annotations

import base64
import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sync_rules.deploy.filters import make_filter_criteria
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Call, Failure, ItemKey
from sync_rules.model.semantics import holds
from sync_rules.model.writes import Action, Check, Increment, Result, Status, Test, Transaction, Write
from sync_rules.pipeline.messages import CallMessage, Message, PartMessage, PullMessage, format_message
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan
from tests.simulation.grammar import Made
from tests.simulation.indexes import LaggingStore
from tests.simulation.safety import Safety
from tests.simulation.spec import Item, Place, Value

START: Final = 1_700_000_000
Record = dict[str, Any]


def place_of(key: ItemKey) -> Place:
    return key.table, tuple((kind, value) for _, kind, value in key.values)


def key_of(made: Made, place: Place) -> ItemKey:
    names = made.spec.tables[place[0]].key
    return ItemKey(place[0], tuple((name, kind, value) for name, (kind, value) in zip(names, place[1], strict=True)))


def wire(value: Value) -> Value:
    """A value as JSON has it: binary as base64."""
    ((kind, content),) = value.items()
    if kind == "B" and isinstance(content, bytes):
        return {"B": base64.b64encode(content).decode()}
    if kind == "BS" and all(isinstance(one, bytes) for one in content):
        return {"BS": [base64.b64encode(one).decode() for one in content]}
    if kind == "M":
        return {"M": {name: wire(inner) for name, inner in content.items()}}
    return {"L": [wire(inner) for inner in content]} if kind == "L" else value


def _image(item: Item) -> dict[str, Value]:
    return {name: wire(value) for name, value in item.items()}


# ---------------------------------------------------------------- streams
@dataclass
class Batch:
    """The records of one invocation. `first`: not finished before, so that their items are held meanwhile."""

    records: list[Record]
    places: list[Place]
    first: bool = True

    def described(self) -> str:
        return f"records {', '.join(one['dynamodb']['SequenceNumber'] for one in self.records)}"


@dataclass
class Streams:
    """Records on their way, and those that are over: finished, which may come again, or given up, which will."""

    in_order: bool = True
    waiting: dict[Place, deque[Record]] = field(default_factory=dict)
    held: set[Place] = field(default_factory=set)
    finished: list[Batch] = field(default_factory=list)
    dead: list[Batch] = field(default_factory=list)

    def add(self, place: Place, record: Record) -> None:
        self.waiting.setdefault(place, deque()).append(record)

    def ready(self) -> list[Place]:
        found = [place for place, records in self.waiting.items() if records and place not in self.held]
        return sorted(found, key=lambda place: int(position_of(self.waiting[place][0])))

    def take(self, place: Place, count: int) -> list[Record]:
        records = self.waiting[place]
        if self.in_order:
            self.held.add(place)
        return [records.popleft() for _ in range(min(count, len(records)))]

    def over(self, batch: Batch, failed: str | None, *, gives_up: bool) -> None:
        """The invocation is over; from the lowest failed record on, they come again."""
        at = 0 if failed == "" else int(failed) if failed is not None else None
        pairs = list(zip(batch.places, batch.records, strict=True))
        rest = [pair for pair in pairs if at is not None and int(position_of(pair[1])) >= at]
        done = [pair for pair in pairs if pair not in rest] if rest else pairs
        if batch.first:
            self.held -= set(batch.places)
        if rest and (gives_up or not batch.first):
            self.dead.append(Batch([one for _, one in rest], [place for place, _ in rest], first=False))
        elif rest:
            for place, record in reversed(rest):
                self.waiting[place].appendleft(record)
        if done and batch.first:
            self.finished.append(Batch([one for _, one in done], [place for place, _ in done], first=False))


def position_of(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


@dataclass
class Note:
    """A message as text. It is delivered when it is `due`, and the indexes have caught up with `after`; `since` is the
    clock at which the work began that parked something.
    """

    text: str
    due: float
    after: int
    since: int
    parked: bool
    call: bool
    again: bool = False  # delivered before, and not finished

    def described(self) -> str:
        return f"message {self.text[:160]}"


# ---------------------------------------------------------------- all of it
class World:
    """Everything outside the handlers. Every change of an item is watched, and leaves a record unless it is silent."""

    def __init__(self, made: Made, seen: Counter[tuple[str, str]], tell: Callable[[str], None]) -> None:
        self.made, self.seen, self.tell = made, seen, tell
        self.items: dict[Place, Item] = {}
        self.past: dict[Place, list[Item]] = {}
        self.log: list[tuple[Place, Item | None, Item | None, Record]] = []
        self.unheard: list[tuple[Place, Item]] = []  # what was there before there were records
        self.safety = Safety(made.spec, self.items, self.past)
        self.streams = Streams(made.in_order)
        self.watch: Callable[[Place, Item | None], None] = lambda *_: None  # sees each change by the pipeline
        self.loses: Callable[[], bool] = lambda: False  # whether a change leaves no record
        self.lost = 0
        self.shelf: dict[str, str] | None = None  # what failed, where people redrive it
        self.put_aside_so_far = 0
        self.notes: list[Note] = []
        self.flying: list[Any] = []  # writes, and transactions of applications
        self.tokens: dict[str, str] = {}  # of transactions of applications: the request that had it first
        self.transactions = 0  # of applications
        self.done: set[str] = set()  # tokens of those that were made
        self.failures: list[Failure] = []
        self.calls: Counter[tuple[str, str]] = Counter()
        self.given_up: dict[str, str] = {}  # calls, each as a message
        self.clock = 0  # counts changes
        self.now = float(START)  # seconds
        self.by_pipeline = self.silent = self.expiring = False
        self._filters = _filters(made)
        self.store = LaggingStore(dict(made.rules.tables), self._changed)

    # ---------------------------------------------------------------- changes
    def _changed(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        place = place_of(key)
        if self.by_pipeline:
            self.watch(place, new)
            self.safety.check(place, old, new)
        if new is None:
            del self.items[place]
        else:
            self.items[place] = new
            self.past.setdefault(place, []).append(new)
        if not self.silent:
            self._heard(key, old, new)

    def insert_again(self, place: Place) -> None:
        """The record of an insert that the stream still holds is delivered, perhaps not for the first time."""
        self._heard(key_of(self.made, place), None, self.items[place])

    def _heard(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        """A record of a change."""
        place = place_of(key)
        self.clock += 1
        record = self._record(key, old, new)
        self.log.append((place, old, new, record))
        if self.loses():
            self.lost += 1
            self.seen["record", "lost"] += 1
            self.tell(f"  the record of {key} is lost")
        elif self._passes(record):
            self.streams.add(place, record)
        else:
            self.seen["record", "filtered"] += 1

    def _record(self, key: ItemKey, old: Item | None, new: Item | None) -> Record:
        table = self.made.spec.tables[key.table].physical
        body: dict[str, Any] = {
            "Keys": _image(key.attributes()),
            "SequenceNumber": str(self.clock),
            "ApproximateCreationDateTime": int(self.now),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
        if old is not None:
            body["OldImage"] = _image(old)
        if new is not None:
            body["NewImage"] = _image(new)
        record = {
            "eventName": "REMOVE" if new is None else "INSERT" if old is None else "MODIFY",
            "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:123456789012:table/{table}/stream/now",
            "dynamodb": body,
        }
        if self.expiring:
            record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        return record

    def _passes(self, record: Record) -> bool:
        """The answer of the mapping's filter patterns."""
        patterns = self._filters[record["eventSourceARN"]]
        if patterns is None:
            return True
        keys = record["dynamodb"]["Keys"]
        return any(all(_matches(rules["S"], keys[name].get("S")) for name, rules in one.items()) for one in patterns)

    def items_before(self, changes: int) -> dict[Place, Item]:
        """All items, as they were this number of changes ago."""
        items = dict(self.items)
        for place, old, _, _ in reversed(self.log[len(self.log) - changes :]):
            items.pop(place, None)
            if old is not None:
                items[place] = old
        return items

    def put_aside(self, text: str) -> None:
        """Put something that failed where people find it."""
        assert self.shelf is not None, "somebody will look"
        self.put_aside_so_far += 1
        self.shelf[str(self.put_aside_so_far)] = text

    def operate(self, place: Place, new: Item | None, *, expiring: bool = False) -> bool:
        """A write of an application; False for one that DynamoDB refuses, or that changes nothing."""
        before, self.expiring = self.clock, expiring and new is None
        try:
            if new is not None:
                self.store.put(place[0], new)
            else:
                self.store.delete(key_of(self.made, place))
        except StoreError as error:
            self.tell(f"  refused: {error}")
            return False
        finally:
            self.expiring = False
        return self.clock > before

    def quietly(self, place: Place, new: Item | None) -> None:
        """A change without a record. Raises StoreError."""
        self.silent = True
        try:
            if new is None:
                self.store.delete(key_of(self.made, place))
            else:
                self.store.put(place[0], new)
        finally:
            self.silent = False

    def apply(self, write: Write) -> Result:
        """A write of the pipeline reaches the store."""
        actions: Sequence[Action] = write.actions if isinstance(write, Transaction) else (write,)
        self.by_pipeline = True
        try:
            before = [self.store.item(action.key) for action in actions]
            (result,) = self.store.apply(Apply((write,)))
        finally:
            self.by_pipeline = False
        self.seen["write", result.status.value] += 1
        if result.status is Status.REFUSED:
            self._count_refusals(actions, before)
        return result

    def _count_refusals(self, actions: Sequence[Action], before: Sequence[Item | None]) -> None:
        """Count which conditions did not hold."""
        for action, item in zip(actions, before, strict=True):
            if isinstance(action, Increment) or holds(action.guard, item):
                continue
            for condition in action.guard:
                if not holds((condition,), item):
                    self.seen["refused", self._word(action, condition, item)] += 1

    def _word(self, action: Action, condition: Any, item: Item | None) -> str:
        table = action.key.table
        if isinstance(action, Check):
            return "check: source is gone" if item is None else "check: source changed or came back"
        if table in self.made.spec.ledgers:
            return "books"
        if condition.path == (next(iter(self.made.spec.tables[table].key)),):
            return "absence" if condition.test is Test.ABSENT else "existence"
        return "copy" if self.safety.owned(place_of(action.key), condition.path) else "link or where"

    # ---------------------------------------------------------------- effects and messages
    def later(self, message: Message, delay_seconds: int, since: int) -> None:
        parked = isinstance(message, PullMessage | PartMessage) and message.attempt > 0
        call = isinstance(message, CallMessage)
        self.seen["message", "parked" if parked else type(message).__name__] += 1
        after = self.store.clock if delay_seconds > 0 and not parked and not call else 0
        text = format_message(message)
        if parked and any(note.text == text and note.since == since for note in self.notes):
            return
        self.notes.append(Note(text, self.now + delay_seconds, after, since, parked, call))

    def event_of(self, records: Sequence[Record]) -> dict[str, Any]:
        """The event of an invocation: of a DynamoDB stream, or of a Kinesis stream, which does not keep order."""
        if self.streams.in_order:
            return {"Records": list(records)}
        return {"Records": [self._by_kinesis(record) for record in records]}

    def _by_kinesis(self, record: Record) -> Record:
        name = record["eventSourceARN"].split("/")[1]
        data = json.dumps({"tableName": name, "dynamodb": record["dynamodb"]})
        return {"kinesis": {"sequenceNumber": position_of(record), "data": base64.b64encode(data.encode()).decode()}}

    def give_up(self, batch: Batch) -> None:
        """Put a batch aside as Lambda does, in S3: the whole event as text."""
        event = self.event_of(batch.records)
        arn = batch.records[0]["eventSourceARN"]
        first, last = position_of(batch.records[0]), position_of(batch.records[-1])
        info = {"streamArn": arn, "shardId": "one", "startSequenceNumber": first, "endSequenceNumber": last,
                "batchSize": len(batch.records)}  # fmt: skip
        self.put_aside(json.dumps({"DDBStreamBatchInfo": info, "payload": json.dumps(event)}))

    def call(self, call: Call) -> None:
        self.calls[call.rule, call.change.position] = 1  # remembered: a second time it is not made


def _filters(made: Made) -> Mapping[str, list[Any] | None]:
    found: dict[str, list[Any] | None] = {}
    for name, table in made.rules.tables.items():
        criteria = make_filter_criteria(made.rules, table)
        arn = f"arn:aws:dynamodb:eu-west-1:123456789012:table/{made.spec.tables[name].physical}/stream/now"
        patterns = None if criteria is None else [json.loads(one["Pattern"]) for one in criteria["Filters"]]
        found[arn] = None if patterns is None else [one["dynamodb"]["Keys"] for one in patterns]
    return found


def _matches(rules: Sequence[Any], text: str | None) -> bool:
    """https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html: equality and prefix."""
    return text is not None and any(
        text.startswith(rule["prefix"]) if isinstance(rule, dict) else text == rule for rule in rules
    )


class Direct:
    """The store for commands that run alone: nothing fails, and no index lags."""

    def __init__(self, world: World) -> None:
        self._world = world

    def read(self, request: Read) -> tuple[Item | None, ...]:
        return self._world.store.read(request)

    def list(self, request: List) -> Page:
        return self._world.store.list_from(0, request)

    def scan(self, request: Scan) -> Page:
        return self._world.store.scan(request)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        return tuple(map(self._world.apply, request.writes))
