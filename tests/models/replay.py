"""Play counterexamples of the models on the code: a mutant makes the same steps and ends as wrongly.

A step of a model is a request of the pipeline's own generators, or a write of an application, in the store of the
simulator. `tables.py` says which. A look of a model is one task of a record: one push, pull or part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from unittest.mock import patch

from sync_rules.jobs.backfill.page import Selection, process_items
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.writes import Check, Result, Status, Transaction
from sync_rules.pipeline import books, consumer
from sync_rules.pipeline.messages import Message, find_item
from sync_rules.pipeline.records import read_event, split_changes
from sync_rules.pipeline.requests import Apply, Later, List, Read, Scan, Together, Work
from sync_rules.pipeline.tasks import Tasks
from sync_rules.rules.ruleset import Rules
from tests.models.__main__ import PAGE
from tests.simulation.breaking import Mutant
from tests.simulation.grammar import made_of
from tests.simulation.oracle import Oracle
from tests.simulation.safety import UnsafeError
from tests.simulation.spec import Item, Place
from tests.simulation.transacting import Given, Submit, Writing, land, make
from tests.simulation.world import Direct, World, key_of
from tests.simulation.worlds import made_in

QUIET_MAX_ROUNDS: Final = 100
LOOKS_MAX: Final = 2  # at a parked item, until the end
KINDS: Final = {"read": Read, "list": List, "write": Apply, "throttle": Apply, "die": Apply, "lose": Apply}
RESULTS: Final = ("written", "refused", "removed")
Step = tuple[str, ...]  # a verb, and its words, which {0} and {1} complete with the numbers of the model's step


def judge_copies(replay: Replay) -> str:
    """Return what the simulator's oracle finds wrong."""
    return "\n".join(replay.oracle.look(replay.world.items).wrong)


@dataclass(frozen=True)
class Table:
    """How a model's steps are those of the code. A verb that ends in "?" may find nothing to do.

    `world` is a rules file, or a name of one. `first` are the steps before the first one, `last` those after the last.
    `mutants` removes from the code what a line removes from the model. `without`: what its settings remove anyway.
    """

    model: str
    world: str
    first: tuple[Step, ...]
    steps: Mapping[str, Step]
    mutants: Mapping[str, str | Mutant]
    last: tuple[Step, ...] = ()
    watch: Callable[[Replay, Worker, Any], None] = lambda *_: None  # sees each request before its answer
    judge: Callable[[Replay], str] = judge_copies  # says what is wrong at the end
    without: tuple[str, ...] = ()
    older: str = ""  # the rules file of the version before
    bounds: Mapping[str, Any] = field(default_factory=dict)


def traces(model: str) -> dict[str, tuple[str, ...]]:
    """The counterexamples of the page, by the line that is removed from a model."""
    section = PAGE.read_text().partition(f"`tests/models/{model}.pml`")[2].partition("\n## ")[0]
    found = re.findall(r"\*\*Without `(\w+)`\*\*[^\n]*\n\n```text\n(.*?)\n```", section, re.DOTALL)
    return {line: tuple(steps.splitlines()) for line, steps in found}


def words_of(key: ItemKey) -> str:
    """A key as a table writes it: `orders x 0`."""
    return " ".join((key.table, *(str(value) for _, _, value in key.values)))


@dataclass(eq=False)
class Look:
    """One task of a record, which comes again if it is not finished."""

    name: str
    tasks: Tasks
    changes: Sequence[Change]


@dataclass(eq=False)
class Worker:
    """A worker at one of its requests, with a task or a message. `notes` are those of the model's table."""

    work: Work[Any]
    look: Look | None = None
    message: Message | None = None
    request: Any = None
    results: dict[int, Result] = field(default_factory=dict)  # of the writes of this request that are made
    notes: dict[str, Any] = field(default_factory=dict)

    def is_at(self, kind: type, start: str, value: str = "") -> bool:
        """True if it waits for the answer to such a request."""
        if not isinstance(self.request, kind):
            return False
        left = self.left if isinstance(self.request, Apply) else (self.request,)
        return any(one.startswith(start) for part in left for one in _names(part)) and value in str(self.request)

    @property
    def left(self) -> tuple[Any, ...]:
        """The writes that are not made yet."""
        return tuple(one for number, one in enumerate(self.request.writes) if number not in self.results)


def _stops(steps: Iterable[Step]) -> Iterator[tuple[type, str]]:
    """The requests that a table names: there a worker waits for the step that answers it."""
    for verb, *words in steps:
        if kind := KINDS.get(verb.rstrip("?")):
            skipped = words[1:] if kind is Read else words[2:]
            yield kind, words[0].partition("{")[0]
            yield from ((Read, one) for one in skipped)


