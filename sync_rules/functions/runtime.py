"""Shared by the handlers: rules, clients and the pipeline, made once per process from environment variables.

Nothing here decides about items. `functions.logs` and `functions.metrics` do all printing.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from sync_rules.adapters import aws, retries
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.sqs import Receipts, SqsFailures, SqsQueue
from sync_rules.functions.logs import SERVICE_NAME, CountedQueue, LoggedFailures, logger, notes
from sync_rules.functions.metrics import emit
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.breaker import DeduplicatedFailures
from sync_rules.pipeline.consumer import TIME_RESERVED_MS, Consumer
from sync_rules.pipeline.messages import Message
from sync_rules.pipeline.requests import NULL_PORTS, Caller, Failures, KeptCalls, Queue, Store, World
from sync_rules.pipeline.telemetry import Telemetry
from sync_rules.rules import compiled_file
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from sync_rules.adapters.budget import Budget
    from sync_rules.adapters.state import TableState

RULES_FILE: Final = "SYNC_RULES_FILE"  # path of the rules file; default rules.yaml beside the handlers
QUEUE_URL: Final = "SYNC_RULES_QUEUE_URL"  # messages for later: second looks, the rest of a large fan-out
FAILURES_URL: Final = "SYNC_RULES_FAILURES_URL"  # failure records; without it they are only logged
STATE_TABLE: Final = "SYNC_RULES_STATE_TABLE"  # progress of long work, and which rules are accepted; without: all are
DEAD_LETTERS_URL: Final = "SYNC_RULES_DEAD_LETTERS_URL"  # messages that no function could process
CALLS_TABLE: Final = "SYNC_RULES_CALLS_TABLE"  # for `call` rules: remembers the calls that were made
BUCKET: Final = "SYNC_RULES_BUCKET"  # calls that were given up, reports of verify, batches that Lambda gave up
ENDPOINT_URL: Final = "SYNC_RULES_ENDPOINT_URL"  # an emulator's address; AWS when not set
WRITE_UNITS: Final = "SYNC_RULES_WRITE_UNITS_PER_SECOND"  # of this process; no limit when not set or 0
WRITERS: Final = "SYNC_RULES_WRITERS"  # processes that share a table's limit, such as 4, or 4+2; 1 when not set

KEPT_SECONDS: Final = 30 * 24 * 3600  # the documents of a verify or a redrive

SIDE_BY_SIDE: Final = (
    "this runtime runs several invocations in one process, and this function needs a process for each: use Lambda's own"
    " Python runtime, or one thread for each process"
)

# Without a queue nothing is put off: a fan-out runs to its end, and a parked target gets its failure record at once.
WITHOUT_QUEUE: Final = Limits(fan_out_inline_max_items=sys.maxsize, parked_max_looks=0)


# ---------------------------------------------------------------- one invocation
class Context(Protocol):
    """The part of Lambda's context object that is used."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda stops this invocation."""


class InvocationTime:
    """The time left to the current invocation."""

    def __init__(self) -> None:
        self.context: Context | None = None  # None outside of an invocation

    def begin(self, context: Context | None) -> None:
        """Begin an invocation. Log lines name it from now on."""
        self.context = context
        logger.append_keys(function_request_id=getattr(context, "aws_request_id", None))
        notes.begin()

    def remaining_ms(self) -> int:
        return 60_000 if self.context is None else self.context.get_remaining_time_in_millis()

    def remaining_seconds(self) -> float:
        return self.remaining_ms() / 1000

    def spare_seconds(self) -> float:
        """Return how many seconds a wait may last, so that there is time to answer."""
        return max(0.0, (self.remaining_ms() - TIME_RESERVED_MS) / 1000)


deadline = InvocationTime()
telemetry = Telemetry()  # of the current invocation
alone = Lock()  # deadline, telemetry and log keys belong to one invocation at a time


def relax_collector() -> None:
    """Let Python collect cycles rarely: modules stay, and the parts of an event are freed without it. By default,
    collections take 30 % of the reading of 4,000 records.
    """
    gc.set_threshold(100_000, 20, 50)


