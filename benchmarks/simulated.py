"""A simulated account for a fan-out: DynamoDB's partitions, SQS and Lambda on one clock that only waiting moves.

Invariant: the product runs as it is, from the event of the source's change to the requests of the client library:
planner, chunks, messages, rate, batches, backoff. Simulated are the clock, the answers, and what they wait for.

A partition takes its units from a bucket that holds one second's worth and is full at first. A table's quota is such a
bucket too. Lambda polls the queue with 5 messages at a time at first and 5 more each second, up to the limit.
"""

from __future__ import annotations

import heapq
import json
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from threading import Lock, Semaphore, local
from typing import Any, Final
from unittest import mock

from botocore.exceptions import ClientError

from benchmarks.answering import AFTER, BEFORE, BODY, KEYS, LISTED, PAGE_MAX_BYTES, SOURCE, THROTTLED, Bucket, number_in
from benchmarks.ours import RULES_FILE, NoFailures, renamed
from benchmarks.turns import Clock
from sync_rules.adapters import dynamodb
from sync_rules.adapters.budget import Rate, choose_writes_at_once
from sync_rules.adapters.meter import MeteredStore
from sync_rules.adapters.sqs import AGAIN_FIRST_SECONDS
from sync_rules.adapters.writer import Writer
from sync_rules.language.load import load_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.limits import DELAY_MAX_SECONDS, Limits
from sync_rules.model.sizes import PARTITION_MAX_READ_UNITS, PARTITION_MAX_WRITE_UNITS
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import Message, PushMessage, format_message, parse_message
from sync_rules.pipeline.requests import Host, Store, World

RULES: Final = load_rules(RULES_FILE)
ANSWER_SECONDS: Final = 0.005
COPY_SECONDS: Final = 0.000_105  # of a core, for each copy: `make bench`
KEY_SECONDS: Final = 0.000_015  # for each item that is listed
MESSAGE_SECONDS: Final = 0.002  # for each message that is sent
TABLE_UNITS: Final = 40_000  # reads and writes, each, by default quota
WORKERS_FIRST, WORKERS_MORE_SECOND = 5, 5.0
STREAM_SECONDS, WORKER_SECONDS = 120, 180  # timeouts of the template's functions
RECEIVES_MAX: Final = 8  # of a message, before it is a dead letter
HASHED: Final = 2_654_435_761  # Knuth's multiplier spreads the numbers of targets over 32 bits


# ---------------------------------------------------------------- DynamoDB
class Partitions:
    """The partitions of a table or of one item collection: a bucket of writes and one of reads for each."""

    def __init__(self, clock: Clock, partitions: int, units: int = TABLE_UNITS) -> None:
        self._writes = [Bucket(PARTITION_MAX_WRITE_UNITS, clock.time) for _ in range(partitions)]
        self._reads = [Bucket(PARTITION_MAX_READ_UNITS, clock.time) for _ in range(partitions)]
        self._table_writes, self._table_reads = Bucket(units, clock.time), Bucket(units, clock.time)

    def __len__(self) -> int:
        return len(self._writes)

    def write(self, partition: int) -> bool:
        return self._writes[partition].take() and self._table_writes.take()

    def read(self, partition: int, units: float) -> bool:
        """Take units as long as any are left: a page costs what it costs."""
        return self._reads[partition].take(units) and self._table_reads.take(units)


