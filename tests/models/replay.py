"""Replay the counterexamples of the model `copy` on the code: a mutant makes the same steps and ends as wrongly.

A step of the model is a request of the pipeline's own generators, or a write of an application, in the store of the
simulator. With the invariant the code ends rightly. `NO_PARK` and `NO_RELAY` are not replayed: full items and messages
have other bounds in the code than in the model. Nor are the other models.
"""

# ruff: noqa: C901, PLR0912 -- a step is a branch

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.model.limits import Bounds
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline import consumer
from sync_rules.pipeline.messages import Message
from sync_rules.pipeline.records import changes_of, read_event
from sync_rules.pipeline.requests import Apply, Later, List, Read, Work
from tests.models.__main__ import PAGE
from tests.simulation.oracle import Oracle
from tests.simulation.safety import UnsafeError
from tests.simulation.spec import Item, Place
from tests.simulation.world import Batch, World
from tests.simulation.worlds import made_in

QUIET_MAX_ROUNDS: Final = 100


def traces() -> dict[str, tuple[str, ...]]:
    """The counterexamples of the page, by the line that is removed from the model `copy`."""
    section = PAGE.read_text().partition("`tests/models/copy.pml`")[2].partition("\n## ")[0]
    found = re.findall(r"\*\*Without `(\w+)`\*\*[^\n]*\n\n```text\n(.*?)\n```", section, re.DOTALL)
    return {line: tuple(steps.splitlines()) for line, steps in found}


@dataclass(eq=False)
class Worker:
    """A worker at one of its requests, and the records that it answers for."""

    work: Work[Any]
    request: Any
    batch: Batch | None


