"""Guarded writes to DynamoDB: up to 25 updates by BatchExecuteStatement, or each on its own by UpdateItem, PutItem,
DeleteItem or TransactWriteItems.

Invariant: a refused guard is an answer and is never retried; a write that fails, whatever the reason, stops no other. A
statement that a batch leaves undecided is sent alone, and that answer counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args
from uuid import uuid4

from tenacity import RetryCallState, Retrying

from sync_rules import DOCS
from sync_rules.adapters import aws, aws_errors
from sync_rules.adapters.batch_writer import Batches, Pressure
from sync_rules.adapters.expressions import Expressions
from sync_rules.adapters.partiql import Statement, make_statement
from sync_rules.model.entities import Table
from sync_rules.model.semantics import convert_to_update, read_put_item
from sync_rules.model.writes import (
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
Mode = Literal["batch", "update"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
log = logging.getLogger(__name__)
T = TypeVar("T")
S = TypeVar("S")
BATCH_MIN_STATEMENTS: Final = 2
DENIED: Final = (
    "updates may not be sent in batches (%s), so each batch fails once and is then sent item by item: allow the role "
    f"dynamodb:PartiQLUpdate ({DOCS}/permissions.md), or set SYNC_RULES_WRITES=update"
)
FAILED: Final = (
    "updates fail in batches (%s), so each batch fails once and is then sent item by item: nothing is lost. Set "
    "SYNC_RULES_WRITES=update to send no batches"
)
INVALID_FORM: Final = (
    "a statement is refused as invalid, and the same update is accepted as an UpdateItem: updates of this form are "
    "sent on their own from now on. Nothing is lost. %s"
)
OUR_BUG: Final = "This is a bug in sync-rules: please report it"
NOT_IN_EMULATOR: Final = "The emulator lacks this form of PartiQL: set SYNC_RULES_WRITES=update to send no batches"
FORMS_MAX: Final = 1_024  # of refused statements that are remembered
RETURN_ITEM: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
REJECTED: Final = frozenset({
    "ItemCollectionSizeLimitExceeded", "ItemCollectionSizeLimitExceededException", "ParamValidationError",
    "ValidationError", "ValidationException",
})  # fmt: skip
ACCEPTED: Final = frozenset({Status.WRITTEN, Status.REFUSED})  # of an update that DynamoDB could read
TOO_LARGE: Final = "exceeded the maximum allowed size"  # the end of each of the service's sentences about item size


class Writer:
    """A sender of writes with a few workers. Threads may share a client of botocore.

    `mode`: "batch" sends several plain updates as statements, "update" sends each alone. All other writes are always
    sent alone. "batch" needs DynamoDB's PartiQL: moto reports success for a write that it did not make.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        tables: Mapping[str, Table],
        retrying: Retrying,
        workers: int,
        *,
        mode: Mode,
    ) -> None:
        self._client = client
        self._tables = tables
        self._retrying = retrying
        self._pressure = Pressure()
        self._rounds = retrying.copy(wait=self._pause)
        self._warned: set[str] = set()
        self._refused_forms: set[str] = set()  # texts of statements
        self._workers = workers
        self._mode = mode

    def write_all(self, writes: Sequence[Write]) -> tuple[Result, ...]:
        """Make these writes, and return one result per write, in order. An error of DynamoDB is a result, and is not
        raised.
        """
        statements = self._make_statements(writes) if self._mode == "batch" else {}
        results, invalid = dict[int, Result](), set[int]()
        if len(statements) >= BATCH_MIN_STATEMENTS:
            results, invalid = self._send_batches(statements)
        alone = [place for place in range(len(writes)) if place not in results]
        results |= zip(alone, self.share(lambda place: self._write(writes[place]), alone), strict=True)
        self._remember({statements[place].text for place in invalid if results[place].status in ACCEPTED})
        return tuple(results[place] for place in range(len(writes)))

    def _remember(self, refused: Collection[str]) -> None:
        """Note the forms of statements that were refused although the same update was accepted: all updates of a rule
        have one form, and each would cost a request that fails.
        """
        if refused and len(self._refused_forms) < FORMS_MAX:
            self._refused_forms.update(refused)
            self._warn(INVALID_FORM, [OUR_BUG if aws.is_aws(self._client) else NOT_IN_EMULATOR])

    def _warn(self, text: str, codes: Collection[str] = ()) -> None:
        """Warn once that updates are sent on their own: nothing is lost, but that costs more requests."""
        if text not in self._warned:
            self._warned.add(text)
            log.warning(text, *([", ".join(sorted(codes))] if codes else []))

    def share(self, work: Callable[[T], S], things: Sequence[T]) -> Iterable[S]:
        """Map `work` over things in order, several at a time."""
        if len(things) < 2 or self._workers < 2:  # noqa: PLR2004 -- nothing to share out
            return map(work, things)
        return self._pool.map(work, things)

    def _make_statements(self, writes: Sequence[Write]) -> dict[int, Statement]:
        """The updates that can be statements, by their position."""
        found = {
            place: make_statement(write, self._tables[write.key.table])
            for place, write in enumerate(writes)
            if isinstance(write, Update)
        }
        return {
            place: statement
            for place, statement in found.items()
            if statement is not None and statement.text not in self._refused_forms
        }

    def _send_batches(self, statements: dict[int, Statement]) -> tuple[dict[int, Result], set[int]]:
        """Send statements in batches. Returns the results by position, and the positions to send alone."""
        batches = Batches(self._client, statements, self._pressure, self.share)
        with suppress(*aws_errors.ERRORS):  # the reasons are in what is left
            self._rounds(batches)
        for codes, text in ((batches.denied, DENIED), (batches.failed, FAILED)):
            if codes:
                self._warn(text, codes)
        return batches.results | batches.list_unwritten_results(), batches.invalid

    def _pause(self, retry_state: RetryCallState) -> float:
        """Seconds before the next round."""
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        throttled = error is not None and aws_errors.list_throttles(error)
        return self._pressure.pause() if throttled else self._retrying.wait(retry_state)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._workers, thread_name_prefix="writer")

    def _write(self, write: Write) -> Result:
        try:
            if isinstance(write, Transaction):
                self._retrying(_Transact(self._client, [self._action(action) for action in write.actions]))
            elif isinstance(write, Put):
                self._retrying(self._client.put_item, **self._parameters(write))
            elif isinstance(write, Delete):
                self._retrying(self._client.delete_item, **self._parameters(write))
            else:
                self._retrying(self._client.update_item, **self._parameters(write))
        except aws_errors.ERRORS as error:
            return make_result(error)
        return WRITTEN

    def _action(self, action: Action) -> dict[str, Any]:
        return {VERBS[type(action)]: self._parameters(action)}

    def _parameters(self, action: Action) -> dict[str, Any]:
        expressions = Expressions()
        parameters: dict[str, Any] = {"TableName": self._tables[action.key.table].physical_name}
        if isinstance(action, Put):
            parameters["Item"] = read_put_item(action)
        else:
            parameters["Key"] = action.key.attributes()
        if action.guard or not isinstance(action, Increment):
            parameters |= {"ConditionExpression": expressions.guard(action.guard), **RETURN_ITEM}
        if isinstance(action, Update | Increment):
            parameters["UpdateExpression"] = expressions.update(convert_to_update(action))
        return {**parameters, **expressions.parameters()}


