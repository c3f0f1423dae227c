"""The meaning of AWS's errors: transient or not, the kind of a throttle, and a short reason for records.

Invariant: a service's message may quote values of items, so no reason has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError

from sync_rules import DOCS
from sync_rules.adapters import aws
from sync_rules.model.errors import StoreError

OTHER_THROTTLE: Final = "Other"  # DynamoDB gave no reason, or one that is not known here
NO_CREDENTIALS: Final = "No AWS credentials found. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."


class UnprocessedError(Exception):
    """A batch was answered only in part. `throttles`: the kinds of the throttles that it met. `reason`: the error code
    to report, most often that of a throttle. `progressed`: some of the batch was done.
    """

    def __init__(
        self,
        throttles: Sequence[str] = (OTHER_THROTTLE,),
        reason: str = "ThrottlingException",
        *,
        progressed: bool = False,
    ) -> None:
        self.throttles = tuple(throttles)
        self.reason = reason
        self.progressed = progressed


ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError, UnprocessedError)  # everything that a call raises
UNANSWERED: Final = (HTTPClientError, BotoConnectionError, ResponseParserError)
CONNECTION_ERRORS: Final = (*UNANSWERED, UnprocessedError)
TRANSIENT: Final = frozenset({
    "InternalServerError", "KmsThrottled", "ProvisionedThroughputExceededException", "ReplicatedWriteConflictException",
    "RequestLimitExceeded", "RequestThrottled", "RequestTimeout", "ServiceUnavailable", "Throttling",
    "ThrottlingException", "TransactionConflictException", "TransactionInProgressException",
    "OperationAborted",
})  # fmt: skip
NOT_ALLOWED: Final = frozenset({"AccessDenied", "AccessDeniedException"})
DECIDED: Final = frozenset({"ConditionalCheckFailed", "ItemCollectionSizeLimitExceeded", "ValidationError"})
REASONS: Final = {
    "ResourceNotFoundException": "TableNotFound",
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

# ---------------------------------------------------------------- cures that have nothing to do with the request
WRONG_KEYS: Final = (
    "AWS does not know these credentials. Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the profile, and use "
    "--endpoint-url for an emulator"
)
EXPIRED: Final = "the credentials have expired. Sign in again, for example with `aws sso login`"
DENIED: Final = (
    f"these credentials may not do this. Use others, or allow it: {DOCS}/permissions.md and "
    "`sync-rules infra iam --explain` list what is needed"
)
BY_PROXY: Final = (
    "the request was refused before the service saw it, as by a proxy. Correct --endpoint-url, the proxy's settings or "
    "the credentials"
)
DOWN: Final = "the service or a proxy before it is not available. Try again later, or correct --endpoint-url"
LIMITED: Final = "a table, an index or the account is at its limit. Try again later, or raise the limit"
ELSEWHERE: Final = (
    "the request was sent elsewhere, as by a proxy or for a bucket of another Region. Correct --endpoint-url or "
    "--region"
)
ACCESS_CURES: Final[Mapping[str, str]] = {  # by the reason of the error
    **dict.fromkeys(("UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId"), WRONG_KEYS),
    "InvalidSignatureException": "the signature is wrong. Correct AWS_SECRET_ACCESS_KEY, or set this machine's clock",
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "RequestExpired"), EXPIRED),
    **dict.fromkeys(("UnauthorizedSSOTokenError", "SSOTokenLoadError", "TokenRetrievalError"), EXPIRED),
    "CredentialRetrievalError": "no credentials could be fetched. Correct the profile or the program that gives them",
    **dict.fromkeys(("AccessDenied", "AccessDeniedException"), DENIED),
    **dict.fromkeys(("301", "302", "303", "307", "308", "PermanentRedirect"), ELSEWHERE),
    **dict.fromkeys(("401", "403", "407"), BY_PROXY),
    **dict.fromkeys(("502", "503", "504", "ServiceUnavailable", "ServiceUnavailableException"), DOWN),
    **dict.fromkeys(("500", "InternalServerError", "InternalFailure", "RequestTimeout"), DOWN),
    **dict.fromkeys(("ConnectTimeoutError", "ReadTimeoutError", "EndpointConnectionError"), DOWN),
    **dict.fromkeys(("ConnectionClosedError", "ProxyConnectionError", "HTTPClientError", "ResponseParserError"), DOWN),
    **dict.fromkeys(("ThrottlingException", "Throttling", "RequestThrottled", "RequestLimitExceeded"), LIMITED),
    "ProvisionedThroughputExceededException": LIMITED,
}


class CredentialsError(StoreError):
    """An error because no AWS credentials were found. Failure records and counters keep the code; the command line
    prints the cure.
    """

    sentence = NO_CREDENTIALS


def make_store_error(
    error: BaseException, where: str, cures: Mapping[str, str] | None = None, *, client: Any = None
) -> StoreError:
    """Make the StoreError of a failed call: its reason, `where` it failed, and a cure if there is one for the reason.
    `client`: given for a first call, it names the address if nothing answered there. A missing permission is named
    by its action.
    """
    if isinstance(error, NoCredentialsError):
        return CredentialsError(NoCredentialsError.__name__, where)
    cause = read_reason(error)
    if client is not None and (found := describe_no_answer(error, client)):
        return StoreError(cause, found)
    cure = (cures or {}).get(cause) or ACCESS_CURES.get(cause)
    if cure == DENIED and isinstance(error, ClientError) and error.operation_name not in where:
        where = f"{error.operation_name} of {where}"
    return StoreError(cause, where if cure is None else f"{where}: {cure}")


def describe_no_answer(error: BaseException, client: Any) -> str:
    """Describe the address that did not answer, with a cure; "" if the service answered."""
    if not isinstance(error, UNANSWERED):
        return ""
    found = "something else answers at" if isinstance(error, ResponseParserError) else "no answer from"
    service = client.meta.service_model.service_id
    return f"{found} {aws.format_place(client)}: is {service} running there? Correct --endpoint-url or --region"


def read_code(error: BaseException) -> str:
    """Return the service's error code, or the class name of the error if no service answered."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else type(error).__name__


