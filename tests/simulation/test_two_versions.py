"""Two versions of a counter under one name, deployed and rolled back while backfills run: which numbers are ever shown.

Three orders never change what counts, so either version has one right number, and every mixture of their books, or half
of them, has another. An observer looks at each write of the number. Workers stop at each request, die, and leave writes
behind; records come again. One thing is kept out: the late write of a version whose books were begun by the other one
meanwhile. It may be seen for a moment, until the record of its entry is processed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.backfill import backfill_run
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change
from sync_rules.model.limits import Bounds
from sync_rules.model.writes import Transaction, Write
from sync_rules.pipeline import parts, sources
from sync_rules.pipeline.books import books_of, read_waiting
from sync_rules.pipeline.consumer import process
from sync_rules.pipeline.requests import Apply, List, Read, Scan, World, run_work
from sync_rules.rules.books import Books
from sync_rules.rules.ruleset import Rules
from tests.simulation.breaking import Work
from tests.simulation.errands import one_at_a_time
from tests.simulation.stops import Asking, as_work
from tests.support.builders import n, s

TABLES = """
tables: {users: {key: {user: S}}, orders: {key: {order: S}}, ledger: {key: {PK: S, SK: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules:
  number:
"""
WORLDS = {
    "sum": ("{sum: order.a, into: user.number}", "{sum: order.b, into: user.number}", "7", "70"),
    "max": ("{max: order.a, into: user.number}", "{max: order.b, into: user.number}", "4", "40"),
}
APPLICATION = "1000"  # the number that stood before there was a rule
HISTORIES = 40  # of each world
CATCHES = 600  # histories in which a mutant must be caught
STORM_MAX_STEPS = 260
SWITCHES = 3


class ShownError(Exception):
    """A number was shown that no version of the rule has."""


@dataclass(eq=False)
class Task:
    """Work of one version, at a request. `record` comes again when it dies; `marks`: it looked at the mark."""

    work: Work
    rules: Rules
    record: Change | None = None
    request: Any = None
    marks: bool = False


@dataclass(eq=False)
class History:
    """One history, drawn by its random numbers."""

    versions: tuple[Rules, Rules]
    right: tuple[str, str]
    random: Random
    records: list[Change] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    late: list[tuple[Task, Write]] = field(default_factory=list)
    running: int = 0
    calm: bool = False

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.versions[0].tables)
        for number, (a, b) in enumerate((("1", "10"), ("2", "20"), ("4", "40"))):
            self.store.put("orders", {"order": s(f"o{number}"), "user": s("u"), "a": n(a), "b": n(b)})
        self.store.put("users", {"user": s("u"), "number": n(APPLICATION)})
        self.store.on_change = self._changed
        (self.mark,) = {books.mark for books in books_of(self.versions[0]).values()}
        self.deaths, self.errors, self.backfills = 4, 3, 3
        self.states = MemoryState(), MemoryState()  # one that died goes on, perhaps after the other version ran
        self.writer = self.rules  # the version of the last write

    @property
    def rules(self) -> Rules:
        return self.versions[self.running]

    def _changed(self, key: Any, old: Any, new: Any) -> None:
        self.records.append(Change(key, old, new, in_order=False))
        if key.table == "users" and new["number"]["N"] != self.right[self.versions.index(self.writer)]:
            raise ShownError(f"{new['number']['N']} is not what the version that wrote it counts")

    # ------------------------------------------------------------ what may happen
    def play(self) -> None:
        if self.random.random() < 0.5:  # the first version was there before
            self._start_backfill()
            self._drain()
        switches = sorted(self.random.sample(range(STORM_MAX_STEPS), SWITCHES))
        for step in range(STORM_MAX_STEPS):
            if step in switches:
                self.running = 1 - self.running
            self.random.choice(
                (self._touch, self._deliver, self._deliver, self._backfill, *[self._work] * 8, self._land)
            )()
        self.calm = True
        self._drain()
        for _ in range(2):  # one that goes on from before a rollback may not complete the books, and says so
            self._start_backfill()
            self._drain()
        user = self.store.items("users")[0]
        assert user["number"] == n(self.right[self.running])
        assert not run_work(read_waiting(self.rules), World(self.store, Nothing(), Nothing()))

    def _drain(self) -> None:
        while self.tasks or self.records or self.late:
            self._work() if self.tasks else self._land() if self.late else self._deliver()

    def _touch(self) -> None:
        """An order gets a record: as if it had been put just now."""
        item = self.random.choice(self.store.items("orders"))
        key = self.versions[0].tables["orders"].key_of(item)
        assert key is not None
        self.records.append(Change(key, None, item, in_order=False))

    def _deliver(self) -> None:
        if self.records:
            record = self.records.pop(self.random.randrange(len(self.records)))
            if not self.calm and self.random.random() < 0.1:
                self.records.append(record)
            self._begin(Task(process([record], self.rules, Bounds()), self.rules, record))

    def _backfill(self) -> None:
        if self.backfills and self.random.random() < 0.2:
            self.backfills -= 1
            self._start_backfill()

    def _start_backfill(self) -> None:
        rules, names, version = self.rules, frozenset(self.rules.rules), self.running

        def run() -> None:
            BackfillRun(
                Selection(rules, names), Asking(), Asking(), self.states[version], {},
                supplies=segments(rules, 2), completes=names, sleep=lambda _seconds: None,
            ).run()  # fmt: skip

        self._begin(Task(as_work(run), rules))

    def _begin(self, task: Task) -> None:
        self.tasks.append(task)
        self._go_on(task, lambda: next(task.work))

    def _work(self) -> None:
        if not self.tasks:
            return
        task = self.random.choice(self.tasks)
        if not self.calm and self.deaths and self.random.random() < 0.02:
            self.deaths -= 1
            self._die(task)
        elif not self.calm and self.errors and isinstance(task.request, Read | List) and self.random.random() < 0.03:
            self.errors -= 1
            self._go_on(task, lambda: task.work.throw(StoreError("ThrottlingException")))
        else:
            self._answer(task)

    def _die(self, task: Task, *, leaves_writes: bool = True) -> None:
        self.tasks.remove(task)
        if leaves_writes and isinstance(task.request, Apply):
            self.late += [(task, write) for write in task.request.writes]
        if task.record is not None:
            self.records.append(task.record)
        task.work.close()

    def _land(self) -> None:
        if self.late:
            task, write = self.late.pop(self.random.randrange(len(self.late)))
            if not self._outlived(task, write):
                self.writer = task.rules
                self.store.apply(Apply((write,)))

    def _go_on(self, task: Task, on: Callable[[], Any]) -> None:
        try:
            task.request = on()
        except StopIteration as end:
            self.tasks.remove(task)
            if task.record is not None and getattr(end.value, "failed", None):
                self.records.append(task.record)
        except StoreError:  # a command ends where it cannot go on
            assert task.record is None, "a handler reports its errors"
            self.tasks.remove(task)

    def _answer(self, task: Task) -> None:
        request, answer = task.request, None
        if isinstance(request, Apply) and any(self._outlived(task, write) for write in request.writes):
            self._die(task, leaves_writes=False)
            return
        match request:
            case Read():
                task.marks |= self.mark in request.keys
                answer = self.store.read(request)
            case List():
                answer = self.store.list(request)
            case Scan():
                answer = self.store.scan(request)
            case Apply():
                self.writer = task.rules
                answer = self.store.apply(request)
        self._go_on(task, lambda: task.work.send(answer))

    def _outlived(self, task: Task, write: Write) -> bool:
        """True for a booking of a version that began its books, and whose books are another version's by now."""
        if not task.marks or not isinstance(write, Transaction):
            return False
        mark = self.store.item(self.mark)
        return all(books.begun(mark) is None for books in books_of(task.rules).values())


class Nothing:
    """A Queue and Failures that take nothing."""

    def send(self, message: object, _delay_seconds: int) -> None:
        raise AssertionError(message)

    def park(self, failure: object) -> None:
        raise AssertionError(failure)


@cache
def parsed(rule: str) -> Rules:
    return parse_rules(f"{TABLES.rstrip()} {rule}\n")


def play(world: str, seed: int) -> None:
    """Play one history. Raises ShownError."""
    first, second, *right = WORLDS[world]
    versions = parsed(first), parsed(second)
    random = Random(f"{world}/{seed}")
    with one_at_a_time(random.randrange):
        history = History(versions, (right[0], right[1]), random)
        try:
            history.play()
        finally:
            for task in history.tasks:
                task.work.close()


@pytest.mark.parametrize("world", WORLDS)
def test_no_number_is_shown_that_no_version_counts(world: str):
    """Whatever is deployed, rolled back and backfilled, and wherever it dies; and in the end the number is right."""
    for seed in range(HISTORIES):
        play(world, seed)


# ---------------------------------------------------------------- the invariants, removed one by one
def set_too_early() -> AbstractContextManager[object]:
    """The mark is complete before the first child is looked at."""
    begin_all, finish_all = backfill_run.begin_all, backfill_run.finish_all

    def early(rules: Rules, names: Any) -> Work:
        begun = yield from begin_all(rules, names)
        yield from finish_all(rules, begun)
        return begun

    return patch.object(backfill_run, "begin_all", early)


def read_too_late() -> AbstractContextManager[object]:
    """The mark is read after the totals alone."""
    read_marks = sources.read_marks

    def late(books: Any) -> Work:
        return (
            {one: one.finish(None, 1).item for one in books}
            if isinstance(books, dict)
            else (yield from read_marks(books))
        )

    return patch.object(sources, "read_marks", late)


def not_read_again() -> AbstractContextManager[object]:
    """The mark is read before the totals alone."""
    read_marks = sources.read_marks

    def once(books: Any) -> Work:
        return (yield from read_marks(books)) if isinstance(books, dict) else {}

    return patch.object(sources, "read_marks", once)


def of_another_fingerprint() -> AbstractContextManager[object]:
    """The mark of any version counts."""
    return patch.object(Books, "begun", lambda _self, mark: None if mark is None else int(mark["begun"]["N"]))


def not_begun_before_the_first_entry() -> AbstractContextManager[object]:
    """A handler books without a look at the mark."""

    def begin(books: Any) -> Work:
        return dict.fromkeys(books, 1)
        yield

    return patch.object(parts, "begin", begin)


def begun_again_meanwhile() -> AbstractContextManager[object]:
    """A backfill completes its books though another version began them in its middle, and this one once more."""
    begin_all, finish_all = backfill_run.begin_all, backfill_run.finish_all

    def loose(rules: Rules, begun: Any) -> Work:
        return (yield from finish_all(rules, (yield from begin_all(rules, begun))))

    return patch.object(backfill_run, "finish_all", loose)


MUTANTS = {  # and the history that caught each when last searched, which is tried first
    set_too_early: 0,
    read_too_late: 11_362,
    not_read_again: 8,
    of_another_fingerprint: 1,
    not_begun_before_the_first_entry: 1,
    begun_again_meanwhile: 33,
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_removed_invariant_shows_a_wrong_number(mutant: Callable[[], AbstractContextManager[object]]):
    """Each mutant is caught within some histories."""
    with mutant():
        assert any(not right(seed) for seed in (MUTANTS[mutant], *range(CATCHES)))


def right(seed: int) -> bool:
    try:
        play("sum", seed)
    except (ShownError, AssertionError):
        return False
    return True