class Replay:
    """The code, step by step. `strict`: each step of a trace must be one that the code can make."""

    def __init__(self, world: str, *, strict: bool) -> None:
        made = made_in(world)
        self.strict, self.rules, self.indexed = strict, made.rules, "by_source" in made.text
        self.world = World(made, Counter(), lambda _text: None)
        self.oracle = Oracle(made.spec)
        self.workers: list[Worker] = []
        self.messages: list[Message] = []
        self.flying: list[Any] = []
        for number in (0, 1):
            self.world.quietly(*self._source(number, 1))
        self.world.quietly(*self._target(0, 0, 1))
        self.world.store.lag = self.indexed

    def _item(self, table: str, name: str, number: int) -> tuple[Place, Item]:
        item: Item = {name: {"S": str(number)}} if self.indexed else {"team": {"S": "x"}, name: {"S": str(number)}}
        return self.world.made.spec.tables[table].place(item), item

    def _source(self, number: int, value: int) -> tuple[Place, Item | None]:
        place, item = self._item("sources", "source", number)
        return place, {**item, "name": {"S": f"{number} #{value}"}} if value else None

    def _target(self, number: int, source: int, value: int) -> tuple[Place, Item]:
        place, item = self._item("targets", "target", number)
        copy = {"source_name": {"S": f"{source} #{value}"}} if value else {}
        return place, {**item, "source": {"S": str(source)}, "rank": {"S": "a"}, **copy}

    # ---------------------------------------------------------------- a trace
    def play(self, steps: Iterable[str]) -> str:
        """Play a trace, and then all that is left to do. Returns what is wrong, "" for nothing."""
        try:
            for step in steps:
                if not self._do(step) and self.strict:
                    raise LookupError(f"the code cannot do: {step}")
            self._finish()
        except UnsafeError as error:
            return str(error)
        return "\n".join(self.oracle.look(self.world.items).wrong)

    def _do(self, step: str) -> bool:
        """Make a step of the model. Says whether there was one to make."""
        numbers = [int(one) for one in re.findall(r"\d+", step)]
        words = re.sub(r"\d+", "_", step)
        match words:
            case "application: source _ = _":
                return self.world.operate(*self._source(*numbers))
            case "application: delete target _":
                return self.world.operate(self._target(numbers[0], 0, 0)[0], None)
            case "application: put target _ of source _ with copy _":
                return self.world.operate(*self._target(*numbers))
            case "application: put target _ with copy _":
                return self._change(numbers[0], source_name={"S": f"0 #{numbers[1]}"} if numbers[1] else None)
            case "application: target _ names source _":
                return self._change(numbers[0], source={"S": str(numbers[1])})
            case "record of source _: push":
                return self._begin(self._source(numbers[0], 0)[0])
            case "record of target _: pull":
                return self._begin(self._target(numbers[0], 0, 0)[0])
            case "list the targets of source _: _":
                return self._step(List)
            case "read source _: _":
                return self._step(Read)
            case "written: target _ gets _":
                return self._step(Apply, f"#{numbers[1]}'")
            case "refused: target _ is not as it was seen":
                return self._step(Apply) or not self.workers
            case "throttled: target _":
                return self._step(Apply, answer=(Result(Status.FAILED, reason="ThrottlingException"),))
            case "the worker dies; its write of _ to target _ is in flight":
                return self._die(f"#{numbers[0]}'")
            case "the late write arrives":
                return bool(self.flying) and self.world.apply(self.flying.pop()) is not None
            case "the index follows target _":
                self.world.store.catch_up()
                return True
        raise AssertionError(f"no step of the code: {step}")

    def _change(self, number: int, **values: Any) -> bool:
        place = self._target(number, 0, 0)[0]
        item = {**self.world.items[place], **values}
        return self.world.operate(place, {name: value for name, value in item.items() if value is not None})

    # ---------------------------------------------------------------- workers
    def _begin(self, place: Place) -> bool:
        """Begin with the next record of an item that asks for anything: the model has no others."""
        records, before = self.world.streams.waiting.get(place, deque()), len(self.workers)
        had = bool(records)
        while records and len(self.workers) == before:
            batch = Batch([records.popleft()], [place])
            changes, _ = changes_of(read_event(self.world.event_of(batch.records), self.rules, filtered=True))
            self._resume(Worker(consumer.process(changes, self.rules, Bounds()), None, batch), None)
        return had

    def _step(self, kind: type, value: str = "", answer: Any = None) -> bool:
        """The worker that began last of those at such a request gets an answer: that of the store, unless given."""
        fits = (one for one in reversed(self.workers) if isinstance(one.request, kind) and value in str(one.request))
        worker = next(fits, None)
        if worker is None:
            return False
        self.workers.remove(worker)
        self._resume(worker, answer or self._answer(worker.request))
        return True

    def _answer(self, request: Any) -> Any:
        match request:
            case Read():
                return self.world.store.read(request)
            case List():
                return self.world.store.list_from(0, request)
            case Apply():
                return tuple(self.world.apply(write) for write in request.writes)
        self.messages += [request.message] if isinstance(request, Later) else []
        return None

    def _resume(self, worker: Worker, answer: Any) -> None:
        """Let a worker go on to its next request that the model knows, or to its end: then what failed comes again."""
        try:
            worker.request = worker.work.send(answer)
            while not isinstance(worker.request, Read | List | Apply):
                worker.request = worker.work.send(self._answer(worker.request))
            self.workers.append(worker)
        except StopIteration as stop:
            if stop.value.failed and worker.batch is not None:
                self._come_again(worker.batch)

    def _come_again(self, batch: Batch) -> None:
        self.world.streams.waiting[batch.places[0]].appendleft(batch.records[0])

    def _die(self, value: str) -> bool:
        """A worker dies, and its write arrives later."""
        fits = (one for one in reversed(self.workers) if isinstance(one.request, Apply) and value in str(one.request))
        worker = next(fits, None)
        if worker is None or worker.batch is None:
            return False
        self.workers.remove(worker)
        self.flying += worker.request.writes
        self._come_again(worker.batch)
        return True

    def _finish(self) -> None:
        """Let everything happen that can."""
        for _ in range(QUIET_MAX_ROUNDS):
            while self._step(object):
                pass
            while self.flying:
                self.world.apply(self.flying.pop())
            self.world.store.catch_up()
            for message in self._taken():
                self._resume(Worker(consumer.process_message(message, self.rules, Bounds()), None, None), None)
            ready = self.world.streams.ready()
            if not (ready or self.workers or self.messages):
                return
            for place in ready:
                self._begin(place)
        raise AssertionError("the code does not come to rest")

    def _taken(self) -> Iterator[Message]:
        while self.messages:
            yield self.messages.pop(0)
