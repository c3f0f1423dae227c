"""`transact`: the application's own actions and all that the rules say of them, in one TransactWriteItems.

Invariant: a transaction that a guard of the rules cancelled is made anew from fresh reads, with a token of its own; one
whose answer was lost is sent again as it is, with the same token. So it is never wrong, and never done twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Protocol, Self
from uuid import uuid4

from sync_rules.adapters import aws_errors
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.expressions import holds, same_item
from sync_rules.adapters.plain_client import plain
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import plain_of
from sync_rules.model.sizes import possible_key
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Store
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions, Given, Own, Place, merged, place_of, refuse_kept
from sync_rules.write.compose import ACTIONS_MAX, Planned, compose, fits
from sync_rules.write.errors import Cancelled, TransactionCanceled, WriteError
from sync_rules.write.prefetch import keys_of
from sync_rules.write.read_through import ReadThrough
from sync_rules.write.rehearsal import NO_ROOM, Left, Pushed, Rehearsal
from sync_rules.write.request import actions_of

DEADLINE_SECONDS: Final = 5.0
FIRST_WAIT_SECONDS: Final = 0.025
WAIT_MAX_SECONDS: Final = 1.0
TOKEN_MAX_CHARACTERS: Final = 36  # of ClientRequestToken
REFUSED: Final = "ConditionalCheckFailed"
AGAIN: Final = frozenset({
    "None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded",
})  # fmt: skip
OVERRIDDEN: Final = "the application insisted on another value"


class Client(Protocol):
    """A boto3 client for DynamoDB. A boto3 resource, one of its tables, or its client is good too."""

    @property
    def get_item(self) -> Callable[..., Any]: ...

    @property
    def batch_get_item(self) -> Callable[..., Any]: ...

    @property
    def query(self) -> Callable[..., Any]: ...

    @property
    def transact_write_items(self) -> Callable[..., Any]: ...


@dataclass(frozen=True, slots=True)
class Result:
    """A transaction that was made: what is left to the stream, how many actions it had, how often it was tried."""

    left: tuple[Left, ...]
    actions: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rehearsal, made into a transaction. `outdated`: while it read, an item changed that it had read before."""

    planned: Sequence[Planned]
    left: tuple[Left, ...]
    before: Mapping[Place, Item | None]
    outdated: bool = False