class Table:
    """Targets of one source, and the copies made of it. `bounds`: the numbers of the targets with which the second and
    further partitions begin, where targets share a partition key; without it each is in a partition by its hash.
    """

    def __init__(self, name: str, copies: int, partitions: Partitions, bounds: Sequence[int] | None = None) -> None:
        self.name, self.copies, self.partitions = name, copies, partitions
        self.written = bytearray(copies)
        self.copied_at = 0.0
        self._bounds = bounds
        self._cursor = KEYS[name] if name == "together" else KEYS[name] | LISTED
        self._body = {**LISTED, **BODY}

    def partition_of(self, number: int) -> int:
        if self._bounds is not None:
            return bisect_right(self._bounds, number)
        return (number * HASHED % 2**32) * len(self.partitions) >> 32

    def key(self, number: int) -> dict[str, Any]:
        """The key of a target in the base table."""
        return self._with(KEYS[self.name], number)

    def row(self, number: int) -> dict[str, Any]:
        """The keys of a target, as a page that continues there names them, and as an index has them."""
        return self._with(self._cursor, number)

    def image(self, number: int) -> dict[str, Any]:
        name = AFTER if self.written[number] else BEFORE
        return {**self._body, **self.key(number), "user_name": {"S": name}}

    @staticmethod
    def _with(key: Mapping[str, Any], number: int) -> dict[str, Any]:
        return {name: {"S": value["S"].replace("\0", f"{number:09}")} for name, value in key.items()}


