"""The requests that the pipeline makes, and the ports that answer them: store, queue, failures, caller, and kept calls.

Invariant: the pipeline never calls a store. It is made of generators that yield the requests below and are sent the
answers, so that production, the tests and the simulator run the same code and can stop it at every request.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import Call, Failure, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.values import Item, Names
from sync_rules.model.writes import Result, Status, Write
from sync_rules.pipeline.messages import CallMessage, Message


@dataclass(frozen=True, slots=True)
class Read:
    """A request for items by key, strongly consistent, any number. Answer: tuple[Item | None, ...] in the order of the
    keys.

    `attributes`: by table, the attributes that rules read besides the key. None, or a table without an entry, means
    all. The answer may have more.
    """

    keys: tuple[ItemKey, ...]
    attributes: Mapping[str, Names] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class List:
    """A request for one page of a Query. Answer: Page.

    A page of the base table (`index` None) is strongly consistent, and its items are images. A page of an index may
    lag, and only the keys of its rows may be used. `backward`: from the last sort key to the first. `attributes` are
    read besides the key; None: all of them. The answer may have more.
    """

    table: str
    index: str | None
    conditions: KeyConditions
    limit: int
    cursor: Item | None = None
    backward: bool = False
    attributes: Names = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A request for one page of a segment of a table scan. Answer: Page. Its items are images only if `consistent`."""

    table: str
    limit: int
    cursor: Item | None = None
    segment: int = 0
    total_segments: int = 1
    consistent: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """The items of a List or Scan. `cursor` is None after the last page; a page before it may be empty."""

    items: tuple[Item, ...]
    cursor: Item | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """A request to make guarded writes on distinct targets, in any order. Answer: tuple[Result, ...], one per write."""

    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """A request to send a message that is processed after a delay, at least once. Answer: None, once the message is
    safe.

    `rules`: the parked rules if the message retries parked work, or all rules of a fan-out that is handed over. The
    message is not sent if an earlier message for each of these rules is still to come. One look serves all requests
    made before it begins.
    """

    message: Message
    delay_seconds: int = 0
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Park:
    """A request to keep a failure record. Answer: None, once it is safe."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class KeepCall:
    """A request to keep a call with its change where a later process finds it. Answer: str, its place, once it is
    safe.
    """

    message: CallMessage


@dataclass(frozen=True, slots=True)
class FetchCall:
    """A request for the call that is kept at this place. Answer: CallMessage."""

    place: str


@dataclass(frozen=True, slots=True)
class Together:
    """Requests that read, without need of each other. Answer: a tuple with the answer of each, or its StoreError."""

    requests: tuple[Request, ...]


NOT_SENT: Final = Result(Status.FAILED, reason=OUT_OF_TIME)

Request = Read | List | Scan | Apply | Later | Park | Call | KeepCall | FetchCall | Together
T = TypeVar("T")
Work = Generator[Request, Any, T]
Share = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
Found = Item | StoreError | None  # an error is in place of an item that could not be read
ALL: Final[Mapping[str, Names]] = {}  # the attributes of whole items


class Store(Protocol):
    """A DynamoDB, real or simulated. Each call may raise StoreError after retries of its own; `apply` never does."""

    def read(self, request: Read) -> tuple[Item | None, ...]:
        """Read items by key. The answer includes every write that was acknowledged before the read began."""

    def list(self, request: List) -> Page:
        """Return a page of a Query. A page of an index may miss recent changes, or show items as they were."""

    def scan(self, request: Scan) -> Page:
        """Return a page of a Scan. It may lag unless `consistent`. A scan returns each item that exists throughout it
        at least once.
        """

    def apply(self, request: Apply) -> tuple[Result, ...]:
        """Make each write atomically and under its guard. Return one result per write. Only items that rules make are
        created. A refused write is not retried.
        """


class Remembering:
    """A store with a cache of what it read. Call `forget` at the start of each piece of work."""

    def forget(self) -> None:
        """Empty the cache."""
        raise NotImplementedError


class Queue(Protocol):
    """Messages for later: unordered, delivered at least once, delays up to 900 seconds (the limit of SQS)."""

    def send(self, message: Message, delay_seconds: int) -> None:
        """Send a message. Return once the queue has stored it. Raises StoreError."""


class Failures(Protocol):
    """The sink of failure records, which have rule, key and reason, and never a value of an item."""

    def park(self, failure: Failure) -> None:
        """Keep a failure record. Return once it is safe. Raises StoreError."""


class Pending(Protocol):
    """The looks at parked work, and the large fan-outs, that are still to come."""

    def send(self, request: Later, queue: Queue) -> None:
        """Send a message, unless one that is still to come serves it. Raises StoreError."""


class Caller(Protocol):
    """The port that calls users' functions."""

    def call(self, call: Call) -> bool | None:
        """Call a function with a change, once per change. Return False without a call if the change is older than the
        rule's beginning. Raises StoreError.
        """


class KeptCalls(Protocol):
    """The place that keeps calls with the values of their changes: calls too large for a message, and calls given
    up.
    """

    def keep_call(self, message: CallMessage) -> str:
        """Keep a call, and return its place once it is safe. The same change of a rule has one place. Raises
        StoreError.
        """

    def fetch_call(self, place: str) -> CallMessage:
        """Return the call that is kept at a place. Raises StoreError; its reason is CallNotKept if the place is
        empty.
        """