class Transact:
    """A transaction that is made when its `with` block ends. `result` says what was done.

    `raw`: values are given as the client has them ({"S": "x"}). `require`: nothing may be left to the stream.
    `deadline_seconds` limits the time for all attempts together. `token` is the ClientRequestToken of the first
    attempt, which is idempotent for ten minutes; a transaction that is made anew is another one.
    """

    result: Result

    def __init__(
        self,
        rules: Rules,
        client: Client,
        *,
        raw: bool = False,
        require: bool = False,
        deadline_seconds: float = DEADLINE_SECONDS,
        token: str | None = None,
        store: Store | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if token is not None and not (isinstance(token, str) and 0 < len(token) <= TOKEN_MAX_CHARACTERS - 4):
            raise WriteError("a token that cannot be one", f"give a text of 1 to {TOKEN_MAX_CHARACTERS - 4} characters")
        self._rules = rules
        self._client: Client = plain(client)
        self._raw = raw
        self._require = require
        self._token = token
        self._sleep = sleep
        self._deadline_seconds = deadline_seconds
        self._until = time.monotonic() + deadline_seconds
        self._store = store
        self._actions = Actions(rules, raw=raw)
        self._owns: dict[Place, Own] = {}
        self._given: dict[Place, tuple[ItemKey, Item]] = {}
        self._made = False

    # ------------------------------------------------------------ the application's actions
    def put(
        self,
        entity: str,
        item: Given,
        *,
        new: bool = False,
        condition: Any = None,
        names: Mapping[str, str] | None = None,
        values: Given | None = None,
        override: bool = False,
        returns: bool = False,
    ) -> None:
        """Put an item. `new`: there is none yet, so none is read, and the transaction is refused if there is one."""
        given = self._actions.condition(condition, names, values)
        self._add(self._actions.put(entity, item, given, new=new, override=override, returns=returns))

    def update(
        self,
        entity: str,
        key: Given,
        *,
        set: Given | None = None,  # noqa: A002 - DynamoDB's own word
        remove: Iterable[str] = (),
        add: Given | None = None,
        delete: Given | None = None,
        condition: Any = None,
        names: Mapping[str, str] | None = None,
        values: Given | None = None,
        override: bool = False,
        returns: bool = False,
    ) -> None:
        """Update an item: paths to set and to remove, numbers and elements to add, elements to delete from sets."""
        given = self._actions.condition(condition, names, values)
        removes = (remove,) if isinstance(remove, str) else tuple(remove)
        changes = set or {}, removes, add or {}, delete or {}
        self._add(self._actions.update(entity, key, changes, given, override=override, returns=returns))

    def delete(
        self,
        entity: str,
        key: Given,
        *,
        condition: Any = None,
        names: Mapping[str, str] | None = None,
        values: Given | None = None,
        returns: bool = False,
    ) -> None:
        """Delete an item."""
        given = self._actions.condition(condition, names, values)
        self._add(self._actions.other("delete", entity, key, given, returns=returns))

    def check(
        self,
        entity: str,
        key: Given,
        condition: Any,
        *,
        names: Mapping[str, str] | None = None,
        values: Given | None = None,
        returns: bool = False,
    ) -> None:
        """Check a condition on an item, in the same transaction."""
        given = self._actions.condition(condition, names, values)
        self._add(self._actions.other("check", entity, key, given, returns=returns))

    def source(self, entity: str, item: Given) -> None:
        """Give an item as it was read, whole, so that it is not read again. It is checked all the same."""
        values = self._actions.values(item)
        _, key = self._actions.key_of(entity, values)
        self._given[place_of(key)] = key, {**values, **key.attributes()}

    def _add(self, own: Own) -> None:
        if self._made:
            raise WriteError("this transaction is made already", "begin another one for more actions")
        place = place_of(own.key)
        self._owns[place] = merged(self._owns[place], own) if place in self._owns else own

    # ------------------------------------------------------------ making it
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.commit()

    def commit(self) -> Result:
        """Make the transaction, once. The `with` block does it at its end, if it was not done inside.

        Raises:
            TransactionCanceled: when a condition of the application did not hold.
            WriteError: when it cannot be made as it was asked for, or not before the deadline. Nothing was written.
            StoreError: when a request failed; `reason` is the service's error code.
        """
        if self._made:
            return self.result
        if not self._owns:
            self.result = Result((), 0, 0)
            return self.result
        if len(self._owns) > ACTIONS_MAX:
            raise WriteError(f"{len(self._owns)} actions", f"a transaction has at most {ACTIONS_MAX}: make several")
        self._until = time.monotonic() + self._deadline_seconds
        store = self._store or self._dynamo()
        attempts, last = 0, None
        while True:
            attempt = self._rehearse(store, fresh=attempts > 0)
            attempts += 1
            if not attempt.outdated and self._sent(attempt, last, attempts):
                self.result, self._made = Result(attempt.left, len(attempt.planned), attempts), True
                return self.result
            last = attempt
            self._pause(attempts)

    def _dynamo(self) -> Store:
        """The store that is read, before the deadline."""
        client: Any = self._client
        return DynamoStore(client, self._rules.tables, remaining_seconds=self._remaining, write_mode="update")

    def _remaining(self) -> float:
        return self._until - time.monotonic()

    def _pause(self, attempts: int) -> None:
        """Wait with full jitter before the next attempt."""
        wait = random.uniform(0, min(WAIT_MAX_SECONDS, FIRST_WAIT_SECONDS * 2**attempts))  # noqa: S311 - jitter
        if wait >= self._remaining():
            raise WriteError(
                f"other writers were quicker {attempts} times in {self._deadline_seconds} s",
                "nothing was written: try again later, or leave these copies to the stream",
                again=True,
            )
        self._sleep(wait)

    # ------------------------------------------------------------ one attempt
    def rehearsed(self) -> Attempt:
        """The first attempt, which is read for, and not sent."""
        self._until = time.monotonic() + self._deadline_seconds
        return self._rehearse(self._store or self._dynamo(), fresh=False)

    def _rehearse(self, store: Store, *, fresh: bool) -> Attempt:
        """Read, and let the rules do their work in memory. A given source is believed the first time only."""
        seen = ReadThrough(store, self._rules.tables)
        for place, (key, item) in self._given.items() if not fresh else ():
            if place not in self._owns or not self._owns[place].new:
                seen.know(key, item)
        for own in self._owns.values():
            if own.new:
                seen.know(own.key, None)
                seen.new.add(place_of(own.key))
        seen.load(self._likely())
        skipped: frozenset[Pushed] = frozenset()
        rules = self._rules
        while True:
            rehearsal = Rehearsal(rules, seen, lambda: self._remaining() <= 0, skipped=skipped)
            self._play(seen)
            rehearsal.run()
            if self._remaining() <= 0:
                raise WriteError(
                    f"{self._deadline_seconds} s were not enough", "nothing was written: give it more time", again=True
                )
            left = (*rehearsal.left, *self._overridden())
            planned = compose(self._owns, seen, rules, {one.rule for one in left})
            if fits(planned):
                break
            rules, skipped = self._smaller(rehearsal, rules, skipped)
            seen.start_over()
        if rules is not self._rules:
            left = tuple(Left(name, NO_ROOM) for name in self._concerned())
        if left and self._require:
            told = "; ".join(f"{one.rule}: {one.why}" for one in left)
            raise WriteError(f"not all fits into one transaction ({told})", "leave it to the stream: without require")
        return Attempt(planned, left, dict(seen.before), seen.outdated)

    def _likely(self) -> list[ItemKey]:
        found = [own.key for own in self._owns.values()]
        for own in self._owns.values():
            if own.verb == "put":
                found += keys_of(own.key, own.item, self._rules)
            elif own.verb == "update":
                found += keys_of(own.key, own.key.attributes(), self._rules)
        return [key for key in found if possible_key(key)]

    def _play(self, seen: ReadThrough) -> None:
        """Do the application's actions in memory."""
        for place, own in self._owns.items():
            before = seen.before[place]
            refuse_kept(own, before, self._rules)
            new = own.after(before)
            try:
                if new is None and before is not None:
                    seen.memory.delete(own.key)
                elif new is not None and own.verb != "check":
                    seen.memory.put(own.key.table, new)
            except StoreError as error:
                raise WriteError(
                    f"action {own.number}, {own.verb} of {own.entity.name}: {error}", "no table can hold this item"
                ) from error

    def _smaller(
        self, rehearsal: Rehearsal, rules: Rules, skipped: frozenset[Pushed]
    ) -> tuple[Rules, frozenset[Pushed]]:
        """Leave out the largest push, and all rules where there is none: so little room there is."""
        largest = max(rehearsal.pushed, key=lambda one: rehearsal.pushed[one], default=None)
        if largest is not None and rehearsal.pushed[largest]:
            return rules, skipped | {largest}
        if not rules.rules:
            raise WriteError("the items are more than 4 MB together", "make several transactions")
        return replace(rules, rules={}), skipped

    def _concerned(self) -> list[str]:
        """The rules that the application's items concern."""
        rules = self._rules
        found: dict[str, None] = {}
        for own in self._owns.values():
            of = own.entity
            for some in (rules.from_source(of), rules.into_target(of), rules.parts_of(of), rules.anchored(of)):
                found |= dict.fromkeys(rule.title for rule in some)
        return list(found)

    def _overridden(self) -> list[Left]:
        return [
            Left(rule.title, OVERRIDDEN, 1)
            for own in self._owns.values()
            if own.override
            for rule in dict.fromkeys((*self._rules.into_target(own.entity), *self._rules.parts_of(own.entity)))
            if rule.target is own.entity
            if own.entity in rule.owned or any(path[0] == given[0] for path in rule.copies for given in own.paths)
        ]

    # ------------------------------------------------------------ sending it
    def _sent(self, attempt: Attempt, last: Attempt | None, number: int) -> bool:
        """Send it until it is decided. False when it must be made anew."""
        items = actions_of(attempt.planned, self._rules.tables)
        token, times = self._token_of(number), 0
        while True:
            try:
                self._client.transact_write_items(TransactItems=items, ClientRequestToken=token)
            except aws_errors.ERRORS as error:
                reasons = aws_errors.cancellations(error)
                if reasons:
                    self._judge(attempt, last, reasons)
                    return False
                if not aws_errors.transient(error):
                    raise self._failed(error) from error
                times += 1
                wait = random.uniform(0, min(WAIT_MAX_SECONDS, FIRST_WAIT_SECONDS * 2**times))  # noqa: S311 - jitter
                if wait >= self._remaining():
                    told = "no answer before the deadline: it may be written"
                    told += ", and can be sent again with its token" if token == self._token else ""
                    raise StoreError(aws_errors.reason(error), told) from error
                self._sleep(wait)
            else:
                return True

    def _failed(self, error: BaseException) -> Exception:
        if aws_errors.code(error) == "IdempotentParameterMismatchException":
            return WriteError(
                "the token was used for another transaction within ten minutes",
                "read the items: most likely it is done",
            )
        where = "tables " + ", ".join(sorted({one.physical_name for one in self._rules.tables.values()}))
        return aws_errors.store_error(error, where)

    def _token_of(self, number: int) -> str:
        """The token of an attempt. What is made anew may differ, and needs a token of its own."""
        if self._token is None:
            return str(uuid4())
        return self._token if number == 1 else f"{self._token}-{number}"

    def _judge(self, attempt: Attempt, last: Attempt | None, reasons: Sequence[Mapping[str, Any]]) -> None:
        """Raise what the application must know of a transaction that was cancelled; return if it is to be made anew."""
        refused: list[Cancelled] = []
        for one, reason in zip(attempt.planned, reasons, strict=True):
            code = str(reason.get("Code") or "None")
            if code in AGAIN:
                continue
            if code == REFUSED and self._is_ours(one, attempt, last, reason.get("Item")):
                return
            if one.own is None:
                raise StoreError(code, f"an item of table {one.action.key.table} that a rule writes")
            item = reason.get("Item") if one.own.returns else None
            refused.append(Cancelled(one.own.number, code, None if item is None else self._output(item)))
        if refused:
            raise TransactionCanceled(tuple(refused))

    def _is_ours(self, one: Planned, attempt: Attempt, last: Attempt | None, item: Item | None) -> bool:
        """True if a guard of the rules was refused, and not the application's condition. Where the item did not come
        with the refusal, it is the application's if the item was the same in two attempts.
        """
        own = one.own
        if own is None or (own.condition is None and not own.new):
            return True
        if own.new:
            return False
        if item:
            return not holds(one.action.guard, item)
        if not one.action.guard:
            return False
        place = place_of(own.key)
        return last is None or not same_item(last.before.get(place), attempt.before[place])

    def _output(self, item: Item) -> Mapping[str, Any]:
        return item if self._raw else {name: plain_of(value) for name, value in item.items()}


transact = Transact
