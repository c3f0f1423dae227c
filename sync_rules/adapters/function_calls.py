"""Calls users' functions: each once per change and rule, by the idempotency of Powertools.

Invariant: a call is recorded before it is made and when it is done. A call recorded as done is not made again while it
is remembered; one recorded as in progress is retried once its caller is done or must be dead. Only if a process dies,
or the table cannot be written, between the end of a function and its record, is the function called twice for a change.
An exception of a function is a failure, reported by its class: its text may hold values of the item.
"""

from __future__ import annotations

import contextvars
import inspect
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from aws_lambda_powertools.utilities.idempotency import (
    BasePersistenceLayer,
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from tenacity import Retrying

from sync_rules.adapters import aws_errors, retries
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.item_change import ItemChange, make_item_change
from sync_rules.model.items import Call
from sync_rules.pipeline.consumer import TIME_RESERVED_MS
from sync_rules.pipeline.effects import TIMED_OUT

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mypy_boto3_dynamodb import DynamoDBClient

Function = Callable[[ItemChange], object]
RemainingMs = Callable[[], int]

CALLS_REMEMBERED_SECONDS: Final = 8 * 24 * 3600  # a record lives a day in its stream; a week more for a redrive
CALLS_REMEMBERED_MAX_ITEMS: Final = 100_000  # in memory
CALL_MAX_SECONDS: Final = 30  # less where the invocation has less left
CALL_MAX_MS: Final = 60_000  # outside of Lambda: after that, a call that is in progress is taken for dead
KEY_PREFIX: Final = "sync-rules"
AGAIN_SECONDS: Final = 1.0  # a function that catches everything is interrupted again
LEAST_SECONDS: Final = 0.001  # 0 would switch a timer off


# ---------------------------------------------------------------- remembering calls
class RememberedInTable(DynamoDBPersistenceLayer):
    """A table with the string key `id`, and Time to Live on the attribute `expiration`."""

    def __init__(self, client: DynamoDBClient, table_name: str, *, retrying: Retrying | None = None) -> None:
        super().__init__(table_name, boto3_client=client)
        self._retrying = retrying or retries.make_retry()

    def _get_record(self, idempotency_key: str) -> DataRecord:
        return self._retrying(super()._get_record, idempotency_key)

    def _put_record(self, data_record: DataRecord) -> None:
        self._retrying(super()._put_record, data_record)

    def _update_record(self, data_record: DataRecord) -> None:
        self._retrying(super()._update_record, data_record)

    def _delete_record(self, data_record: DataRecord) -> None:
        self._retrying(super()._delete_record, data_record)


class RememberedInMemory(BasePersistenceLayer):
    """The last calls of this process, for demos and tests, and for users who accept repeated calls after a restart."""

    def __init__(self, max_items: int = CALLS_REMEMBERED_MAX_ITEMS) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._max_items = max_items
        self._lock = threading.Lock()
        self._records: OrderedDict[str, DataRecord] = OrderedDict()

    def _get_record(self, idempotency_key: str) -> DataRecord:
        with self._lock:
            if idempotency_key not in self._records:
                raise IdempotencyItemNotFoundError
            return self._records[idempotency_key]

    def _put_record(self, data_record: DataRecord) -> None:
        with self._lock:
            known = self._records.get(data_record.idempotency_key)
            if known is not None and not _is_over(known):
                raise IdempotencyItemAlreadyExistsError(old_data_record=known)
            self._keep(data_record)

    def _update_record(self, data_record: DataRecord) -> None:
        with self._lock:
            self._keep(data_record)

    def _delete_record(self, data_record: DataRecord) -> None:
        with self._lock:
            self._records.pop(data_record.idempotency_key, None)

    def _keep(self, record: DataRecord) -> None:
        self._records[record.idempotency_key] = record
        self._records.move_to_end(record.idempotency_key)
        if len(self._records) > self._max_items:
            self._records.popitem(last=False)


def _is_over(record: DataRecord) -> bool:
    """True if the call may be made again: its record has expired, or its caller must be dead."""
    until_ms = record.in_progress_expiry_timestamp
    given_up = record.status == "INPROGRESS" and until_ms is not None and until_ms < time.time() * 1000
    return record.is_expired or given_up


# ---------------------------------------------------------------- a time limit
class TimeLimitError(Exception):
    """The function did not end within its time."""


class _InterruptError(BaseException):
    """Raised in the function, which catches no such error by mistake."""


def run_within(seconds: float, function: Callable[[], object]) -> None:
    """Call a function with a time limit. Raises TimeLimitError, and any error of the function.

    In the main thread, where Lambda and `sync-rules run` call functions, an alarm signal interrupts the function. In
    another thread Python cannot interrupt anything: the function then runs in a thread of its own, which is abandoned.
    """
    limited = _run_with_alarm if threading.current_thread() is threading.main_thread() else _run_in_thread
    limited(max(seconds, LEAST_SECONDS), function)


def _run_with_alarm(seconds: float, function: Callable[[], object]) -> None:
    armed = False
    ended = False

    def interrupt(_number: int, _frame: object) -> None:
        if armed:
            raise _InterruptError

    began = time.monotonic()
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:  # the alarm may also ring on the way in or out: all that runs while it is armed is inside
            armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
            function()
            ended = True
        finally:
            armed = False
    except _InterruptError:
        armed = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:  # somebody else's timer goes on
            signal.setitimer(signal.ITIMER_REAL, max(LEAST_SECONDS, left - (time.monotonic() - began)), interval)
    if not ended:
        raise TimeLimitError


def _run_in_thread(seconds: float, function: Callable[[], object]) -> None:
    raised: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            raised.append(error)
        finally:
            ended.set()

    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    if not ended.wait(seconds):
        raise TimeLimitError
    if raised:
        raise raised[0]


# ---------------------------------------------------------------- calling
class RaisedError(Exception):
    """A user's function raised. The error has the name of the exception's class, without its text."""


@dataclass(frozen=True)
class _Remaining:
    """The time left to a call, in the shape of Lambda's context."""

    get_remaining_time_in_millis: RemainingMs


class FunctionCaller:
    """A Caller of functions named module.function, in this process. May be used by several threads.

    `remaining_ms` returns the time left to this process; a call counts as dead when that time has passed. A function
    has `max_seconds`, but never more than the process has left, minus the time to answer.
    """

    def __init__(
        self,
        memory: BasePersistenceLayer,
        *,
        remaining_ms: RemainingMs | None = None,
        max_seconds: float = CALL_MAX_SECONDS,
    ) -> None:
        self._remaining_ms = remaining_ms or (lambda: CALL_MAX_MS)
        self._max_seconds = max_seconds
        config = IdempotencyConfig(
            expires_after_seconds=CALLS_REMEMBERED_SECONDS,
            hash_function="sha256",
            lambda_context=cast("LambdaContext", _Remaining(self._remaining_ms)),
        )
        memory.configure(config, key_prefix=KEY_PREFIX)
        self._memory = memory
        self._once = idempotent_function(
            _call_once, data_keyword_argument="call_id", persistence_store=memory, config=config, key_prefix=KEY_PREFIX
        )

    def require(self, functions: Mapping[str, str]) -> None:
        """Check that the function of each rule can be imported and called. Raises UserError."""
        for rule, path in functions.items():
            try:
                import_function(path)
            except UserError as error:
                raise UserError(f"rule {rule}: {error}") from error

    def call(self, call: Call) -> None:
        """Call the function, unless it has returned for this change before. Return once it has.

        Raises:
            StoreError: CallFailed when the function raised, CallTimedOut when it did not end, CallInProgress while
                another process makes the same call, FunctionNotFound, or the reason why the table of calls did not
                answer.
        """
        try:
            function = import_function(call.function)
        except UserError as error:
            raise StoreError("FunctionNotFound", call.function) from error
        change = make_item_change(call)
        try:
            if call.former and self._has_former_call(call):
                return
            self._once(lambda: self._run_within_limit(function, change), call_id=change.id)
        except RaisedError as error:
            raise StoreError("CallFailed", str(error)) from None
        except TimeLimitError:
            raise StoreError(TIMED_OUT) from None
        except (IdempotencyAlreadyInProgressError, IdempotencyInconsistentStateError):
            raise StoreError("CallInProgress") from None
        except IdempotencyPersistenceLayerError as error:
            raise aws_errors.make_store_error(error.__cause__ or error, "the calls made") from error

    def _run_within_limit(self, function: Function, change: ItemChange) -> None:
        seconds = min(self._max_seconds, (self._remaining_ms() - TIME_RESERVED_MS) / 1000)
        run_within(seconds, lambda: function(change))

    def _has_former_call(self, call: Call) -> bool:
        """True if the call was made under the former name of its rule. Raises IdempotencyAlreadyInProgressError while
        it is being made.
        """
        try:
            record = self._memory.get_record(cast("Any", make_item_change(replace(call, rule=call.former)).id))
        except IdempotencyItemNotFoundError:
            return False
        if record is None:
            return False
        if record.status == "INPROGRESS" and not _is_over(record):
            raise IdempotencyAlreadyInProgressError
        return record.status == "COMPLETED"


def _call_once(limited: Callable[[], None], *, call_id: str) -> None:  # noqa: ARG001 -- read by Powertools
    """Call the function. Its result is not remembered: it may hold values of the item, or not be JSON."""
    try:
        limited()
    except (TimeLimitError, KeyboardInterrupt):  # Ctrl-C of the user stops this process
        raise
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it is the function's failure
        if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None
        raise RaisedError(type(error).__name__) from None


@cache
def import_function(path: str) -> Function:
    """Import the function that module.function names, once. Raises UserError with the cure."""
    module_name, _, name = path.rpartition(".")
    if not module_name or not name:
        raise UserError(f"{path!r} is not a function: expected module.function, such as mypkg.notify")
    try:
        module = import_module(module_name)
    except (Exception, SystemExit) as error:  # a script that ends itself must not end this process
        raise UserError(
            f"{path} cannot be called, because importing {module_name} fails with {type(error).__name__}: {error}. "
            "Put the module beside the rules file or install it, and see that `python -c` can import it."
        ) from error
    function = getattr(module, name, None)
    if function is None:
        raise UserError(f"{path} cannot be called: {module_name} has no {name}. Define it there, or correct the rule.")
    if not callable(function):
        raise UserError(f"{path} cannot be called: it is of type {type(function).__name__}. Name a function.")
    if inspect.iscoroutinefunction(function):
        raise UserError(
            f"{path} cannot be called: it is async. Name a plain function that awaits it: asyncio.run(...)."
        )
    return cast("Function", function)
