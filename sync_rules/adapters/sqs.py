"""Queues on SQS: messages for later, failure records, and entries that failed.

Invariant: a message is keys and rules, a failure record is rule, key and reason; neither holds a value of an item,
except the message of a failed call. A message is deleted when its work is done, or when one that replaces it is in the
queue. A message too large for SQS is refused here, as MessageTooLarge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tenacity import Retrying

from sync_rules.adapters import aws_errors, retries
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Failure
from sync_rules.model.json_bytes import format_compact_json
from sync_rules.model.limits import DELAY_MAX_SECONDS
from sync_rules.pipeline.messages import Message, format_message

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from sync_rules.pipeline.failed_entries import FailedEntry

MESSAGE_MAX_BYTES: Final = 1_048_576  # SendMessage; until August 2025 it was a quarter of that
ANY_QUEUE_BYTES: Final = 1_024  # the least MaximumMessageSize that a queue can have
TOO_LARGE: Final = "MessageTooLarge"
RECEIVE_MAX_MESSAGES: Final = 10  # ReceiveMessage
RECEIVE_WAIT_SECONDS: Final = 1  # without a wait, SQS asks only some of its servers
PEEKED_MAX_MESSAGES: Final = 1_000  # by a look at a queue, which removes nothing
PEEK_SECONDS: Final = 30  # how long a look hides a message from others
AGAIN_FIRST_SECONDS: Final = 30  # before the first retry of a message
TAKEN_MAX_MESSAGES: Final = 100_000  # of one redrive; SQS has at most 120,000 messages of a queue in flight
TAKEN_SECONDS: Final = 3_600  # how long a redrive that was killed hides its messages
TRIED_LETTERS: Final = 10  # of the digest of a message's identifier, in a mark


class _Queue:
    """A queue by its URL, and calls to it that are retried."""

    def __init__(self, client: SQSClient, queue_url: str, *, retrying: Retrying | None = None) -> None:
        self._client = client
        self._queue_url = queue_url
        self._retrying = retrying or retries.make_retry()

    @property
    def name(self) -> str:
        return self._queue_url.rpartition("/")[2]

    def _send(self, body: str, delay_seconds: int = 0) -> None:
        size = len(body.encode())
        most = MESSAGE_MAX_BYTES if size <= ANY_QUEUE_BYTES or size > MESSAGE_MAX_BYTES else self._takes()
        if size > most:
            raise StoreError(TOO_LARGE, f"the message has {size} bytes, and queue {self.name} takes {most}")
        self._call(self._client.send_message, MessageBody=body, DelaySeconds=delay_seconds)

    def _takes(self) -> int:
        """The size of the largest message that the queue takes. A queue of failure records, which have a few kilobytes,
        is not asked.
        """
        return MESSAGE_MAX_BYTES

    def _call(self, call: Callable[..., Any], **parameters: Any) -> Any:
        return retries.ask(self._retrying, f"queue {self.name}", call, QueueUrl=self._queue_url, **parameters)


class SqsQueue(_Queue):
    """Messages for later on a standard queue. A delay longer than SQS allows is shortened: a look may come early.

    `on_small` is called once, with a sentence, if the queue turns out to take smaller messages than SQS does.
    """

    def __init__(
        self,
        client: SQSClient,
        queue_url: str,
        *,
        retrying: Retrying | None = None,
        on_small: Callable[[str], object] = lambda _words: None,
    ) -> None:
        super().__init__(client, queue_url, retrying=retrying)
        self._on_small = on_small
        self._max_bytes: int | None = None

    def send(self, message: Message, delay_seconds: int) -> None:
        """Send a message. Return once SQS has it. Raises StoreError, for example MessageTooLarge."""
        self._send(format_message(message), min(delay_seconds, DELAY_MAX_SECONDS))

    def _takes(self) -> int:
        """The size of the largest message that the queue takes; that of SQS where the queue may not be asked."""
        if self._max_bytes is None:
            try:
                answer = self._call(self._client.get_queue_attributes, AttributeNames=["MaximumMessageSize"])
            except StoreError as error:
                if error.reason not in aws_errors.NOT_ALLOWED:
                    raise
                answer = {}
            self._max_bytes = int(answer.get("Attributes", {}).get("MaximumMessageSize", MESSAGE_MAX_BYTES))
            if self._max_bytes < MESSAGE_MAX_BYTES:
                self._on_small(
                    f"queue {self.name} takes messages of up to {self._max_bytes:,} bytes, and SQS takes"
                    f" {MESSAGE_MAX_BYTES:,}: raise its MaximumMessageSize, or large fan-outs may fail"
                )
        return self._max_bytes


class SqsFailures(_Queue):
    """Failure records on a standard queue, as JSON text."""

    def __init__(
        self,
        client: SQSClient,
        queue_url: str,
        *,
        retrying: Retrying | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(client, queue_url, retrying=retrying)
        self._now = now

    def park(self, failure: Failure) -> None:
        from sync_rules.pipeline.failure_records import make_failure_record  # noqa: PLC0415 - most functions never have one

        self._send(format_compact_json(make_failure_record(failure, self._now())))


class Receipts(_Queue):
    """A client for messages that a function received from a queue and whose processing failed."""

    def shorten_timeout(self, receipt: str, times_received: int) -> None:
        """Shorten the visibility timeout of a message whose processing failed: 30 seconds, doubled with each receive.
        If SQS refuses, the message returns after its full timeout.
        """
        seconds = min(AGAIN_FIRST_SECONDS << min(times_received - 1, 10), DELAY_MAX_SECONDS)
        with suppress(StoreError):
            self._call(self._client.change_message_visibility, ReceiptHandle=receipt, VisibilityTimeout=seconds)


def require_queue_url(url: str) -> str:
    """Check and return the URL of a queue. Raises UserError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or not parts.path.strip("/"):
        raise UserError(
            f"{url!r} is not a queue URL: expected one such as https://sqs.REGION.amazonaws.com/ACCOUNT/NAME"
        )
    return url