def _names(request: Any) -> Iterator[str]:
    """The names of the items that a request or a write is about."""
    match request:
        case List():
            yield request.table
        case Read():
            yield from map(words_of, request.keys)
        case Transaction():
            yield from (words_of(one.key) for one in request.actions if not isinstance(one, Check))
        case Scan():
            return
        case _:
            yield words_of(request.key)


class Replay:
    """The code, step by step. `strict`: each step of a trace must be one that the code can make."""

    def __init__(self, table: Table, *, strict: bool) -> None:
        made = made_of(table.world)[0] if "\n" in table.world else made_in(table.world)
        before = made_of(table.older)[0] if table.older else made
        assert made is not None
        assert before is not None
        self.table, self.strict, self.versions = table, strict, (before.rules, made.rules)
        self.rules = before.rules
        self.world = World(made, Counter(), lambda _text: None)
        self.oracle = Oracle(made.spec)
        self.looks: list[Look] = []
        self.over: list[Look] = []
        self.workers: list[Worker] = []
        self.messages: list[Message] = []
        self.received: list[Message] = []
        self.flying: list[Any] = []
        self.begun: dict[str, int] = {}
        self.steps: Iterator[str] = iter(())
        self.arrived = False  # a late write, whose result is the next step
        self.stops = list(_stops(table.steps.values()))

    # ---------------------------------------------------------------- a trace
    def play(self, steps: Iterable[str]) -> str:
        """Play a trace, and then all that is left to do. Returns what is wrong, "" for nothing."""
        steps = tuple(steps)
        try:
            for verb, *words in self.table.first:
                self._act(verb, words, ())
            self.world.store.lag |= any(step.startswith("the index follows") for step in steps)
            self.steps = iter(steps)
            for step in self.steps:
                self._do(step)
            self.rest()
            for verb, *words in self.table.last:
                self._act(verb, words, ())
                self.rest()
        except UnsafeError as error:
            return str(error)
        return self.table.judge(self)

    def _do(self, step: str) -> None:
        """Make a step of the model. Raises LookupError if the code cannot make it, and must."""
        row, numbers = self._row(step)
        if self.arrived and step.startswith(RESULTS):
            self.arrived = False
            return
        self.arrived = row[0] == "late"
        done = self._act(row[0].rstrip("?"), row[1:], numbers)
        if self.strict and not done and not row[0].endswith("?"):
            raise LookupError(f"the code cannot do: {step}")

    def _row(self, step: str) -> tuple[Step, tuple[str, ...]]:
        """The row of a step, and its numbers."""
        for name, row in self.table.steps.items():
            if match := re.fullmatch(re.escape(name).replace(r"\#", r"(-?\d+)"), step):
                return row, match.groups()
        raise AssertionError(f"no row for: {step}")

    def _act(self, verb: str, words: Iterable[str], numbers: Iterable[str]) -> bool:
        said = [word.format(*numbers) for word in words]
        return bool(getattr(self, verb)(*said))

    # ---------------------------------------------------------------- applications
    def put(self, *items: str) -> bool:
        """Put items; of one that begins with "-" only its key matters: it is deleted."""
        return any(tuple(self.world.operate(*self._item(item)) for item in items))

    def put_before(self, *items: str) -> bool:
        """Put items that are there before the first record."""
        for item in items:
            self.world.quietly(*self._item(item))
        return True

    def change(self, key: str, *values: str) -> bool:
        """Set attributes of an item; an empty value removes one."""
        place, _ = self._item(key)
        item = {**(self.world.items.get(place) or self._item(key)[1] or {}), **_attributes(values)}
        return self.world.operate(place, {name: value for name, value in item.items() if value != {"S": ""}})

    def sweep(self, table: str) -> bool:
        """A backfill looks at the items of a table."""
        places = [place for place in self.world.items if place[0] == table]
        for place in places:
            self.world.insert_again(place)
        return bool(places)

    def _item(self, text: str) -> tuple[Place, Item | None]:
        table, *values = text.removeprefix("-").split()
        item = _attributes(values)
        return self.world.made.spec.tables[table].place(item), None if text.startswith("-") else item

    def transact(self, entity: str, item: str) -> bool:
        """An application puts an item by a transaction. It has read, and makes the steps until `commit` first."""
        place, new = self._item(item)
        writing = Writing(1, [Given("put", entity, place, new or {})], [])

        def send(submit: Submit) -> None:
            for step in self.steps:
                if self._row(step)[0][0] == "commit":
                    break
                self._do(step)
            land(self.world, submit)

        return not isinstance(make(writing, self.rules, self.world.made.spec, Direct(self.world), send), str)

    # ---------------------------------------------------------------- books
    def begin(self) -> bool:
        """Begin the books of all rules."""
        self.begun = self._run(books.begin_all_books(self.rules, {rule.name for rule in books.list_books(self.rules)}))
        return True

    def finish(self, *rules: str) -> bool:
        """A backfill marks the books of some rules complete, and looks at the items that show them."""
        names = [f"{rule}.ledger" for rule in rules]
        done = self._run(books.finish_all_books(self.rules, {name: self.begun[name] for name in names}))
        for entity in {entity for rule in rules for entity in self.rules.rules[rule].swept_entities}:
            self.sweep(entity.table.name)
        return bool(done)

    def count(self, *items: str) -> bool:
        """Put items, and all that the books have of them."""
        self.put(*items)
        self._take_records()
        while look := next((one for one in self.looks if one.name.startswith("part ledger")), None):
            self.look(look.name)
            while any(worker.look is look for worker in self.workers):
                self._step(object)
            self._take_records()
        return True

    def restart(self, *items: str) -> bool:
        """Another version of the rules begins the books, and removes these items from them."""
        self.put_before(*(item for item in items if self._item(item)[0] in self.world.items))
        self._run(books.restart_books(books.list_books(self.rules).values()))
        return self.begin()

    def _run(self, work: Work[Any]) -> Any:
        answer = None
        try:
            while True:
                answer = self._answer(work.send(answer))
        except StopIteration as stop:
            return stop.value

    # ---------------------------------------------------------------- workers
    def look(self, name: str, start: str = "") -> bool:
        """Begin with a task, and perhaps with its first read; a record that is over may be delivered again."""
        self._take_records()
        look = next((one for one in (*self.looks, *self.over) if one.name.startswith(name)), None)
        if look is None:
            return False
        if look in self.looks:
            self.looks.remove(look)
        with patch.object(consumer, "make_tasks", lambda *_: look.tasks):  # the first request comes after it was called
            self._resume(Worker(consumer.process_changes(look.changes, self.rules, self._bounds()), look), None)
        if start and self.workers and self.workers[-1].look is look and self.workers[-1].is_at(Read, start):
            self._step(Read, start)
        return True

    def fill(self, item: str) -> bool:
        """A backfill reads an item, on a page of its own."""
        place, _ = self._item(item)
        selection = Selection(self.rules, frozenset(self.rules.rules))
        bounds = replace(self._bounds(), follows_ancestors=True)
        self._resume(Worker(process_items(place[0], (self.world.items[place],), selection, bounds)), None)
        return True

    def relay(self, item: str) -> bool:
        """An item is put. The push of its record sends the rest of its targets as a message."""
        self.put(item)
        place, _ = self._item(item)
        return self.look(f"push {words_of(key_of(self.world.made, place))}") and bool(self.messages)

    def deploy(self, version: str) -> bool:
        """From now on workers have the rules of this version: 0 for the older one."""
        self.rules = self.versions[int(version)]
        return True

    def message(self, start: str, version: str = "") -> bool:
        """A worker receives a message about such an item. One that is done may be delivered again."""
        sent = (*self.messages, *self.received)
        message = next((one for one in sent if words_of(find_item(one)).startswith(start)), None)
        if message is None:
            return False
        if message in self.messages:
            self.messages.remove(message)
        self._receive(message, self.versions[int(version)] if version else self.rules)
        return True

    def look_twice(self, name: str) -> bool:
        """Begin with a task, and with its second look."""
        done = self.look(name)
        self._take_messages()
        return done

    def _take_records(self) -> None:
        """Make looks of the tasks of all records."""
        for place in self.world.streams.ready():
            records = self.world.streams.waiting[place]
            while records:
                record = records.popleft()
                by = f" by {' '.join((place[0], *(str(value) for _, value in place[1])))} {record['eventName']}"
                event = self.world.event_of([record])
                changes, _ = split_changes(read_event(event, self.rules, filtered=True))
                tasks = consumer.make_tasks(changes, self.rules)
                found = {f"pull {words_of(one.key)}{by}": Tasks(pulls=(one,)) for one in tasks.pulls}
                found |= {f"push {words_of(one.source)}{by}": Tasks(pushes=(one,)) for one in tasks.pushes}
                for one in tasks.parts:
                    source = "" if one.part.source is None else f" of {words_of(one.part.source)}"
                    found[f"part {words_of(one.part.target)}{source}{by}"] = Tasks(parts=(one,))
                self.looks += (Look(name, task, changes) for name, task in found.items())

    def read(self, start: str, *skipped: str) -> bool:
        """A worker reads an item whose name begins so."""
        return self._step(Read, start, skipped=skipped)

    def list(self, start: str) -> bool:
        """A worker lists a table."""
        return self._step(List, start)

    def write(self, start: str, value: str = "", *skipped: str) -> bool:
        """A worker writes an item, after reads that the model does not have."""
        return self._step(Apply, start, value, skipped)

    def throttle(self, start: str) -> bool:
        """A write of a worker is throttled."""
        return self._step(Apply, start, answer=(Result(Status.FAILED, reason="ThrottlingException"),))

    def die(self, start: str, value: str = "", *skipped: str) -> bool:
        """A worker dies, and its write arrives later."""
        worker = self._worker(Apply, start, value, skipped)
        if worker is None or worker.look is None:
            return False
        self.workers.remove(worker)
        self.flying += worker.left
        self.looks.insert(0, worker.look)
        return True

    def lose(self, start: str) -> bool:
        """A worker dies before it writes."""
        return self.die(start) and bool(self.flying.pop(0))

    def late(self) -> bool:
        """The write of a dead worker arrives."""
        return bool(self.flying) and self.world.apply(self.flying.pop(0)) is not None

    def arrive(self) -> bool:
        """The same in a model that does not say what came of it."""
        return self.late()

    def lag(self) -> bool:
        """From now on, indexes show nothing new until they catch up."""
        self.world.store.lag = True
        return True

    def catch_up(self) -> bool:
        """Indexes show all items."""
        self.world.store.catch_up()
        return True

    def nothing(self) -> bool:
        """The code does this with another step."""
        return True

    def _step(
        self, kind: type, start: str = "", value: str = "", skipped: Iterable[str] = (), answer: Any = None
    ) -> bool:
        """The worker that began last of those at such a request gets an answer: that of the store, unless given."""
        worker = self._worker(kind, start, value, tuple(skipped))
        if worker is None:
            return False
        if isinstance(worker.request, Apply) and answer is None:
            self.table.watch(self, worker, worker.request)
            for number, write in enumerate(worker.request.writes):
                if number not in worker.results and any(name.startswith(start) for name in _names(write)):
                    worker.results[number] = self.world.apply(write)
            if worker.left:
                return True
            answer = tuple(worker.results[number] for number in range(len(worker.results)))
        self.workers.remove(worker)
        self._resume(worker, answer or self._answer(worker.request, worker))
        return True

    def _worker(self, kind: type, start: str, value: str = "", skipped: tuple[str, ...] = ()) -> Worker | None:
        """The worker that began last of those at such a request, or at reads before it that may be skipped."""
        for worker in reversed(self.workers):
            while worker in self.workers:
                if worker.is_at(kind, start, value):
                    return worker
                if not any(worker.is_at(Read, one) for one in skipped):
                    break
                self.workers.remove(worker)
                self._resume(worker, self._answer(worker.request, worker))
        return None

    def _answer(self, request: Any, worker: Worker | None = None) -> Any:
        if worker is not None:
            self.table.watch(self, worker, request)
        match request:
            case Read():
                return self.world.store.read(request)
            case List():
                return self.world.store.list_from(0, request)
            case Scan():
                return self.world.store.scan(request)
            case Apply():
                return tuple(self.world.apply(write) for write in request.writes)
            case Together():
                return tuple(self._answer(one, worker) for one in request.requests)
        self.messages += [request.message] if isinstance(request, Later) else []
        return None

    def _resume(self, worker: Worker, answer: Any) -> None:
        """Let a worker go on to its next request that the model knows, or to its end: then what failed comes again."""
        try:
            worker.request, worker.results = worker.work.send(answer), {}
            while not any(worker.is_at(kind, start) for kind, start in self.stops):
                worker.request = worker.work.send(self._answer(worker.request, worker))
            self.workers.append(worker)
        except StopIteration as stop:
            if worker.look is not None:
                (self.looks if stop.value.failed else self.over).insert(0, worker.look)
            if worker.message is not None:
                (self.messages if stop.value.failed else self.received).insert(0, worker.message)

    # ---------------------------------------------------------------- the end
    def rest(self) -> bool:
        """Let everything happen that can."""
        for _ in range(QUIET_MAX_ROUNDS):
            while self._step(object):
                pass
            while self.late():
                pass
            self.catch_up()
            self._take_records()
            if not (self.looks or self.workers or self.messages):
                return True
            self._take_messages()
            for look in tuple(self.looks):
                self.look(look.name)
        raise UnsafeError("the code does not come to rest")

    def _take_messages(self) -> None:
        messages, self.messages = self.messages, []
        for message in messages:
            if getattr(message, "attempt", 0) <= LOOKS_MAX:
                self._receive(message, self.rules)

    def _receive(self, message: Message, rules: Rules) -> None:
        self._resume(Worker(consumer.process_message(message, rules, self._bounds()), message=message), None)

    def _bounds(self) -> Bounds:
        return Bounds(**self.table.bounds)


def _attributes(words: Iterable[str]) -> Item:
    """Attributes, as a table writes them: `name=Ada~L amount=#3`."""
    pairs = (word.split("=", 1) for word in words)
    return {name: {"N": text[2:]} if text.startswith("N:") else {"S": text.replace("~", " ")} for name, text in pairs}
