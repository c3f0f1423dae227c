"""Processes that let large fan-outs of a source wait for each other: what they know of them, their clocks, their deaths.

Invariant: the pipeline's own code decides what is sent, when, and what is served by what is still to come. A process
that dies forgets, and one of the two clocks of a history may fall behind, as where a process was frozen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext

from sync_rules.model.errors import StoreError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.breaker import PendingWork
from sync_rules.pipeline.messages import Message, PushMessage
from sync_rules.pipeline.requests import NULL_PORTS, Host, Later, World
from tests.simulation.choices import Choices

PROCESSES_MAX = 2
BEHIND_MAX_SECONDS = 40


class Clock:
    """The time of a history, in seconds: a step takes one. `behind`: by how much the worse of its clocks is late."""

    def __init__(self, choices: Choices) -> None:
        self.seconds = 0
        self.behind = 0
        self._worse = choices.configuration.pick(2)

    def read(self, which: int) -> float:
        return float(self.seconds - self.behind * (which == self._worse))


class Process:
    """One process, and the queue that it sends to."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        host = Host(lambda: clock.read(0), lambda: clock.read(1), nullcontext)
        self.pending = PendingWork(limits, host)
        self._world = World(NULL_PORTS, self, NULL_PORTS, pending=self.pending)
        self._sent: list[tuple[Message, int]] = []
        self._fault: str | None = None

    def ask(self, request: Later, fault: str | None) -> tuple[list[tuple[Message, int]], bool]:
        """Send what a request asks for. Returns what is in the queue, and true if the sender knows of it."""
        self._sent, self._fault = [], fault
        try:
            self._world.answer(request)
        except StoreError:
            return self._sent, False
        return self._sent, True

    def send(self, message: Message, delay_seconds: int) -> None:
        """A Queue: it may refuse a message, or take it and not say so."""
        if self._fault != "throttle":
            self._sent.append((message, delay_seconds))
        if self._fault is not None:
            raise StoreError(self._fault)


class Processes:
    """All processes of a history. Workers are spread over them by their numbers."""

    def __init__(self, limits: Limits, choices: Choices, seen: Counter[tuple[str, str]]) -> None:
        self.clock = Clock(choices)
        self._seen, self._pick = seen, choices.faults.pick
        self._make: Callable[[], Process] = lambda: Process(limits, self.clock)
        self._apart = choices.configuration.pick(2) == 1  # messages are taken by processes that send none of these
        self._processes = [self._make() for _ in range(1 + choices.configuration.pick(PROCESSES_MAX))]

    def begins(self, worker: int, message: Message | None) -> None:
        """A worker begins, with a message or not. A clock may have fallen behind meanwhile."""
        if self._pick(6) == 5:
            self.clock.behind += self._pick(BEHIND_MAX_SECONDS)
            self._seen["clock", "behind"] += 1
        if message is not None and not self._apart:
            self._processes[worker % len(self._processes)].pending.begins(message)

    def send(self, worker: int, request: Later, fault: str | None) -> tuple[list[tuple[Message, int]], bool]:
        """Send what a worker asks for: what is in the queue now, and true if the worker knows of it."""
        sent, known = self._processes[worker % len(self._processes)].ask(request, fault)
        if known and not sent:
            self._seen["later", "served"] += 1
        if fans_out(request) and any(delay for _, delay in sent):
            self._seen["later", "waiting"] += 1
        return sent, known

    def dies(self, worker: int) -> None:
        """The process of a worker is gone, with all that it knew."""
        self._processes[worker % len(self._processes)] = self._make()


def fans_out(request: Later) -> bool:
    """True if a request hands a large fan-out over, which may have to wait, or be served."""
    return bool(request.rules) and isinstance(request.message, PushMessage)