class FailedMessages(_Queue):
    """The messages of a queue as a FailureStore. With `peek` they are only read, and soon visible to others again.

    `hidden_seconds`: how long the messages of a killed process stay hidden. With `mark`, several readers read the queue
    in turn, each with the mark of the reader before ("" for the first). No reader returns a message that a reader
    before it returned, or that was sent after the first reader began.
    """

    def __init__(
        self,
        client: Any,
        queue_url: str,
        *,
        peek: bool = False,
        hidden_seconds: int | None = None,
        mark: str | None = None,
        retrying: Retrying | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        super().__init__(client, queue_url, retrying=retrying)
        self.hidden_seconds = hidden_seconds or (PEEK_SECONDS if peek else TAKEN_SECONDS)
        self._max_messages = PEEKED_MAX_MESSAGES if peek else TAKEN_MAX_MESSAGES
        since, _, tried = (mark or "").partition(":")
        self._since_ms = None if mark is None else int(since or now_ms())
        self._tried = {tried[at : at + TRIED_LETTERS] for at in range(0, len(tried), TRIED_LETTERS)}
        self._taken: dict[str, str] = {}  # the receipt of each message that is not deleted yet
        self._instead: dict[str, str] = {}
        self.count = 0

    def entries(self) -> Iterator[FailedEntry]:
        """Receive messages until none comes or the maximum is reached. With a mark, reaching the maximum is an error.

        Raises:
            StoreError: OverLimit among others.
            UserError: when the queue does not exist.
        """
        from sync_rules.pipeline.failed_entries import FailedEntry  # noqa: PLC0415 - senders never need it

        known: set[str] = set()
        while len(known) < self._max_messages:
            answer = self._ask(
                self._client.receive_message,
                MaxNumberOfMessages=RECEIVE_MAX_MESSAGES,
                WaitTimeSeconds=RECEIVE_WAIT_SECONDS,
                VisibilityTimeout=self.hidden_seconds,
                MessageSystemAttributeNames=["SentTimestamp"],
            )
            messages = answer.get("Messages", ())
            fresh = [message for message in messages if message["MessageId"] not in known]
            self._taken |= {message["MessageId"]: message["ReceiptHandle"] for message in messages}
            known |= {message["MessageId"] for message in fresh}
            self.count = len(known)
            for message in fresh:
                if self._first_try(message):
                    where = f"queue {self.name}, message {message['MessageId']}"
                    yield FailedEntry(message["Body"].encode(), where, message["MessageId"])
            if not fresh:
                return
        if self._since_ms is not None:
            raise StoreError(
                "OverLimit", f"queue {self.name} has more than {self._max_messages} messages: redrive again"
            )

    def _first_try(self, message: Any) -> bool:
        """Returns True if this redrive has not given the message yet, and notes that it has."""
        if self._since_ms is None:
            return True
        name = _compute_digest(message["MessageId"])
        if name in self._tried or int(message.get("Attributes", {}).get("SentTimestamp", 0)) > self._since_ms:
            return False
        self._tried.add(name)
        return True

    @property
    def mark(self) -> str:
        """The mark for the next reader of the queue, once this reader is closed."""
        return f"{self._since_ms}:{''.join(sorted(self._tried))}"

    @property
    def held_count(self) -> int:
        """The number of messages that `close` must release. After `close`, the number that it could not release: those
        return by themselves.
        """
        return len(self._taken)

    def remove(self, entry: FailedEntry) -> None:
        self._ask(self._client.delete_message, ReceiptHandle=self._taken[entry.handle])
        self._forget_message(entry.handle)

    def replace(self, entry: FailedEntry, text: str) -> None:
        """Replace a message when this reader is closed: a message sent now would be received, and fail, once more. With
        a mark it would not, so it is replaced at once if possible.
        """
        self._instead[entry.handle] = text
        if self._since_ms is not None:
            with suppress(StoreError, UserError):  # `close` tries again, and raises
                self._replace_message(entry.handle)

    def release(self, entry: FailedEntry) -> None:
        """Let the next reader return this message. `close` makes it visible again."""
        self._tried.discard(_compute_digest(entry.handle))

    def _replace_message(self, identifier: str) -> None:
        self._send(self._instead[identifier])
        self._ask(self._client.delete_message, ReceiptHandle=self._taken[identifier])
        del self._instead[identifier]
        self._forget_message(identifier)

    def _forget_message(self, identifier: str) -> None:
        del self._taken[identifier]
        self._tried.discard(_compute_digest(identifier))

    def close(self) -> None:
        """Replace and release each message. A message whose replacement is too large stays as it was. Raises the first
        other error, after all messages.
        """
        errors: list[StoreError | UserError] = []
        for identifier in [*self._instead]:
            try:
                self._replace_message(identifier)
            except (StoreError, UserError) as error:
                errors += [] if isinstance(error, StoreError) and error.reason == TOO_LARGE else [error]
        self._instead = {}
        for identifier, receipt in [*self._taken.items()]:
            with suppress(StoreError, UserError):  # it returns by itself, only later
                self._ask(self._client.change_message_visibility, ReceiptHandle=receipt, VisibilityTimeout=0)
                del self._taken[identifier]
        if errors:
            raise errors[0]

    def _ask(self, call: Callable[..., Any], **parameters: Any) -> Any:
        missing = f"queue {self._queue_url} does not exist. Correct its URL, the region or the endpoint."
        return self._call(call, mistakes={"QueueNotFound": missing}, **parameters)


def _compute_digest(identifier: str) -> str:
    return sha256(identifier.encode()).hexdigest()[:TRIED_LETTERS]