def read_message(error: BaseException) -> str:
    """Return the service's message. It may quote values of items, so do not show it."""
    return str(error.response["Error"].get("Message", "")) if isinstance(error, ClientError) else ""


def read_reason(error: BaseException) -> str:
    """Return a short reason for an error of any request, for results and failure records."""
    if isinstance(error, UnprocessedError):
        return error.reason
    causes = [entry["Code"] for entry in list_cancellations(error) if entry.get("Code", "None") != "None"]
    return causes[0] if causes else REASONS.get(read_code(error), read_code(error))


def list_cancellations(error: BaseException) -> list[dict[str, Any]]:
    """List the reason of each action of a cancelled transaction, by position. An action that did not fail has the code
    "None".
    """
    if not isinstance(error, ClientError):
        return []
    return [dict(entry) for entry in error.response.get("CancellationReasons") or []]


def is_transient(error: BaseException) -> bool:
    """True if the same call may succeed a moment later: not if a guard or a value was refused."""
    if isinstance(error, CONNECTION_ERRORS):
        return True
    if not isinstance(error, ClientError):
        return False
    if read_code(error) == "TransactionCanceledException":
        return DECIDED.isdisjoint(entry.get("Code", "None") for entry in list_cancellations(error))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return read_code(error) in TRANSIENT or status >= 500  # noqa: PLR2004 -- server errors begin at 500


def list_throttles(error: BaseException) -> tuple[str, ...]:
    """List the kinds of a throttle: DynamoDB's reasons, each once, and "Other" for an unknown or missing reason. For a
    batch, list a kind for each statement. Any other error has none.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
    """
    if isinstance(error, UnprocessedError):
        return error.throttles
    if not THROTTLED.intersection([read_code(error), *(entry.get("Code") for entry in list_cancellations(error))]):
        return ()
    answer: dict[str, Any] = dict(error.response) if isinstance(error, ClientError) else {}
    given = answer.get("ThrottlingReasons") or answer.get("throttlingReasons") or [{}]  # one exception has it so
    known = (entry.get("reason", "") for entry in given)
    return tuple(dict.fromkeys(reason if reason in THROTTLES else OTHER_THROTTLE for reason in known))
