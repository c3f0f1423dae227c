"""The queue handler: second looks through an index, the rest of large fan-outs, parked targets. Order is irrelevant."""

from __future__ import annotations

from typing import Any

from handlers.runtime import Context, answer, consumer, deadline, emit, logger
from sync_rules.errors import RecordError, StoreError
from sync_rules.messages import decode
from sync_rules.model import Failure


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Process messages from SQS. Names those that must come again; an unreadable one is parked and done."""
    deadline.context = context
    pipeline = consumer()
    failed = []
    for record in event.get("Records", []):
        try:
            pipeline.handle_message(decode(record["body"]), deadline.remaining_ms)
        except RecordError as error:
            try:
                pipeline.world.failures.park(Failure("", None, str(error), record["messageId"]))
            except StoreError:
                failed.append(record["messageId"])
        except StoreError as error:
            logger.warning("message comes again", message_id=record["messageId"], reason=error.reason)
            failed.append(record["messageId"])
    emit(pipeline.telemetry)
    return answer(failed)
