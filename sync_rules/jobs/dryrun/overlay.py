"""The writes of a dry run so far, as the newest image of each item: a SQLite database, so not limited by memory.

Invariant: it holds each item as it is now, or that it is deleted; numbers in keys are compared by value. The database
has no name: SQLite puts rows that its small cache cannot hold into a temporary file that no other process can open.

https://www.sqlite.org/inmemorydb.html#temp_db
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from threading import Lock
from typing import Any, Final

from sync_rules.model import json_bytes
from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.json_bytes import tag_binary, untag_binary
from sync_rules.model.numbers import format_number
from sync_rules.model.semantics import list_key_values, make_comparable, make_identity
from sync_rules.model.values import AttributeValue, Item

Value = str | bytes | Decimal

ASKED_MAX_KEYS: Final = 500  # of one statement; older SQLite takes 999
SCHEMA: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE items (number INTEGER PRIMARY KEY, place TEXT UNIQUE, tbl TEXT, item TEXT, added INTEGER);
CREATE INDEX added_items ON items (tbl, number) WHERE added;
CREATE TABLE listed (listing TEXT, number INTEGER, PRIMARY KEY (listing, number)) WITHOUT ROWID;
CREATE INDEX listings_of ON listed (number);
"""
LISTED: Final = "SELECT item FROM listed JOIN items USING (number) WHERE listing = ?"
ADDED: Final = "SELECT number, item FROM items WHERE added AND tbl = ? AND number > ? AND item IS NOT NULL LIMIT ?"


class Overlay:
    """A store of the items that a dry run wrote, which hides the real items. Several threads may use it."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._held: Counter[str] = Counter()
        self._lock = Lock()
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._database.executescript(SCHEMA)

    def __len__(self) -> int:
        return self._held.total()

    def close(self) -> None:
        self._database.close()

    def find(self, keys: Iterable[ItemKey]) -> dict[ItemKey, Item | None]:
        """Return the items that the overlay holds under these keys, as they are now; None for a deleted item."""
        places = {key: _format_place(key) for key in keys if self._held[key.table]}
        asked = list(dict.fromkeys(places.values()))
        found: dict[str, Item | None] = {}
        for start in range(0, len(asked), ASKED_MAX_KEYS):
            some = asked[start : start + ASKED_MAX_KEYS]
            marks = ",".join("?" * len(some))
            rows = self._ask(f"SELECT place, item FROM items WHERE place IN ({marks})", *some)  # noqa: S608 - marks only
            found.update((place, _parse_item(text)) for place, text in rows)
        return {key: found[place] for key, place in places.items() if place in found}

    def put(self, key: ItemKey, item: Item | None, *, added: bool) -> None:
        """Store an item as it is now; None means deleted. `added`: the real store lacks the item; only the first call
        sets it.
        """
        table, place, text = self._tables[key.table], _format_place(key), _format_item(item)
        with self._lock:
            held = self._database.execute("SELECT number FROM items WHERE place = ?", (place,)).fetchone()
            if held is None:
                values = (place, table.name, text, added)
                insert = "INSERT INTO items (place, tbl, item, added) VALUES (?, ?, ?, ?)"
                number = self._database.execute(insert, values).lastrowid
                self._held[table.name] += 1
            else:
                (number,) = held
                self._database.execute("UPDATE items SET item = ? WHERE number = ?", (text, number))
                self._database.execute("DELETE FROM listed WHERE number = ?", (number,))
            listings = () if item is None else _format_listings(table, item)
            self._database.executemany("INSERT INTO listed VALUES (?, ?)", [(one, number) for one in listings])

    def list_items(self, table: str, index: str | None, equals: Iterable[tuple[str, AttributeValue]]) -> list[Item]:
        """Return the items of a partition of a table or index, in no order. `equals` must name the partition's
        attributes.
        """
        if not self._held[table]:
            return []
        of = self._tables[table]
        given = {name: make_comparable(*next(iter(value.items()))) for name, value in equals}
        names = (of.partition,) if index is None else of.index(index).partition
        rows = self._ask(LISTED, _format_listing(table, index, [given[attribute.name] for attribute in names]))
        return [item for (text,) in rows if (item := _parse_item(text)) is not None]

    def list_added_items(self, table: str, after: int, limit: int) -> list[tuple[int, Item]]:
        """Return up to `limit` items that the real store lacks, after the number `after`, each with its number."""
        if not self._held[table]:
            return []
        rows = self._ask(ADDED, table, after, limit)
        return [(number, item) for number, text in rows if (item := _parse_item(text)) is not None]

    def _ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()


def _format_place(key: ItemKey) -> str:
    return json.dumps([key.table, *map(_format_part, make_identity(key))])


def _format_listings(table: Table, item: Item) -> Iterator[str]:
    for index, partition, sort in (
        (None, (table.partition,), ()),
        *((index.name, index.partition, index.sort) for index in table.indexes),
    ):
        values = list_key_values(item, partition)
        if values is not None and list_key_values(item, sort) is not None:
            yield _format_listing(table.name, index, values)


def _format_listing(table: str, index: str | None, values: Iterable[Value]) -> str:
    return json.dumps([table, index, *map(_format_part, values)])


def _format_part(value: Value) -> str:
    if isinstance(value, Decimal):
        return format_number(value)
    return value.hex() if isinstance(value, bytes) else value


def _format_item(item: Item | None) -> str | None:
    return None if item is None else json.dumps(item, default=tag_binary)


def _parse_item(text: str | None) -> Item | None:
    item: Item | None = None if text is None else json_bytes.parse_json(text, object_hook=untag_binary)
    return item
