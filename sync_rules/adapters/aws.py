"""Clients of AWS, the meaning of their errors, and retries. The only importer of boto3.

Clients come from one boto3 session and are made once per process, when first used. boto3 costs a function 9 % of
the CPU time of its start over botocore alone (fresh processes in pairs; 5 % of the instructions).

Invariant: tenacity is the one retry mechanism (botocore tries once), with full jitter and within the caller's deadline;
a request that was refused on its merits is never sent again.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import boto3.session
import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    wait_random_exponential,
)
from tenacity.stop import stop_base

from sync_rules import __version__
from sync_rules.adapters.access_cures import CONFIGURATION_CURES, CURES
from sync_rules.adapters.answers import Parsers, require_answers
from sync_rules.adapters.fast_json import use_json
from sync_rules.model.errors import StoreError, UserError

if TYPE_CHECKING:  # the stubs are a development dependency
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient
    from mypy_boto3_sqs import SQSClient

RemainingSeconds = Callable[[], float]

CONNECTIONS_MAX: Final = 16  # per client; above the writer's workers
CONNECT_TIMEOUT_SECONDS: Final = 2
READ_TIMEOUT_SECONDS: Final = 10
ATTEMPTS_MAX: Final = 8
FIRST_WAIT_SECONDS: Final = 0.025  # as in the AWS SDKs for DynamoDB
WAIT_MAX_SECONDS: Final = 2.0
FIRST_ATTEMPTS_MAX: Final = 2  # of a command's first call, where nothing answers
FIRST_MAX_SECONDS: Final = 5
# Parameters are not validated before they are sent: it takes a third of the time, and the service does the same. The
# model also refuses some shard ids as too short.
UNVALIDATED: Final = frozenset({"dynamodb", "dynamodbstreams"})
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
STATEMENTS: Final = "x-sync-rules-statements"  # a header of the embedded engine's answers
OTHER_THROTTLE: Final = "Other"  # DynamoDB gave no reason, or one that is not known here
NO_CREDENTIALS: Final = "No AWS credentials found. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."

LOCAL_REGION: Final = "us-east-1"
LOCAL_CREDENTIALS: Final = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}

_session_lock = Lock()  # a session is not thread-safe


# ---------------------------------------------------------------- clients
def dynamodb(endpoint_url: str | None = None, region: str | None = None) -> DynamoDBClient:
    """The DynamoDB client of this process. Raises UserError when no region or profile can be found."""
    return cast("DynamoDBClient", _client("dynamodb", endpoint_url, region))


def dynamodbstreams(endpoint_url: str | None = None, region: str | None = None) -> DynamoDBStreamsClient:
    """The DynamoDB Streams client of this process. Raises UserError like `dynamodb`."""
    return cast("DynamoDBStreamsClient", _client("dynamodbstreams", endpoint_url, region))


def sqs(endpoint_url: str | None = None, region: str | None = None) -> SQSClient:
    """The SQS client of this process. Raises UserError like `dynamodb`."""
    return cast("SQSClient", _client("sqs", endpoint_url, region))


def s3(endpoint_url: str | None = None, region: str | None = None) -> Any:
    """The S3 client of this process. Raises UserError like `dynamodb`."""
    return _client("s3", endpoint_url, region)


def cloudwatch(endpoint_url: str | None = None, region: str | None = None) -> Any:
    """The CloudWatch client of this process. Raises UserError like `dynamodb`."""
    return _client("cloudwatch", endpoint_url, region)


def cloudformation(endpoint_url: str | None = None, region: str | None = None) -> Any:
    """The CloudFormation client of this process. Raises UserError like `dynamodb`."""
    return _client("cloudformation", endpoint_url, region)


def lambdas(endpoint_url: str | None = None, region: str | None = None) -> Any:
    """The Lambda client of this process. Raises UserError like `dynamodb`."""
    return _client("lambda", endpoint_url, region)


def stepfunctions(endpoint_url: str | None = None, region: str | None = None) -> Any:
    """The Step Functions client of this process. Raises UserError like `dynamodb`."""
    return _client("stepfunctions", endpoint_url, region)


def iam(endpoint_url: str | None = None, region: str | None = None) -> Any:
    """The IAM client of this process. Raises UserError like `dynamodb`."""
    return _client("iam", endpoint_url, region)


def place(client: Any, account: str = "") -> str:
    """The endpoint, the Region and the account of a client, without a password that an address may have in it."""
    address = urlsplit(client.meta.endpoint_url)
    where = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
    return f"{where} (Region {client.meta.region_name}{f', account {account}' if account else ''})"


def account_of(client: Any) -> str:
    """The account whose credentials a client of AWS has, for messages; "" where that is not known."""
    if not is_aws(client):
        return ""
    try:
        return str(_client("sts", None, client.meta.region_name).get_caller_identity()["Account"])
    except (*ERRORS, UserError):
        return ""


def is_aws(client: Any) -> bool:
    """Tell AWS itself from an emulator, by the client's endpoint."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def records_statements(client: Any) -> bool:
    """Tell whether a PartiQL statement leaves a stream record: on AWS, and on an emulator that said so in an answer."""
    return is_aws(client) or client.meta.endpoint_url in _recording


