"""`follow`: after a write made in any way, the process that made it repairs the copies at once.

Invariant: this is the pipeline on the real store, with its guards, for the changes that the process knows of. Time and
count are limited; the stream does the rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Limits
from sync_rules.model.semantics import Place, list_actions, make_place
from sync_rules.model.values import Item
from sync_rules.model.writes import Check, Result, Status
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions, Given
from sync_rules.write.client_proxy import ClientProxy
from sync_rules.write.consequences import Consequences, Left
from sync_rules.write.deadline import DEADLINE_SECONDS, Deadline
from sync_rules.write.errors import WriteError

ITEMS_MAX: Final = 1_000
LIMITS: Final = Limits(parked_max_looks=0)


@dataclass(frozen=True, slots=True)
class Followed:
    """The number of writes made at once, and the work left to the stream."""

    writes: int
    left: tuple[Left, ...]


class _Live:
    """The real store. Each write of the rules that others may follow from is noted as a change."""

    def __init__(self, store: Store, rules: Rules, changes: Iterable[Change]) -> None:
        self._store = store
        self._rules = rules
        self._seen: dict[Place, Item | None] = {}
        self._changes = list(changes)
        self.writes = 0
        for change in self._changes:
            self._seen[make_place(change.key)] = change.new

    def changes(self) -> Sequence[Change]:
        """The changes since this was asked last."""
        found, self._changes = self._changes, []
        return found

    def item(self, key: ItemKey) -> Item | None:
        """The item as it was seen last."""
        return self._seen.get(make_place(key))

    def read(self, request: Read) -> tuple[Item | None, ...]:
        items = self._store.read(Read(request.keys))
        self._seen.update(zip(map(make_place, request.keys), items, strict=True))
        return items

    def list(self, request: List) -> Page:
        page = self._store.list(replace(request, attributes=None) if request.index is None else request)
        if request.index is None:
            table = self._rules.tables[request.table]
            self._seen.update((make_place(key), item) for item in page.items if (key := table.key_of(item)) is not None)
        return page

    def scan(self, request: Scan) -> Page:
        return self._store.scan(request)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        results = self._store.apply(request)
        written = [
            action.key
            for write, result in zip(request.writes, results, strict=True)
            if result.status is Status.WRITTEN
            for action in list_actions(write)
            if not isinstance(action, Check)
        ]
        self.writes += sum(result.status is Status.WRITTEN for result in results)
        self._note([key for key in dict.fromkeys(written) if self._has_followers(key)])
        return results

    def _has_followers(self, key: ItemKey) -> bool:
        entity = self._rules.entity_of(key)
        return entity is not None and self._rules.find_concern(entity).leads_on

    def _note(self, keys: Sequence[ItemKey]) -> None:
        old = {key: self._seen.get(make_place(key)) for key in keys}
        if keys:
            new = dict(zip(keys, self.read(Read(tuple(keys))), strict=True))
            self._changes += (Change(key, old[key], new[key]) for key in keys)


Function = TypeVar("Function", bound=Callable[..., Any])


class Follow(ClientProxy):
    """A proxy that notes writes and repairs the copies when its block ends. `result` is that of the block that ended
    last. It replaces a client, a resource or a table of boto3. It notes `put_item`, `update_item`, `delete_item`,
    `batch_write_item`, `transact_write_items` and a table's batch writer, for declared entities. It passes all other
    calls to the client. A block is a `with`, an `async with`, or a call of a function that it decorates, `async` or
    not. `change` notes a write that was made elsewhere. `raw`: that write is given in attribute values; the default
    is False for a resource or table, else True.
    """

    def __init__(
        self,
        rules: Rules,
        client: Any,
        *,
        raw: bool | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
        items_max: int = ITEMS_MAX,
        store: Store | None = None,
    ) -> None:
        super().__init__(rules, client)
        self._actions = Actions(rules, raw=not self._original.python if raw is None else raw)
        self._deadline_seconds = deadline_seconds
        page = max(1, min(items_max, LIMITS.fan_out_page_max_items))
        self._limits = replace(LIMITS, fan_out_page_max_items=page, fan_out_inline_max_items=items_max)
        self._store = store

    @property
    def result(self) -> Followed:
        """The result of the block that ended last.

        Raises:
            WriteError: if no block has ended.
        """
        result: Followed | None = self._blocks.result
        if result is None:
            raise WriteError("no block has ended", "read `result` after the block")
        return result

    # ------------------------------------------------------------ blocks
    def __enter__(self) -> Self:
        self._blocks.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._finish(self._blocks.end(), kind)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        from asyncio import to_thread  # noqa: PLC0415 - slow to load, and in an async block it is loaded

        await to_thread(self._finish, self._blocks.end(), kind)

    def _finish(self, noted: Sequence[tuple[ItemKey, Item | None]], error: type[BaseException] | None) -> None:
        """Follow what a block wrote, also before an error in it, which is then the answer."""
        with suppress(*(() if error is None else (Exception,))):
            self._bring(noted)

    def __call__(self, function: Function) -> Function:
        """Decorate a function: each call of it is a block.

        Raises:
            WriteError: for a generator, because a caller may never read it to its end.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise WriteError("a generator cannot be decorated", "write `with noting:` inside it")
        call_inside: Any
        if inspect.iscoroutinefunction(function):

            async def call_inside(*arguments: Any, **named: Any) -> Any:
                async with self:
                    return await function(*arguments, **named)
        else:

            def call_inside(*arguments: Any, **named: Any) -> Any:
                with self:
                    return function(*arguments, **named)

        return cast("Function", wraps(function)(call_inside))

    # ------------------------------------------------------------ what was written
    def change(self, entity: str, before: Given | None, after: Given | None) -> None:
        """Note a change: the item before and after the write, None if it did not or does not exist."""
        images = [self._actions.values(image) for image in (before, after) if image is not None]
        keys = {make_place(key): key for image in images for _, key in [self._actions.key_of(entity, image)]}
        if not keys:
            raise WriteError("a change of nothing to nothing", "give the item before, or after, or both")
        if len(keys) > 1:
            raise WriteError(
                "before and after have two keys", "note two changes: one of them before and None, one None and after"
            )
        (key,) = keys.values()
        self._note(key, None if before is None else {**images[0], **key.attributes()})

    def _read(self, keys: tuple[ItemKey, ...]) -> Iterable[Item | None]:
        return self._store_until(Deadline(self._deadline_seconds)).read(Read(keys))

    # ------------------------------------------------------------ following it
    def bring(self) -> Followed:
        """Repair the copies of everything that was noted so far.

        Raises:
            StoreError: if the items cannot be read.
        """
        return self._bring(self._blocks.end())

    def _bring(self, noted: Sequence[tuple[ItemKey, Item | None]]) -> Followed:
        deadline = Deadline(self._deadline_seconds)
        store = self._store_until(deadline)
        found = store.read(Read(tuple(key for key, _ in noted))) if noted else ()
        changes = [Change(key, old, new) for (key, old), new in zip(noted, found, strict=True)]
        live = _Live(store, self._rules, changes)
        consequences = Consequences(self._rules, live, deadline.is_over, self._limits, own=[key for key, _ in noted])
        consequences.run()
        followed = Followed(live.writes, consequences.leftovers)
        self._blocks.result = followed
        return followed

    def _store_until(self, deadline: Deadline) -> Store:
        return self._store or deadline.store(self._original.given, self._rules)


follow = Follow
