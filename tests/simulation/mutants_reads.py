"""Mutants of the reads: a source that is not read consistently, not afresh, not after the images, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from sync_rules.model import entities, lookups
from sync_rules.model.errors import StoreError
from sync_rules.pipeline import ancestors, consumer, fanout, requests, work
from sync_rules.pipeline.messages import ChunkMessage, PushMessage, format_message
from sync_rules.pipeline.requests import Later, Read, Request
from tests.simulation.breaking import Work, answered, at_each_history, known
from tests.simulation.history import History
from tests.simulation.world import place_of


class EventuallyConsistentRead(Read):
    """A read that may answer with what was there some time ago."""


@contextmanager
def eventual_read() -> Iterator[None]:
    """Mutant: sources are read as they were a while ago."""
    original, read_sources = History._read, ancestors.read_sources

    def _read(history: History, worker: Any, request: Any, part: int) -> Any:
        if not isinstance(request, EventuallyConsistentRead) or history.calm:
            return original(history, worker, request, part)
        past: list[Any] = [None, *history.world.past.get(place_of(request.keys[part]), [])]
        return past[-1 - history.choices.faults.pick(min(2, len(past)))]

    def ask(request: Any) -> Any:
        return (yield EventuallyConsistentRead(request.keys) if isinstance(request, Read) else request)

    with ExitStack() as stack:
        stack.enter_context(patch.object(History, "_read", _read))
        stack.enter_context(patch.dict(requests._ANSWERS, {EventuallyConsistentRead: requests._ANSWERS[Read]}))
        stack.enter_context(patch.object(ancestors, "read_sources", lambda *args: answered(read_sources(*args), ask)))
        yield


@contextmanager
def impossible_keys() -> Iterator[None]:
    """Mutant: links are followed even to keys that DynamoDB refuses to look up."""
    with patch.object(entities, "is_possible", _always), patch.object(lookups, "is_possible", _always):
        yield


def _always(*_args: object) -> bool:
    return True


@contextmanager
def source_first() -> Iterator[None]:
    """A push reads its source once, before it lists."""
    original = fanout.push

    def push(pushes: Any, rules: Any, bounds: Any) -> Work:
        early: dict[Any, Any] = {}
        if pushes:
            keys = tuple(dict.fromkeys(one.source for one in pushes))
            try:
                early.update(zip(keys, (yield Read(keys)), strict=True))
            except StoreError:
                early.clear()
        return (yield from answered(original(pushes, rules, bounds), known(early)))

    with patch.object(work, "push", push):
        yield


@contextmanager
def value_from_image() -> Iterator[None]:
    """Mutant: the image of a source's record is taken for the source."""
    original = consumer.process_changes

    def process(changes: Any, rules: Any, bounds: Any) -> Work:
        return answered(original(changes, rules, bounds), known({change.key: change.new for change in changes}))

    with patch.object(consumer, "process_changes", process):
        yield


@contextmanager
def value_in_message() -> Iterator[None]:
    """Mutant: messages of a push carry the value read of its source."""
    carried: dict[str, Any] = {}
    push, process_message = fanout.push, consumer.process_message

    def carrying(read: dict[Any, Any]) -> Any:
        def ask(request: Request) -> Work:
            answer = yield request
            if isinstance(request, Read):
                read.update(zip(request.keys, answer, strict=True))
            message = request.message if isinstance(request, Later) and request.delay_seconds == 0 else None
            if isinstance(message, PushMessage | ChunkMessage) and message.source in read:
                carried.setdefault(format_message(message), read[message.source])
            return answer

        return ask

    def receiving(message: Any, rules: Any, bounds: Any, *, again: bool) -> Work:
        text = format_message(message)
        items = {message.source: carried[text]} if text in carried else {}
        return answered(
            answered(process_message(message, rules, bounds, again=again), carrying(dict(items))), known(items)
        )

    with ExitStack() as stack:
        stack.enter_context(patch.object(work, "push", lambda *args: answered(push(*args), carrying({}))))
        stack.enter_context(patch.object(consumer, "process_message", receiving))
        stack.enter_context(at_each_history(carried.clear))
        yield
