"""The requests that a write would make, for applications that build them by hand, in any language.

Invariant: nothing is written. The attempt is that of `transact`, on the items of the tables, or on given items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.plain_client import make_plain_client
from sync_rules.model.values import Item
from sync_rules.model.writes import Result
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.requests import NULL_PORTS, Apply, List, Page, Read, Scan, Store, World, run_work
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions
from sync_rules.write.consequences import Left
from sync_rules.write.document import WriteDocument, parse_document
from sync_rules.write.request import make_transact_items
from sync_rules.write.transaction import Transact

DEADLINE_SECONDS: Final = 60.0  # of the reads


@dataclass(frozen=True, slots=True)
class WritePreview:
    """A write as `transact` makes it: its reads as operations with parameters, its actions, and the work that it leaves
    to the stream.
    """

    reads: tuple[tuple[str, Mapping[str, Any]], ...]
    actions: tuple[Mapping[str, Any], ...]
    left: tuple[Left, ...]


def preview_write(rules: Rules, body: object, client: Any = None) -> WritePreview:
    """Return the requests of a write that is given as JSON. They read through this client. Without a client, the tables
    hold only the `items` of the document, and books are complete.

    Raises:
        WriteError: as `transact` does.
        StoreError: if a read failed.
    """
    document = parse_document(body, items=True)
    unanswered: Any = _Unanswered()  # of a client, what an attempt needs
    listing = DynamoStore(unanswered, rules.tables, write_mode="update")
    tables: Store = _fill_tables(document, rules)
    if client is not None:
        tables = DynamoStore(make_plain_client(client), rules.tables, write_mode="update")
    tx = Transact(rules, unanswered, raw=document.raw, require=document.require, deadline_seconds=DEADLINE_SECONDS,
                  store=_ListedStore(listing, tables))  # fmt: skip
    document.add_to(tx)
    attempt = tx.make_first_attempt()
    return WritePreview(
        tuple(unanswered.asked), tuple(make_transact_items(attempt.planned, rules.tables)), attempt.left
    )


def _fill_tables(document: WriteDocument, rules: Rules) -> MemoryStore:
    store = MemoryStore(rules.tables)
    run_work(finish_empty(rules), World(store, NULL_PORTS, NULL_PORTS))
    actions = Actions(rules, raw=document.raw)
    for entity, item in document.items:
        values = actions.values(item)
        _, key = actions.key_of(entity, values)
        store.put(key.table, {**values, **key.attributes()})
    return store


class _Unanswered:
    """A client that lists the requests, and finds nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def get_item(self, **parameters: Any) -> Any:
        self.asked.append(("GetItem", parameters))
        return {}

    def batch_get_item(self, **parameters: Any) -> Any:
        self.asked.append(("BatchGetItem", parameters))
        return {"Responses": {}}

    def query(self, **parameters: Any) -> Any:
        self.asked.append(("Query", parameters))
        return {"Items": []}


class _ListedStore:
    """A store that only reads. An unanswered client lists the requests that the reads are."""

    def __init__(self, listing: DynamoStore, answering: Store) -> None:
        self._listing = listing
        self._answering = answering

    def read(self, request: Read) -> tuple[Item | None, ...]:
        self._listing.read(request)
        return self._answering.read(request)

    def list(self, request: List) -> Page:
        self._listing.list(request)
        return self._answering.list(request)

    def scan(self, request: Scan) -> Page:
        return self._answering.scan(request)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        raise AssertionError(f"a preview writes nothing, and not {request}")
