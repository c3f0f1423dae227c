"""The Chinook music shop, kept by rules of nearly every kind: from nothing, and through a storm, to what Python computes.

In memory with half of its data, items and records in an order drawn by seed, batches delivered twice; on the embedded
engine with a part of it, by the pipeline of `sync-rules run`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from sync_rules.adapters import aws
from sync_rules.adapters.streams import DynamoDBStreams
from sync_rules.lab.demo.example import LocalPipeline, with_settle_seconds
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.python_values import plain_of, raw_of
from sync_rules.model.values import Item, Path
from tests.integration.chinook import RULES, TABLES, Data, Key, Record, key_of, load, some, truth
from tests.support import engines
from tests.support.depth import deep
from tests.support.worlds import Scene

BATCH_MAX_RECORDS = 500
STORM = 400  # changes of the application
SECONDS_MAX = 120  # on the engine; on two free cores it takes ten
ENGINE_PART = (10, 6)  # artists and customers, with all that is theirs
NOBODY = Decimal(9_999)  # the id of nothing
SPOILT: Mapping[str, Record] = {  # what somebody may write over a copy; where other rules read it, what they can read
    "artists": {"Albums": {NOBODY}, "Tracks": "spoilt"},
    "albums": {"ArtistName": "spoilt", "Tracks": NOBODY},
    "tracks": {"ArtistName": "spoilt", "AlbumTitle": NOBODY},
    "customers": {
        "Name": "spoilt",
        "Invoices": NOBODY,
        "Spent": "spoilt",
        "Largest": NOBODY,
        "Countries": {"x": NOBODY},
    },
    "invoices": {"CustomerName": NOBODY, "Lines": {"x": {}}, "Last": "spoilt", "NumberOfLines": NOBODY, "Units": {}},
    "lines": {},
}


class Application:
    """Writes items, and knows what it wrote."""

    def __init__(self, put: Callable[[str, Item], object], delete: Callable[[str, Item], object]) -> None:
        self.data: Data = {table: {} for table in TABLES}
        self._put, self._delete = put, delete

    def put(self, table: str, item: Record, **copies: Any) -> None:
        """Write a whole item, which removes its copies or sets those of the application."""
        self.data[table][key_of(table, item)] = item
        self._put(table, {name: raw_of(value) for name, value in {**item, **copies}.items()})

    def delete(self, table: str, key: Key) -> None:
        item = self.data[table].pop(key)
        self._delete(table, {name: raw_of(item[name]) for name in TABLES[table][1]})


def found(items: Callable[[str], Iterable[Item]]) -> Data:
    """The items of the tables as plain Python."""
    plain = {t: [{name: plain_of(value) for name, value in item.items()} for item in items(t)] for t in TABLES}
    return {table: {key_of(table, item): item for item in items} for table, items in plain.items()}


def assert_true(there: Data, data: Data) -> None:
    """Every item is what was written and what follows from it: nothing less and nothing more."""
    wanted = truth(data)
    for table in TABLES:
        assert there[table].keys() == wanted[table].keys(), table
        wrong = {key: (there[table][key], item) for key, item in wanted[table].items() if there[table][key] != item}
        assert not wrong, f"{len(wrong)} of {table} are wrong, such as {next(iter(wrong.values()))}"


# ---------------------------------------------------------------- in memory
class Storm:
    """A scene whose records come in batches drawn by seed: table by table, of any size, some of them again later."""

    def __init__(self, seed: int, again: float) -> None:
        self.random = random.Random(seed)
        self.again = again  # how often what comes is a batch that came before
        self.scene = Scene(parse_rules(RULES, environ={"CHINOOK": "chinook-"}))
        self.tables = self.scene.rules.tables
        self.application = Application(
            self.scene.memory.put, lambda table, key: self.scene.memory.delete(self.at(table, key))
        )
        self.waiting: dict[str, list[Change]] = {table: [] for table in self.tables}
        self.past: list[list[Change]] = []

    def at(self, table: str, key: Item) -> ItemKey:
        found = self.tables[table].key_of(key)
        assert found is not None
        return found

    def deliver_one(self) -> None:
        """A batch of one table, or one that came before; or a message, whose time need not have come."""
        for change in self.scene.records:
            self.waiting[change.key.table].append(change)
        self.scene.records.clear()
        tables = [table for table, changes in self.waiting.items() if changes]
        if tables and self.past and self.random.random() < self.again:
            assert self.scene.deliver(self.random.choice(self.past)) == []
        elif tables:
            table = self.random.choice(tables)
            size = self.random.randint(1, BATCH_MAX_RECORDS)
            batch, self.waiting[table] = self.waiting[table][:size], self.waiting[table][size:]
            assert self.scene.deliver(batch) == []
            self.past.append(batch)
        elif self.scene.queue.messages:
            at = self.random.randrange(len(self.scene.queue.messages))
            self.scene.consumer.handle_message(self.scene.queue.messages.pop(at)[0])

    def rest(self) -> None:
        while any(self.waiting.values()) or self.scene.records or self.scene.queue.messages:
            self.deliver_one()

    def check(self) -> None:
        assert_true(found(self.scene.memory.items), self.application.data)
        assert self.scene.parked.failures == []

    # ------------------------------------------------------------ the application
    def load(self, data: Data) -> None:
        """Every item, in any order, while records are delivered already."""
        items = [(table, item) for table, rows in data.items() for item in rows.values()]
        self.random.shuffle(items)
        for table, item in items:
            self.application.put(table, item)
            if self.random.random() < 0.01:
                self.deliver_one()

    def blow(self, everything: Data) -> None:
        """Change a name, a link, an amount or an existence, or overwrite a copy."""
        data, put = self.application.data, self.application.put
        table = self.random.choice(list(TABLES))
        gone = [key for key in everything[table] if key not in data[table]]
        if gone and self.random.random() < 0.15:
            put(table, everything[table][self.random.choice(gone)])
            return
        key = self.random.choice(list(data[table]))
        item = data[table][key]
        match self.random.choice(("delete", "spoil", "lose", "change", "change")):
            case "delete":
                self.application.delete(table, key)
            case "spoil" if SPOILT[table]:
                put(table, item, **dict([self.random.choice(list(SPOILT[table].items()))]))
            case "lose":
                put(table, item)
            case _:
                changes = {name: value for name, value in self.drawn(table).items() if self.random.random() < 0.6}
                self.update(table, key, {name: value for name, value in changes.items() if value != item.get(name)})

    def drawn(self, table: str) -> Record:
        """Values for what rules read of such an item."""
        word = f"{self.random.choice(('Blue', 'Ö', '東京', 'x'))} {self.random.randrange(5)}"
        money = Decimal(self.random.randrange(-500, 5_000)) / 100
        match table:
            case "artists":
                return {"Name": word}
            case "albums":
                return {"Title": word, "ArtistId": self.some_id("artists")}
            case "tracks":
                return {"AlbumId": self.some_id("albums")}
            case "customers":
                return {"FirstName": word, "LastName": self.random.choice(("Doe", None))}
            case "invoices":
                return {"CustomerId": self.some_id("customers"), "Total": money, "BillingCountry": word}
        return {"UnitPrice": money, "Quantity": Decimal(self.random.randrange(4)), "TrackId": NOBODY}

    def some_id(self, table: str) -> Decimal | None:
        """An id of a few, so that they meet; of nothing; or none at all."""
        return self.random.choice((*(key[0] for key in list(self.application.data[table])[:4]), NOBODY, None))

    def update(self, table: str, key: Key, changes: Record) -> None:
        """Change attributes of an item, the others staying as they are, copies included."""
        item = {
            name: value for name, value in {**self.application.data[table][key], **changes}.items() if value is not None
        }
        self.application.data[table][key] = item
        at = self.at(table, {name: raw_of(value) for name, value in item.items()})
        sets: list[tuple[Path, Any]] = [
            ((name,), raw_of(value)) for name, value in changes.items() if value is not None
        ]
        self.scene.memory.update(at, sets, [(name,) for name, value in changes.items() if value is None])


STORMS = [(1, (137, 30), 0.05), (2, (40, 12), 0), (3, (40, 12), 0)]


@pytest.mark.parametrize(("seed", "size", "again"), STORMS[: 1 + deep(3)])
def test_chinook_is_built_from_nothing_and_weathers_a_storm(seed, size, again):
    """From empty copies, and after a burst of changes, every item is what Python computes.

    This holds with repeated batches and without, because a repeated record could heal a missed one. Where none was
    repeated, delivering all records once more attempts no write.
    """
    everything, storm = some(load(), *size), Storm(seed, again)
    storm.load(everything)
    storm.rest()
    storm.check()
    for _ in range(STORM):
        storm.blow(everything)
        if storm.random.random() < 0.1:
            storm.deliver_one()
    storm.rest()
    storm.check()
    if again:
        return
    storm.scene.tap.requests.clear()
    for table in storm.tables:
        past = [change for batch in storm.past for change in batch if change.key.table == table]
        assert past
        assert storm.scene.deliver(past) == []
    storm.rest()
    assert storm.scene.tap.writes == []


# ---------------------------------------------------------------- on an engine
def test_chinook_on_an_engine(engine, tmp_path):
    """A part of it on real tables and streams: written at once, then changed, and each time what Python computes."""
    deadline = time.monotonic() + SECONDS_MAX
    rules = with_settle_seconds(parse_rules(RULES, environ={"CHINOOK": engines.unique_prefix()}), settle_seconds=1)
    client = aws.dynamodb(engine)
    engines.create(engine, rules.tables)
    names = {name: table.physical_name for name, table in rules.tables.items()}
    application = Application(
        lambda table, item: client.put_item(TableName=names[table], Item=item),
        lambda table, key: client.delete_item(TableName=names[table], Key=key),
    )
    pipeline = LocalPipeline(rules, client, DynamoDBStreams(aws.dynamodbstreams(engine)), tmp_path)

    def check() -> None:
        assert pipeline.settle(int(1000 * (deadline - time.monotonic()))), "not done in time"
        pages = {t: client.get_paginator("scan").paginate(TableName=names[t], ConsistentRead=True) for t in TABLES}
        assert_true(found(lambda table: [item for page in pages[table] for item in page["Items"]]), application.data)
        assert list(pipeline.reports()) == []

    part = some(load(), *ENGINE_PART)
    items = [(table, item) for table, rows in part.items() for item in rows.values()]
    random.Random(4).shuffle(items)
    for table, item in items:
        application.put(table, item)
    check()
    pipeline.redeliver()
    for number, (table, item) in enumerate(items):
        match number % 20:
            case 0:
                application.delete(table, key_of(table, item))
            case 1:
                application.put(table, item)  # without its copies
            case 2 if table == "tracks":
                application.put(table, {**item, "AlbumId": Decimal(1)})
            case 2 if table == "invoices":
                application.put(table, {**item, "CustomerId": Decimal(1), "Total": item["Total"] + Decimal("0.01")})
    for table, item in items[::40]:
        application.put(table, item)  # back again
    check()
