"""Delivers records and messages to the pipeline in a rehearsal, in every way that Lambda and SQS may.

Invariant: the first delivery of an item's records is in order; each record and message may come again at any time. The
same seed gives the same deliveries. `faults` makes requests fail.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from sync_rules.model.items import Change, ItemKey
from sync_rules.model.sizes import count_former_bytes
from sync_rules.model.values import Item
from sync_rules.pipeline.messages import Message, PartMessage, PullMessage


@dataclass(frozen=True)
class Delivery:
    """A way to deliver records and messages, with faults. The same seed gives the same deliveries."""

    name: str = "in-order"
    seed: int = 0
    batch_max_records: int = 100
    shuffled: bool = False
    """Records of different items come in any order, in batches of any size; records of one item stay in order."""

    duplicated: bool = False
    """Batches and messages come again, some of them much later."""

    crashes: float = 0.0
    """Share of requests at which the worker dies, before, during or after the effect; its batch comes again."""

    throttles: float = 0.0
    """Share of requests and writes that are answered with a throttle; some of them take effect nevertheless."""

    def description(self) -> str:
        """The delivery in words."""
        if self.batch_max_records == 1:
            size = "one record at a time"
        else:
            size = f"batches of up to {self.batch_max_records} records"
        parts = [
            size,
            "items in any order" if self.shuffled else "in order",
            "all of it comes again, soon and late" if self.duplicated else "",
            f"the worker dies at {self.crashes:.0%} of its requests" if self.crashes else "",
            f"{self.throttles:.0%} of reads and writes are throttled" if self.throttles else "",
        ]
        return ", ".join(filter(None, parts))


VARIANTS: Final = (
    Delivery("in-order"),
    Delivery("one-by-one", batch_max_records=1),
    Delivery("shuffled", shuffled=True),
    Delivery("duplicated", duplicated=True),
    Delivery("crashing", crashes=0.15),
    Delivery("throttled", throttles=0.25),
    Delivery("all-of-it", batch_max_records=10, shuffled=True, duplicated=True, crashes=0.05, throttles=0.1),
)


# ---------------------------------------------------------------- arrivals
@dataclass(frozen=True, slots=True)
class Arrival:
    """The input of one invocation: records, or a message. `tries` counts earlier attempts; `again` marks a duplicate;
    `position` is that of the newest record when the message was sent.
    """

    changes: tuple[Change, ...] = ()
    message: Message | None = None
    tries: int = 0
    again: bool = False
    position: int = 0


class InOrder:
    """Waiting records, the oldest first."""

    def __init__(self) -> None:
        self._records: deque[Change] = deque()

    def put(self, change: Change) -> None:
        self._records.append(change)

    def take(self, count: int) -> tuple[Change, ...]:
        return tuple(self._records.popleft() for _ in range(min(count, len(self._records))))

    def put_back(self, changes: Sequence[Change]) -> None:
        self._records.extendleft(reversed(changes))


class Shuffled:
    """Waiting records. It draws the next item, and the number of records, at random."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._records: dict[ItemKey, deque[Change]] = {}
        self._keys: list[ItemKey] = []  # of the items that have records

    def put(self, change: Change) -> None:
        self._of(change.key).append(change)

    def take(self, count: int) -> tuple[Change, ...]:
        count = self._random.randint(1, count)
        taken: list[Change] = []
        while self._keys and len(taken) < count:
            index = self._random.randrange(len(self._keys))
            key = self._keys[index]
            taken.append(self._records[key].popleft())
            if not self._records[key]:
                del self._records[key]
                self._keys[index] = self._keys[-1]
                self._keys.pop()
        return tuple(taken)

    def put_back(self, changes: Sequence[Change]) -> None:
        for change in reversed(changes):
            self._of(change.key).appendleft(change)

    def _of(self, key: ItemKey) -> deque[Change]:
        if key not in self._records:
            self._records[key] = deque()
            self._keys.append(key)
        return self._records[key]


class Arrivals:
    """Records, messages and duplicates that wait for delivery."""

    def __init__(self, delivery: Delivery, random: Random) -> None:
        self.position = 0  # of the newest record
        self._delivery = delivery
        self._random = random
        self._records: InOrder | Shuffled = Shuffled(random) if delivery.shuffled else InOrder()
        self._tries: Counter[str] = Counter()  # of records put back, by position
        self._messages: deque[Arrival] = deque()
        self._delayed: deque[Arrival] = deque()
        self._again: deque[Arrival] = deque()  # duplicates that come soon
        self._late: list[Arrival] = []  # duplicates that wait for `release_late`

    def record(self, key: ItemKey, old: Item | None, new: Item | None, *, expired: bool = False) -> None:
        """Add the record of a change."""
        self.position += 1
        self._records.put(
            Change(key, old, new, str(self.position), expired=expired, shrank_from=count_former_bytes(old, new))
        )

    def send(self, message: Message, delay_seconds: int) -> None:
        """Add a message. A delayed message comes after everything else."""
        (self._delayed if delay_seconds else self._messages).append(Arrival(message=message, position=self.position))

    def release_late(self) -> None:
        """Deliver late duplicates of all arrivals that are finished."""
        self._again.extend(self._late)
        self._late = []

    def next(self) -> Arrival | None:
        """Return the next arrival; None if only late duplicates are left."""
        ways: list[deque[Arrival] | None] = [None, self._again, self._messages]  # None: records
        if self._delivery.shuffled:
            self._random.shuffle(ways)
        for waiting in ways:
            arrival = self._next_records() if waiting is None else waiting.popleft() if waiting else None
            if arrival is not None:
                return arrival
        while self._delayed:
            arrival = self._delayed.popleft()
            if not self._idle(arrival):
                return arrival
        return None

    def retry(self, arrival: Arrival, failed: Iterable[ItemKey] | None = None) -> None:
        """Deliver an unfinished arrival again: all of it, or its records from the first failed item on."""
        if arrival.message is not None or arrival.again:
            (self._again if arrival.again else self._messages).append(replace(arrival, tries=arrival.tries + 1))
            return
        keys = None if failed is None else frozenset(failed)
        first = next((n for n, change in enumerate(arrival.changes) if keys is None or change.key in keys), 0)
        self.finish(replace(arrival, changes=arrival.changes[:first]))
        for change in arrival.changes[first:]:
            self._tries[change.position] = arrival.tries + 1
        self._records.put_back(arrival.changes[first:])

    def finish(self, arrival: Arrival) -> None:
        """Note a finished arrival. With duplicates, some come again soon, and all come again late."""
        for change in arrival.changes:
            self._tries.pop(change.position, None)
        if self._delivery.duplicated and not arrival.again and (arrival.changes or arrival.message):
            duplicate = replace(arrival, tries=0, again=True)
            self._late.append(duplicate)
            if self._random.random() < 1 / 2:
                self._again.append(duplicate)

    # ------------------------------------------------------------ sources
    def _next_records(self) -> Arrival | None:
        changes = self._records.take(self._delivery.batch_max_records)
        tries = max((self._tries[change.position] for change in changes), default=0)
        return Arrival(changes, tries=tries) if changes else None

    def _idle(self, arrival: Arrival) -> bool:
        """Tell whether an arrival retries parked work although nothing has changed since its last try."""
        parked = isinstance(arrival.message, PullMessage | PartMessage) and arrival.message.attempt > 1
        return parked and arrival.position == self.position
