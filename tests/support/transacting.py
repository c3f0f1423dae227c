"""TransactWriteItems on a store in memory, as DynamoDB answers it: tokens, reasons, all of it or nothing.

It reads the parameters that a client would send, so that what is tested is the request itself. It knows the conditions
and updates that the package renders, and conditions of the same form by an application.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from botocore.exceptions import ClientError

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.items import ItemKey
from sync_rules.model.semantics import apply_update, holds
from sync_rules.model.values import Item, Path
from sync_rules.model.writes import Condition, Test, Update
from sync_rules.rules.ruleset import Rules
from sync_rules.write import TransactionCanceled
from sync_rules.write.transaction import PlannedTransaction, Transact

TERM = re.compile(r"(?:(attribute_\w+)\(([^,)]+)(?:, (:\w+))?\))|(?:(\S+) = (:\w+))")
CLAUSE = re.compile(r"(SET|REMOVE|ADD|DELETE) (.*?)(?= SET | REMOVE | ADD | DELETE |$)")


def cancelled(reasons: list[dict[str, Any]]) -> ClientError:
    """The error of a transaction that was cancelled for these reasons."""
    error = {"Code": "TransactionCanceledException", "Message": "Transaction cancelled"}
    return ClientError({"Error": error, "CancellationReasons": reasons}, "TransactWriteItems")  # type: ignore[typeddict-unknown-key]


def failed(code: str, status: int = 400) -> ClientError:
    """An error of the service."""
    answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "TransactWriteItems")  # type: ignore[arg-type]


def reason(action: dict[str, Any], old: Item | None) -> dict[str, Any]:
    """The reason that a cancelled transaction gives for one of its actions, by the item that is there."""
    if holds(conditions(action), old):
        return {"Code": "None"}
    wants = action.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old is not None
    return {"Code": "ConditionalCheckFailed", **({"Item": old} if wants else {})}


def after(verb: str, action: dict[str, Any], key: ItemKey, old: Item | None) -> Item | None:
    """The item after an action. Raises InvalidUpdateError where it adds to neither a set nor a number."""
    match verb:
        case "Put":
            item: Item = action["Item"]
            return item
        case "Delete":
            return None
        case "Update":
            return apply_update(old or key.attributes(), update(action, key))
    assert verb == "ConditionCheck"
    return old


class Told(Transact):
    """A transaction that tells its client what each request is made of."""

    def _send(self, attempt: PlannedTransaction, number: int) -> bool:
        client: Any = self._client
        client.attempt = attempt
        return super()._send(attempt, number)


class Passing:
    """The client of such a transaction: `send` gets each request, its token, and what it is made of."""

    get_item = batch_get_item = query = None

    def __init__(self, send: Callable[[list[dict[str, Any]], str, PlannedTransaction], None]) -> None:
        self._send = send
        self.attempt: PlannedTransaction | None = None

    def transact_write_items(self, *, TransactItems: list[dict[str, Any]], ClientRequestToken: str) -> dict[str, Any]:  # noqa: N803
        assert self.attempt is not None, "told before"
        self._send(TransactItems, ClientRequestToken, self.attempt)
        return {}


def not_own(error: TransactionCanceled, broken: AbstractSet[int]) -> bool:
    """True if the error blames an action whose own conditions held: `broken` are the others."""
    return bool({one.action for one in error.reasons if one.code == "ConditionalCheckFailed"} - broken)


class Transactor:
    """A client that transacts on a store in memory. `before` is called with each request, and may raise or write;
    `after` when it was done: what it raises is an answer that was lost.
    """

    def __init__(self, store: MemoryStore, rules: Rules) -> None:
        self._store = store
        self._tables = {table.physical_name: table for table in rules.tables.values()}
        self.requests: list[list[dict[str, Any]]] = []
        self.tokens: dict[str, object] = {}
        self.before: Callable[[list[dict[str, Any]]], object] = lambda _items: None
        self.after: Callable[[list[dict[str, Any]]], object] = lambda _items: None

    def transact_write_items(self, *, TransactItems: list[dict[str, Any]], ClientRequestToken: str) -> dict[str, Any]:  # noqa: N803
        self.requests.append(TransactItems)
        self.before(TransactItems)
        done = self.tokens.get(ClientRequestToken)
        if done is not None and done != repr(TransactItems):
            raise failed("IdempotentParameterMismatchException")
        if done is None:
            self._transact(TransactItems)
            self.tokens[ClientRequestToken] = repr(TransactItems)
        self.after(TransactItems)
        return {}

    def _transact(self, items: list[dict[str, Any]]) -> None:
        assert 0 < len(items) <= 100
        actions = [next(iter(item.items())) for item in items]
        keys = [self._key(action) for _, action in actions]
        assert len(set(keys)) == len(keys), "an item is named twice"
        reasons = [reason(action, self._store.item(key)) for (_, action), key in zip(actions, keys, strict=True)]
        if any(one["Code"] != "None" for one in reasons):
            raise cancelled(reasons)
        for (verb, action), key in zip(actions, keys, strict=True):
            self._do(verb, action, key)

    def _key(self, action: dict[str, Any]) -> ItemKey:
        key = self._tables[action["TableName"]].key_of(action.get("Key") or action["Item"])
        assert key is not None
        return key

    def _do(self, verb: str, action: dict[str, Any], key: ItemKey) -> None:
        new = after(verb, action, key, self._store.item(key))
        if verb == "Delete":
            self._store.delete(key)
        elif verb != "ConditionCheck":
            assert new is not None
            self._store.put(key.table, new)


def conditions(action: dict[str, Any]) -> tuple[Condition, ...]:
    """The condition of an action, part by part."""
    found = []
    for function, inside, second, path, value in TERM.findall(action.get("ConditionExpression", "")):
        if function == "attribute_exists":
            found.append(Condition(Test.EXISTS, _path(action, inside)))
        elif function == "attribute_not_exists":
            found.append(Condition(Test.ABSENT, _path(action, inside)))
        elif function == "attribute_type":
            assert action["ExpressionAttributeValues"][second] == {"S": "M"}
            found.append(Condition(Test.IS_MAP, _path(action, inside)))
        else:
            read = _path(action, path.lstrip("("))
            found.append(Condition(Test.EQUALS, read, action["ExpressionAttributeValues"][value]))
    return tuple(found)


def _path(action: dict[str, Any], text: str) -> Path:
    names = action.get("ExpressionAttributeNames", {})
    return tuple(names.get(one, one) for one in text.split("."))


def update(action: dict[str, Any], key: ItemKey) -> Update:
    """The update of an action."""
    parts: dict[str, list[list[str]]] = {"SET": [], "REMOVE": [], "ADD": [], "DELETE": []}
    for verb, text in CLAUSE.findall(action["UpdateExpression"]):
        parts[verb] = [one.replace(" = ", " ").split(" ") for one in text.split(", ")]
    values = action.get("ExpressionAttributeValues", {})

    def pairs(verb: str) -> Any:
        return tuple((_path(action, path), values[value]) for path, value in parts[verb])

    return Update(
        key, pairs("SET"), tuple(_path(action, path) for (path,) in parts["REMOVE"]), (), pairs("ADD"), pairs("DELETE")
    )
