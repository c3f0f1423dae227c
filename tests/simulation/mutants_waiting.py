"""Mutants of large fan-outs that wait: what is to come serves what it does not cover, holds values, or gets lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from sync_rules.pipeline import breaker, consumer
from sync_rules.pipeline.messages import ChunkMessage, PushMessage, format_message
from sync_rules.pipeline.requests import Later, Read, Request
from tests.simulation.breaking import Mutation, Work, answered, at_each_history, known
from tests.simulation.world import World as Surroundings
from tests.simulation.worlds import among, small


def served_by_what_began() -> Any:
    """Mutant: a fan-out that was sent once serves whatever comes later, also what comes after its wait has ended."""
    original = breaker.FanOutsToCome.delay_seconds

    def delay_seconds(self: Any, message: Any) -> int | None:
        return None if breaker._format_fan_out(message) in self._last else original(self, message)

    return patch.object(breaker.FanOutsToCome, "delay_seconds", delay_seconds)


def noted_before_it_is_sent() -> Any:
    """Mutant: a fan-out that the queue refused is taken as still to come."""

    def send(self: Any, message: Any, queue: Any) -> None:
        began, delay = self.read_clocks(), self.delay_seconds(message)
        if delay is not None:
            self.note_fan_out(message, delay, began)
            queue.send(message, delay)

    return patch.object(breaker.FanOutsToCome, "send", send)


@contextmanager
def holds_the_value() -> Iterator[None]:
    """Mutant: a fan-out that waits, and its chunks, carry the source as it was when it was sent."""
    carried: dict[str, Any] = {}
    later, process_message = Surroundings.later, consumer.process_message

    def note_fan_out(self: Any, message: Any, delay_seconds: int, since: int) -> None:
        later(self, message, delay_seconds, since)
        if isinstance(message, PushMessage) and delay_seconds:
            carried[format_message(message)] = self.store.read(Read((message.source,)))[0]

    def receiving(message: Any, *args: Any, **kwargs: Any) -> Work:
        text = format_message(message)
        if text not in carried:
            return process_message(message, *args, **kwargs)
        item = carried[text]

        def ask(request: Request) -> Work:
            if isinstance(request, Later) and isinstance(request.message, PushMessage | ChunkMessage):
                carried[format_message(request.message)] = item
            return (yield request)

        return answered(answered(process_message(message, *args, **kwargs), ask), known({message.source: item}))

    with ExitStack() as stack:
        stack.enter_context(patch.object(Surroundings, "later", note_fan_out))
        stack.enter_context(patch.object(consumer, "process_message", receiving))
        stack.enter_context(at_each_history(carried.clear))
        yield


MUTANTS = {
    "fan-out serves what came after its wait": Mutation(served_by_what_began, among("waits", "often-index")),
    "waiting fan-out holds the value": Mutation(holds_the_value, small("waits", "copy", how="often-")),
    "fan-out that was not sent serves": Mutation(noted_before_it_is_sent, among("waits", "often-base")),
}
