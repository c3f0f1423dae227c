"""Guarded writes to DynamoDB, each on its own: UpdateItem, PutItem, or TransactWriteItems where it takes several.

Law: a refused guard is an answer and is never tried again; a write that fails, whatever the reason, stops no other.
This module is the seam for a faster writer: `Writer.write_all` takes writes and gives one result for each, in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from tenacity import Retrying

from sync_rules import aws
from sync_rules.conditions import Expressions, as_update, whole
from sync_rules.entities import Table
from sync_rules.model import (
    WRITTEN,
    Action,
    Check,
    Delete,
    Increment,
    Put,
    Result,
    Status,
    Transaction,
    Update,
    Write,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

VERBS: Final[Mapping[type[Action], str]] = {
    Check: "ConditionCheck", Update: "Update", Increment: "Update", Delete: "Delete", Put: "Put",
}  # fmt: skip
RETURN_ITEM: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
REJECTED: Final = frozenset({
    "ItemCollectionSizeLimitExceeded", "ItemCollectionSizeLimitExceededException", "ParamValidationError",
    "ValidationError", "ValidationException",
})  # fmt: skip
TOO_LARGE: Final = "exceeded the maximum allowed size"  # the end of each of the service's sentences about item size


class Writer:
    """Sends writes with a few workers. botocore clients may be shared by threads."""

    def __init__(self, client: DynamoDBClient, tables: Mapping[str, Table], retrying: Retrying, workers: int) -> None:
        self._client = client
        self._tables = tables
        self._retrying = retrying
        self._workers = workers

    def write_all(self, writes: Sequence[Write]) -> tuple[Result, ...]:
        """One result per write, in order. Raises nothing of the world's."""
        if len(writes) < 2 or self._workers < 2:  # noqa: PLR2004 -- nothing to share out
            return tuple(map(self._write, writes))
        return tuple(self._pool.map(self._write, writes))

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._workers, thread_name_prefix="writer")

    def _write(self, write: Write) -> Result:
        try:
            if isinstance(write, Transaction):
                self._retrying(_Transact(self._client, [self._action(action) for action in write.actions]))
            elif isinstance(write, Put):
                self._retrying(self._client.put_item, **self._parameters(write))
            else:
                self._retrying(self._client.update_item, **self._parameters(write))
        except aws.ERRORS as error:
            return result_of(error)
        return WRITTEN

    def _action(self, action: Action) -> dict[str, Any]:
        return {VERBS[type(action)]: self._parameters(action)}

    def _parameters(self, action: Action) -> dict[str, Any]:
        expressions = Expressions()
        parameters: dict[str, Any] = {"TableName": self._tables[action.key.table].physical_name}
        if isinstance(action, Put):
            parameters["Item"] = whole(action)
        else:
            parameters["Key"] = action.key.attributes()
        if action.guard or not isinstance(action, Increment):
            parameters |= {"ConditionExpression": expressions.guard(action.guard), **RETURN_ITEM}
        if isinstance(action, Update | Increment):
            parameters["UpdateExpression"] = expressions.update(as_update(action))
        return {**parameters, **expressions.parameters()}


class _Transact:
    """One transaction, called until it is decided. The token makes a second call harmless when only the answer to the
    first was lost; after a cancellation, which wrote nothing, the next call is a new one.
    """

    def __init__(self, client: DynamoDBClient, actions: list[dict[str, Any]]) -> None:
        self._client = client
        self._actions: Any = actions
        self._token = str(uuid4())

    def __call__(self) -> None:
        try:
            self._client.transact_write_items(TransactItems=self._actions, ClientRequestToken=self._token)
        except self._client.exceptions.TransactionCanceledException:
            self._token = str(uuid4())
            raise


def result_of(error: BaseException) -> Result:
    """What an error of a write means, after retries."""
    if aws.code(error) == "ConditionalCheckFailedException":
        return Result(Status.REFUSED, _item(getattr(error, "response", {})))
    reasons = aws.cancellations(error)
    refused = frozenset(i for i, entry in enumerate(reasons) if entry.get("Code") == "ConditionalCheckFailed")
    if refused:
        return Result(Status.REFUSED, _item(reasons[-1]) if len(reasons) - 1 in refused else None, refused)
    for found, text in [(aws.code(error), aws.message(error)), *((r.get("Code"), r.get("Message")) for r in reasons)]:
        if found in REJECTED:
            return Result(Status.REJECTED, reason=_rejected(found, text or ""))
    return Result(Status.FAILED, reason=aws.reason(error))


def _item(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return answer.get("Item") or None


def _rejected(code: str, text: str) -> str:
    if TOO_LARGE in text:
        return "ItemTooLarge"
    return "ValidationException" if code == "ValidationError" else code
