"""Mutants of large fan-outs that wait: what is to come serves what it does not cover, holds values, or gets lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.pipeline import breaker, consumer
from sync_rules.pipeline.messages import ChunkMessage, PushMessage, encode
from sync_rules.pipeline.requests import Later, Read, Request
from tests.simulation.breaking import Mutation, Work, answered, at_each_history, known
from tests.simulation.history import History
from tests.simulation.world import World as Surroundings
from tests.simulation.worlds import among

WAITING = among("waits", "often-base", "often-index", "often-keep", "often-delete", "often-index-delete", "often-two")
PLAIN = among("waits", "often-base", "often-keep")
DELETE = among("waits", "often-delete", "often-index-delete")


def served_by_what_began() -> Any:
    """Mutant: a fan-out that was sent once serves whatever comes later, also what comes after its wait has ended."""
    original = breaker.FanOutsToCome.delay_seconds

    def delay_seconds(self: Any, message: Any) -> int | None:
        return None if breaker._same_fan_out(message) in self._last else original(self, message)

    return patch.object(breaker.FanOutsToCome, "delay_seconds", delay_seconds)


def noted_before_it_is_sent() -> Any:
    """Mutant: a fan-out that the queue refused is taken as still to come."""

    def send(self: Any, message: Any, queue: Any) -> None:
        began, delay = self.clocks(), self.delay_seconds(message)
        if delay is not None:
            self.note_fan_out(message, delay, began)
            queue.send(message, delay)

    return patch.object(breaker.FanOutsToCome, "send", send)


def by_one_clock(which: int) -> Callable[[], Any]:
    """Mutant: one clock alone says if a fan-out is still to come."""
    original = breaker.FanOutsToCome.clocks
    return lambda: patch.object(breaker.FanOutsToCome, "clocks", lambda self: (original(self)[which],) * 2)


def taken_for_the_same(**alike: Any) -> Callable[[], Any]:
    """Mutant: fan-outs are taken for the same that differ in this."""
    original = breaker._same_fan_out
    return lambda: patch.object(breaker, "_same_fan_out", lambda message: original(replace(message, **alike)))


def gone_with_its_process() -> Any:
    """Mutant: what waits is held by the process, and gone when that dies."""
    original = History._die

    def _die(self: Any, worker: Any, fault: str) -> None:
        self.world.notes[:] = [note for note in self.world.notes if note.due <= self.world.now or note.parked]
        original(self, worker, fault)

    return patch.object(History, "_die", _die)


@contextmanager
def holds_the_value() -> Iterator[None]:
    """Mutant: a fan-out that waits, and its chunks, carry the source as it was when it was sent."""
    carried: dict[str, Any] = {}
    later, process_message = Surroundings.later, consumer.process_message

    def note_fan_out(self: Any, message: Any, delay_seconds: int, since: int) -> None:
        later(self, message, delay_seconds, since)
        if isinstance(message, PushMessage) and delay_seconds:
            carried[encode(message)] = self.store.read(Read((message.source,)))[0]

    def receiving(message: Any, *args: Any, **kwargs: Any) -> Work:
        text = encode(message)
        if text not in carried:
            return process_message(message, *args, **kwargs)
        item = carried[text]

        def ask(request: Request) -> Work:
            if isinstance(request, Later) and isinstance(request.message, PushMessage | ChunkMessage):
                carried[encode(request.message)] = item
            return (yield request)

        return answered(answered(process_message(message, *args, **kwargs), ask), known({message.source: item}))

    with ExitStack() as stack:
        stack.enter_context(patch.object(Surroundings, "later", note_fan_out))
        stack.enter_context(patch.object(consumer, "process_message", receiving))
        stack.enter_context(at_each_history(carried.clear))
        yield


MUTANTS = {
    "fan-out serves what came after its wait": Mutation(served_by_what_began, WAITING),
    "waiting fan-out holds the value": Mutation(holds_the_value, WAITING),
    "waiting fan-out gone with its process": Mutation(gone_with_its_process, PLAIN),
    "fan-out that was not sent serves": Mutation(noted_before_it_is_sent, PLAIN),
    "fan-out to come by the wall clock": Mutation(by_one_clock(0), PLAIN),
    "fan-out to come by the monotonic clock": Mutation(by_one_clock(1), PLAIN),
    "fan-out serves other targets": Mutation(taken_for_the_same(cursor=None), WAITING),
    "fan-out serves a removal": Mutation(taken_for_the_same(removed=False), DELETE),
}