@contextmanager
def run_invocation(context: Context) -> Iterator[None]:
    """Set the deadline of an invocation, and write its metrics and log lines when it ends, even if it raises.

    Lambda gives each concurrent invocation a process of its own, on Managed Instances too
    (https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-python-runtime.html). Raises UserError where
    a runtime runs two of them in one process.
    """
    if not alone.acquire(blocking=False):
        raise UserError(SIDE_BY_SIDE)
    try:
        relax_collector()
        deadline.begin(context)
        try:
            yield
        finally:
            emit(telemetry)
    finally:
        alone.release()


# ---------------------------------------------------------------- made once per process
def read_endpoint() -> str | None:
    """Read the address of an emulator; None for AWS."""
    return os.environ.get(ENDPOINT_URL)


def find_rules_file() -> Path:
    return Path(os.environ.get(RULES_FILE, "rules.yaml"))


@cache
def read_rules() -> Rules:
    """Read the deployed rules once: compiled by the build, or else from the rules file.

    Raises:
        UserError: when they are wrong, or were compiled for something else.
    """
    return compiled_file.load(find_rules_file())


def make_store(sleep: Callable[[float], None] = time.sleep) -> DynamoStore:
    """Make the store on the tables of the rules. `sleep` waits before a retry. Raises UserError."""
    return DynamoStore(
        aws.dynamodb(read_endpoint()),
        read_rules().tables,
        sleep=sleep,
        remaining_seconds=deadline.spare_seconds,
        on_throttle=notes.count_throttle,
    )


