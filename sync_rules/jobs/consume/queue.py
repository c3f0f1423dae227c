"""A queue in the process, for runs without SQS: delayed messages, delivered at least once, kept in the checkpoint.

Invariant: a message leaves the queue only when it is acknowledged. One write of the checkpoint both holds a message for
the first time and marks its sender as done: so both are known, or the sender comes again and sends it again.

A message is handled by reading everything afresh, so one look serves all requests made before it began, if it is not
too early for any of them. Of equal messages that wait, these are kept:
- of pulls of a target, one: a pull is never too early, so it has the earliest time, and the lowest attempt, because a
  later change deserves all of its tries;
- of equal chunks, one: a chunk is never too early either;
- of equal pushes, the earliest and the latest. A second look must come its whole delay after the push that asked for it
  (an index may lag that long), so only the latest serves all. But while a source changes all the time, each new push
  puts the latest off. Once the earliest is taken, the latest is the next: a look is at most one delay late, and in any
  delay there are at most two.
A message that is being handled may have read already, and serves no request made after it was taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import DELAY_MAX_SECONDS
from sync_rules.pipeline.messages import ChunkMessage, Message, PullMessage, format_message

PENDING_MAX_MESSAGES: Final = 10_000
RETRY_FIRST_SECONDS: Final = 1


@dataclass(frozen=True, slots=True)
class Pending:
    """A message to handle at `due_ms` or later. `receives` counts how often it was taken; `body` is its text, encoded
    once.
    """

    message: Message
    due_ms: int
    receives: int = 0
    body: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.body:
            object.__setattr__(self, "body", format_message(self.message))

    @property
    def look(self) -> ItemKey | str:
        """A value that is equal for all messages that one read of the tables answers."""
        return self.message.target if isinstance(self.message, PullMessage) else self.body


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that is being handled. It stays in the queue, hidden, until it is acknowledged or given back."""

    number: int
    message: Message
    receives: int


def coalesce(waiting: Sequence[Pending]) -> tuple[Pending, ...]:
    """Return the messages to keep, of those that wait for the same look. The module's docstring gives the rules."""
    first, last = min(waiting, key=lambda p: p.due_ms), max(waiting, key=lambda p: p.due_ms)
    pulls = [p.message for p in waiting if isinstance(p.message, PullMessage)]
    if pulls:
        message = min(pulls, key=lambda pull: pull.attempt)
        return (Pending(message, first.due_ms, max(p.receives for p in waiting)),)
    if first.due_ms == last.due_ms or isinstance(first.message, ChunkMessage):
        return (replace(first, receives=max(p.receives for p in waiting)),)
    return first, last


class LocalQueue:
    """The Queue of a pipeline that runs in one process. Several threads may send to it."""

    def __init__(self, now_ms: Callable[[], int], pending: Iterable[Pending] = ()) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._pending: dict[int, Pending] = {}
        self._next_number = 0
        self._in_flight: set[int] = set()
        self._waiting: dict[ItemKey | str, list[int]] = {}  # messages not in flight, by their look
        latest_ms = now_ms() + DELAY_MAX_SECONDS * 1000  # a later time was noted while the system's clock was ahead
        for one in pending:
            self._add(replace(one, due_ms=min(one.due_ms, latest_ms)))

    def send(self, message: Message, delay_seconds: int) -> None:
        """Keep a message until it is due. A delay longer than SQS allows is shortened.

        Raises:
            StoreError: QueueFull, above `PENDING_MAX_MESSAGES`. Nothing is lost: the sender is not finished, and is
                delivered again.
        """
        delay_ms = min(delay_seconds, DELAY_MAX_SECONDS) * 1000
        with self._lock:
            self._add(Pending(message, self._now_ms() + delay_ms), pending_max=PENDING_MAX_MESSAGES)

    def take(self, count: int) -> tuple[Taken, ...]:
        """Take up to `count` messages that are due, the earliest first."""
        with self._lock:
            now_ms = self._now_ms()
            due = [
                number for number, p in self._pending.items() if p.due_ms <= now_ms and number not in self._in_flight
            ]
            taken = []
            for number in sorted(due, key=lambda number: self._pending[number].due_ms)[:count]:
                pending = replace(self._pending[number], receives=self._pending[number].receives + 1)
                self._pending[number] = pending
                self._in_flight.add(number)
                self._forget_message(number)
                taken.append(Taken(number, pending.message, pending.receives))
            return tuple(taken)

    def acknowledge(self, taken: Taken) -> None:
        """Remove a message that was handled."""
        with self._lock:
            self._in_flight.discard(taken.number)
            del self._pending[taken.number]

    def give_back(self, taken: Taken) -> None:
        """Deliver a message again after 1 second, then 2, 4, ..., at most 900. An equal waiting message absorbs it."""
        delay_seconds = min(DELAY_MAX_SECONDS, RETRY_FIRST_SECONDS * 2 ** min(taken.receives - 1, 10))
        with self._lock:
            self._in_flight.discard(taken.number)
            due_ms = self._now_ms() + delay_seconds * 1000
            self._add(replace(self._pending.pop(taken.number), due_ms=due_ms))

    @property
    def pending_messages(self) -> tuple[Pending, ...]:
        """All messages that are not acknowledged, also those being handled. The checkpoint stores them."""
        with self._lock:
            return tuple(self._pending.values())

    @property
    def due(self) -> int:
        """Number of messages that could be handled now."""
        with self._lock:
            now_ms = self._now_ms()
            return sum(p.due_ms <= now_ms for number, p in self._pending.items() if number not in self._in_flight)

    @property
    def waiting_count(self) -> int:
        """Number of messages whose delay has not passed."""
        with self._lock:
            now_ms = self._now_ms()
            return sum(p.due_ms > now_ms for p in self._pending.values())

    def _add(self, new: Pending, *, pending_max: int | None = None) -> None:
        numbers = self._waiting.get(new.look, [])
        kept = coalesce([*(self._pending[number] for number in numbers), new])
        if pending_max is not None and len(kept) > len(numbers) and len(self._pending) >= pending_max:
            raise StoreError("QueueFull", f"{pending_max} messages wait already")
        for number in numbers:
            del self._pending[number]
        self._waiting[new.look] = list(range(self._next_number, self._next_number + len(kept)))
        self._pending.update(zip(self._waiting[new.look], kept, strict=True))
        self._next_number += len(kept)

    def _forget_message(self, number: int) -> None:
        look = self._pending[number].look
        self._waiting[look].remove(number)
        if not self._waiting[look]:
            del self._waiting[look]
