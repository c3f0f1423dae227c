"""Tools for mutants: change requests and answers of a generator on their way, or replace functions for a while."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from sync_rules.model.writes import Result
from sync_rules.pipeline.messages import Message
from sync_rules.pipeline.requests import Later, Read, Request

Mutant = Callable[[], Any]
Work = Generator[Request, Any, Any]


@dataclass(frozen=True)
class Mutation:
    """A removed invariant, and the worlds where the simulator must notice it. Without worlds: those of plain copies.
    `raises`: the product then raises, which is the proof; elsewhere an error is the mutant's own.
    """

    mutant: Mutant
    worlds: tuple[str, ...] = ()
    raises: bool = False


def answered(work: Work, ask: Callable[[Request], Any]) -> Work:
    """Work whose requests go through `ask`, a generator function that may change request and answer."""
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            request = work.throw(error) if error is not None else work.send(answer)
        except StopIteration as stop:
            return stop.value
        error = None
        try:
            answer = yield from ask(request)
        except Exception as thrown:  # noqa: BLE001 - whatever the world throws is for the work
            error = thrown


def results(change: Callable[[Result], Result]) -> Callable[[Request], Any]:
    """Every answer to a write is changed."""

    def ask(request: Request) -> Work:
        answer = yield request
        return tuple(change(one) for one in answer) if isinstance(answer, tuple) and _all_results(answer) else answer

    return ask


def _all_results(answer: tuple[Any, ...]) -> bool:
    return bool(answer) and all(isinstance(one, Result) for one in answer)


def wrapping(module: Any, name: str, ask: Callable[[Request], Any]) -> Mutant:
    """A generator function of a module, all of its requests going through `ask`."""
    original = getattr(module, name)
    return lambda: patch.object(module, name, lambda *args, **kwargs: answered(original(*args, **kwargs), ask))


@contextmanager
def at_each_history(forget: Callable[[], None]) -> Iterator[None]:
    """Forget what a mutant remembers before each history."""
    from tests.simulation.history import History  # noqa: PLC0415 - it plays without mutants too

    with patch.object(History, "_configure", _forgetting(History._configure, forget)):
        yield


def _forgetting(configure: Callable[[Any], None], forget: Callable[[], None]) -> Callable[[Any], None]:
    def fresh(history: Any) -> None:
        forget()
        configure(history)

    return fresh


def replacing(module: Any, name: str, function: Any) -> Mutant:
    return lambda: patch.object(module, name, function)


def unsent(dropped: Callable[[Message], object]) -> Callable[[Request], Any]:
    """Some messages are not sent."""

    def ask(request: Request) -> Work:
        if isinstance(request, Later) and dropped(request.message):
            return None
        return (yield request)

    return ask


def known(items: Mapping[Any, Any]) -> Callable[[Request], Any]:
    """Reads of these items are answered without asking."""

    def ask(request: Request) -> Work:
        if isinstance(request, Read) and all(key in items for key in request.keys):
            return tuple(items[key] for key in request.keys)
        return (yield request)

    return ask
