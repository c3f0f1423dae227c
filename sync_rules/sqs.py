"""The queue for later and the sink for failure records, on SQS.

Law: a message is keys and rules, a failure record is rule, key and reason; neither holds a value of an item.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tenacity import Retrying

from sync_rules import aws
from sync_rules.errors import StoreError
from sync_rules.messages import Message, encode
from sync_rules.model import Failure, ItemKey

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

DELAY_MAX_SECONDS: Final = 900  # DelaySeconds of SendMessage


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
        """Returns once SQS has the message. Raises StoreError."""
        _send(self._client, self._retrying, self._queue_url, encode(message), min(delay_seconds, DELAY_MAX_SECONDS))


class SqsFailures:
    """Failure records on a standard queue, as JSON: rule, table, key, reason, position, at (ISO 8601, UTC)."""

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
        _send(self._client, self._retrying, self._queue_url, failure_record(failure, self._now()), 0)


def failure_record(failure: Failure, at: datetime) -> str:
    """A failure as JSON text. `key` is in DynamoDB's JSON with binary as base64, as the AWS CLI takes it; null when the
    record was not understood.
    """
    record = {
        "rule": failure.rule,
        "table": failure.key and failure.key.table,
        "key": failure.key and _key_json(failure.key),
        "reason": failure.reason,
        "position": failure.position,
        "at": at.astimezone(UTC).isoformat(timespec="milliseconds"),
    }
    return json.dumps(record, separators=(",", ":"))


def _key_json(key: ItemKey) -> dict[str, dict[str, str]]:
    return {
        name: {kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value}
        for name, kind, value in key.values
    }


def _send(client: SQSClient, retrying: Retrying, queue_url: str, body: str, delay_seconds: int) -> None:
    try:
        retrying(client.send_message, QueueUrl=queue_url, MessageBody=body, DelaySeconds=delay_seconds)
    except aws.ERRORS as error:
        raise StoreError(aws.reason(error), f"queue {queue_url.rpartition('/')[2]}") from error
