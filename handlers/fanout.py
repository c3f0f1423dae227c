"""The queue handler: second looks through an index, the rest of large fan-outs, parked targets. Order is irrelevant."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from sync_rules.functions.logs import done, following
from sync_rules.functions.runtime import Context, answer, consumer, deadline, emit, logger, receipts
from sync_rules.model.errors import RecordError, StoreError
from sync_rules.model.items import Failure
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import decode


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
    before = dict(pipeline.telemetry.outcomes)
    with ExitStack() as about:
        try:
            try:
                message = decode(record["body"])
            except RecordError as error:
                pipeline.world.failures.park(Failure("", None, str(error), record["messageId"]))
                return True
            about.enter_context(following(message))
            pipeline.handle_message(message, deadline.remaining_ms)
            done(pipeline.telemetry, before)
        except StoreError as error:
            logger.warning("message comes again", message_id=record["messageId"], reason=error.reason)
            if (queue := receipts()) is not None and "receiptHandle" in record:
                times = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))
                queue.come_again(record["receiptHandle"], times)
            return False
    return True
