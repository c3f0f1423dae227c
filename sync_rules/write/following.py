"""`follow`: after a write made in any way, the process that made it brings the copies in line at once.

Invariant: this is the pipeline on the real store, with its guards, started by the changes that the process itself knows
of. It is bounded by time and count; what it does not finish, the stream does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.metered import actions_of
from sync_rules.model.entities import Table
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Limits
from sync_rules.model.values import Item
from sync_rules.model.writes import Check, Result, Status
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions, Given, Place, place_of
from sync_rules.write.errors import WriteError
from sync_rules.write.rehearsal import Left, Rehearsal
from sync_rules.write.transaction import DEADLINE_SECONDS

ITEMS_MAX: Final = 1_000
LIMITS: Final = Limits(parked_max_looks=0)


@dataclass(frozen=True, slots=True)
class Followed:
    """The number of writes that were made at once, and what is left to the stream."""

    writes: int
    left: tuple[Left, ...]


class _Live:
    """The real store, which notes what the rules write on it: each write that others may follow from is a change."""

    def __init__(self, store: Store, rules: Rules, changes: Iterable[Change]) -> None:
        self._store = store
        self._rules = rules
        self._seen: dict[Place, Item | None] = {}
        self._changes = list(changes)
        self.writes = 0
        for change in self._changes:
            self._seen[place_of(change.key)] = change.new

    def changes(self) -> Sequence[Change]:
        """The changes since this was asked last."""
        found, self._changes = self._changes, []
        return found

    def image(self, key: ItemKey) -> Item | None:
        """The item as it was seen last."""
        return self._seen.get(place_of(key))

    def read(self, request: Read) -> tuple[Item | None, ...]:
        items = self._store.read(Read(request.keys))
        self._seen.update(zip(map(place_of, request.keys), items, strict=True))
        return items

    def list(self, request: List) -> Page:
        page = self._store.list(replace(request, attributes=None) if request.index is None else request)
        if request.index is None:
            table = self._rules.tables[request.table]
            self._seen.update((place_of(key), item) for item in page.items if (key := table.key_of(item)) is not None)
        return page

    def scan(self, request: Scan) -> Page:
        return self._store.scan(request)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        results = self._store.apply(request)
        written = [
            action.key
            for write, result in zip(request.writes, results, strict=True)
            if result.status is Status.WRITTEN
            for action in actions_of(write)
            if not isinstance(action, Check)
        ]
        self.writes += sum(result.status is Status.WRITTEN for result in results)
        self._note([key for key in dict.fromkeys(written) if self._leads_on(key)])
        return results

    def _leads_on(self, key: ItemKey) -> bool:
        """True if rules make something of such items."""
        rules, entity = self._rules, self._rules.entity_of(key)
        return entity is not None and bool(
            rules.from_source(entity)
            or rules.parts_of(entity)
            or rules.anchored(entity)
            or rules.into_target(entity)[1:]
        )

    def _note(self, keys: Sequence[ItemKey]) -> None:
        old = {key: self._seen.get(place_of(key)) for key in keys}
        if keys:
            new = dict(zip(keys, self.read(Read(tuple(keys))), strict=True))
            self._changes += (Change(key, old[key], new[key]) for key in keys)


class Follow:
    """Notes writes, and brings copies in line when its `with` block ends. `result` says what was done.

    In the block it stands for the client: `put_item`, `update_item`, `delete_item`, `batch_write_item` and
    `transact_write_items` are noted, if they are on declared entities; all else goes to the client as it is. A write
    that was made elsewhere is noted by `change`.
    """

    result: Followed

    def __init__(
        self,
        rules: Rules,
        client: Any,
        *,
        raw: bool = True,
        deadline_seconds: float = DEADLINE_SECONDS,
        items_max: int = ITEMS_MAX,
        store: Store | None = None,
    ) -> None:
        self._rules = rules
        self._client = client
        self._actions = Actions(rules, raw=raw)
        self._deadline_seconds = deadline_seconds
        self._limits = replace(LIMITS, fan_out_inline_max_items=items_max)
        self._until = time.monotonic() + deadline_seconds
        self._store = store or DynamoStore(
            client, rules.tables, remaining_seconds=lambda: self._until - time.monotonic(), write_mode="update"
        )
        self._tables: Mapping[str, Table] = {table.physical_name: table for table in rules.tables.values()}
        self._noted: dict[Place, tuple[ItemKey, Item | None]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.bring()
        else:
            with suppress(Exception):  # what was written before the error is followed too; the error is the answer
                self.bring()

    # ------------------------------------------------------------ what was written
    def change(self, entity: str, before: Given | None, after: Given | None) -> None:
        """Note a change: the item before and after, None where there was or is none."""
        for image in (before, after):
            if image is not None:
                _, key = self._actions.key_of(entity, self._actions.values(image))
                old = None if before is None else {**self._actions.values(before), **key.attributes()}
                self._noted.setdefault(place_of(key), (key, old))
                return
        raise WriteError("a change of nothing to nothing", "give the item before, or after, or both")

    def put_item(self, **parameters: Any) -> Any:
        """Put an item, and note it."""
        return self._one(self._client.put_item, parameters, parameters.get("Item", {}))

    def update_item(self, **parameters: Any) -> Any:
        """Update an item, and note it."""
        return self._one(self._client.update_item, parameters, parameters.get("Key", {}))

    def delete_item(self, **parameters: Any) -> Any:
        """Delete an item, and note it."""
        return self._one(self._client.delete_item, parameters, parameters.get("Key", {}))

    def batch_write_item(self, **parameters: Any) -> Any:
        """Write several items, and note them."""
        requests = [(name, one) for name, some in parameters.get("RequestItems", {}).items() for one in some]
        self._before((name, of.get("Item") or of.get("Key")) for name, one in requests for of in one.values())
        return self._client.batch_write_item(**parameters)

    def transact_write_items(self, **parameters: Any) -> Any:
        """Write several items together, and note them."""
        actions = [
            of for one in parameters.get("TransactItems", ()) for verb, of in one.items() if verb != "ConditionCheck"
        ]
        self._before((of["TableName"], of.get("Item") or of.get("Key")) for of in actions)
        return self._client.transact_write_items(**parameters)

    def _one(self, call: Callable[..., Any], parameters: dict[str, Any], named: Item) -> Any:
        """Make a write of one item. The answer brings the former item, unless the application wants another one."""
        key = self._key(parameters.get("TableName", ""), named)
        if key is None or place_of(key) in self._noted:
            return call(**parameters)
        if parameters.get("ReturnValues", "NONE") not in ("NONE", "ALL_OLD"):
            self._before([(parameters["TableName"], named)])
            return call(**parameters)
        answer = call(**{**parameters, "ReturnValues": "ALL_OLD"})
        self._noted[place_of(key)] = key, answer.get("Attributes") or None
        if parameters.get("ReturnValues", "NONE") == "NONE":
            answer.pop("Attributes", None)
        return answer

    def _before(self, named: Iterable[tuple[str, Item | None]]) -> None:
        """Read items before they are written."""
        keys = (self._key(table, item or {}) for table, item in named)
        unread = tuple(key for key in dict.fromkeys(keys) if key is not None and place_of(key) not in self._noted)
        if unread:
            self._until = time.monotonic() + self._deadline_seconds
            for key, item in zip(unread, self._store.read(Read(unread)), strict=True):
                self._noted[place_of(key)] = key, item

    def _key(self, physical_name: str, item: Item) -> ItemKey | None:
        """The key of an item of a declared entity; None for any other."""
        table = self._tables.get(physical_name)
        key = None if table is None else table.key_of(item)
        return None if key is None or self._rules.entity_of(key) is None else key

    # ------------------------------------------------------------ following it
    def bring(self) -> Followed:
        """Bring the copies of all that was noted in line.

        Raises:
            StoreError: when the items cannot be read.
        """
        noted, self._noted = list(self._noted.values()), {}
        self._until = time.monotonic() + self._deadline_seconds
        found = self._store.read(Read(tuple(key for key, _ in noted))) if noted else ()
        changes = [Change(key, old, new) for (key, old), new in zip(noted, found, strict=True)]
        live = _Live(self._store, self._rules, changes)
        rehearsal = Rehearsal(self._rules, live, lambda: time.monotonic() > self._until, self._limits)
        rehearsal.run()
        self.result = Followed(live.writes, rehearsal.left)
        return self.result


follow = Follow
