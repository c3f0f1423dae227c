"""The queue handler: second looks through an index, the rest of large fan-outs, parked targets. Order is irrelevant."""

from __future__ import annotations

from typing import Any

from handlers.runtime import Context, answer, consumer, deadline, emit, logger
from sync_rules.batch import Consumer
from sync_rules.errors import RecordError, StoreError
from sync_rules.messages import decode
from sync_rules.model import Failure


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Process messages from SQS. Names those that must come again; an unreadable one is parked and done."""
    deadline.context = context
    pipeline = consumer()
    try:
        return answer([record["messageId"] for record in event.get("Records", []) if not _done(record, pipeline)])
    finally:
        emit(pipeline.telemetry)


def _done(record: dict[str, Any], pipeline: Consumer) -> bool:
    """Whether SQS may forget a message."""
    try:
        try:
            pipeline.handle_message(decode(record["body"]), deadline.remaining_ms)
        except RecordError as error:
            pipeline.world.failures.park(Failure("", None, str(error), record["messageId"]))
    except StoreError as error:
        logger.warning("message comes again", message_id=record["messageId"], reason=error.reason)
        return False
    return True
