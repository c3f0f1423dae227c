"""`transact`: the application's own actions and all writes of the rules that follow, in one TransactWriteItems.

Invariant: if a guard of the rules cancelled a transaction, it is built again from fresh reads, with another token. If
an answer was lost, the same request is sent again with the same token. So no transaction is applied twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from sync_rules.adapters import aws_errors
from sync_rules.adapters.plain_client import make_plain_client
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.semantics import Place, make_place
from sync_rules.model.sizes import is_possible_key
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Store
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions, Given, Own, merge_actions, refuse_kept_attributes
from sync_rules.write.composer import ACTIONS_MAX, Planned, can_be_sent, compose
from sync_rules.write.consequences import NO_ROOM, Consequences, Left, Pushed
from sync_rules.write.deadline import DEADLINE_SECONDS, Deadline
from sync_rules.write.errors import TransactionCanceled, WriteError
from sync_rules.write.judgement import guess_keys
from sync_rules.write.read_through import ReadThrough
from sync_rules.write.refusals import Refusals
from sync_rules.write.request import make_transact_items

TOKEN_MAX_CHARACTERS: Final = 36  # of ClientRequestToken
OVERRIDDEN: Final = "the application insisted on another value"
INVALID: Final = ("ValidationException", "ParamValidationError")


@dataclass(frozen=True, slots=True)
class Result:
    """A transaction that succeeded: work left to the stream, number of actions, number of attempts."""

    left: tuple[Left, ...]
    actions: int
    attempts: int


@dataclass(frozen=True, slots=True)
class PlannedTransaction:
    """One attempt to make the transaction. `outdated`: a listing returned another image than an earlier read."""

    planned: Sequence[Planned]
    left: tuple[Left, ...]
    before: Mapping[Place, Item | None]
    outdated: bool = False


class Transact:
    """A transaction that is made when its `with` block ends. `result` describes the outcome. `client`: a boto3 client
    for DynamoDB, a resource or a table. `raw`: values are given in the client's form ({"S": "x"}). `require`: an
    error is raised if work would be left to the stream. `deadline_seconds` limits the time for all attempts
    together. `token` is the ClientRequestToken of the first attempt, which is idempotent for ten minutes. A
    transaction that is built again has another token.
    """

    result: Result

    def __init__(
        self,
        rules: Rules,
        client: Any,
        *,
        raw: bool = False,
        require: bool = False,
        deadline_seconds: float = DEADLINE_SECONDS,
        token: str | None = None,
        store: Store | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if token is not None and not (isinstance(token, str) and 0 < len(token) <= TOKEN_MAX_CHARACTERS - 4):
            raise WriteError("the token is not valid", f"give a text of 1 to {TOKEN_MAX_CHARACTERS - 4} characters")
        self._rules = rules
        self._client = make_plain_client(client)
        self._require = require
        self._token = token
        self._begun = partial(Deadline, deadline_seconds, now=now, sleep=sleep)
        self._deadline = self._begun()
        self._refusals = Refusals()
        self._store = store
        self._actions = Actions(rules, raw=raw)
        self._owns: dict[Place, Own] = {}
        self._given: dict[Place, tuple[ItemKey, Item]] = {}
        self._number = 0  # of the next action
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
        """Put an item. `new`: the application asserts that it does not exist, so it is not read. The transaction is
        refused if it does.
        """
        own = self._actions.put(entity, item)
        self._add(replace(own, new=new, override=override, returns=returns), condition, names, values)

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
        removes = (remove,) if isinstance(remove, str) else tuple(remove)
        own = self._actions.update(entity, key, (set or {}, removes, add or {}, delete or {}))
        self._add(replace(own, override=override, returns=returns), condition, names, values)

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
        self._add(replace(self._actions.other("delete", entity, key), returns=returns), condition, names, values)

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
        self._add(replace(self._actions.other("check", entity, key), returns=returns), condition, names, values)

    def source(self, entity: str, item: Given) -> None:
        """Give a whole item as it was read, so that it is not read again. The transaction checks what it takes from the
        item. Items that the transaction writes, or that an index lists, are read after all: an old image may say that
        a rule has nothing to do, and no condition checks that.
        """
        values = self._actions.values(item)
        _, key = self._actions.key_of(entity, values)
        self._given[make_place(key)] = key, {**values, **key.attributes()}

    def _add(self, own: Own, condition: Any, names: Mapping[str, str] | None, values: Given | None) -> None:
        own = replace(own, number=self._number, condition=self._actions.condition(condition, names, values))
        if self._made:
            raise WriteError("this transaction is made already", "begin another one for more actions")
        self._number += 1
        place = make_place(own.key)
        self._owns[place] = merge_actions(self._owns[place], own) if place in self._owns else own

    # ------------------------------------------------------------ making it
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:
            self.commit()

    def commit(self) -> Result:
        """Make the transaction, once. The `with` block calls it at its end, if it was not called inside.

        Raises:
            TransactionCanceled: if a condition of the application did not hold.
            WriteError: if it cannot be made as requested, or not before the deadline. Nothing was written.
            StoreError: if a request failed; `reason` is the service's error code.
        """
        if self._made:
            return self.result
        if not self._owns:
            self.result = Result((), 0, 0)
            return self.result
        if len(self._owns) > ACTIONS_MAX:
            raise WriteError(f"{len(self._owns)} actions", f"a transaction has at most {ACTIONS_MAX}: make several")
        store, attempts, sent = self._begin(), 0, 0
        while True:
            attempt = self._attempt(store, fresh=attempts > 0)
            attempts += 1
            sent += not attempt.outdated
            if not attempt.outdated and self._send(attempt, sent):
                self.result, self._made = Result(attempt.left, len(attempt.planned), attempts), True
                return self.result
            if not self._deadline.wait(attempts):
                raise WriteError(
                    f"other writers changed the items in each of {attempts} attempts in {self._deadline.seconds} s",
                    "nothing was written: try again later, or leave these copies to the stream",
                    again=True,
                )

    def _begin(self) -> Store:
        """Begin the deadline, and give the store that is read until then."""
        self._deadline, self._refusals = self._begun(), Refusals()
        return self._store or self._deadline.store(self._client, self._rules)

    # ------------------------------------------------------------ one attempt
    def make_first_attempt(self) -> PlannedTransaction:
        """Make the first attempt that would be sent, with its reads, and do not send it."""
        store = self._begin()
        first = self._attempt(store, fresh=False)
        return self._attempt(store, fresh=True) if first.outdated else first

    def _attempt(self, store: Store, *, fresh: bool) -> PlannedTransaction:
        """Read, and let the rules do their work in memory. A given source is believed the first time only."""
        seen = ReadThrough(store, self._rules.tables)
        for place, (key, item) in self._given.items() if not fresh else ():
            if place not in self._owns:
                seen.know(key, item)
                seen.given.add(place)
        for own in self._owns.values():
            if own.new:
                seen.know(own.key, None)
                seen.new.add(make_place(own.key))
        seen.load(self._guess_keys())
        skipped: frozenset[Pushed] = frozenset()
        rules = self._rules
        own_keys = [own.key for own in self._owns.values() if own.verb in ("put", "update")]
        while True:
            consequences = Consequences(rules, seen, self._deadline.is_over, skipped=skipped, own=own_keys, alone=True)
            self._apply_own(seen)
            consequences.run()
            if self._deadline.is_over():
                raise WriteError(
                    f"{self._deadline.seconds} s were not enough", "nothing was written: give it more time", again=True
                )
            left = (*consequences.leftovers, *self._list_overridden_rules())
            planned = compose(self._owns, seen, rules, {one.rule for one in left})
            if can_be_sent(planned):
                break
            rules, skipped = self._leave_out(consequences, rules, skipped)
            seen.start_over()
        if rules is not self._rules:
            left = tuple(Left(name, NO_ROOM) for name in self._list_rule_titles())
        if left and self._require:
            told = "; ".join(f"{one.rule}: {one.why}" for one in left)
            raise WriteError(f"not all fits into one transaction ({told})", "leave it to the stream: without require")
        return PlannedTransaction(planned, left, dict(seen.before), seen.outdated)

    def _guess_keys(self) -> list[ItemKey]:
        found = [own.key for own in self._owns.values()]
        for own in self._owns.values():
            if own.verb in ("put", "update"):
                concern = self._rules.find_concern(own.entity)
                found += guess_keys(own.key, own.item or own.key.attributes(), concern, self._rules)
        return [key for key in found if is_possible_key(key)]

    def _apply_own(self, seen: ReadThrough) -> None:
        for place, own in self._owns.items():
            before = seen.before[place]
            refuse_kept_attributes(own, before, self._rules)
            new = own.after(before)
            try:
                if new is None and before is not None:
                    seen.delete(own.key)
                elif new is not None and own.verb != "check":
                    seen.put(own.key.table, new)
            except StoreError as error:
                raise WriteError(
                    f"action {own.number}, {own.verb} of {own.entity.name}: {error}", "no table can hold this item"
                ) from error

    def _leave_out(
        self, consequences: Consequences, rules: Rules, skipped: frozenset[Pushed]
    ) -> tuple[Rules, frozenset[Pushed]]:
        """Leave out the largest push or, if there is none, all rules, so that the rest fits."""
        largest = max(consequences.pushed, key=lambda one: consequences.pushed[one], default=None)
        if largest is not None and consequences.pushed[largest]:
            return rules, skipped | {largest}
        if not rules.rules:
            raise WriteError("the items are more than 4 MB together", "make several transactions")
        return replace(rules, rules={}), skipped

    def _list_rule_titles(self) -> list[str]:
        concerns = (self._rules.find_concern(own.entity) for own in self._owns.values())
        return list(dict.fromkeys(rule.title for concern in concerns for rule in concern.rules))

    def _list_overridden_rules(self) -> list[Left]:
        return [
            Left(rule.title, OVERRIDDEN, 1)
            for own in self._owns.values()
            if own.override
            for rule in dict.fromkeys((*self._rules.into_target(own.entity), *self._rules.parts_of(own.entity)))
            if rule.target is own.entity
            if own.entity in rule.owned_entities
            or any(path[0] == given[0] for path in rule.copies for given in own.paths)
        ]

    # ------------------------------------------------------------ sending it
    def _send(self, attempt: PlannedTransaction, number: int) -> bool:
        """Send it until it is decided. False when it must be built again."""
        items = make_transact_items(attempt.planned, self._rules.tables)
        token, times = self._make_token(number), 0
        while True:
            try:
                self._client.transact_write_items(TransactItems=items, ClientRequestToken=token)
            except aws_errors.ERRORS as error:
                reasons = aws_errors.list_cancellations(error)
                if reasons:
                    self._raise_own(attempt, reasons)
                    return False
                if not aws_errors.is_transient(error):
                    raise self._explain_error(error) from error
                times += 1
                if not self._deadline.wait(times):
                    told = "no answer before the deadline: it may be written"
                    told += ", and can be sent again with its token" if token == self._token else ""
                    raise StoreError(aws_errors.read_reason(error), told) from error
            else:
                return True

    def _explain_error(self, error: BaseException) -> Exception:
        code = aws_errors.read_code(error)
        if code == "IdempotentParameterMismatchException":
            return WriteError(
                "the token was used for another transaction within ten minutes",
                "read the items: most likely it is done",
            )
        if code in INVALID:
            return WriteError(
                f"the request is not valid ({code})",
                "correct the conditions, their names and values: the error that caused this one says more",
            )
        where = "tables " + ", ".join(sorted({one.physical_name for one in self._rules.tables.values()}))
        return aws_errors.make_store_error(error, where)

    def _make_token(self, number: int) -> str:
        """The token of an attempt. A transaction that is built again may differ, and needs a token of its own."""
        if self._token is None:
            return str(uuid4())
        return self._token if number == 1 else f"{self._token}-{number}"

    def _raise_own(self, attempt: PlannedTransaction, reasons: Sequence[Mapping[str, Any]]) -> None:
        """Raise the errors of the application's own conditions. Returns if the transaction must be built again."""
        refused = self._refusals.list_application_refusals(attempt.planned, attempt.before, reasons)
        if refused:
            shown = (
                replace(one, item=self._actions.output(one.item)) if one.item is not None else one for one in refused
            )
            raise TransactionCanceled(tuple(shown))


transact = Transact
