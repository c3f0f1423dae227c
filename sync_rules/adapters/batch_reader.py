"""Reads items by key with BatchGetItem until the answer is complete.

Invariant: an answer in part is an error, never fewer items. An item without its key is not an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sync_rules.adapters.answers import make_keyless_error
from sync_rules.adapters.aws_errors import UnprocessedError
from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item

BATCH_GET_MAX_KEYS: Final = 100  # quota of BatchGetItem


def make_batch_gets(
    client: Any,
    tables: Mapping[str, Table],
    keys: Sequence[ItemKey],
    parameters: Callable[[Table], Mapping[str, Any]],
    on_item: Callable[[ItemKey, Item], None],
) -> Iterator[BatchGet]:
    """Make the BatchGetItem requests that read these keys, of up to 100 keys each. The keys must differ.

    `tables` by their names in the rules file. `parameters` returns those of a table, such as its projection. `on_item`
    is called with each item and its key.
    """
    for start in range(0, len(keys), BATCH_GET_MAX_KEYS):
        yield BatchGet(client, tables, keys[start : start + BATCH_GET_MAX_KEYS], parameters, on_item)


class BatchGet:
    """One BatchGetItem, called again for the keys that DynamoDB left. One answer has at most 16 MB."""

    operation: Final = "BatchGetItem"

    def __init__(
        self,
        client: Any,
        tables: Mapping[str, Table],
        keys: Iterable[ItemKey],
        parameters: Callable[[Table], Mapping[str, Any]],
        on_item: Callable[[ItemKey, Item], None],
    ) -> None:
        self._client = client
        self._on_item = on_item
        self._tables: dict[str, Table] = {}
        self._pending: dict[str, Any] = {}
        for key in keys:
            table = tables[key.table]
            if table.physical_name not in self._pending:
                self._tables[table.physical_name] = table
                self._pending[table.physical_name] = {"Keys": [], **parameters(table)}
            self._pending[table.physical_name]["Keys"].append(key.attributes())

    @property
    def pending_count(self) -> int:
        """The number of keys that are not read yet."""
        return sum(len(request["Keys"]) for request in self._pending.values())

    @property
    def where(self) -> str:
        """The tables, for messages."""
        return f"table{'s' if len(self._tables) > 1 else ''} {', '.join(self._tables)}"

    def __call__(self) -> None:
        """Read the keys that are left. Raises UnprocessedError if some are left for another call."""
        answer = self._client.batch_get_item(RequestItems=self._pending)
        for physical_name, items in answer["Responses"].items():
            table = self._tables.get(physical_name)
            for item in items:
                key = None if table is None else table.key_of(item)
                if key is None:
                    raise make_keyless_error()
                self._on_item(key, item)
        before, self._pending = self.pending_count, answer.get("UnprocessedKeys") or {}
        if self._pending:
            raise UnprocessedError(progressed=self.pending_count < before)
