"""The queue for later and the sink for failure records, on SQS.

Law: a message is keys and rules, a failure record is rule, key and reason; neither holds a value of an item, but for
the message of a call that failed. What SQS would refuse for its size is refused here, by a name of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tenacity import Retrying

from sync_rules import aws
from sync_rules.errors import StoreError
from sync_rules.failures import failure_record
from sync_rules.limits import DELAY_MAX_SECONDS
from sync_rules.messages import Message, encode
from sync_rules.model import Failure

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MESSAGE_MAX_BYTES: Final = 1_048_576  # SendMessage; until August 2025 it was a quarter of that


def utc_now() -> datetime:
    """The time that failure records bear."""
    return datetime.now(UTC)


class SqsQueue:
    """Messages for later on a standard queue. A delay longer than SQS allows is shortened: a look may come early."""

    def __init__(self, client: SQSClient, queue_url: str, *, retrying: Retrying | None = None) -> None:
        self._client = client
        self._queue_url = queue_url
        self._retrying = retrying or aws.retrying()

    def send(self, message: Message, delay_seconds: int) -> None:
        """Returns once SQS has the message. Raises StoreError, MessageTooLarge among others."""
        _send(self._client, self._retrying, self._queue_url, encode(message), min(delay_seconds, DELAY_MAX_SECONDS))


class SqsFailures:
    """Failure records on a standard queue, as JSON text."""

    def __init__(
        self,
        client: SQSClient,
        queue_url: str,
        *,
        retrying: Retrying | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._client = client
        self._queue_url = queue_url
        self._retrying = retrying or aws.retrying()
        self._now = now

    def park(self, failure: Failure) -> None:
        """Returns once SQS has the record. Raises StoreError."""
        body = json.dumps(failure_record(failure, self._now()), separators=(",", ":"))
        _send(self._client, self._retrying, self._queue_url, body, 0)


def _send(client: SQSClient, retrying: Retrying, queue_url: str, body: str, delay_seconds: int) -> None:
    if len(body) > MESSAGE_MAX_BYTES:  # JSON in ASCII: a byte each
        raise StoreError("MessageTooLarge", f"{len(body)} bytes, and SQS takes {MESSAGE_MAX_BYTES}")
    try:
        retrying(client.send_message, QueueUrl=queue_url, MessageBody=body, DelaySeconds=delay_seconds)
    except aws.ERRORS as error:
        raise StoreError(aws.reason(error), f"queue {queue_url.rpartition('/')[2]}") from error