class _Transact:
    """One transaction, called until it is decided. If the answer was lost, the same token makes a second call harmless.
    A cancelled transaction wrote nothing, so the next call has a new token.
    """

    operation: Final = "TransactWriteItems"

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


def make_result(error: BaseException) -> Result:
    """Make the result of a write that failed after retries."""
    if aws_errors.read_code(error) == "ConditionalCheckFailedException":
        return Result(Status.REFUSED, _read_item(getattr(error, "response", {})))
    reasons = aws_errors.list_cancellations(error)
    refused = frozenset(i for i, entry in enumerate(reasons) if entry.get("Code") == "ConditionalCheckFailed")
    if refused:
        return Result(Status.REFUSED, _read_item(reasons[-1]) if len(reasons) - 1 in refused else None, refused)
    for found, text in [
        (aws_errors.read_code(error), aws_errors.read_message(error)),
        *((r.get("Code"), r.get("Message")) for r in reasons),
    ]:
        if found in REJECTED:
            return Result(Status.REJECTED, reason=_name_rejection(found, text or ""))
    return Result(Status.FAILED, reason=aws_errors.read_reason(error))


def _read_item(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return answer.get("Item") or None


def _name_rejection(code: str, text: str) -> str:
    if TOO_LARGE in text and "Expression" not in text:  # an expression has a greatest size, too
        return "ItemTooLarge"
    return "ValidationException" if code == "ValidationError" else code
