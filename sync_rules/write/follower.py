"""`follow`: after a write made in any way, the process that made it brings the copies in line at once.

Invariant: this is the pipeline on the real store, with its guards, started by the changes that the process itself knows
of. It is bounded by time and count; what it does not finish, the stream does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Limits
from sync_rules.model.semantics import actions_of
from sync_rules.model.values import Item
from sync_rules.model.writes import Check, Result, Status
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions, Given, Place, place_of
from sync_rules.write.client_proxy import ClientProxy
from sync_rules.write.consequences import Consequences, Left
from sync_rules.write.deadline import DEADLINE_SECONDS, Deadline
from sync_rules.write.errors import WriteError

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
        entity = self._rules.entity_of(key)
        return entity is not None and self._rules.concern(entity).leads_on

    def _note(self, keys: Sequence[ItemKey]) -> None:
        old = {key: self._seen.get(place_of(key)) for key in keys}
        if keys:
            new = dict(zip(keys, self.read(Read(tuple(keys))), strict=True))
            self._changes += (Change(key, old[key], new[key]) for key in keys)


Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(eq=False)
class Block:
    """The items that were written in one block, and what each was before."""

    noted: dict[Place, tuple[ItemKey, Item | None]] = field(default_factory=dict)


@dataclass(eq=False)
class Blocks:
    """The blocks of one `follow`, which may be at work in several threads and tasks at once. `outside` has what was
    written in none of them, such as in a thread that a block started: whichever block ends next takes it along.
    """

    outside: Block = field(default_factory=Block)
    open: list[Block] = field(default_factory=list)
    result: Followed | None = None

    def here(self) -> Block:
        """The innermost block of this thread or task."""
        return next((block for owner, block in reversed(_HERE.get()) if owner is self), self.outside)

    def begin(self) -> Block:
        """Begin a block in this thread or task."""
        block = Block()
        self.open.append(block)
        _HERE.set((*_HERE.get(), (self, block)))
        return block

    def end(self) -> list[tuple[ItemKey, Item | None]]:
        """End the innermost block. Where a framework ends it in another context than it began it, that is the last that
        is open.
        """
        block = self.here()
        if block is self.outside and self.open:
            block = self.open[-1]
        _HERE.set(tuple(one for one in _HERE.get() if one[1] is not block))
        if block in self.open:
            self.open.remove(block)
        outside, self.outside = self.outside, Block()
        return [*outside.noted.values(), *(() if block is outside else block.noted.values())]


_HERE: Final[ContextVar[tuple[tuple[Blocks, Block], ...]]] = ContextVar("sync_rules_follow", default=())


class Follow(ClientProxy):
    """Notes writes, and brings copies in line when its block ends. `result` says what the block that ended last did.

    It stands for a client, a resource or a table of boto3: `put_item`, `update_item`, `delete_item`,
    `batch_write_item`, `transact_write_items` and the batch writer of a table are noted, if they are on declared
    entities; all else goes to the client as it is. A block is a `with`, an `async with`, or a call of a function that
    it decorates, `async` or not. A write that was made elsewhere is noted by `change`; `raw` says that it is given in
    attribute values, which is usual unless a resource was given.
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
        self._blocks = Blocks()

    @property
    def result(self) -> Followed:
        """The work of the block that ended last.

        Raises:
            WriteError: when none has ended.
        """
        if self._blocks.result is None:
            raise WriteError("no block has ended", "read `result` after the block")
        return self._blocks.result

    # ------------------------------------------------------------ blocks
    def __enter__(self) -> Self:
        self._blocks.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        noted = self._blocks.end()
        if kind is None:
            self._bring(noted)
        else:
            with suppress(Exception):  # what was written before the error is followed too; the error is the answer
                self._bring(noted)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        from asyncio import to_thread  # noqa: PLC0415 - slow to load, and in an async block it is loaded

        noted = self._blocks.end()
        if kind is None:
            await to_thread(self._bring, noted)
        else:
            with suppress(Exception):
                await to_thread(self._bring, noted)

    def __call__(self, function: Function) -> Function:
        """Decorate a function: each call of it is a block.

        Raises:
            WriteError: for a generator, because a caller may never read it to its end.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise WriteError("a generator cannot be decorated", "write `with noting:` inside it")
        followed: Any
        if inspect.iscoroutinefunction(function):

            async def followed(*arguments: Any, **named: Any) -> Any:
                async with self:
                    return await function(*arguments, **named)
        else:

            def followed(*arguments: Any, **named: Any) -> Any:
                with self:
                    return function(*arguments, **named)

        return cast("Function", wraps(function)(followed))

    # ------------------------------------------------------------ what was written
    def change(self, entity: str, before: Given | None, after: Given | None) -> None:
        """Note a change: the item before and after, None where there was or is none."""
        images = [self._actions.values(image) for image in (before, after) if image is not None]
        keys = {place_of(key): key for image in images for _, key in [self._actions.key_of(entity, image)]}
        if not keys:
            raise WriteError("a change of nothing to nothing", "give the item before, or after, or both")
        if len(keys) > 1:
            raise WriteError(
                "before and after have two keys", "note two changes: one of them before and None, one None and after"
            )
        (key,) = keys.values()
        self._note(key, None if before is None else {**images[0], **key.attributes()})

    def _note(self, key: ItemKey, before: Item | None) -> None:
        self._blocks.here().noted.setdefault(place_of(key), (key, before))

    def _is_noted(self, key: ItemKey) -> bool:
        return place_of(key) in self._blocks.here().noted

    def _read(self, keys: tuple[ItemKey, ...]) -> Iterable[Item | None]:
        return self._store_until(Deadline(self._deadline_seconds)).read(Read(keys))

    # ------------------------------------------------------------ following it
    def bring(self) -> Followed:
        """Bring the copies of all that was noted so far in line.

        Raises:
            StoreError: when the items cannot be read.
        """
        return self._bring(self._blocks.end())

    def _bring(self, noted: Sequence[tuple[ItemKey, Item | None]]) -> Followed:
        deadline = Deadline(self._deadline_seconds)
        store = self._store_until(deadline)
        found = store.read(Read(tuple(key for key, _ in noted))) if noted else ()
        changes = [Change(key, old, new) for (key, old), new in zip(noted, found, strict=True)]
        live = _Live(store, self._rules, changes)
        consequences = Consequences(self._rules, live, deadline.passed, self._limits, own=[key for key, _ in noted])
        consequences.run()
        self._blocks.result = Followed(live.writes, consequences.left)
        return self._blocks.result

    def _store_until(self, deadline: Deadline) -> Store:
        return self._store or deadline.store(self._original.given, self._rules)


follow = Follow
