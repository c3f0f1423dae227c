"""Ordinary code that stops at each of its requests, so that the history decides what happens before it is answered.

Invariant: it is the code of production. It runs in a greenlet, which gives way at each request: so a request can be
answered, refused, or never return. Saving a document and waiting are requests too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from greenlet import getcurrent

from sync_rules.adapters.state import MemoryState
from sync_rules.model.items import Call, Failure
from sync_rules.pipeline.failed_entries import FailedEntry
from sync_rules.pipeline.messages import CallMessage, Message
from sync_rules.pipeline.requests import Apply, FetchCall, KeepCall, Later, List, Page, Park, Read, Scan


@dataclass(frozen=True)
class Do:
    """Anything else that happens outside once its request gets through: `act` returns its answer."""

    what: str
    act: Callable[[], Any]

    def __str__(self) -> str:
        return self.what


def ask(request: Any) -> Any:
    """Called by ordinary code: the history's answer to a request."""
    return getcurrent().parent.switch(request)


class Asking:
    """All ports of a handler or a command."""

    def read(self, request: Read) -> Any:
        return ask(request)

    def list(self, request: List) -> Page:
        return ask(request)  # type: ignore[no-any-return]

    def scan(self, request: Scan) -> Page:
        return ask(request)  # type: ignore[no-any-return]

    def apply(self, request: Apply) -> Any:
        return ask(request)

    def send(self, message: Message, delay_seconds: int) -> None:
        ask(Later(message, delay_seconds))

    def park(self, failure: Failure) -> None:
        ask(Park(failure))

    def call(self, call: Call) -> None:
        ask(call)

    def keep_call(self, message: CallMessage) -> str:
        return str(ask(KeepCall(message)))

    def fetch_call(self, place: str) -> CallMessage:
        message = ask(FetchCall(place))
        assert isinstance(message, CallMessage), "what was kept there"
        return message


class Documents:
    """The documents of a command, which outlive it."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state
        self.load = state.load

    def save(self, name: str, body: Mapping[str, Any]) -> None:
        ask(Do(f"saves {name}", lambda: self._state.save(name, body)))

    def remove(self, name: str) -> None:
        ask(Do(f"removes {name}", lambda: self._state.remove(name)))


class Shelf:
    """The place where entries that failed lie, by name: a folder, a bucket."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def entries(self) -> Iterator[FailedEntry]:
        yield from [FailedEntry(text.encode(), name, name) for name, text in self._texts.items()]

    def remove(self, entry: FailedEntry) -> None:
        ask(Do(f"removes entry {entry.handle}", lambda: self._texts.pop(entry.handle, None)))

    def replace(self, entry: FailedEntry, text: str) -> None:
        ask(Do(f"replaces entry {entry.handle}", lambda: self._texts.update({entry.handle: text})))

    def release(self, entry: FailedEntry) -> None:
        """Leave the entry where it is."""

    def close(self) -> None:
        """Nothing is held open."""
