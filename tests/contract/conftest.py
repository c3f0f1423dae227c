"""The bench on which every store is tried: the same tables, puts and stream records on each engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from sync_rules.adapters import aws, writer
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.writer import Mode
from sync_rules.model.entities import Table
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Read, Store
from tests.support.engines import GAPS, Endpoints, chosen, create, stream_records, unique_prefix, with_prefix

LONG_TABLES = frozenset({"test_write_leaves_what_dynamodb_would", "test_write_that_dynamodb_cannot_take_is_rejected"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By day each write of the long tables reaches an engine alone or as a batch, by turns; at night in both ways."""
    turns = Counter[tuple[str, str]]()
    for item in items:
        if isinstance(item, pytest.Function) and item.originalname in LONG_TABLES:
            engine = item.callspec.params["bench"]
            turns[item.originalname, engine] += 1
            if engine != "memory" and turns[item.originalname, engine] % 2 == engine.endswith("-batch"):
                item.add_marker(pytest.mark.night)


class Bench:
    """One store with tables of its own, and what an application and a stream reader would do beside it."""

    store: Store

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self.tables = {table.name: table for table in tables}

    def put(self, table: Table, *items: Item) -> None:
        raise NotImplementedError

    def delete(self, key: ItemKey) -> None:
        raise NotImplementedError

    def records(self, table: Table) -> list[Change]:
        raise NotImplementedError

    def close(self) -> None:
        """Leave nothing behind."""

    def item(self, key: ItemKey) -> Item | None:
        return self.store.read(Read((key,)))[0]


class MemoryBench(Bench):
    def __init__(self, tables: tuple[Table, ...]) -> None:
        super().__init__(tables)
        self.changes: list[Change] = []
        self.store = self.memory = MemoryStore(self.tables, lambda *seen: self.changes.append(Change(*seen)))

    def put(self, table: Table, *items: Item) -> None:
        for item in items:
            self.memory.put(table.name, item)

    def delete(self, key: ItemKey) -> None:
        self.memory.delete(key)

    def records(self, table: Table) -> list[Change]:
        return [change for change in self.changes if change.key.table == table.name]


class EngineBench(Bench):
    def __init__(self, tables: tuple[Table, ...], endpoint_url: str, write_mode: Mode = "update") -> None:
        super().__init__(tables)
        self.endpoint_url = endpoint_url
        self.client = aws.dynamodb(endpoint_url)
        self.tables = with_prefix(self.tables, unique_prefix())
        create(endpoint_url, self.tables)
        self.store = DynamoStore(self.client, self.tables, write_mode=write_mode)

    def put(self, table: Table, *items: Item) -> None:
        name = self.tables[table.name].physical_name
        for start in range(0, len(items), 25):
            requests = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
            assert not self.client.batch_write_item(RequestItems={name: requests})["UnprocessedItems"]

    def delete(self, key: ItemKey) -> None:
        self.client.delete_item(TableName=self.tables[key.table].physical_name, Key=key.attributes())

    def close(self) -> None:
        for table in self.tables.values():
            with suppress(self.client.exceptions.ResourceNotFoundException):
                self.client.delete_table(TableName=table.physical_name)

    def records(self, table: Table) -> list[Change]:
        return stream_records(self.endpoint_url, self.tables[table.name])


# Engines on which updates are also sent as statements. moto is none: it answers success to a statement it did not run.
IN_BATCHES = tuple(f"{name}-batch" for name in chosen() if name != "memory")


@pytest.fixture(params=(*chosen(), *IN_BATCHES))
def bench(
    request: pytest.FixtureRequest, endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Bench]]:
    """Makes a bench with the given tables on the engine this test runs on; even a single update as a batch, if any."""
    name, _, batch = str(request.param).partition("-")
    monkeypatch.setattr(writer, "BATCH_MIN_STATEMENTS", 1)
    for marker in request.node.iter_markers("needs"):
        (gap,) = marker.args
        if not {name, request.param} & GAPS[gap].lacking:
            continue
        request.applymarker(pytest.mark.xfail(strict=True, reason=f"{request.param}: {gap}"))

    made: list[Bench] = []

    def make(*tables: Table) -> Bench:
        made.append(
            MemoryBench(tables)
            if name == "memory"
            else EngineBench(tables, endpoints.of(name), "batch" if batch else "update")
        )
        return made[-1]

    yield make
    for bench in made:
        bench.close()