def embed(endpoint_url: str) -> None:
    """Make clients of this endpoint, an engine that this process started for itself, independent of the user's
    configuration: neither its Region nor a profile that asks for a login is of use there.
    """
    _embedded.add(endpoint_url)


_embedded: set[str] = set()
_recording: set[str] = set()  # endpoints of emulators whose answers said STATEMENTS


@cache
def _session() -> boto3.session.Session:
    """The session of all clients of AWS: it reads configuration and credentials once."""
    return boto3.session.Session(botocore_session=_core())


@cache
def _local_session() -> boto3.session.Session:
    """A session for emulators on this machine: it finds what the user gave by variables or files. A role of the machine
    is not given by the user, is looked for in the network, and has no business in an emulator.
    """
    core = _core()
    for role in ("container-role", "iam-role"):
        core.get_component("credential_provider").remove(role)
    return boto3.session.Session(botocore_session=core)


def _core() -> botocore.session.Session:
    core = botocore.session.Session()
    core.register_component("response_parser_factory", Parsers())
    return core


def _local_defaults(session: boto3.session.Session, region: str | None, *, embedded: bool) -> dict[str, str | None]:
    """The Region and credentials for an emulator, which accepts any: only those that the user did not give are made up.
    An emulator may keep tables apart by both.
    """
    if embedded:
        return {"region_name": LOCAL_REGION, **LOCAL_CREDENTIALS}
    place = {"region_name": region or session.region_name or LOCAL_REGION}
    return {**place, **({} if session.get_credentials() is not None else LOCAL_CREDENTIALS)}


@cache
def _client(service: str, endpoint_url: str | None, region: str | None) -> Any:
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        tcp_keepalive=True,
        max_pool_connections=CONNECTIONS_MAX,
        account_id_endpoint_mode="disabled",  # emulators do not know hosts that begin with an account
        parameter_validation=service not in UNVALIDATED,
        s3={"addressing_style": "path" if endpoint_url else "auto"},  # no emulator has a host name for each bucket
        user_agent=f"sync-rules/{__version__}",  # botocore would compute its own for each request
    )
    region = region or os.environ.get("AWS_REGION")  # set by Lambda, and not read by botocore
    if endpoint_url is not None and urlsplit(endpoint_url).scheme not in ("http", "https"):
        raise UserError(f"{endpoint_url!r} is not an endpoint: expected http://HOST:PORT or https://HOST")
    local = endpoint_url is not None and urlsplit(endpoint_url).hostname in LOOPBACK
    try:
        with _session_lock:
            session = _local_session() if local else _session()
            given: dict[str, str | None] = {"region_name": region}
            if local:
                given = _local_defaults(session, region, embedded=endpoint_url in _embedded)
            make: Callable[..., Any] = session.client
            client = make(service, endpoint_url=endpoint_url, config=config, **given)
    except (BotoCoreError, ValueError) as error:
        found = str(error).rstrip(".")
        cure = CONFIGURATION_CURES.get(type(error).__name__, "Correct the Region, the credentials or the endpoint")
        raise UserError(f"no {service} client could be made: {found}. {cure}.") from error
    require_answers(client, service)
    if service == "dynamodb":
        use_json(client)
    if service == "dynamodb" and endpoint_url is not None:
        client.meta.events.register_last("after-call.dynamodb", partial(_note_statements, client.meta.endpoint_url))
    return client


