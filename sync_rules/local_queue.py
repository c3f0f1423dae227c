"""A queue in the process, for runs without SQS: delayed messages, delivered at least once, kept in the checkpoint.

Law: a message leaves the queue only when it is acknowledged. It is safe once the checkpoint is: the record or message
that sent it is taken as done by the same write of the checkpoint that first holds it, so either both are known or the
sender comes again and sends it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from sync_rules.errors import StoreError
from sync_rules.messages import Message

DELAY_MAX_SECONDS: Final = 900  # the limit of SQS, which this stands for
PENDING_MAX_MESSAGES: Final = 100_000
RETRY_FIRST_SECONDS: Final = 1


@dataclass(frozen=True, slots=True)
class Pending:
    """A message that is to be handled at `due_ms` or later; `receives` is how often it was taken."""

    message: Message
    due_ms: int
    receives: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that is being handled. It stays in the queue, out of sight, until acknowledged or given back."""

    number: int
    message: Message
    receives: int


class LocalQueue:
    """The Queue of a pipeline that runs in one process. May be sent to from several threads."""

    def __init__(self, now_ms: Callable[[], int], pending: Iterable[Pending] = ()) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._pending = dict(enumerate(pending))  # in order of sending
        self._next_number = len(self._pending)
        self._in_flight: set[int] = set()

    def send(self, message: Message, delay_seconds: int) -> None:
        """Keep a message until its time. A delay longer than SQS allows is shortened: a look may come early.

        Raises:
            StoreError: when the queue is full; the sender's work comes again later.
        """
        delay_ms = min(delay_seconds, DELAY_MAX_SECONDS) * 1000
        with self._lock:
            if len(self._pending) >= PENDING_MAX_MESSAGES:
                raise StoreError("QueueFull", f"{PENDING_MAX_MESSAGES} messages wait already")
            self._pending[self._next_number] = Pending(message, self._now_ms() + delay_ms)
            self._next_number += 1

    def take(self, count: int) -> tuple[Taken, ...]:
        """Up to `count` messages that are due, those due first taken first."""
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
                taken.append(Taken(number, pending.message, pending.receives))
            return tuple(taken)

    def acknowledge(self, taken: Taken) -> None:
        """The message is handled and gone."""
        with self._lock:
            self._in_flight.discard(taken.number)
            del self._pending[taken.number]

    def give_back(self, taken: Taken) -> None:
        """The message comes again: after 1 second, then 2, 4, ..., at most 900."""
        delay_seconds = min(DELAY_MAX_SECONDS, RETRY_FIRST_SECONDS * 2 ** min(taken.receives - 1, 10))
        with self._lock:
            self._in_flight.discard(taken.number)
            due_ms = self._now_ms() + delay_seconds * 1000
            self._pending[taken.number] = replace(self._pending[taken.number], due_ms=due_ms)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Every message not acknowledged, those being handled included. To be kept in the checkpoint."""
        with self._lock:
            return tuple(self._pending.values())

    @property
    def due(self) -> int:
        """How many messages could be handled now."""
        with self._lock:
            now_ms = self._now_ms()
            return sum(p.due_ms <= now_ms for number, p in self._pending.items() if number not in self._in_flight)

    @property
    def waiting(self) -> int:
        """How many messages wait for their time."""
        with self._lock:
            now_ms = self._now_ms()
            return sum(p.due_ms > now_ms for p in self._pending.values())
