"""The queue function: second looks through an index, the rest of large fan-outs, retries of parked targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sync_rules.functions.logs import describe_message, log_message_end, logger
from sync_rules.functions.runtime import Context, deadline, make_consumer, make_receipts, run_invocation
from sync_rules.model.errors import RecordError, StoreError
from sync_rules.model.items import Failure
from sync_rules.pipeline.messages import Message, parse_message


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Process messages from SQS. Return the messages to retry. An unreadable message gets a failure record, and SQS
    deletes it.
    """
    with run_invocation(context):
        failed = [record["messageId"] for record in event.get("Records", []) if not _process(record)]
        return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}


def _process(record: dict[str, Any]) -> bool:
    """Process one message. Returns True if SQS may delete it."""
    try:
        message = parse_message(record["body"])
    except RecordError as error:
        failure = Failure("", None, str(error), record["messageId"])
        return _finish_message(record, lambda: make_consumer().world.failures.park(failure))
    with logger.append_context_keys(**describe_message(message)):
        return _finish_message(record, lambda: _handle(message, again=_count_receives(record) > 1))


def _count_receives(record: dict[str, Any]) -> int:
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))


def _handle(message: Message, *, again: bool) -> None:
    telemetry = make_consumer().telemetry
    before = dict(telemetry.outcomes)
    make_consumer().handle_message(message, deadline.remaining_ms, again=again)
    log_message_end(telemetry, before)


def _finish_message(record: dict[str, Any], work: Callable[[], None]) -> bool:
    """Do the work of a message. If it fails, the message comes again sooner than its visibility timeout says."""
    try:
        work()
    except StoreError as error:
        logger.warning("message not finished, delivered again", message_id=record["messageId"], reason=error.reason)
        if (queue := make_receipts()) is not None and "receiptHandle" in record:
            queue.shorten_timeout(record["receiptHandle"], _count_receives(record))
        return False
    return True
