"""A fan-out of several chunks, killed at every single call of handler or workers: every copy ends up right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.lab.recompute import differences
from sync_rules.language.load import parse_rules
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Result
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import Message, decode, encode
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store, World
from sync_rules.rules.ruleset import Rules
from tests.support.builders import s
from tests.support.worlds import Scene, event_of

TABLES = """
tables:
  authors: {key: {author_id: S}}
  books:   {key: {book_id: S}, indexes: {by_author: {author_id: S, book_id: S}}}
entities: {author: {table: authors}, book: {table: books}}
rules:
"""
RULES = {
    "renamed": "books: copy author.name into book.author_name",
    "removed": "books: {copy: author.name, into: book.author_name, on_delete: delete}",
    "collected": "shelf: {collect: book, into: author.books, as: '{book_id}'}",
}
BOOKS = {"renamed": 6, "collected": 6, "removed": 14}
TINY = Limits(
    fan_out_page_max_items=2,
    fan_out_inline_max_items=2,
    fan_out_spread_max_items=3,
    fan_out_chunk_max_items=2,
    chunk_step_max_items=1,
    apply_max_writes=2,
)
STORIES = ("renamed", "collected", "removed")


class Killed(BaseException):
    """The death of the process, which no code can catch."""


@dataclass
class Mortal:
    """A store and a queue. The process dies at its k-th call: `before` the effect, `amid` it, or `after` it."""

    store: Store
    at: int
    when: str
    calls: int = 0
    effects: list[int] = field(default_factory=list)  # the calls that change something
    in_two: set[int] = field(default_factory=set)  # the calls that can be done by half
    sent: list[tuple[Message, int]] = field(default_factory=list)

    def _call(self, call: Callable[[], Any], some: Callable[[], Any] = lambda: None) -> Any:
        self.calls += 1
        if self.calls != self.at:
            return call()
        {"before": lambda: None, "amid": some, "after": call}[self.when]()
        raise Killed

    def read(self, request: Read) -> Any:
        return self._call(lambda: self.store.read(request))

    def list(self, request: List) -> Page:
        return self._call(lambda: self.store.list(request))

    def scan(self, request: Scan) -> Page:
        return self._call(lambda: self.store.scan(request))

    def apply(self, request: Apply) -> tuple[Result, ...]:
        self.effects.append(self.calls + 1)
        if len(request.writes) > 1:
            self.in_two.add(self.calls + 1)
        return self._call(lambda: self.store.apply(request), lambda: self.store.apply(Apply(request.writes[:1])))

    def send(self, message: Message, delay_seconds: int) -> None:
        self.effects.append(self.calls + 1)
        self._call(lambda: self.sent.append((decode(encode(message)), delay_seconds)))


class Play:
    """One story, from its beginning to its end: every record and every message is delivered twice, in some order. Who
    dies is started again with the same.
    """

    def __init__(
        self, story: str, order: str, at: int = 0, when: str = "before", mortal: type[Mortal] = Mortal
    ) -> None:
        self.scene = Scene(rules_of(story), limits=TINY)
        self.hidden = begin(self.scene, story)
        self.mortal = mortal(self.scene.memory, at, when)
        self.handled: list[Message] = []
        self.deaths = 0
        self._consumer = Consumer(
            self.scene.rules, World(self.mortal, self.mortal, self.scene.parked), THIS_PROCESS, limits=TINY
        )
        self._order, self._draw = order, Random(order)
        self._known: set[str] = set()
        while self._go_on():
            pass

    def _go_on(self) -> bool:
        scene = self.scene
        if scene.records:
            changes, scene.records = scene.records, []
            event = event_of(scene.rules, *changes)
            for _ in range(2):
                self._alive(lambda: self._consumer.handle_event(event, lambda: 60_000))
            return True
        waiting = [one for one in self.mortal.sent if one[1] == 0] or self.mortal.sent  # what is delayed comes last
        if not waiting:
            return False
        one = waiting[-1] if self._order == "reversed" else waiting[self._draw.randrange(len(waiting))]
        while one[1] and self.hidden:
            self.hidden.pop()()  # the index has caught up by the time of a second look
        if encode(one[0]) in self._known:
            self.mortal.sent.remove(one)
        self._known.add(encode(one[0]))
        self.handled.append(one[0])
        self._alive(lambda: self._consumer.handle_message(one[0]))
        return True

    def _alive(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Killed:
            self.deaths += 1
            work()


@cache
def rules_of(story: str) -> Rules:
    return parse_rules(f"{TABLES}  {RULES[story]}\n")


def begin(scene: Scene, story: str) -> list[Callable[[], object]]:
    """Put the books of an author who is created or deleted. Returns functions that let the index catch up."""
    old = {"author_id": s("a1"), "author_name": s("old")}
    scene.there("books", *({"book_id": s(f"b{i}"), **old} for i in range(BOOKS[story])))
    hidden: list[tuple[Any, ...]] = []
    propagate = scene.memory.propagate
    scene.memory.propagate = lambda *change: hidden.append(change)  # type: ignore[method-assign, func-returns-value]
    scene.there("books", {"book_id": s("late"), **old})
    scene.memory.propagate = propagate  # type: ignore[method-assign]
    author = scene.put("authors", {"author_id": s("a1"), "name": s("Ada")})
    if story == "removed":
        scene.records.clear()
        scene.memory.delete(author)
    return [lambda: [propagate(*change) for change in hidden]]


def judge(played: Play, story: str, why: str) -> None:
    memory, rules = played.scene.memory, played.scene.rules
    names = [item["author_name"]["S"] for item in memory.items("books")]
    shelves = [set(item.get("books", {"SS": []})["SS"]) for item in memory.items("authors")]
    all_books = {"late", *(f"b{i}" for i in range(BOOKS[story]))}
    assert names == ([] if story == "removed" else ["Ada" if story == "renamed" else "old"] * len(all_books)), why
    assert shelves == ([] if story == "removed" else [all_books if story == "collected" else set()]), why
    assert list(differences(rules, memory)) == [], why
    assert played.scene.parked.failures == [], why


@pytest.mark.parametrize(
    ("story", "order"),
    [("renamed", "reversed"), ("renamed", "shuffled"), ("collected", "shuffled"), ("removed", "reversed"),
     ("removed", "shuffled")],
)  # fmt: skip
def test_kill_at_every_call_leaves_nothing_out(story, order):
    """No target is left out and no copy is wrong after a kill at any call, before, amid or after its effect.

    The work reads no clock and draws nothing. So a kill before a call, or at a call that only reads, leaves the same
    state as a kill after the last effect: it is enough to kill after each effect, amid it, and before the first.
    """
    alive = Play(story, order).mortal
    kills = [(1, "before"), *((at, "after") for at in alive.effects), *((at, "amid") for at in sorted(alive.in_two))]
    assert len(kills) > 20
    for at, when in kills:
        played = Play(story, order, at, when)
        assert played.deaths == 1
        judge(played, story, f"killed {when} call {at} of {alive.calls}")
