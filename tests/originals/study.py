"""Plays the same histories with an original handler and with rules, under four deliveries, and counts wrong ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Final

from boto3.dynamodb.types import TypeDeserializer

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.memory import MemoryStore
from sync_rules.jobs.consume.queue import LocalQueue
from sync_rules.jobs.dryrun.money import compute_on_demand_price
from sync_rules.jobs.dryrun.prices import read_own_prices
from sync_rules.lab.rehearsal import write
from sync_rules.model.items import Failure
from sync_rules.model.writes import Delete, Put
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import Message, format_message, parse_message
from sync_rules.pipeline.requests import World, run_work
from sync_rules.rules.ruleset import Rules
from tests.originals.applications import Application, Place, Plain
from tests.originals.original import Resource, to_raw
from tests.originals.tables import Gate, Streams

DELIVERIES: Final = ("in order", "repeated", "shuffled", "dying")
BURST_MAX_WRITES: Final = 5  # of the application, until the function gets their records
MILLION: Final = 1_000_000
REGION: Final = "us-east-1"
Written = tuple[str, Plain]  # a verb, and an item or a key
Handle = Callable[[dict[str, Any]], object]
MakeFunction = Callable[[Gate], tuple[Handle, frozenset[str]]]  # a function, and the tables whose streams it reads


class Queue:
    """The queue: messages travel as text, and time passes only when nothing else is left to do."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._local = LocalQueue(lambda: self._now_ms)

    def send(self, message: Message, delay_seconds: int) -> None:
        self._local.send(parse_message(format_message(message)), delay_seconds)

    def next(self) -> Message | None:
        """The message that is due first, however long that takes; None when there is none."""
        pending = self._local.pending_messages
        if not pending:
            return None
        self._now_ms = max(self._now_ms, min(one.due_ms for one in pending))
        (taken,) = self._local.take(1)
        self._local.acknowledge(taken)
        return taken.message


class Failures(list[Failure]):
    """The failures that were parked. There must be none."""

    def park(self, failure: Failure) -> None:
        self.append(failure)


@dataclass
class Tally:
    """The results of one side. Changes and units are those of the histories in order."""

    histories: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    write_units: int = 0
    read_units: float = 0

    @property
    def price(self) -> Decimal:
        """USD on demand for a million changes: requests to DynamoDB alone."""
        reads, writes = (MILLION * units / self.changes for units in (self.read_units, self.write_units))
        return compute_on_demand_price(read_own_prices().regions[REGION], reads, writes)


def make_original(handle: Callable[[Any, Any], Any], resource: Resource, application: Application) -> MakeFunction:
    """The original's function: it reads the stream of its application's table."""

    def make(gate: Gate) -> tuple[Handle, frozenset[str]]:
        resource.gate = gate
        return lambda event: handle(event, None), frozenset({application.source})

    return make


def make_ours(gate: Gate) -> tuple[Handle, frozenset[str]]:
    """The function of sync-rules: it reads the streams of the tables that its rules name."""
    queue, failures = Queue(), Failures()
    run_work(finish_empty(gate.rules), World(gate.memory, queue, failures))
    consumer = Consumer(gate.rules, World(gate, queue, failures), THIS_PROCESS)

    def handle(event: dict[str, Any]) -> object:
        answer = consumer.handle_event(event, lambda: 900_000)
        assert not failures, failures
        assert queue.next() is None, "no message is needed for these histories"
        return answer

    return handle, frozenset(table.name for table in gate.rules.streamed_tables)


@dataclass(frozen=True)
class Study:
    """An application with the function that keeps its numbers: an original, or ours."""

    application: Application
    rules: Rules
    make: MakeFunction

    def run(self, histories: int, seed: int) -> Tally:
        """Play histories under each delivery."""
        tally = Tally(histories)
        for number in range(histories):
            writes = 0  # of the function, in order: one of them is drawn for its death
            for delivery in DELIVERIES:
                random = Random(f"{seed} {number}")
                bursts = list(draw_bursts(random, list(self.application.history(random))))
                gate = self.play(bursts, delivery, random, writes)
                tally.wrong[delivery] += self.find_numbers(gate.memory) != self.recount(gate.memory)
                if delivery == "in order":
                    writes = gate.writes
                    tally.changes += sum(map(len, bursts))
                    tally.write_units += gate.write_units
                    tally.read_units += gate.read_units
        return tally

    def play(self, bursts: Sequence[Sequence[Written]], delivery: str, random: Random, writes: int) -> Gate:
        """Play one history to its end, with at most one fault."""
        gate, source = Gate(self.rules, MemoryStore(self.rules.tables)), self.application.source
        handle, tables = self.make(gate)
        streams = Streams(self.rules, random if delivery == "shuffled" else None)
        gate.memory.on_change = streams.note
        if delivery == "dying" and writes:
            gate.dies_at, gate.dies_after = random.randrange(writes), random.random() < 0.5
        repeated = random.randrange(len(bursts)) if delivery == "repeated" else None
        for number, burst in enumerate(bursts):
            for verb, item in burst:
                key = gate.make_key(source, to_raw(item))
                write(gate.memory, Put(key, to_raw(item), ()) if verb == "put" else Delete(key, ()))
            streams.deliver(source, handle, times=2 if number == repeated else 1)
            deliver_each(streams, tables, handle)
        while deliver_each(streams, tables, handle):
            pass
        return gate

    def find_numbers(self, memory: MemoryStore) -> Mapping[Place, Decimal]:
        """The numbers that tables hold, without those that are 0: an original leaves them, rules remove their items."""
        of, (partition, sort) = self.application, self.rules.tables[self.application.target].key
        return {
            (item[partition.name], item[sort.name], name): item[name]
            for item in list_items(memory, of.target)
            for name in of.attributes
            if of.is_total(item) and item.get(name)
        }

    def recount(self, memory: MemoryStore) -> Mapping[Place, Decimal]:
        """The numbers that follow from the items of the application, without those that are 0."""
        found: defaultdict[Place, Decimal] = defaultdict(Decimal)
        for item in list_items(memory, self.application.source):
            for place, number in self.application.list_parts(item):
                found[place] += number
        return {place: number for place, number in found.items() if number}


def draw_bursts(random: Random, history: Sequence[Written]) -> Iterator[Sequence[Written]]:
    start = 0
    while start < len(history):
        end = start + random.randint(1, BURST_MAX_WRITES)
        yield history[start:end]
        start = end


def deliver_each(streams: Streams, tables: frozenset[str], handle: Handle) -> bool:
    """Deliver a batch of each table. False if none waited."""
    return sum(streams.deliver(table, handle) for table in sorted(tables)) > 0


def list_items(memory: MemoryStore, table: str) -> Iterator[Plain]:
    read: Callable[[Any], Any] = TypeDeserializer().deserialize
    for item in memory.items(table):
        yield {name: read(value) for name, value in item.items()}