class Client:
    """The answers of DynamoDB to one process. Requests that are sent together are waited for together."""

    def __init__(self, clock: Clock, table: Table, counts: Counter[str], index_row_bytes: int) -> None:
        self._clock, self._table, self._counts = clock, table, counts
        self._row_bytes = index_row_bytes
        self.together = False

    def query(self, **asked: Any) -> dict[str, Any]:
        """A page of the targets, in the order of their numbers."""
        through_index = "IndexName" in asked
        row = self._row_bytes if through_index else 1024
        after = number_in(asked.get("ExclusiveStartKey", {}).values())
        start = 0 if after is None else after + 1
        end = min(start + min(asked["Limit"], PAGE_MAX_BYTES // row), self._table.copies)
        units = (end - start) * row / 4096 * (0.5 if through_index else 1)
        # an index has partitions of its own, and all rows of a source in one: a thousand times what is listed a second
        self._read(Counter() if through_index else Counter({self._table.partition_of(start): units}), units)
        self._clock.sleep(ANSWER_SECONDS + KEY_SECONDS * (end - start))
        make = self._table.row if through_index else self._table.image
        last = {"LastEvaluatedKey": self._table.row(end - 1)} if end < self._table.copies else {}
        return {"Items": [make(number) for number in range(start, end)], **last}

    def get_item(self, **asked: Any) -> dict[str, Any]:
        """An item: the source, or a target."""
        number = number_in(asked["Key"].values())
        self._read(Counter() if number is None else Counter({self._table.partition_of(number): 1}), 1)
        self._clock.sleep(ANSWER_SECONDS)
        return {"Item": SOURCE if number is None else self._table.image(number)}

    def batch_get_item(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803 -- as boto3 has it
        """Images of targets."""
        ((name, some),) = RequestItems.items()
        numbers = [number_in(key.values()) or 0 for key in some["Keys"]]
        self._read(Counter(map(self._table.partition_of, numbers)), len(numbers))
        self._clock.sleep(ANSWER_SECONDS)
        return {"Responses": {name: [self._table.image(number) for number in numbers]}, "UnprocessedKeys": {}}

    def _read(self, units: Mapping[int, float], in_all: float) -> None:
        self._counts["read units"] += in_all  # type: ignore[assignment]
        if not all(self._table.partitions.read(partition, some) for partition, some in units.items()):
            self._counts["throttled reads"] += 1
            self._clock.sleep(ANSWER_SECONDS)
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "Query")

    def batch_execute_statement(self, Statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """Writes of targets."""
        answers = [self._write(number_in(one["Parameters"])) for one in Statements]
        self._took(len(Statements))
        return {"Responses": answers}

    def update_item(self, **asked: Any) -> dict[str, Any]:
        """Write a target."""
        answer = self._write(number_in(asked["Key"].values()))
        self._took(1)
        if answer:
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "UpdateItem")
        return {}

    def _took(self, copies: int) -> None:
        if not self.together:
            self._clock.sleep(ANSWER_SECONDS + COPY_SECONDS * copies)

    def _write(self, number: int | None) -> dict[str, Any]:
        assert number is not None, "nobody writes the source"
        if not self._table.partitions.write(self._table.partition_of(number)):
            self._counts["throttled"] += 1
            return {"Error": THROTTLED}
        self._counts["written"] += 1
        self._counts["copies"] += not self._table.written[number]
        self._table.copied_at = self._clock.now + ANSWER_SECONDS
        self._table.written[number] = 1
        return {}


class InTurns(Writer):
    """The writer whose threads are simulated: what they send together takes the time of one answer and of one core."""

    @cached_property
    def _pool(self) -> Any:
        return self

    def map(self, work: Callable[[Any], Any], things: Sequence[Any]) -> Iterable[Any]:
        client: Any = self._client
        found: list[Any] = []
        for start in range(0, len(things), self._workers):
            some = things[start : start + self._workers]
            client.together = True
            found += map(work, some)
            client.together = False
            client._took(sum(len(one) if isinstance(one, tuple) else 1 for one in some))  # noqa: SLF001
        return found


# ---------------------------------------------------------------- Lambda and SQS
@dataclass(order=True)
class Waiting:
    """A message in the queue: visible from a time on, in the order in which it was sent."""

    visible: float
    order: int
    body: str = field(compare=False)
    receives: int = field(compare=False, default=0)


@dataclass(frozen=True)
class Setting:
    """The template's settings of the workers: how many at once, and the write units a second of each (0: no limit)."""

    workers: int
    units_of_each: float = 0


@dataclass(frozen=True)
class Ran:
    """A fan-out that was simulated. `listed_seconds`: when the last message was sent; `workers`: most at once."""

    copies: int
    seconds: float
    listed_seconds: float
    workers: int
    counts: Mapping[str, float]


class Account:
    """One table, one queue, and the two functions of the template."""

    def __init__(
        self, clock: Clock, table: Table, setting: Setting, limits: Limits | None = None, *, index_row_bytes: int = 128
    ) -> None:
        self._limits = limits or Limits()
        self.counts: Counter[str] = Counter()
        self._clock, self._table, self._setting = clock, table, setting
        self._row_bytes = index_row_bytes
        self._queue: list[Waiting] = []
        self._order = count()
        self._idle: list[Semaphore] = []
        self._pollers = self._busy = self._busiest = 0
        self._listed = 0.0

    # ---- SQS
    def send(self, message: Message, delay_seconds: int) -> None:
        """A second look is not simulated: the copies do not wait for it."""
        began = self._clock.now
        self._clock.sleep(ANSWER_SECONDS + MESSAGE_SECONDS)
        if isinstance(message, PushMessage) and message.delay_seconds:
            self.counts["second looks"] += 1
            return
        self.counts["messages"] += 1
        self.counts["fan-outs"] += isinstance(message, PushMessage) and message.cursor is not None
        self._listed = self._clock.now
        self._enqueue(Waiting(began + delay_seconds, next(self._order), format_message(message)))

    def _enqueue(self, message: Waiting) -> None:
        heapq.heappush(self._queue, message)
        if self._idle:
            self._clock.wake(self._idle.pop())
        elif self._pollers < self._setting.workers:
            self._pollers += 1
            after = max(0.0, (self._pollers - WORKERS_FIRST) / WORKERS_MORE_SECOND - self._clock.now)
            self._clock.start(self._poll, after)

    def _poll(self) -> None:
        """One of the workers that Lambda runs at once: a message at a time, as the template has it."""
        consumer = self._consumer(self._setting.units_of_each)
        while True:
            if not self._queue:
                self._clock.park(self._idle)
            elif self._queue[0].visible > self._clock.now:
                self._clock.sleep(self._queue[0].visible - self._clock.now)
            else:
                self._handle(consumer, heapq.heappop(self._queue))

    def _handle(self, consumer: Consumer, message: Waiting) -> None:
        self._busy += 1
        self._busiest = max(self._busiest, self._busy)
        self.deadline(WORKER_SECONDS)
        try:
            consumer.handle_message(parse_message(message.body), self._remaining_ms, again=message.receives > 0)
        except StoreError:
            self.counts["again"] += 1
            if message.receives + 1 >= RECEIVES_MAX:
                self.counts["dead letters"] += 1
            else:
                after = min(AGAIN_FIRST_SECONDS << message.receives, DELAY_MAX_SECONDS)
                self._enqueue(replace(message, visible=self._clock.now + after, receives=message.receives + 1))
        self._busy -= 1
        self._clock.sleep(ANSWER_SECONDS)  # deleted, and the next one received

    # ---- Lambda
    def deadline(self, seconds: float) -> None:
        """Begin an invocation in this thread."""
        self._mine.until = self._clock.now + seconds

    @cached_property
    def _mine(self) -> Any:
        return local()

    def _remaining_ms(self) -> int:
        return int((self._mine.until - self._clock.now) * 1000)

    def _spare_seconds(self) -> float:
        return max(0.0, self._remaining_ms() / 1000 - 2)

    def _consumer(self, units: float) -> Consumer:
        """The pipeline of a process, as `functions.runtime` makes it."""
        client: Any = Client(self._clock, self._table, self.counts, self._row_bytes)
        with mock.patch.object(dynamodb, "Writer", InTurns):
            store: Store = dynamodb.DynamoStore(
                client,
                RULES.tables,
                write_mode="batch",
                sleep=self._clock.sleep,
                remaining_seconds=self._spare_seconds,
            )
        limits = self._limits
        if units:
            rate = Rate(units, clock=self._clock.time, sleep=self._clock.sleep)
            store = MeteredStore(store, RULES.tables, lambda cost: rate.take(cost, self._spare_seconds()))
            limits = replace(limits, apply_max_writes=choose_writes_at_once(units))
        host = Host(self._clock.time, self._clock.time, Lock)
        return Consumer(RULES, World(store, self, NoFailures()), host, limits=limits)

    def processed(self, messages: Sequence[Message]) -> float:
        """The seconds that one process takes for these messages. What it sends is counted, and goes nowhere."""
        consumer, self._setting = self._consumer(self._setting.units_of_each), replace(self._setting, workers=0)

        def work() -> None:
            for message in messages:
                self.deadline(WORKER_SECONDS)
                consumer.handle_message(parse_message(format_message(message)), self._remaining_ms)
                self._clock.sleep(ANSWER_SECONDS)

        self._clock.start(work)
        self._clock.play()
        return self._clock.now

    @property
    def listed_seconds(self) -> float:
        """When the last message was sent."""
        return self._listed

    @property
    def note_fan_out(self) -> tuple[Message, ...]:
        """The messages in the queue."""
        return tuple(parse_message(message.body) for message in sorted(self._queue))

    def run(self) -> Ran:
        """Change the source, and let the copies be made."""
        random.seed(0)  # of the jitter of retries
        self._clock.start(self._change)
        self._clock.play()
        return Ran(self._table.copies, self._table.copied_at, self._listed, self._busiest, self.counts)

    def run_often(self, times: int, seconds: float) -> None:
        """Change the source 50 times a second, a batch of records each second, and stop after some seconds."""
        random.seed(0)

        def change() -> None:
            consumer = self._consumer(0)
            event = json.loads(json.dumps(renamed(self._table.name, times=50)))
            for number in range(times):
                self._clock.sleep(max(0.0, number - self._clock.now))
                self._table.written = bytearray(self._table.copies)
                self.deadline(STREAM_SECONDS)
                assert consumer.handle_event(event, self._remaining_ms) == {"batchItemFailures": []}

        self._clock.start(change)
        self._clock.play(seconds)

    @property
    def waiting(self) -> int:
        """The messages in the queue."""
        return len(self._queue)

    def _change(self) -> None:
        self.deadline(STREAM_SECONDS)
        answer = self._consumer(0).handle_event(json.loads(json.dumps(renamed(self._table.name))), self._remaining_ms)
        assert answer == {"batchItemFailures": []}, answer
