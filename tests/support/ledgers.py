"""A small world for rules that keep a ledger, and histories in which everything may happen at any time.

An application writes orders; records are delivered in any order, some twice; workers look, pause and write; some die with
their write under way, which lands whenever it likes. `play` runs one such history and then lets the world come to rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import AttributeValue, Item
from sync_rules.model.writes import Condition, Result, Status, Test, Transaction, Write
from sync_rules.pipeline.requests import Apply
from sync_rules.rules.families import PartRule
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.ledger import VERSION, Ledger, ledger_of
from sync_rules.rules.rule import Blocked
from tests.support.builders import entity, n, s, table

USERS = table("users", {"user_id": "S"})
ORDERS = table("orders", {"order_id": "S"})
COUNTS = table("counts", {"PK": "S", "SK": "S"})
USER = entity("user", USERS)
ORDER = entity("order", ORDERS)
LINK = (("user_id", ORDER.ref("user_id")),)
TABLES = {table.name: table for table in (USERS, ORDERS, COUNTS)}
NUMBERS = (n("1"), n("2"), n("2.5"), n("-3"), n("0"))
ALWAYS = Condition(Test.ABSENT, ("no such attribute",))  # a guard that guards nothing


def ledger(shards: int = 1) -> Ledger:
    return ledger_of("spent", ORDER, USER, COUNTS, shards)


def order(order_id: str, user_id: str | None = None, **values: object) -> Item:
    item: dict[str, object] = {"order_id": s(order_id), **values}
    return item if user_id is None else {**item, "user_id": s(user_id)}


def key_of(item: Item) -> ItemKey:
    """The key of a user or an order."""
    key = (ORDERS if "order_id" in item else USERS).key_of(item)
    assert key is not None
    return key


def amounts(total: Item) -> dict[str, Decimal]:
    """The numbers of a total, without those that are nothing, and without its version."""
    numbers = {name: Decimal(value["N"]) for name, value in total.items() if "N" in value and name != VERSION}
    return {name: number for name, number in numbers.items() if number}


def entered(store: MemoryStore) -> dict[tuple[str, ...], dict[str, Decimal]]:
    """The sums of the entries, by the key of their total."""
    sums: dict[tuple[str, ...], dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for item in store.items("counts"):
        if "into" in item:
            into = tuple(value["S"] for value in item["into"]["L"])
            sums[into][item["at"]["S"]] += Decimal(item["n"]["N"])
    found = {into: {at: number for at, number in sums[into].items() if number} for into in sums}
    return {into: numbers for into, numbers in found.items() if numbers}


def stands(store: MemoryStore) -> dict[tuple[str, ...], dict[str, Decimal]]:
    """The totals as stored, by their keys."""
    totals = (item for item in store.items("counts") if item["PK"]["S"].startswith("spent/T"))
    found = {(item["PK"]["S"], item["SK"]["S"]): amounts(item) for item in totals}
    return {key: numbers for key, numbers in found.items() if numbers}


@dataclass
class History:
    """One rule, one store, and what is under way."""

    rule: PartRule
    random: Random
    totals: Sequence[AttributeValue] = NUMBERS
    records: list[Change] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    late: list[Write] = field(default_factory=list)
    repeats: int = 4
    deaths: int = 4

    def __post_init__(self) -> None:
        self.store = MemoryStore(TABLES, lambda key, old, new: self.records.append(Change(key, old, new)))

    @property
    def busy(self) -> bool:
        return bool(self.records or self.workers or self.late)

    def act(self, writes: int) -> None:
        """Let one thing happen. `writes`: the number of writes that the application still has to make."""
        choices: list[Callable[[], None]] = [self._write] * bool(writes)
        choices += [self._deliver] * bool(self.records) + [self._work] * (2 * bool(self.workers))
        choices += [self._land] * bool(self.late)
        self.random.choice(choices)()

    def _write(self) -> None:
        """The application puts, changes, moves or deletes one of two orders."""
        order_id = self.random.choice("ab")
        if self.random.random() < 0.3:
            self.store.delete(key_of(order(order_id)))
            return
        user_id, total = self.random.choice(["u", "v", None]), self.random.choice(self.totals)
        status = s(self.random.choice(["OPEN", "PAID"]))
        self.store.put("orders", order(order_id, user_id, total=total, status=status))

    def _deliver(self) -> None:
        record = self.random.choice(self.records)
        self.records.remove(record)
        if self.repeats and self.random.random() < 0.2:
            self.repeats -= 1
            self.records.append(record)
        self.workers.append(Worker(self, record))

    def _work(self) -> None:
        worker = self.random.choice(self.workers)
        if not worker.step():
            self.workers.remove(worker)

    def _land(self) -> None:
        write = self.random.choice(self.late)
        self.late.remove(write)
        self.store.apply(Apply((write,)))


class Worker:
    """A delivery being dealt with, step by step."""

    def __init__(self, history: History, record: Change) -> None:
        self.history, self.record = history, record
        self.steps = self._steps()

    def step(self) -> bool:
        return next(self.steps, None) is not None

    def _steps(self) -> Iterator[bool]:
        history = self.history
        for part in self._parts():
            while True:
                target = history.store.item(part.target)
                yield True
                source = None if part.source is None else history.store.item(part.source)
                yield True
                write = history.rule.write_for(part, target, source)
                if write is None or isinstance(write, Blocked):
                    break
                if history.deaths and history.random.random() < 0.2:
                    history.deaths -= 1
                    history.late.append(write)
                    history.records.append(self.record)  # not acknowledged, so it is delivered again
                    return
                result: Result = history.store.apply(Apply((write,)))[0]
                assert result.status in (Status.WRITTEN, Status.REFUSED), result
                if result.status is Status.WRITTEN:
                    break

    def _parts(self) -> Iterator[object]:
        rule, key = self.history.rule, self.record.key
        for one in (rule.source, rule.target):
            if key.table == one.table.name and one.fields(key) is not None:
                yield from rule.parts(self.record, one)


def play(
    rule: PartRule,
    seed: int,
    check: Callable[[MemoryStore], None] = lambda _: None,
    totals: Sequence[AttributeValue] = NUMBERS,
) -> MemoryStore:
    """One history, from an empty store to rest. `check` must hold after every step."""
    history = History(rule, Random(seed), totals)
    writes = 10
    while writes or history.busy:
        before = len(history.records)
        history.act(writes)
        writes -= bool(writes and len(history.records) > before)
        check(history.store)
    return history.store


def unguarded(write: object) -> object:
    """The same transaction, whatever it finds."""
    if not isinstance(write, Transaction):
        return write
    return Transaction(tuple(replace(action, guard=(ALWAYS,)) for action in write.actions))


def tally(rule_type: type[TallyRule] = TallyRule, shards: int = 1, **options: object) -> TallyRule:
    """The sum of a user's orders, or what `options` make of it."""
    made = ledger(shards)
    given = {"function": "sum", "of": ("total",), "link": LINK, "shards": shards, "marks": made.marks}
    return rule_type("spent.ledger", ORDER, made.entries, parent=USER, totals=made.totals, **{**given, **options})