@dataclass(frozen=True, slots=True)
class Host:
    """The process that runs the pipeline, handed in: its clocks, in seconds, and locks between its threads."""

    now: Callable[[], float]  # since the epoch
    monotonic: Callable[[], float]
    lock: Callable[[], AbstractContextManager[Any]]


class NullPorts:
    """The ports of a world that has none. Messages and failure records are dropped, for work that visits every item
    anyway and reports what it leaves. Effects fail, because nothing would do them later.
    """

    def send(self, message: Message, delay_seconds: int) -> None:
        """Drop a message."""

    def park(self, failure: Failure) -> None:
        """Drop a failure record."""

    def call(self, call: Call) -> None:
        raise StoreError("NoCaller", f"rule {call.rule}: nothing in this process calls {call.function}")

    def keep_call(self, message: CallMessage) -> str:
        raise StoreError("NoPlaceForCalls", f"rule {message.rule}: nothing keeps its change: set SYNC_RULES_BUCKET")

    def fetch_call(self, place: str) -> CallMessage:
        raise StoreError("NoPlaceForCalls", f"this process has no bucket or folder to read {place} from")


NULL_PORTS: Final = NullPorts()


@dataclass(frozen=True)
class World:
    """The ports that answer the requests of the pipeline. `share` maps a function over requests that need no answer of
    each other: a store that threads may share does several of them at a time.
    """

    store: Store
    queue: Queue
    failures: Failures
    caller: Caller = NULL_PORTS
    kept: KeptCalls = NULL_PORTS
    pending: Pending | None = None
    share: Share = map

    def answer(self, request: Request) -> Any:
        """Return the answer of the port that a single request is for. Raises StoreError."""
        return _ANSWERS[type(request)](self, request)

    def _send(self, request: Later) -> None:
        if self.pending is None or not request.rules:
            self.queue.send(request.message, request.delay_seconds)
        else:
            self.pending.send(request, self.queue)


_ANSWERS: Final[Mapping[type[Request], Callable[[World, Any], Any]]] = {
    Read: lambda world, request: world.store.read(request),
    List: lambda world, request: world.store.list(request),
    Scan: lambda world, request: world.store.scan(request),
    Apply: lambda world, request: world.store.apply(request),
    Later: World._send,  # noqa: SLF001 - the same class
    Park: lambda world, request: world.failures.park(request.failure),
    Call: lambda world, request: world.caller.call(request),
    KeepCall: lambda world, request: world.kept.keep_call(request.message),
    FetchCall: lambda world, request: world.kept.fetch_call(request.place),
}


def read_all(keys: Iterable[ItemKey], attributes: Mapping[str, Names] = ALL) -> Work[dict[ItemKey, Found]]:
    """Read items by key, each once, strongly consistent, table by table. If a table cannot be read, its keys get the
    StoreError. `attributes`: by table, the attributes that rules read, as in `Read`.
    """
    tables: dict[str, dict[ItemKey, None]] = {}
    for key in keys:
        tables.setdefault(key.table, {})[key] = None
    found: dict[ItemKey, Found] = {}
    for wanted in map(tuple, tables.values()):
        try:
            found.update(zip(wanted, (yield Read(wanted, attributes)), strict=True))
        except StoreError as error:
            found.update(dict.fromkeys(wanted, error))
    return found


def do_together(works: Sequence[Work[T]]) -> Work[list[T]]:
    """Do several pieces of work that only read side by side. Each round sends the next request of each piece together.
    A piece of work must not call this function.
    """
    if len(works) == 1:
        return [(yield from works[0])]
    done: dict[int, T] = {}
    steps: dict[int, Callable[[], Request]] = {place: work.__next__ for place, work in enumerate(works)}
    while steps:
        asked: dict[int, Request] = {}
        for place, step in steps.items():
            try:
                asked[place] = step()
            except StopIteration as stop:
                done[place] = stop.value
        answers = (yield Together(tuple(asked.values()))) if asked else ()
        steps = {
            place: partial(works[place].throw if isinstance(answer, StoreError) else works[place].send, answer)
            for place, answer in zip(asked, answers, strict=True)
        }
    return [done[place] for place in range(len(works))]


def apply_writes(writes: Sequence[Write], bounds: Bounds) -> Work[Sequence[Result]]:
    """Make writes on distinct targets. If no time is left, each write fails, so that its record is delivered again."""
    if bounds.out_of_time():
        return [NOT_SENT] * len(writes)
    results: Sequence[Result] = (yield Apply(tuple(writes))) if writes else ()
    return results


def run_work(work: Work[T], world: World) -> T:
    """Run a piece of work to its end, answering its requests from the world. A StoreError is raised inside the work."""
    try:
        request = next(work)
        while True:
            try:
                answer = _answer_together(request, world) if isinstance(request, Together) else world.answer(request)
            except StoreError as error:
                request = work.throw(error)
            else:
                request = work.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _answer_together(together: Together, world: World) -> tuple[Any, ...]:
    def answer(request: Request) -> Any:
        try:
            return world.answer(request)
        except StoreError as error:
            return error

    return tuple(world.share(answer, together.requests))