def _note_statements(endpoint_url: str, http_response: Any, **_: Any) -> None:
    if STATEMENTS in http_response.headers:
        _recording.add(endpoint_url)


# ---------------------------------------------------------------- errors
class UnprocessedError(Exception):
    """A batch was answered in part; `throttles` are the kinds of those it met, which are most often the reason."""

    def __init__(self, throttles: Sequence[str] = (OTHER_THROTTLE,)) -> None:
        self.throttles = tuple(throttles)


ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError, UnprocessedError)  # everything that a call raises
UNANSWERED: Final = (HTTPClientError, BotoConnectionError, ResponseParserError)
CONNECTION_ERRORS: Final = (*UNANSWERED, UnprocessedError)
TRANSIENT: Final = frozenset({
    "InternalServerError", "KmsThrottled", "ProvisionedThroughputExceededException", "ReplicatedWriteConflictException",
    "RequestLimitExceeded", "RequestThrottled", "RequestTimeout", "ServiceUnavailable", "Throttling",
    "ThrottlingException", "TransactionConflictException", "TransactionInProgressException",
    "ConditionalRequestConflict", "OperationAborted",
})  # fmt: skip
DECIDED: Final = frozenset({"ConditionalCheckFailed", "ItemCollectionSizeLimitExceeded", "ValidationError"})
REASONS: Final = {
    "ResourceNotFoundException": "TableNotFound",
    "UnprocessedError": "ThrottlingException",
    "AWS.SimpleQueueService.NonExistentQueue": "QueueNotFound",
    "QueueDoesNotExist": "QueueNotFound",
    "NoSuchBucket": "BucketNotFound",
}
LIMITS: Final = (
    "ProvisionedThroughputExceeded", "AccountLimitExceeded", "KeyRangeThroughputExceeded",
    "MaxOnDemandThroughputExceeded",
)  # fmt: skip
THROTTLES: Final = {
    f"{of}{way}{limit}": limit for of in ("Table", "Index") for way in ("Read", "Write") for limit in LIMITS
}
THROTTLED: Final = frozenset({
    "KmsThrottled", "ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
    "RequestThrottled", "SlowDown", "Throttling", "ThrottlingError", "ThrottlingException",
})  # fmt: skip


class CredentialsError(StoreError):
    """No AWS credentials were found. Failure records and counters keep the code; the command line prints the cure."""

    sentence = NO_CREDENTIALS


def store_error(error: BaseException, where: str, cures: Mapping[str, str] | None = None) -> StoreError:
    """The StoreError of a failed call: its reason, `where` it failed, and the cure if there is one for the reason."""
    if isinstance(error, NoCredentialsError):
        return CredentialsError(NoCredentialsError.__name__, where)
    cause = reason(error)
    cure = (cures or {}).get(cause) or CURES.get(cause)
    return StoreError(cause, where if cure is None else f"{where}: {cure}")


def ask(
    retrying: Retrying, where: str, call: Callable[..., Any], cures: Mapping[str, str] | None = None, **parameters: Any
) -> Any:
    """The answer to a call that is retried. Raises StoreError: see `store_error`."""
    try:
        return retrying(call, **parameters)
    except ERRORS as error:
        raise store_error(error, where, cures) from error


def no_answer(error: BaseException, client: Any) -> str:
    """Name the address that did not answer, and the cure; "" when the service answered."""
    if not isinstance(error, UNANSWERED):
        return ""
    found = "something else answers at" if isinstance(error, ResponseParserError) else "no answer from"
    service = client.meta.service_model.service_id
    return f"{found} {place(client)}: is {service} running there? Correct --endpoint-url or --region"


def code(error: BaseException) -> str:
    """The service's error code, or the name of the error when no service answered."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else type(error).__name__


def message(error: BaseException) -> str:
    """The service's message. It may quote values of items, so it is never shown."""
    return str(error.response["Error"].get("Message", "")) if isinstance(error, ClientError) else ""