class LazyClient:
    """A client that is made when it is first used."""

    def __init__(self, make: Callable[[str | None], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(read_endpoint()), name)


def make_queue_client() -> Any:
    """Make the client of the queues when it is first used: most processes never use it."""
    return LazyClient(aws.sqs)


def make_failures() -> Failures:
    """Make the sink of failure records: the log, and the queue if there is one. Raises UserError."""
    url = os.environ.get(FAILURES_URL)
    return LoggedFailures(SqsFailures(make_queue_client(), url) if url else None)


# ---------------------------------------------------------------- the functions of the state machines
def require_setting(name: str) -> str:
    """Return an environment variable. Raise UserError if it is not set."""
    value = os.environ.get(name)
    if not value:
        raise UserError(f"{name} is not set: the template of the repository sets it")
    return value


def open_state(keep_seconds: int | None = None) -> TableState:
    """Open the documents that all invocations share. Raises UserError."""
    from sync_rules.adapters.state import TableState  # noqa: PLC0415 - only where progress is kept

    return TableState(aws.dynamodb(read_endpoint()), require_setting(STATE_TABLE), keep_seconds=keep_seconds)


@cache
def make_distinct_failures() -> Failures:
    """Make the sink of failure records that drops repetitions from this process."""
    return DeduplicatedFailures(make_failures(), Limits(), THIS_PROCESS)


# ---------------------------------------------------------------- the pipeline
@cache
def make_consumer() -> Consumer:
    """Make the pipeline of this process, once.

    Raises:
        UserError: when the rules file is wrong, or needs a queue, a table or a function that does not exist.
    """
    dynamodb = make_store()
    store: Store = dynamodb
    queue = _make_queue()
    limits = Limits() if isinstance(queue, SqsQueue) else WITHOUT_QUEUE
    units = _read_write_units()
    _count_writers()  # a mistake is reported at the start, and not once a table first has a limit
    if units or any(table.max_write_units_per_second for table in read_rules().tables.values()):
        from sync_rules.adapters.budget import Rate, choose_writes_at_once  # noqa: PLC0415
        from sync_rules.adapters.meter import MeteredStore  # noqa: PLC0415 - only where there is a limit

        rate = Rate(units)
        paid = (lambda cost: rate.take(cost, deadline.spare_seconds())) if units else None
        store = MeteredStore(store, read_rules().tables, paid, make_budget())
        limits = replace(limits, apply_max_writes=choose_writes_at_once(units))
    world = World(store, CountedQueue(queue), make_failures(), *_make_call_ports(), share=dynamodb.share)
    return Consumer(read_rules(), world, THIS_PROCESS, telemetry, limits, unaccepted=_make_acceptance())


def _make_acceptance() -> Callable[[], Mapping[str, str]]:
    """The rules that are not accepted yet. Raises UserError, StoreError."""
    if not os.environ.get(STATE_TABLE):
        return dict
    from sync_rules.adapters import acceptance  # noqa: PLC0415 - only where acceptance is kept

    return acceptance.make_stack_acceptance(read_rules(), open_state(), SERVICE_NAME)


def make_budget(at_once: int = 1) -> Budget:
    """Make this process's share of the limits of tables, as one of at least `at_once` processes that write. Raises
    UserError.
    """
    from sync_rules.adapters.budget import Budget  # noqa: PLC0415 - only where there is a limit

    return Budget(read_rules().tables, max(_count_writers(), at_once), within_seconds=deadline.spare_seconds)


def _count_writers() -> int:
    given = os.environ.get(WRITERS) or "1"
    try:
        numbers = [int(number) for number in given.split("+")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or not sum(numbers):
        raise UserError(f"{WRITERS} is {given!r}: expected a number of processes, or several to be added, such as 4+2")
    return sum(numbers)


def _read_write_units() -> float:
    given = os.environ.get(WRITE_UNITS) or "0"
    try:
        units = float(given)
    except ValueError:
        units = -1.0
    if not 0 <= units < math.inf:
        raise UserError(f"{WRITE_UNITS} is {given!r}: expected write units per second, or 0 for no limit")
    return units


class NoQueue:
    """The queue of a process that has none. A parked target waits for its next change, or for verify. The rest of a
    fan-out that does not fit into one invocation is reported as failed.
    """

    def send(self, _message: Message, _delay_seconds: int) -> None:
        """Raise StoreError: no queue is set."""
        raise StoreError("NoQueue", f"set {QUEUE_URL}: a fan-out did not fit into one invocation")


def _make_queue() -> Queue:
    url = os.environ.get(QUEUE_URL)
    if url:
        return SqsQueue(make_queue_client(), url, on_small=logger.warning)
    looks_twice = [
        rule.name
        for rule in read_rules().rules.values()
        if rule.find is not None and rule.find.index is not None and rule.settle_seconds
    ]
    for needs, names in (
        ("find their targets through an index need a queue for the second look", looks_twice),
        ("call a function need a queue for calls that fail", read_rules().functions),
    ):
        if names:
            raise UserError(
                f"{QUEUE_URL} is not set, but rules that {needs} ({', '.join(names)}): set it to the URL of a standard"
                " SQS queue"
            )
    return NoQueue()


@cache
def make_receipts() -> Receipts | None:
    """Make the receipts of the queue's messages, once; None without a queue."""
    url = os.environ.get(QUEUE_URL)
    return Receipts(make_queue_client(), url, retrying=retries.make_retry(deadline.remaining_seconds)) if url else None


def _make_call_ports() -> tuple[Caller, KeptCalls]:
    """The caller of functions, and the bucket of calls that were given up or are too large for a message: those that a
    rule needs.
    """
    if not read_rules().functions:
        return NULL_PORTS, NULL_PORTS
    from sync_rules.adapters import beginnings  # noqa: PLC0415 - needed by few rules
    from sync_rules.adapters.effects import make_caller  # noqa: PLC0415 - slow to load, and needed by few rules
    from sync_rules.adapters.kept_calls import CallsInBucket  # noqa: PLC0415 - slow to load, and needed by few rules

    table = os.environ.get(CALLS_TABLE)
    if not table:
        raise UserError(
            f"{CALLS_TABLE} is not set, but a rule that calls a function once per change needs a table to remember that"
            f" ({', '.join(read_rules().functions)}): set it to the name of a table with the string key 'id', and Time"
            " to Live on 'expiration'"
        )
    retrying = retries.make_retry(deadline.remaining_seconds)
    caller = make_caller(
        read_rules(),
        aws.dynamodb(read_endpoint()),
        table,
        folder=find_rules_file().absolute().parent,
        retrying=retrying,
        remaining_ms=deadline.remaining_ms,
    )
    noted = beginnings.note_in_table(
        aws.dynamodb(read_endpoint()),
        read_rules(),
        table,
        lambda: beginnings.read_deploy_time_ms(read_endpoint()),
        retrying=retrying,
    )
    caller = beginnings.CallsSince(caller, beginnings.list_beginnings(read_rules(), noted))
    for name, words in beginnings.describe_beginnings(read_rules(), noted).items():
        logger.info("rule calls", rule=name, calls_for=words)
    kept = CallsInBucket(lambda: aws.s3(read_endpoint()), os.environ.get(BUCKET, ""), retrying=retrying)
    return caller, kept
