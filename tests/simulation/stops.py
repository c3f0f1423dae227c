"""Ordinary code that is stopped at every request, as the pipeline's generators are: a whole backfill, a whole verify.

Invariant: it is the code of production. It runs in a greenlet, which gives way at each request to the world: so a
request can be answered, refused, or never return. Saving a checkpoint and waiting are requests too.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from greenlet import GreenletExit, getcurrent, greenlet

from sync_rules.model.items import Failure
from sync_rules.model.json_bytes import tag_binary, untag_binary
from sync_rules.pipeline.failed_entries import FailedEntry
from sync_rules.pipeline.messages import Message
from sync_rules.pipeline.requests import Apply, Later, List, Page, Park, Read, Scan
from tests.simulation.breaking import Work


@dataclass(frozen=True, slots=True)
class Save:
    """Keep a document of a State; None: remove it."""

    name: str
    document: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let some time pass."""


def ask(request: Any) -> Any:
    """Called by ordinary code: the driver's answer to a request."""
    return getcurrent().parent.switch(request)


def as_work(function: Callable[[], Any]) -> Work:
    """A function as a generator of the requests that it asks. What it raises is raised."""
    lane = greenlet(function)
    try:
        request = lane.switch()
        while not lane.dead:
            try:
                answer = yield request
            except Exception as error:  # noqa: BLE001 - whatever the world throws is for the function
                request = lane.throw(error)
            else:
                request = lane.switch(answer)
        return request
    finally:
        if lane and not lane.dead:
            lane.throw(GreenletExit)


class Together:
    """Replaces a pool of threads: several works, each stopped at its requests; `pick` chooses the next."""

    def __init__(self, pick: Callable[[int], int], workers: int) -> None:
        self._pick, self._workers = pick, workers
        self._running: dict[int, tuple[Work, Any]] = {}
        self._ended: dict[int, Any] = {}
        self._errors: list[Exception] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for work, _ in self._running.values():
            work.close()

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        waiting = deque(enumerate(items))
        while waiting or self._running:
            while waiting and len(self._running) < self._workers:
                number, item = waiting.popleft()
                work = as_work(partial(function, item))
                self._go_on(number, work, partial(next, work))
            if self._running:
                number = list(self._running)[self._pick(len(self._running))]
                work, request = self._running[number]
                self._answer(number, work, request)
        if self._errors:
            raise self._errors[0]
        return [self._ended.pop(number) for number in sorted(self._ended)]

    def _answer(self, number: int, work: Work, request: Any) -> None:
        try:
            answer = ask(request)
        except Exception as error:  # noqa: BLE001 - as above
            self._go_on(number, work, partial(work.throw, error))
        else:
            self._go_on(number, work, partial(work.send, answer))

    def _go_on(self, number: int, work: Work, to_next: Callable[[], Any]) -> None:
        self._running.pop(number, None)
        try:
            self._running[number] = work, to_next()
        except StopIteration as stop:
            self._ended[number] = stop.value
        except Exception as error:  # noqa: BLE001 - it is raised when the others have ended
            self._errors.append(error)


# ---------------------------------------------------------------- the world, as ordinary code sees it
class Asking:
    """A Store, a Queue and Failures that pass every request to the driver."""

    def read(self, request: Read) -> Any:
        return ask(request)

    def list(self, request: List) -> Page:
        return ask(request)

    def scan(self, request: Scan) -> Page:
        return ask(request)

    def apply(self, request: Apply) -> Any:
        return ask(request)

    def send(self, message: Message, delay_seconds: int) -> None:
        ask(Later(message, delay_seconds))

    def park(self, failure: Failure) -> None:
        ask(Park(failure))


class Shelf:
    """A Place where what failed lies, by name: a folder, a bucket."""

    def __init__(self, documents: dict[str, str]) -> None:
        self._documents = documents

    def entries(self) -> Iterator[FailedEntry]:
        yield from [FailedEntry(text.encode(), name, name) for name, text in self._documents.items()]

    def remove(self, entry: FailedEntry) -> None:
        ask(Save(entry.handle, None))

    def replace(self, entry: FailedEntry, text: str) -> None:
        ask(Save(entry.handle, text))

    def close(self) -> None:
        """Nothing is held open."""


class Documents:
    """A State that outlives who works with it: what is saved goes through JSON, and so does what is loaded."""

    def __init__(self, documents: dict[str, str]) -> None:
        self._documents = documents

    def load(self, name: str) -> dict[str, Any] | None:
        text = self._documents.get(name)
        return None if text is None else json.loads(text, object_hook=untag_binary)

    def save(self, name: str, body: Mapping[str, Any]) -> None:
        ask(Save(name, json.dumps(body, default=tag_binary, sort_keys=True)))

    def remove(self, name: str) -> None:
        ask(Save(name, None))