def reason(error: BaseException) -> str:
    """The error as a short reason for results and failure records."""
    causes = [entry["Code"] for entry in cancellations(error) if entry.get("Code", "None") != "None"]
    return causes[0] if causes else REASONS.get(code(error), code(error))


def cancellations(error: BaseException) -> list[dict[str, Any]]:
    """The reason of each action of a cancelled transaction, by position; code "None" for those that did not fail."""
    if not isinstance(error, ClientError):
        return []
    return [dict(entry) for entry in error.response.get("CancellationReasons") or []]


def transient(error: BaseException) -> bool:
    """True if the same call may succeed a moment later: not if a guard or a value was refused."""
    if isinstance(error, CONNECTION_ERRORS):
        return True
    if not isinstance(error, ClientError):
        return False
    if code(error) == "TransactionCanceledException":
        return DECIDED.isdisjoint(entry.get("Code", "None") for entry in cancellations(error))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code(error) in TRANSIENT or status >= 500  # noqa: PLR2004 -- server errors begin at 500


def throttles(error: BaseException) -> tuple[str, ...]:
    """The kinds of a throttle: DynamoDB's reasons, each once, and "Other" for an unknown or missing one; of a batch, a
    kind for each statement; () for any other error.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
    """
    if isinstance(error, UnprocessedError):
        return error.throttles
    if not THROTTLED.intersection([code(error), *(entry.get("Code") for entry in cancellations(error))]):
        return ()
    answer: dict[str, Any] = dict(error.response) if isinstance(error, ClientError) else {}
    given = answer.get("ThrottlingReasons") or answer.get("throttlingReasons") or [{}]  # one exception has it so
    known = (entry.get("reason", "") for entry in given)
    return tuple(dict.fromkeys(reason if reason in THROTTLES else OTHER_THROTTLE for reason in known))


# ---------------------------------------------------------------- retries
def uncounted(_kind: str) -> None:
    """Ignore a throttle: the default of `on_throttle`."""


def no_deadline() -> float:
    """Return infinity: the default of `remaining_seconds`."""
    return math.inf


class _NobodyThere(stop_base):
    """Stops soon when nothing answers: the address is more likely wrong than down. A throttle is an answer."""

    def __call__(self, retry_state: RetryCallState) -> bool:
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        soon = stop_any(stop_after_attempt(FIRST_ATTEMPTS_MAX), stop_after_delay(FIRST_MAX_SECONDS))
        return isinstance(error, UNANSWERED) and soon(retry_state)


class _BeforeDeadline(stop_base):
    """Stops when the next wait would outlast the deadline."""

    def __init__(self, remaining_seconds: RemainingSeconds) -> None:
        self._remaining_seconds = remaining_seconds

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.upcoming_sleep >= self._remaining_seconds()


def retrying(
    remaining_seconds: RemainingSeconds = no_deadline,
    attempts_max: int | None = ATTEMPTS_MAX,
    sleep: Callable[[float], None] = time.sleep,
    *,
    first: bool = False,
    on_throttle: Callable[[str], None] = uncounted,
) -> Retrying:
    """Calls a function until it answers: full jitter from 25 ms doubling to 2 s, while the next wait fits the deadline.

    Without `attempts_max` only the deadline ends the retries. With `first`, for the first call of a command, they end
    after seconds when nothing answers at all. `on_throttle` is called with the kinds of each throttle, from the thread
    that met it. The last error is raised as it is. May be shared by threads.
    """
    nobody = [_NobodyThere()] if first else []

    def count(retry_state: RetryCallState) -> None:
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        for kind in throttles(error) if error is not None else ():
            on_throttle(kind)

    return Retrying(
        after=count,
        retry=retry_if_exception(transient),
        wait=wait_random_exponential(multiplier=FIRST_WAIT_SECONDS, max=WAIT_MAX_SECONDS),
        stop=stop_any(stop_after_attempt(attempts_max or sys.maxsize), _BeforeDeadline(remaining_seconds), *nobody),
        sleep=sleep,
        reraise=True,
    )
