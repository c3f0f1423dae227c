"""Workers: the pipeline's generators, each stopped at one request, which is answered, refused, or the worker's last.

Invariant: the pipeline runs as it does in production, the same generators; only who answers differs. Each write of an
`Apply` and each key of a `Read` is a step of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.writes import Result, Status, Write
from sync_rules.pipeline import consumer
from sync_rules.pipeline.messages import KINDS, Message, PartMessage, PullMessage, PushMessage, decode
from sync_rules.pipeline.requests import Apply, Later, List, Page, Park, Read, Request, Scan, Work
from tests.simulation import words
from tests.simulation.choices import Choices
from tests.simulation.errands import Errand
from tests.simulation.faults import Faults
from tests.simulation.processes import Processes, fans_out
from tests.simulation.stops import Save, Wait
from tests.simulation.watch import DivergenceError
from tests.simulation.world import REPLICAS, Batch, Note, World, note_of, place_of
from tests.simulation.writers import Do, Reading, Submit, land
from tests.support.transacting import cancelled, failed

NOT_YET: Request = Read(())
BEHIND_MAX = 12  # changes of any item that a scan may not show yet


@dataclass
class Task:
    """A worker at one request: which parts are done, and what it is about. `origin` comes again if it does not finish."""

    number: int
    work: Work[Any]
    origin: Batch | Note | Errand
    request: Request
    answers: dict[int, Any] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)

    @property
    def writes(self) -> bool:
        """True if the task is about to write."""
        return isinstance(self.request, Apply)


@dataclass
class Workers:
    """All workers of a history. `telling`: true if the story is recorded."""

    world: World
    choices: Choices
    faults: Faults
    seen: Counter[tuple[str, str]]
    tell: Callable[[str], None]
    telling: bool = True
    gives_up_percent: int = 0  # of what failed
    tasks: list[Task] = field(default_factory=list)
    begun: int = 0
    processes: Processes | None = None  # where large fan-outs wait for each other

    @property
    def seconds(self) -> int:
        """The time, where it matters."""
        return self.processes.clock.seconds if self.processes is not None else 0

    def tick(self) -> None:
        """Let a second pass."""
        if self.processes is not None:
            self.processes.clock.seconds += 1

    @property
    def handlers(self) -> int:
        """The number of running invocations, errands excepted."""
        return sum(not isinstance(task.origin, Errand) for task in self.tasks)

    def begin(self, work: Work[Any], origin: Batch | Note | Errand) -> None:
        self.begun += 1
        task = Task(self.begun, work, origin, NOT_YET)
        self.tasks.append(task)
        if self.processes is not None:
            self.processes.begins(task.number, decode(origin.text) if isinstance(origin, Note) else None)
        if self.telling:
            self.tell(f"worker {task.number} starts with {words.origin(origin)}")
        self._resume(task, lambda: next(work))

    def _resume(self, task: Task, to_next: Callable[[], Request]) -> None:
        """Let a worker run to its next request, or its end."""
        try:
            request = to_next()
        except StopIteration as stop:
            self.tasks.remove(task)
            self._finish(task, stop.value)
            return
        task.request = request
        task.answers = {}
        match request:
            case Read():
                task.left = list(range(len(request.keys)))
            case Apply():
                task.left = list(range(len(request.writes)))
            case _:
                task.left = [0]

    def step(self, waits: Callable[[Task], bool] = lambda _task: False) -> bool:
        """One worker makes one request, or one part of it: a read of several keys is no snapshot. Some may have to wait
        meanwhile.
        """
        tasks = [task for task in self.tasks if not waits(task)]
        if not tasks:
            return False
        task = tasks[self.choices.schedule.pick(len(tasks))]
        request = task.request
        part = task.left[self.choices.schedule.pick(len(task.left))]
        write = request.writes[part] if isinstance(request, Apply) else None
        fault = self.faults.of(request, write)
        if isinstance(request, Submit):
            return self._submit(task, request, fault)
        return self._request(task, request, part, write, fault)

    def _request(self, task: Task, request: Request, part: int, write: Write | None, fault: str | None) -> bool:
        if fault in ("crash before", "crash in flight"):
            self.world.flying += [write] if fault == "crash in flight" else []
            return self._die(task, fault)
        if self.processes is not None and isinstance(request, Later):
            return self._send(task, request, fault)
        if fault == "throttle" and not isinstance(request, Apply):
            return self._throw(task, fault)
        try:
            answer = self._failed_write(write, fault) if write is not None and fault else self._answer(task, part)
        except StoreError as error:
            return self._throw(task, error.reason)
        if self.telling:
            said = f"{words.request(request, part)} -> {words.answer(answer)}{f' ({fault})' if fault else ''}"
            self.tell(f"worker {task.number}: {said}")
        if fault == "crash after":
            return self._die(task, fault)
        if fault == "answer lost" and write is None:
            return self._throw(task, fault)
        task.left.remove(part)
        task.answers[part] = answer
        if not task.left:
            self._resume(task, lambda: task.work.send(self._whole_answer(task)))
        return True

    def _send(self, task: Task, request: Later, fault: str | None) -> bool:
        """A process sends a message, unless what it asks for is still to come."""
        assert self.processes is not None
        refusal = fault if fault in ("throttle", "answer lost") else None
        if fault is None and fans_out(request) and not self.world.calm and self.choices.faults.chance(15):
            refusal = "throttle"
        sent, known = self.processes.send(task.number, request, refusal)
        for _, delay in sent:
            self._later(request, task.origin, delay if fans_out(request) else 0)
        self.tell(
            f"worker {task.number}: {words.request(request, 0)} -> {len(sent)} sent, "
            f"due {[self.seconds + delay for _, delay in sent]}{f' ({fault})' if fault else ''}"
        )
        if fault == "crash after":
            return self._die(task, fault)
        if not known:
            return self._throw(task, str(refusal))
        self._resume(task, lambda: task.work.send(None))
        return True

    def _submit(self, task: Task, request: Submit, fault: str | None) -> bool:
        """A transaction of an application is sent; it may be lost, or land later."""
        if fault == "crash before":
            return self._die(task, fault)
        error: ClientError | None = None
        if fault in ("in flight", "crash in flight"):
            self.world.flying.append(request)
        elif fault == "conflict" and request.token not in self.world.made:
            error = cancelled([{"Code": "TransactionConflict"} for _ in request.items])
        elif fault != "throttle":
            try:
                land(self.world, request)
            except ClientError as refused:
                error = refused
        self.tell(f"worker {task.number}: {request} -> {error or 'done'}{f' ({fault})' if fault else ''}")
        if fault in ("crash after", "crash in flight"):
            return self._die(task, fault)
        if fault in ("answer lost", "in flight"):
            error = failed("InternalServerError", 500)
        if fault == "throttle":
            error = failed("ThrottlingException")
        self._resume(task, lambda: task.work.throw(error) if error is not None else task.work.send(None))
        return True

    def _whole_answer(self, task: Task) -> Any:
        if isinstance(task.request, Read | Apply):
            return tuple(task.answers[part] for part in sorted(task.answers))
        return task.answers[0]

    def _answer(self, task: Task, part: int) -> Any:
        match request := task.request:
            case Read():
                item = self._read(request, request.keys[part])
                if isinstance(task.origin, Reading):
                    task.origin.saw.setdefault(place_of(request.keys[part]), item)
                return item
            case List():
                if isinstance(task.origin, Reading):
                    task.origin.lists(by_index=request.index is not None)
                return self._list(request)
            case Do():
                old = self.world.watch.items.get(request.place)
                self.world.operate(request.place, request.new)
                return old, self.world.watch.items.get(request.place)
            case Apply():
                return self.world.apply(request.writes[part])
            case Scan():
                return self._scan(request, task.origin)
        self._take(task, request)
        return None

    def _take(self, task: Task, request: Request) -> None:
        """Take what needs no answer."""
        match request:
            case Later():
                self._later(request, task.origin)
            case Park():
                self.seen["parked", request.failure.reason] += 1
                self.world.keep(request.failure, alone=isinstance(task.origin, Errand))
            case Save():
                assert isinstance(task.origin, Errand), "the pipeline saves nothing"
                task.origin.save(request)
            case Wait():
                assert isinstance(task.origin, Errand), "the pipeline waits for nothing"
                if task.origin.settles:
                    self.world.store.catch_up()
                task.origin.since = self.world.watch.clock

    def _later(self, request: Later, origin: Batch | Note | Errand, wait_seconds: int = 0) -> None:
        self.seen["later", _kind(request)] += 1
        if _spreads(request.message) and isinstance(origin, Note):
            self.seen["later", "rest"] += _spreads(decode(origin.text))
        note = note_of(request.message, self.world.store.clock if _second_look(request) else 0)
        self.world.notes.append(replace(note, due=self.seconds + wait_seconds))

    def _read(self, _request: Read, key: ItemKey) -> Any:
        return self.world.store.read(Read((key,)))[0]

    def _list(self, request: List) -> Page:
        """A page, of any replica of an index, and as short as it likes to be."""
        store, pick = self.world.store, self.choices.faults.pick
        replica = pick(REPLICAS) if store.lag and request.index else 0
        store.left_out = 0 if self.world.calm else pick(3)
        page = store.list_from(replica, request)
        if page.cursor is not None and len(page.items) < request.limit:
            self.seen["page", "short" if page.items else "empty"] += 1
        return page

    def _scan(self, request: Scan, origin: Batch | Note | Errand) -> Page:
        """A page as short as it likes to be; if it need not be consistent, of a while ago, but of no time before its
        errand waited.
        """
        if self.world.calm:
            return self.world.store.scan(request)
        assert isinstance(origin, Errand), "the pipeline scans nothing"
        pick, clock = self.choices.faults.pick, self.world.watch.clock
        request = replace(request, limit=1 + pick(3))
        behind = 0 if request.consistent else pick(1 + min(clock - origin.since, BEHIND_MAX))
        if not behind:
            return self.world.store.scan(request)
        self.seen["page", "old"] += 1
        return self.world.store.scan_of(request, self.world.watch.items_at(clock - behind))

    def _failed_write(self, write: Write, fault: str) -> Result:
        """The answer to a write that went wrong; some of these happen nevertheless, at once or later."""
        if fault in ("answer lost", "crash after"):
            self.world.apply(write)
        elif fault == "in flight":
            self.world.flying.append(write)
        return Result(Status.FAILED, reason="TransactionConflict" if fault == "conflict" else "Throttled")

    def _throw(self, task: Task, fault: str) -> bool:
        self.tell(f"worker {task.number}: {words.request(task.request, 0)} -> error ({fault})")
        self._resume(task, lambda: task.work.throw(StoreError(fault)))
        return True

    def _die(self, task: Task, fault: str) -> bool:
        self.tell(f"worker {task.number} dies: {fault} of {words.request(task.request, task.left[0])}")
        self.tasks.remove(task)
        if self.processes is not None:
            self.processes.dies(task.number)
        task.work.close()
        self._come_again(task.origin)
        return True

    def _come_again(self, origin: Batch | Note | Errand) -> None:
        if isinstance(origin, Errand):
            origin.died()
            return
        if isinstance(origin, Note):
            self.world.notes.append(replace(origin, again=True))
        else:
            self.world.streams.release(origin, origin.changes)

    def _finish(self, task: Task, report: Any) -> None:
        """Finish a task with its report: records from the lowest failed position on are delivered again, as by Lambda."""
        if isinstance(task.origin, Errand):
            self.tell(f"worker {task.number} is done: {report}")
            task.origin.ended(report)
            return
        for (_, outcome), count in report.outcomes.items():
            self.seen["outcome", outcome.value] += count
        self.tell(f"worker {task.number} is done{', failed: ' + str(report.failed) if report.failed else ''}")
        origin = task.origin
        if isinstance(origin, Note):
            if report.failed and self.world.shelf is not None and self._gives_up():
                self.world.put_aside(origin.text)
            elif report.failed:
                self.world.notes.append(replace(origin, again=True))
            return
        lowest = consumer.find_lowest(change.position for change in origin.changes if change.key in report.failed)
        if report.failed and lowest is None:
            raise DivergenceError("something failed, but no record of the batch is reported")
        rest = [change for change in origin.changes if lowest is not None and int(change.position) >= int(lowest)]
        if rest and self._gives_up():
            self.world.streams.give_up(origin, rest)
        else:
            self.world.streams.release(origin, rest)
        finished = [change for change in origin.changes if change not in rest] if rest else origin.changes
        if finished and origin.first:
            self.world.streams.finished.append(Batch(finished, first=False))

    def _gives_up(self) -> bool:
        """True if the retries of a batch are used up."""
        if self.faults.occurs("give up"):
            return True
        return not self.world.calm and self.faults.stream.chance(self.gives_up_percent)


def _second_look(request: Later) -> bool:
    """True for a second look, which waits for the indexes; the look at a parked item needs no such wait."""
    message = request.message
    again = isinstance(message, PushMessage) or (isinstance(message, PullMessage) and message.delay_seconds > 0)
    return again and request.delay_seconds > 0


def _spreads(message: Message) -> bool:
    return isinstance(message, PushMessage) and message.spread


def _kind(request: Later) -> str:
    """The kind of delayed work, for the coverage of the generators."""
    message = request.message
    parked = isinstance(message, PullMessage | PartMessage) and message.attempt > 0
    return f"{'parked ' if parked else 'second ' if _second_look(request) else ''}{KINDS[type(message)]}"
