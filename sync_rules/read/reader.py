"""Queries and batch reads on the application's own client, retried until the answer is complete.

Invariant: an incomplete answer is an error, never a shorter result. Errors name table, index and counts, never a value.
Only one side retries: if the client retries by itself, the reader does not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final, Protocol, TypeVar

from sync_rules.adapters import aws_errors, retries
from sync_rules.adapters.batch_reader import make_batch_gets
from sync_rules.adapters.expressions import Expressions
from sync_rules.adapters.plain_client import make_plain_client
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.python_values import (
    HALF_PAIR,
    HALF_PAIR_CURE,
    has_encodable_texts,
    make_plain_value,
    make_raw_value,
)
from sync_rules.model.semantics import make_identity
from sync_rules.model.values import AttributeValue, Item, Path
from sync_rules.read.key_range import KeyRange
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

Kind = TypeVar("Kind", bound=Rule)
CURES: Final = {
    "TableNotFound": "correct its name, the region or the endpoint",
    "ValidationException": "the table has other keys or indexes than were named, or of other types",
    "AccessDeniedException": "the role lacks dynamodb:GetItem or dynamodb:BatchGetItem on the table, or dynamodb:Query "
    "on it and its index",
}


class Client(Protocol):
    """A boto3 client for DynamoDB, or an object with these two methods. A boto3 resource or table works too."""

    @property
    def query(self) -> Callable[..., Any]: ...

    @property
    def batch_get_item(self) -> Callable[..., Any]: ...


class KeyClient(Client, Protocol):
    """A client that also reads one item by its key, as `Patterns` does. A boto3 client qualifies."""

    @property
    def get_item(self) -> Callable[..., Any]: ...


class UnprocessedKeysError(StoreError):
    """DynamoDB left keys of `table` unprocessed after all retries; `left` is their number."""

    def __init__(self, table: str, left: int, asked: int) -> None:
        super().__init__(
            "ThrottlingException",
            f"table {table}: {left} of {asked} keys were left unprocessed; ask again later, or for fewer at once",
        )
        self.table = table
        self.left = left


class Reader:
    """Reads on one client, with full jitter between retries. Threads may share it. Keys and items are plain Python
    values (Decimal, set, bytes), or with `raw` in the client's form ({"S": "x"}). `consistent` makes reads of base
    tables strongly consistent, at twice the price; reads of a global index never are. `remaining_seconds` limits how
    long retries may wait. A client that retries (boto3's default) does so itself. The reader then only repeats
    requests for unprocessed keys, which no client does.
    """

    def __init__(
        self,
        client: Client,
        *,
        raw: bool = False,
        consistent: bool = False,
        remaining_seconds: retries.RemainingSeconds = lambda: math.inf,
        attempts_max: int = retries.ATTEMPTS_MAX,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.raw = raw
        self._given = client
        self._consistent = consistent
        alone = _has_retries(self._client)
        self._retrying = retries.make_retry(remaining_seconds, attempts_max, sleep, only_unprocessed=alone)

    @property
    def _client(self) -> Client:
        client: Client = make_plain_client(self._given)
        return client

    def as_raw(self) -> Reader:
        """Return a copy of this reader for raw values."""
        twin = copy(self)
        twin.raw = True
        return twin

    # ------------------------------------------------------------ values
    def raw_attributes(self, item: Mapping[str, Any], names: Iterable[str]) -> Item:
        """Return the raw values of these attributes of an application's item, without missing attributes."""
        there = {name: item[name] for name in names if name in item}
        if not self.raw:
            return {name: make_raw_value(value) for name, value in there.items()}
        if not all(isinstance(value, Mapping) for value in there.values()):
            raise UserError('a raw reader takes raw values, such as {"S": "x"}')
        if not all(has_encodable_texts(value) for value in there.values() if len(value) == 1):
            raise UserError(f"{HALF_PAIR}: {HALF_PAIR_CURE}")
        return there

    def value(self, value: AttributeValue) -> Any:
        """Return a value in the application's form."""
        return value if self.raw else make_plain_value(value)

    def output(self, item: Item) -> dict[str, Any]:
        """Return an item in the application's form."""
        return {name: self.value(value) for name, value in item.items()}

    def outputs(self, items: Iterable[Item | None]) -> list[dict[str, Any] | None]:
        """Return items in the application's form; None for a missing item."""
        return [None if item is None else self.output(item) for item in items]

    def _make_consistency(self, *, consistent: bool | None) -> dict[str, bool]:
        return {"ConsistentRead": self._consistent if consistent is None else consistent or self._consistent}

    # ------------------------------------------------------------ GetItem
    def item(
        self,
        table: Table,
        key: ItemKey | None,
        *,
        projects: Sequence[Path] | None = None,
        consistent: bool | None = None,
    ) -> Item | None:
        """Read the raw item of a key, or these paths of it; None for a missing item or key.

        Raises:
            UserError: if the client has no `get_item`.
        """
        call = getattr(self._client, "get_item", None)
        if call is None:
            raise UserError("a client with `get_item` was expected, as that of boto3 is")
        if key is None:
            return None
        answer = self._ask(
            call,
            f"table {table.physical_name}",
            TableName=table.physical_name,
            Key=key.attributes(),
            **self._make_consistency(consistent=consistent),
            **_make_projection(Expressions(), projects),
        )
        found: Item | None = answer.get("Item")
        return found

    # ------------------------------------------------------------ BatchGetItem
    def key_of(self, table: Table, item: Mapping[str, Any]) -> ItemKey:
        """Return the key in an application's item, which may hold other attributes too.

        Raises:
            UserError: if an attribute of the key is missing or of another type.
        """
        return require_key(table, self.raw_attributes(item, (attribute.name for attribute in table.key)))

    def get(
        self,
        table: Table,
        keys: Sequence[ItemKey | None],
        *,
        projects: Sequence[Path] | None = None,
        consistent: bool | None = None,
    ) -> tuple[Item | None, ...]:
        """Read the raw items of these keys, in their order; None for a missing item or key. Each item is read once.
        `projects` limits the read to these paths, which must include the key.

        Raises:
            UnprocessedKeysError: if DynamoDB leaves keys unprocessed after all retries.
            StoreError: for any other failure.
        """
        distinct = list({make_identity(key): key for key in keys if key is not None}.values())
        found: dict[tuple[Any, ...], Item] = {}

        def note(key: ItemKey, item: Item) -> None:
            found[make_identity(key)] = item

        asked = {**self._make_consistency(consistent=consistent), **_make_projection(Expressions(), projects)}
        left = len(distinct)
        for batch in make_batch_gets(self._client, {table.name: table}, distinct, lambda _table: asked, note):
            left -= batch.pending_count
            try:
                self._ask(batch, batch.where)
            except aws_errors.UnprocessedError as error:
                left += batch.pending_count
                raise UnprocessedKeysError(table.physical_name, left, len(distinct)) from error
        return tuple(None if key is None else found.get(make_identity(key)) for key in keys)

    # ------------------------------------------------------------ Query
    def query(
        self,
        table: Table,
        index: str | None,
        conditions: KeyConditions,
        *,
        backward: bool = False,
        start: Item | None = None,
        limit: int | None = None,
        within: KeyRange | None = None,
        projects: Sequence[Path] | None = None,
        consistent: bool | None = None,
        whole: bool = False,
    ) -> tuple[list[Item], Item | None]:
        """Read one page of raw items, and the key after which the next page begins (None after the last). `projects`:
        only these paths of each item. `whole`: all attributes, also those that a local index does not project.
        """
        expressions = Expressions()
        terms = expressions.key_terms(conditions)
        terms += () if within is None else [within.term(expressions)]
        shown = _make_projection(expressions, projects)
        parameters: dict[str, Any] = {
            "TableName": table.physical_name,
            "KeyConditionExpression": " AND ".join(terms),
            "ScanIndexForward": not backward,
            **shown,
            **({"Select": "ALL_ATTRIBUTES"} if whole else {}),
            **expressions.parameters(),
            **(self._make_consistency(consistent=consistent) if index is None or consistent else {}),
            **({} if index is None else {"IndexName": index}),
            **({} if limit is None else {"Limit": limit}),
            **({} if start is None else {"ExclusiveStartKey": start}),
        }
        where = f"table {table.physical_name}" if index is None else f"index {index} of table {table.physical_name}"
        answer = self._ask(self._client.query, where, **parameters)
        return list(answer["Items"]), answer.get("LastEvaluatedKey") or None

    def _ask(self, call: Callable[..., Any], where: str, **parameters: Any) -> Any:
        try:
            return self._retrying(call, **parameters)
        except aws_errors.UnprocessedError:
            raise
        except aws_errors.ERRORS as error:
            raise aws_errors.make_store_error(error, where, CURES) from error


def make_reader(client: Client | Reader) -> Reader:
    """Make a reader of a client; return a reader unchanged."""
    return client if isinstance(client, Reader) else Reader(client)


def find_rule(rules: Rules, name: str, kind: type[Kind]) -> Kind:
    """Return the rule of this name and kind.

    Raises:
        UserError: if no such rule exists; the message lists the rules of that kind.
    """
    rule = rules.rules.get(name)
    if not isinstance(rule, kind):
        known = ", ".join(other.name for other in rules.rules.values() if isinstance(other, kind)) or "none"
        found = "no rule" if rule is None else f"a rule of kind {rule.kind}"
        raise UserError(f"{name!r} is {found}: expected one of kind {kind.kind}. Known: {known}")
    return rule


def require_key(table: Table, item: Item) -> ItemKey:
    """Return the key in a raw item. Raises UserError if an attribute of the key is missing or of another type."""
    key = table.key_of(item)
    if key is None:
        expected = ", ".join(f"{attribute.name} ({attribute.type})" for attribute in table.key)
        raise UserError(f"not a key of table {table.physical_name}: expected {expected}")
    return key


def _make_projection(expressions: Expressions, paths: Sequence[Path] | None) -> dict[str, Any]:
    """A request's ProjectionExpression for these paths. Of two that overlap, which DynamoDB refuses, the shorter one.
    With no other expression in the request, the names go with it.
    """
    if paths is None:
        return {}
    least = [path for path in dict.fromkeys(paths) if not any(path[:end] in paths for end in range(1, len(path)))]
    return {**expressions.projection(least), **expressions.parameters()}


def _has_retries(client: Client) -> bool:
    config = getattr(getattr(client, "meta", None), "config", None)
    return config is not None and (config.retries or {}).get("total_max_attempts") != 1
